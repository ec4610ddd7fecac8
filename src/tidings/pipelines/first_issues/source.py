"""Finds repositories: one cheap call each, and the run always comes to its end.

A pass over the lists may take several runs. The cursor says where the next one goes on, and which repositories failed
and are asked again; a run that meets a rate limit stops early and wishes to be asked again when it is over. What the
last whole pass saw listed is kept as the mark, so that a repository taken off the lists is noticed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

import msgspec

from tidings.model.contracts import Kit
from tidings.model.errors import Permanent, SlowDown, Transient
from tidings.model.item import Finding, Rejected
from tidings.model.pipeline import Page, Run, Schedule
from tidings.pipelines.first_issues.body_repo import RepoBody
from tidings.pipelines.first_issues.lists import ListedRepo, RepoList
from tidings.pipelines.first_issues.lookup import Lookup, repo_finding, withdrawn_finding

PAGE_REPOSITORIES = 10
"""Few enough that a page is done before the turn at the source is lost, even if every call takes its full time."""
TRIES_AGAIN_MAX = 3
AGAIN_SECONDS = 300.0

ReadLists = Callable[[Kit], Awaitable[RepoList]]


class PassCursor(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a pass over the lists stands."""

    after: str | None = None
    """The last repository that was asked about."""
    again: list[str] = []
    """Those that failed."""
    tries: int = 0
    moved: dict[str, str] = {}
    """New names met in this pass, with the names they are listed under."""


