"""Asks GitHub about one listed repository, and remembers what need not be asked again for a while."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from tidings.model.contracts import Kit
from tidings.model.errors import Transient
from tidings.model.item import Finding, fingerprint
from tidings.pipelines.first_issues.body_repo import PIPELINE, Availability, RepoBody, repo_from
from tidings.pipelines.first_issues.client import MOVED, OUT_OF_REACH, GitHubClient, block_reason, json_object
from tidings.pipelines.first_issues.lists import ListedRepo

KNOWN = "first_issues.known"
MOVED_SECONDS = 30 * 86_400


class KnownRepo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A redirect, or that a repository is out of reach."""

    id: int | None = None
    status: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Lookup:
    """The one metadata call of discovery."""

    github: GitHubClient
    recheck_gone_seconds: float = 7 * 86_400

    async def ask(self, entry: ListedRepo, now_ms: int, kit: Kit) -> tuple[RepoBody, int]:
        """Return what GitHub says of a repository, and how many calls that took.

        A redirect is followed once and remembered: the new address can be asked conditionally, the old one cannot.
        """
        record = await self._known(entry, kit)
        if record.status is not None:
            return out_of_reach(entry, record, now_ms), 0
        path = f"/repos/{entry.full_name}" if record.id is None else f"/repositories/{record.id}"
        response, calls = await self.github.get(kit, path, purpose="discovery"), 1
        if response.status in MOVED:
            location = response.headers.get("location", "")
            response, calls = await self.github.get(kit, location, purpose="discovery"), 2
        if response.status in OUT_OF_REACH:
            record = KnownRepo(status=response.status, reason=block_reason(response))
            await self._remember(entry, record, self.recheck_gone_seconds, kit)
            return out_of_reach(entry, record, now_ms), calls
        if response.status in MOVED:
            raise Transient(f"{entry.full_name} moved twice; it is followed in the next pass")
        body = repo_from(entry, json_object(response, path), now_ms)
        if body.full_name.lower() != entry.key and record.id is None:
            await self._remember(entry, KnownRepo(id=body.id), MOVED_SECONDS, kit)
        return body, calls

    async def _known(self, entry: ListedRepo, kit: Kit) -> KnownRepo:
        stored = await kit.ledger.get(KNOWN, entry.key)
        try:
            return KnownRepo() if stored is None else msgspec.json.decode(stored, type=KnownRepo)
        except msgspec.MsgspecError:
            return KnownRepo()

    async def _remember(self, entry: ListedRepo, record: KnownRepo, seconds: float, kit: Kit) -> None:
        await kit.ledger.put(KNOWN, entry.key, msgspec.json.encode(record), round(seconds))


def repo_finding(body: RepoBody) -> Finding:
    """Report a repository: what the list says of it and its count of open issues are what counts."""
    mark = fingerprint(body.full_name, body.tag, body.source, body.open_issues_count, body.availability)
    return Finding(PIPELINE, "repo", body.full_name.lower(), mark, msgspec.json.encode(body))


def withdrawn_finding(key: str, availability: Availability, reason: str, now_ms: int) -> Finding:
    """Report that a repository is to be found here no longer."""
    body = RepoBody(full_name=key, listed_as=key, availability=availability, reason=reason, found_at=now_ms)
    return Finding(PIPELINE, "repo", key, fingerprint(availability, reason), msgspec.json.encode(body))


def out_of_reach(entry: ListedRepo, record: KnownRepo, now_ms: int) -> RepoBody:
    """Report a repository that GitHub does not show."""
    availability: Availability = "blocked" if record.status == 451 else "gone"
    return msgspec.structs.replace(repo_from(entry, {}, now_ms), availability=availability, reason=record.reason)
