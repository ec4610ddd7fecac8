"""One form of an article for all providers, and one key for it, whichever provider lists it.

What a provider says of an article (a *sighting*) is remembered under a name that only this provider's source writes.
A finding is made of all sightings known so far by a rule that does not depend on who came last. So the second
provider's copy changes an article at most once, and two providers that spell a headline differently never take
turns in overwriting each other.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import TypeVar

import msgspec

from tidings.model.clock import DAY_MS
from tidings.model.contracts import Ledger
from tidings.model.item import LOW, NORMAL, Finding, fingerprint
from tidings.model.urls import canonical_url, public_host
from tidings.pipelines.bitcoin_news.body import KIND, PIPELINE, PROVIDERS, Article, Provider, Sighting

_T = TypeVar("_T")

SIGHTINGS = f"{PIPELINE}.sightings"
FUTURE_MS_MAX = 3_600_000
"""Clocks differ; a date further ahead is a mistake."""
TITLE_CHARS_MAX = 500
DESCRIPTION_CHARS_MAX = 2_000

_ENCODER = msgspec.json.Encoder()
_SIGHTING = msgspec.json.Decoder(Sighting)
_PLACEHOLDER = re.compile(r"^\s*ONLY AVAILABLE IN\b", re.IGNORECASE)
_UPSELL = re.compile(r"\s*\[(?:Upgrade subscription plan|Test mode\b[^\]]{0,100})\]\s*", re.IGNORECASE)
_BYLINE = re.compile(r"^[\w. ]{2,40} by (?=\S)")
_IDENTITY = re.compile(r"^https?://(?:www\.)?")


def article_id(link: str) -> str:
    """Return the stable id of an article: a short hash of its canonical address.

    The scheme, a leading `www.` and a closing slash do not count: providers differ in them.
    """
    address, _, query = canonical_url(link).partition("?")
    identity = f"{_IDENTITY.sub('', address).rstrip('/')}?{query}"
    return blake2b(identity.encode(), digest_size=8).hexdigest()


async def findings_of(
    sightings: Sequence[Sighting], ledger: Ledger, now_ms: int, keep_days: float
) -> tuple[Finding, ...]:
    """Remember what a provider showed, and make findings of everything known about those articles."""
    by_id: dict[str, Sighting] = {}
    for sighting in sightings:
        by_id.setdefault(article_id(sighting.link), sighting)
    return tuple(await asyncio.gather(*(_finding(id_, s, ledger, now_ms, keep_days) for id_, s in by_id.items())))


async def _finding(id_: str, sighting: Sighting, ledger: Ledger, now_ms: int, keep_days: float) -> Finding:
    # Ours is written before theirs are read: of two providers at work at once, at least one sees both.
    ours = await _remember(id_, sighting, ledger, keep_days)
    others = await asyncio.gather(*(_recall(id_, name, ledger) for name in PROVIDERS if name != ours.provider))
    return finding(combine(id_, [ours, *(other for other in others if other is not None)], now_ms), now_ms)


async def seen_by_now(id_: str, ledger: Ledger, now_ms: int) -> Article | None:
    """Return what all providers together say by now; None where nothing is remembered any more."""
    sightings = await asyncio.gather(*(_recall(id_, name, ledger) for name in PROVIDERS))
    known = [sighting for sighting in sightings if sighting is not None]
    return combine(id_, known, now_ms) if known else None


async def _remember(id_: str, sighting: Sighting, ledger: Ledger, keep_days: float) -> Sighting:
    before = await _recall(id_, sighting.provider, ledger)
    if before is not None:
        if before.listing != sighting.listing:
            # Another feed carried it first: one of the two speaks for the provider, always the same.
            return before
        # A provider may list one address under two ids; the first one stays.
        sighting = msgspec.structs.replace(sighting, provider_id=before.provider_id, seen_ms=before.seen_ms)
    if sighting != before:
        await ledger.put(
            SIGHTINGS, f"{id_}/{sighting.provider}", _ENCODER.encode(sighting), round(keep_days * DAY_MS / 1000)
        )
    return sighting


async def _recall(id_: str, provider: Provider, ledger: Ledger) -> Sighting | None:
    stored = await ledger.get(SIGHTINGS, f"{id_}/{provider}")
    if stored is None:
        return None
    try:
        return _SIGHTING.decode(stored)
    except msgspec.DecodeError:
        return None  # Written by another version; the provider will tell again.


def combine(id_: str, sightings: Sequence[Sighting], now_ms: int) -> Article:
    """Make one article of several sightings; the order in which they came does not matter."""
    ranked = sorted(sightings, key=lambda s: PROVIDERS.index(s.provider))
    best = ranked[0]
    found_ms = min(s.seen_ms for s in ranked)
    published_ms = _first(s.published_ms for s in ranked if s.published_ms and s.published_ms <= now_ms + FUTURE_MS_MAX)
    judge = next((s for s in ranked if s.sentiment is not None), None)
    return Article(
        id=id_,
        title=best.title,
        link=best.link,
        source=_first(s.source for s in sorted(ranked, key=_names_first)) or public_host(best.link),
        published_ms=published_ms if published_ms is not None else found_ms,
        found_ms=found_ms,
        date_is_guess=published_ms is None,
        description=_first(s.description for s in ranked),
        author=_first(s.author for s in ranked),
        image=_first(s.image for s in ranked),
        language=_first(s.language for s in ranked),
        categories=next((s.categories for s in ranked if s.categories), ()),
        providers={s.provider: s.provider_id for s in ranked},
        words_by=best.provider,
        provider_sentiment=judge.sentiment if judge else None,
        provider_sentiment_score=judge.sentiment_score if judge else None,
        provider_sentiment_by=judge.provider if judge else None,
    )


def _names_first(sighting: Sighting) -> int:
    """Rank by how good an outlet's name is: NewsData.io keeps a list of names, APITube knows only hosts."""
    return ("newsdata", "rss", "apitube").index(sighting.provider)


