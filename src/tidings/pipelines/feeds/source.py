"""One source per feed: conditional, patient, and able to find the feed a site announces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from tidings.discover.feed import Feed, NotAFeed, find_feeds, parse_feed
from tidings.model.contracts import Kit
from tidings.model.errors import Misconfigured, Permanent
from tidings.model.item import Finding, Rejected
from tidings.model.pipeline import Page, Run, Schedule
from tidings.model.urls import public_host
from tidings.model.web import Response
from tidings.pipelines.feeds.entry import PIPELINE, entry_finding
from tidings.pipelines.feeds.rhythm import Bounds, Rhythm, next_look_seconds, rhythm_of

ACCEPT = (
    "application/rss+xml, application/atom+xml, application/feed+json, application/xml;q=0.9, text/xml;q=0.9, "
    "application/json;q=0.8, text/html;q=0.7, */*;q=0.1"
)
GONE = 410
CANDIDATES_MAX = 5


class Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where the feed really is: moved for good, or announced by the site that is configured."""

    configured: str = ""
    url: str = ""
    announced: bool = False


class Mark(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the last completed run saw."""

    digest: str = ""
    rhythm: Rhythm = Rhythm()


@dataclass(frozen=True)
class FeedSource:
    """The source `feeds.<feed>`."""

    feed: str
    url: str
    title: str | None = None
    full_text: bool = True
    bounds: Bounds = Bounds()

    @property
    def name(self) -> str:
        """The feed's name among all sources."""
        return f"{PIPELINE}.{self.feed}"

    @property
    def schedule(self) -> Schedule:
        """When to ask, until the feed's own rhythm is known."""
        return Schedule(every_seconds=self.bounds.fixed_seconds or self.bounds.usual_seconds)

    async def pages(self, run: Run, kit: Kit) -> AsyncIterator[Page]:
        """Yield the feed's entries as one page, or an empty one if it is as in the last completed run."""
        mark = _read_mark(run.mark)
        place = self._place(run.cursor)
        response, place, is_site = await self._fetch(place, kit)
        digest = blake2b(response.body, digest_size=16).hexdigest()
        # A stored copy that was fetched but never committed must still be read: the digest decides, not the 304.
        if digest == mark.digest:
            yield self._page(run, place, mark, response, note="not changed")
            return
        was_feed = bool(mark.digest) and not is_site
        feed, response, place = await self._parse(response, place, kit, was_feed=was_feed)
        digest = blake2b(response.body, digest_size=16).hexdigest()
        mark = Mark(digest, rhythm_of(feed, run.now_ms))
        findings, rejected = self._findings(feed, run.now_ms)
        yield self._page(run, place, mark, response, findings, rejected, note=_note(feed, place))

    def _place(self, cursor: object) -> Place:
        try:
            place = msgspec.convert(cursor or {}, Place)
        except msgspec.ValidationError:
            place = Place()
        # Another address in the settings ends what was learned of the old one.
        return place if place.url and place.configured == self.url else Place(self.url, self.url)

    async def _fetch(self, place: Place, kit: Kit) -> tuple[Response, Place, bool]:
        """Ask for the feed; tell also whether the site was asked instead, because what it announced is gone."""
        try:
            response = await kit.fetcher.page(place.url, accept=ACCEPT, conditional=True)
        except Permanent as error:
            if place.announced and error.status is not None:
                response, place, _ = await self._fetch(Place(self.url, self.url), kit)
                return response, place, True
            if error.status == GONE:
                raise Misconfigured(f"{error}: the feed is gone for good; remove it from {PIPELINE}.feeds") from error
            raise
        moved = response.permanently_moved_to
        return response, Place(self.url, moved, place.announced) if moved else place, False

    async def _parse(
        self, response: Response, place: Place, kit: Kit, *, was_feed: bool
    ) -> tuple[Feed, Response, Place]:
        """Read the feed; what is no feed may be a site that announces one."""
        try:
            return await _parsed(response), response, place
        except NotAFeed as error:
            if was_feed:
                # This address gave a feed before: now it gives a block page, and what that links to is not ours.
                raise
            return await self._announced(response, error, kit)

    async def _announced(self, site: Response, trouble: NotAFeed, kit: Kit) -> tuple[Feed, Response, Place]:
        for address in find_feeds(site.body, site.url)[:CANDIDATES_MAX]:
            try:
                response = await kit.fetcher.page(address, accept=ACCEPT, conditional=True)
                feed = await _parsed(response)
                found_at = response.permanently_moved_to or address
                return feed, response, Place(self.url, found_at, announced=True)
            except (NotAFeed, Permanent):
                continue
        raise trouble

    def _findings(self, feed: Feed, now_ms: int) -> tuple[tuple[Finding, ...], tuple[Rejected, ...]]:
        findings: list[Finding] = []
        rejected: list[Rejected] = []
        title = self.title or feed.title or public_host(feed.home or feed.url)
        for line, entry in enumerate(feed.entries, start=1):
            if not entry.title and not entry.summary_text and not entry.content_html:
                rejected.append(Rejected(line, f"entry {entry.id[:100]} has no words"))
                continue
            findings.append(entry_finding(self.feed, title, entry, full_text=self.full_text, now_ms=now_ms))
        if feed.dropped:
            rejected.append(Rejected(0, f"{feed.dropped} entries were repeated, or had neither address nor id"))
        return tuple(findings), tuple(rejected)

    def _page(
        self,
        run: Run,
        place: Place,
        mark: Mark,
        response: Response,
        findings: tuple[Finding, ...] = (),
        rejected: tuple[Rejected, ...] = (),
        note: str | None = None,
    ) -> Page:
        return Page(
            findings,
            cursor=msgspec.to_builtins(place),
            mark=msgspec.to_builtins(mark),
            rejected=rejected,
            next_check_seconds=next_look_seconds(mark.rhythm, response.headers, run.now_ms, self.bounds),
            note=note,
        )


async def _parsed(response: Response) -> Feed:
    content_type = response.headers.get("content-type")
    return await asyncio.to_thread(parse_feed, response.body, content_type, response.url)


def _read_mark(value: object) -> Mark:
    try:
        return msgspec.convert(value or {}, Mark)
    except msgspec.ValidationError:
        return Mark()


def _note(feed: Feed, place: Place) -> str | None:
    notes = []
    if place.announced:
        notes.append(f"the site announces {public_host(place.url)}'s feed")
    elif place.url != place.configured:
        notes.append(f"moved to {public_host(place.url)}")
    if feed.flaw:
        notes.append(f"not well-formed: {feed.flaw}")
    return "; ".join(notes)[:300] or None