class PassMark(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the last whole pass saw listed."""

    listed: list[str] = []
    moved: dict[str, str] = {}


Kept = TypeVar("Kept", PassCursor, PassMark)


@dataclass(slots=True)
class PageTally:
    """What one page has gathered so far."""

    findings: list[Finding] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    calls: int = 0
    wait: SlowDown | None = None


@dataclass(frozen=True)
class Discovery:
    """Reads the lists and asks GitHub about each repository in them."""

    name: str
    schedule: Schedule
    read_lists: ReadLists
    lookup: Lookup

    async def pages(self, run: Run, kit: Kit) -> AsyncIterator[Page]:
        """Walk the lists from where the last run stopped."""
        listing = await self.read_lists(kit)
        cursor, mark = _read(run.cursor, PassCursor), _read(run.mark, PassMark)
        listed = {entry.key: entry for entry in listing.entries}
        page = Page((), credits=1)
        if cursor == PassCursor():
            page = replace(page, rejected=listing.rejected, note="; ".join(listing.notes[:10]) or None)
        for batch in batches(remaining(listing.entries, cursor)):
            yield page
            tally = PageTally()
            for entry in batch:
                await self._look(entry, listed, {**mark.moved, **cursor.moved}, run, kit, tally)
                if tally.wait is not None:
                    break
                cursor = behind(cursor, entry, tally.moved)
            cursor = msgspec.structs.replace(cursor, again=[*dict.fromkeys([*cursor.again, *tally.failed])])
            page = _page(tally, cursor)
            if tally.wait is not None:
                yield stopped(page, tally.wait, cursor, listed)
                return
        yield finished(page, cursor, mark, listing, run.now_ms)
        if listing.trouble is not None:
            raise listing.trouble

    async def _look(
        self,
        entry: ListedRepo,
        listed: dict[str, ListedRepo],
        moved: dict[str, str],
        run: Run,
        kit: Kit,
        tally: PageTally,
    ) -> None:
        """Ask about one repository; its failure does not end the page."""
        try:
            body, calls = await self.lookup.ask(entry, run.now_ms, kit)
        except SlowDown as wait:
            tally.wait = wait
            return
        except (Transient, Permanent) as error:
            tally.calls += 1
            tally.failed.append(entry.key)
            tally.rejected.append(Rejected(entry.line, f"{entry.full_name}: {error}"))
            return
        tally.calls += calls
        key = body.full_name.lower()
        if key == entry.key:
            tally.findings.append(repo_finding(body))
            return
        self._found_elsewhere(entry, body, listed, moved, tally)

    def _found_elsewhere(
        self, entry: ListedRepo, body: RepoBody, listed: dict[str, ListedRepo], moved: dict[str, str], tally: PageTally
    ) -> None:
        """Take up a repository under its new name and retire the old one."""
        key = body.full_name.lower()
        tally.findings.append(withdrawn_finding(entry.key, "moved", f"renamed to {body.full_name}", body.found_at))
        known_as = key if key in listed else {**moved, **tally.moved}.get(key, entry.key)
        if known_as != entry.key and known_as in listed:
            reason = f"{entry.full_name} is now {body.full_name}, which is listed in place {listed[known_as].line}"
            tally.rejected.append(Rejected(entry.line, reason))
            return
        tally.moved[key] = entry.key
        tally.findings.append(repo_finding(body))


def _read(value: object, kind: type[Kept]) -> Kept:
    """Read what an earlier run left; an older shape counts as nothing."""
    try:
        return msgspec.convert(value or {}, kind)
    except msgspec.ValidationError:
        return kind()


def remaining(entries: tuple[ListedRepo, ...], cursor: PassCursor) -> list[ListedRepo]:
    """Return what a run still has to ask about."""
    if cursor.tries:
        return [entry for entry in entries if entry.key in cursor.again]
    keys = [entry.key for entry in entries]
    # A place that is no longer listed starts the pass again; known repositories cost a conditional call each.
    return list(entries[keys.index(cursor.after) + 1 :] if cursor.after in keys else entries)


def batches(entries: list[ListedRepo]) -> Iterator[list[ListedRepo]]:
    """Cut the work into pages; each is committed on its own."""
    for start in range(0, len(entries), PAGE_REPOSITORIES):
        yield entries[start : start + PAGE_REPOSITORIES]


def behind(cursor: PassCursor, entry: ListedRepo, moved: dict[str, str]) -> PassCursor:
    """Move the cursor behind an entry."""
    again = [key for key in cursor.again if key != entry.key] if cursor.tries else cursor.again
    return PassCursor(None if cursor.tries else entry.key, again, cursor.tries, {**cursor.moved, **moved})


def stopped(page: Page, wait: SlowDown, cursor: PassCursor, listed: dict[str, ListedRepo]) -> Page:
    """Close a run that has to wait: the pass goes on when the limit allows."""
    seconds = max(1.0, wait.retry_after_seconds or 60.0)
    place = f"after {listed[cursor.after].full_name}" if cursor.after in listed else "at its beginning"
    return replace(page, next_check_seconds=seconds, note=f"the pass waits {seconds:.0f} s {place}: {wait}")


def finished(page: Page, cursor: PassCursor, mark: PassMark, listing: RepoList, now_ms: int) -> Page:
    """Close a pass, or ask for another try at what failed."""
    listed = [entry.key for entry in listing.entries]
    done = PassCursor()
    if cursor.again and cursor.tries < TRIES_AGAIN_MAX:
        done = PassCursor(again=[key for key in cursor.again if key in listed], tries=cursor.tries + 1)
    seconds = AGAIN_SECONDS * 2 ** (done.tries - 1) if done.tries else None
    moved = {new: old for new, old in {**mark.moved, **cursor.moved}.items() if old in listed}
    dropped = [] if cursor.tries or listing.trouble else no_longer_listed(mark, listed, moved)
    note = page.note
    if seconds:
        note = f"{len(done.again)} repositories failed and are asked again in {seconds:.0f} s"
    kept = mark if listing.trouble else PassMark(listed, moved)
    return replace(
        page,
        findings=(*page.findings, *(withdrawn_finding(key, "unlisted", "no longer listed", now_ms) for key in dropped)),
        cursor=msgspec.to_builtins(done),
        mark=msgspec.to_builtins(kept),
        next_check_seconds=seconds,
        note=note,
    )


def no_longer_listed(mark: PassMark, listed: list[str], moved: dict[str, str]) -> list[str]:
    """Return the repositories that were taken off the lists; most of them at once is a broken list, not news."""
    current = {*listed, *moved}
    gone = [key for key in (*mark.listed, *mark.moved) if key not in current]
    return gone if len(gone) <= max(3, len(mark.listed) // 2) else []


def _page(tally: PageTally, cursor: PassCursor) -> Page:
    return Page(
        tuple(tally.findings),
        cursor=msgspec.to_builtins(cursor),
        rejected=tuple(tally.rejected),
        credits=tally.calls,
    )
