"""One source per list that is no feed: a JSON API, pages of HTML, a sitemap, a watched page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import msgspec

from tidings.discover.feed import FeedEntry
from tidings.discover.feed.entry import newest_first
from tidings.discover.listing import EntryListing, ListingLook, ReadListing
from tidings.model.contracts import Kit
from tidings.model.item import Finding
from tidings.model.pipeline import Page, Run, Schedule
from tidings.model.source_definition import SourceDefinition
from tidings.model.urls import canonical_url, public_host
from tidings.pipelines.feeds.body import PIPELINE, entry_finding
from tidings.pipelines.feeds.rhythm import Bounds, Rhythm, next_look_seconds, rhythm_of_times
from tidings.pipelines.feeds.sieve import sieved, told

PAGE_FINDINGS_MAX = 500


class ListingMark(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the last completed run saw."""

    digest: str = ""
    rhythm: Rhythm = Rhythm()


@dataclass(frozen=True)
class ListingSource:
    """The source `feeds.<name>`."""

    feed: str
    definition: SourceDefinition
    read: ReadListing
    bounds: Bounds = Bounds()
    reads_pages: bool = True
    """Whether there is more to read behind an entry: what a watched page says stands in its entry."""

    @property
    def name(self) -> str:
        """Its name among all sources."""
        return f"{PIPELINE}.{self.feed}"

    @property
    def address(self) -> str:
        """What it is told apart by."""
        return canonical_url(self.definition.address)

    def called(self, name: str) -> ListingSource:
        """Return it under the name that the store gave it."""
        return replace(self, feed=name.removeprefix(f"{PIPELINE}."))

    def places(self, cursor: Any) -> tuple[str, ...]:  # noqa: ARG002 - lists are not followed where they move to
        """Return the address that is asked."""
        return (self.address,)

    @property
    def schedule(self) -> Schedule:
        """When to ask, until its own rhythm is known."""
        if self.definition.cron is not None:
            return Schedule(cron=self.definition.cron)
        return Schedule(every_seconds=self.bounds.fixed_seconds or self.bounds.usual_seconds)

    async def pages(self, run: Run, kit: Kit) -> AsyncIterator[Page]:
        """Yield the entries, or an empty page if they are those of the last completed run."""
        mark = _read_mark(run.mark)
        listing = await self.read(kit, self.definition.address, ListingLook(run.now_ms, run.cursor))
        digest = _digest(listing.entries)
        findings: tuple[Finding, ...] = ()
        note = listing.note
        if digest == mark.digest:
            note = note or "not changed"
        else:
            findings = self._findings(listing, run)
            mark = ListingMark(digest, rhythm_of_times([each.published_ms for each in listing.entries], run.now_ms))
        findings, kept_out = sieved(findings, self.definition, run.now_ms)
        while len(findings) > PAGE_FINDINGS_MAX:
            yield Page(findings[:PAGE_FINDINGS_MAX])
            findings = findings[PAGE_FINDINGS_MAX:]
        yield Page(
            findings,
            cursor=listing.cursor,
            mark=msgspec.to_builtins(mark),
            rejected=(*listing.rejected, *kept_out),
            next_check_seconds=None
            if self.definition.cron
            else next_look_seconds(mark.rhythm, {}, run.now_ms, self.bounds),
            note=told(kept_out, note),
            incomplete=listing.incomplete,
        )

    def _findings(self, listing: EntryListing, run: Run) -> tuple[Finding, ...]:
        title = self.definition.title or listing.title or public_host(self.definition.address)
        order = newest_first([each.published_ms for each in listing.entries])
        return tuple(
            entry_finding(
                self.feed,
                title,
                listing.entries[place],
                msgspec.structs.replace(self.definition, full_text=self.definition.full_text and self.reads_pages),
                run=run,
                summarized=not self.reads_pages,
            )
            for place in order
        )


def _digest(entries: Sequence[FeedEntry]) -> str:
    digest = blake2b(digest_size=16)
    for each in entries:
        digest.update("\0".join((each.id, each.title, each.url or "", each.content_html)).encode("utf-8", "replace"))
    return digest.hexdigest()


def _read_mark(value: object) -> ListingMark:
    try:
        return msgspec.convert(value or {}, ListingMark)
    except msgspec.ValidationError:
        return ListingMark()
