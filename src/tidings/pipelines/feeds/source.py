"""One source per feed: conditional, patient, and able to find the feed a site announces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from tidings.discover.feed import FeedGone, ParsedFeed, known_addresses, poll_feed
from tidings.model.contracts import Kit
from tidings.model.item import Finding, Rejected
from tidings.model.pipeline import Page, Run, Schedule
from tidings.model.source_definition import SourceDefinition
from tidings.model.urls import canonical_url, public_host
from tidings.pipelines.feeds.body import PIPELINE, entry_finding
from tidings.pipelines.feeds.rhythm import Bounds, Rhythm, next_look_seconds, rhythm_of
from tidings.pipelines.feeds.sieve import sieved, told

PAGE_FINDINGS_MAX = 500
"""What is written in one transaction; a large feed is several pages."""


class FeedMark(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the last completed run saw."""

    digest: str = ""
    rhythm: Rhythm = Rhythm()


@dataclass(frozen=True)
class FeedSource:
    """The source `feeds.<feed>`."""

    feed: str
    definition: SourceDefinition
    bounds: Bounds = Bounds()
    feed_url: str = ""
    """Where the feed is, if not at the definition's address: a preset tells it from that."""

    @property
    def name(self) -> str:
        """The feed's name among all sources."""
        return f"{PIPELINE}.{self.feed}"

    @property
    def url(self) -> str:
        """Where it is asked, here and by `doctor`."""
        return self.feed_url or self.definition.address

    @property
    def address(self) -> str:
        """What it is told apart by."""
        return canonical_url(self.definition.address)

    def called(self, name: str) -> FeedSource:
        """Return it under the name that the store gave it."""
        return replace(self, feed=name.removeprefix(f"{PIPELINE}."))

    def places(self, cursor: Any) -> tuple[str, ...]:
        """Return the addresses that a kept cursor tells of."""
        return known_addresses(cursor)

    @property
    def schedule(self) -> Schedule:
        """When to ask, until the feed's own rhythm is known."""
        if self.definition.cron is not None:
            return Schedule(cron=self.definition.cron)
        return Schedule(every_seconds=self.bounds.fixed_seconds or self.bounds.usual_seconds)

    async def pages(self, run: Run, kit: Kit) -> AsyncIterator[Page]:
        """Yield the feed's entries as one page, or an empty one if it is as in the last completed run."""
        mark = _read_mark(run.mark)
        try:
            poll = await poll_feed(
                kit,
                self.url,
                cursor=run.cursor,
                digest=mark.digest,
                setting=f"{PIPELINE}.feeds",
            )
        except FeedGone as gone:
            # The run fails visibly, and its page keeps what it learned: later runs fail without asking.
            yield Page((), cursor=msgspec.to_builtins(gone.place))
            raise
        findings: tuple[Finding, ...] = ()
        rejected: tuple[Rejected, ...] = ()
        if poll.feed is not None:
            mark = FeedMark(poll.digest, rhythm_of(poll.feed, run.now_ms))
            findings, rejected = self._findings(poll.feed, run)
        findings, kept_out = sieved(findings, self.definition, run.now_ms)
        while len(findings) > PAGE_FINDINGS_MAX:
            yield Page(findings[:PAGE_FINDINGS_MAX])
            findings = findings[PAGE_FINDINGS_MAX:]
        yield Page(
            findings,
            cursor=msgspec.to_builtins(poll.place),
            mark=msgspec.to_builtins(mark),
            rejected=rejected + poll.rejected + kept_out,
            next_check_seconds=None
            if self.definition.cron
            else next_look_seconds(mark.rhythm, poll.response.headers, run.now_ms, self.bounds),
            note=told(kept_out, poll.note),
            incomplete=poll.incomplete,
        )

    def _findings(self, feed: ParsedFeed, run: Run) -> tuple[tuple[Finding, ...], tuple[Rejected, ...]]:
        findings: list[Finding] = []
        rejected: list[Rejected] = []
        title = self.definition.title or feed.title or public_host(feed.home or feed.url)
        for line, entry in enumerate(feed.entries, start=1):
            if not entry.title and not entry.summary_text and not entry.content_html:
                rejected.append(Rejected(line, f"entry {entry.id[:100]} has no words"))
                continue
            findings.append(entry_finding(self.feed, title, entry, self.definition, run=run))
        return tuple(findings), tuple(rejected)


def _read_mark(value: object) -> FeedMark:
    try:
        return msgspec.convert(value or {}, FeedMark)
    except msgspec.ValidationError:
        return FeedMark()