def finding(article: Article, now_ms: int) -> Finding:
    """Wrap an article for the intake log. Only its words count as a change.

    Who else lists it, and a provider's judgment, are read again when it is judged: a second provider costs nothing.
    """
    counts = (article.title, article.description)
    return Finding(
        pipeline=PIPELINE,
        kind=KIND,
        key=article.id,
        fingerprint=fingerprint(*counts),
        payload=_ENCODER.encode(article),
        # What is a day old when we first see it is a backlog: today's news goes first.
        priority=LOW if now_ms - article.published_ms > DAY_MS else NORMAL,
    )


def real_text(value: object, limit: int) -> str | None:
    """Return a provider's text in one line, or None: missing, empty, or a free plan's advertisement in its place."""
    if not isinstance(value, str) or _PLACEHOLDER.match(value):
        return None
    text = " ".join(_UPSELL.sub(" ", value[: limit * 4]).split())
    return text[:limit].rstrip() or None


def real_list(value: object, limit: int = 30) -> tuple[str, ...]:
    """Return a provider's list of words; a single string with commas counts as a list, a placeholder as none."""
    values = value if isinstance(value, list) else [value]
    words = (real_text(part, 100) for entry in values[:100] for part in _parts(entry))
    return tuple(dict.fromkeys(word for word in words if word))[:limit]


def title_of(value: object, source: str | None) -> str | None:
    """Return a headline without the publisher's name that some lists hang on it."""
    title = real_text(value, TITLE_CHARS_MAX)
    return title.removesuffix(f" - {source}").rstrip() or title if title and source else title


def author_of(value: object) -> str | None:
    """Return a byline without the outlet in front: `Outlet by Name` is Name."""
    name = real_text(value, 200)
    return _BYLINE.sub("", name) if name else None


def _parts(entry: object) -> list[str]:
    if not isinstance(entry, str) or _PLACEHOLDER.match(entry):
        return []
    return entry.split(",")


def _first(values: Iterable[_T | None]) -> _T | None:
    return next((value for value in values if value), None)
