"""The work of each transition of the item workflow. All of it is pure: no waiting, no input or output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

import msgspec
from msgspec.structs import replace

from tidings.model.errors import Permanent
from tidings.model.item import AWAITS, PLACED, TOP, Link, above, ref
from tidings.model.outcome import Advance
from tidings.model.publication import Presentation, told_failed
from tidings.model.urls import browser_address, is_web_address
from tidings.model.workflow import Work
from tidings.net.sanitizer import safe_html, without_tags
from tidings.pipelines.hacker_news.body import KIND, OPTION, POLL, REPLY, ROOTS, ItemBody
from tidings.pipelines.hacker_news.cards import present
from tidings.pipelines.hacker_news.criteria import HOUR_MS, NEWER_ABOVE
from tidings.pipelines.hacker_news.merge import merge, withdraw

FIRST_TIME = 1_160_418_092
"""When the first item was posted, in Unix seconds: no item is older."""
AHEAD_SECONDS_MAX = 86_400
ERROR_CHARS_MAX = 500
STACK_CHARS_MAX = 8_000

_NEW_LIFE = {"retry_count": 0, "last_failure_at": None, "error": None, "stack": None, "retry_attempt_at": None}


def ingest(work: Work) -> Advance:
    """Note where the item came from and when. One that failed before and was revived begins a new life."""
    body: ItemBody = work.body
    missing = "type is missing" if body.type is None else None
    since = body.ingested_at or work.now_ms
    ingested = replace(body, ingested_at=since, source_type=body.source_type or "UNKNOWN")
    return Advance(replace(ingested, **_NEW_LIFE) if body.retry_count else ingested, note=missing)


def validate(work: Work) -> Advance:
    """Check time, address and score; clean the HTML of title and text."""
    body: ItemBody = work.body
    _check_time(body.time, work.now_ms)
    url = body.url if body.url is None else browser_address(body.url)
    if url is not None and not is_web_address(url):
        raise Permanent(f"url: {url[:200]!r} is no web address", cause="url: no web address")
    if body.score is not None and body.score < 0:
        raise Permanent(f"score: {body.score} is negative", cause="score: negative")
    title, text = body.title, body.text
    return Advance(
        replace(
            body,
            url=url,
            title=title if title is None else without_tags(title),
            text=text if text is None else safe_html(text),
            last_updated=work.now_ms,
        )
    )


def deduplicate(work: Work) -> Advance:
    """Merge the item into the one readers know, if there is one and it is older in any field."""
    body: ItemBody = work.body
    accepted: ItemBody | None = work.accepted
    if accepted is None:
        only = withdraw(body) if body.deleted else body
        return Advance(replace(only, arrival=body.arrival or "new"))
    merged, changed = merge(accepted, body)
    if not changed:
        return Advance(replace(merged, arrival="duplicate"), note="duplicate: nothing newer in it")
    return Advance(replace(merged, arrival="updated"), note=f"updated: {', '.join(changed)}")


def named_above(work: Work) -> Iterable[str]:
    """Name the items whose knowledge `resolve_hierarchy` wants: what is named as standing above, where it is newer.

    An item that was here before also asks who names it as a kid. A new one need not: if it names another parent, the
    settle notices that, and it begins again.
    """
    body: ItemBody = work.body
    accepted: ItemBody | None = work.accepted
    named = _newer(body) if accepted is None else [*_newer(body), *_newer(accepted)]
    is_known = accepted is not None or body.indexed_at is not None or work.revision > 1 or body.retry_count > 0
    if not named and not is_known:
        return ()
    relation, stated = _above(body)
    claims = [above(ref(KIND, work.key), relation)] if is_known and stated is not None else []
    return [*(ref(KIND, str(each)) for each in dict.fromkeys(named)), *claims]


def resolve_hierarchy(work: Work) -> Advance:
    """State what belongs to what: the parent this item names, the replies and the options it names.

    Links may point to items not here yet; they join when these arrive. What a parent says of its kids outweighs what a
    kid says of its parent, which repairs wrong parents. What stands at the top of a thread says so.

    A reply is younger than what it replies to, so ids grow downward and no circle can close. The exception is real:
    moderators move comments to newer stories. A story stands at the top, so such a step up is harmless, but it is made
    only when the story is known. Until then it is awaited; if it turns out to be no story, this item is refused, even
    if readers have seen it by then.
    """
    body: ItemBody = work.body
    if work.related and (refusal := _refusal(body, work.related)):
        has_been_shown = body.indexed_at is not None or body.misplaced is not None
        shown: ItemBody | None = work.accepted or (body if has_been_shown else None)
        if shown is None or not _refusal(shown, work.related):
            raise Permanent(refusal, cause=NEWER_ABOVE)
        return Advance(replace(body, misplaced=refusal), links=())
    own = ref(KIND, work.key)
    links: list[Link] = []
    notes: list[str] = []
    relation, stated = _above(body)
    placed: int | None = None
    if stated is not None:
        name = ref(KIND, str(stated))
        placed = _claimed(work, relation, stated)
        if stated > body.id and name not in work.related:
            relation = AWAITS
        links.append(Link(own, name, relation))
        if placed is not None:
            links.append(Link(own, ref(KIND, str(placed)), PLACED))
            notes.append(f"stands below {placed}, which names it; it names {stated} itself")
    elif body.type in ROOTS:
        links.append(Link(own, TOP, REPLY))
        if body.type == "poll":
            links.append(Link(own, TOP, OPTION))
    kids = _fit(body, body.kids, ROOTS, notes) if body.kids else body.kids
    parts = _fit(body, body.parts, POLL, notes) if body.parts else body.parts
    if kids:
        links += [Link(ref(KIND, str(kid)), own, REPLY, at) for at, kid in enumerate(kids)]
    if parts:
        links += [Link(ref(KIND, str(part)), own, OPTION, at) for at, part in enumerate(parts)]
    # What stands at the top has no parent, whatever a copy says; only an option has a poll.
    parent = None if body.type in ROOTS else body.parent
    poll = body.poll if body.type == "pollopt" else None
    is_as_given = kids is body.kids and parts is body.parts and body.misplaced is None and body.placed_below == placed
    if is_as_given and parent == body.parent and poll == body.poll:
        return Advance(links=tuple(links), note="; ".join(notes) or None)
    whole = replace(body, misplaced=None, placed_below=placed, kids=kids, parts=parts, parent=parent, poll=poll)
    return Advance(whole, links=tuple(links), note="; ".join(notes) or None)


def index(work: Work) -> Advance:
    """Note when the item became searchable; card and document are made from the body by `present`."""
    return Advance(replace(work.body, indexed_at=work.now_ms))


def record_failure(
    work: Work, *, max_retries: int = 3, window_ms: int = 24 * HOUR_MS, base_ms: int = 60_000
) -> Advance:
    """Keep what went wrong, count it, and ask to be woken for another try while that is allowed.

    Readers keep what they know where a newer copy failed; its card says so. A copy they know that fails is withdrawn.
    """
    body: ItemBody = work.body
    failures = body.retry_count + 1
    failed = replace(
        body,
        retry_count=failures,
        last_failure_at=work.now_ms,
        error=(work.error or "marked as failed by hand")[:ERROR_CHARS_MAX],
        stack=work.stack[-STACK_CHARS_MAX:] if work.stack else None,
    )
    wait_ms = base_ms * 4 ** (failures - 1)
    if failures < max_retries and wait_ms < window_ms:
        note = f"failure {failures} of {max_retries}: next try in {wait_ms // 1000} s"
        return Advance(failed, due_at=work.now_ms + wait_ms, note=note, presentation=_of_failed(work))
    note = f"failure {failures} of {max_retries}: permanently failed"
    return Advance(failed, note=note, presentation=_of_failed(work))


def _of_failed(work: Work) -> Presentation | msgspec.UnsetType | None:
    """Return what readers see of a failed item; nothing changes where they never saw it."""
    if work.body.indexed_at is not None or work.body.misplaced is not None:
        return None
    if work.accepted is None:
        return msgspec.UNSET
    shown = present(work.key, work.accepted)
    return told_failed(shown, "failed") if shown is not None else None


def prepare_retry(work: Work) -> Advance:
    """Forget the flags and the error of the last try; keep the count of failures and the time of the last.

    The item goes on as ingested, so one that failed before it was ingested gets its marks here.
    """
    body: ItemBody = work.body
    fresh = replace(
        body,
        source_type=body.source_type or "UNKNOWN",
        ingested_at=body.ingested_at or work.now_ms,
        last_updated=None,
        arrival=None,
        indexed_at=None,
        error=None,
        stack=None,
        retry_attempt_at=work.now_ms,
    )
    return Advance(fresh, note=f"another try after failure {body.retry_count}")


def _check_time(time: int | None, now_ms: int) -> None:
    if time is not None and not FIRST_TIME <= time <= now_ms // 1000 + AHEAD_SECONDS_MAX:
        raise Permanent(f"time: {time} is no plausible Unix time of an item", cause="time: not plausible")


def _above(item: ItemBody) -> tuple[str, int | None]:
    """Return how an item of its type belongs to what it names, and what that is."""
    if item.type == "comment":
        return REPLY, item.parent
    return OPTION, item.poll if item.type == "pollopt" else None


def _claimed(work: Work, relation: str, stated: int) -> int | None:
    """Return what names this item as its own, where that is not what the item names."""
    found: ItemBody | None = work.related.get(above(ref(KIND, work.key), relation))
    return None if found is None or found.id == stated else found.id


def _newer(item: ItemBody) -> list[int]:
    """Return what an item names that is newer than itself, whatever its type: another copy may decide that."""
    return [each for each in (item.parent, item.poll) if each is not None and each > item.id]


def _refusal(item: ItemBody, related: Mapping[str, ItemBody]) -> str | None:
    """Say why an item cannot stand below what it names, if that is newer and known."""
    relation, stated = _above(item)
    found = related.get(ref(KIND, str(stated))) if stated is not None and stated > item.id else None
    field, tops = ("parent", ROOTS) if relation == REPLY else ("poll", POLL)
    if found is None or found.type in tops:
        return None
    return f"{field}: {stated} is a {found.type} newer than {item.id}, which cannot belong to it"


def _fit(body: ItemBody, named: tuple[int, ...], tops: AbstractSet[str], notes: list[str]) -> tuple[int, ...] | None:
    """Return the ids that may stand below this item, once each, in order; note the others."""
    is_root = body.type in tops
    stated = _above(body)[1]
    fit = {kid: None for kid in named if (kid > body.id and kid != stated) or (is_root and 0 < kid != body.id)}
    if len(fit) == len(named):
        return named
    unfit = [str(kid) for kid in named if kid not in fit]
    if unfit:
        notes.append(f"cannot stand below {body.id}: {', '.join(unfit[:20])}")
    return tuple(fit) or None
