"""The work of each transition of the issue workflow: details, claims, freshness, analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from tidings.model.answers import IssueFacts
from tidings.model.clock import DAY_MS, read_time, rfc3339
from tidings.model.contracts import Kit
from tidings.model.errors import Transient
from tidings.model.item import Link, fingerprint, ref
from tidings.model.outcome import Advance, Outcome
from tidings.model.workflow import Work
from tidings.pipelines.first_issues.body_issue import IssueBody, with_issue
from tidings.pipelines.first_issues.body_repo import PIPELINE, TEXT_CHARS_MAX
from tidings.pipelines.first_issues.claims import Comment, find_claim
from tidings.pipelines.first_issues.client import (
    MOVED,
    GitHubClient,
    is_pull_request,
    json_list,
    json_object,
    links,
    text_of,
)
from tidings.process.enrich.local import read_issue

FRESH_MS = 30 * DAY_MS
QUIET_MS = 180 * DAY_MS
LOOK_AGAIN_MS = 90 * DAY_MS
RELATION = "issue_of"
MAINTAINERS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
"""What GitHub calls those who may change the code."""
MAINTAINER_COMMENTS_MAX = 10
MAINTAINER_COMMENT_CHARS_MAX = 2_000
ANALYSIS_VERSION = 2
"""Changes with the meaning of an analysis; one of an older version is made again and not shown."""


@dataclass(frozen=True, slots=True)
class Details:
    """Reads an issue and its comments."""

    github: GitHubClient
    claim_holds_ms: int = 45 * DAY_MS

    async def __call__(self, work: Work, kit: Kit) -> Outcome:
        """Read the whole issue and who asked for it."""
        body: IssueBody = carried_over(work.body, work.accepted)
        link = Link(ref("issue", work.key), ref("repo", body.repo_key), RELATION, body.number)
        if body.state != "unlisted":
            body = await self._details(body, work, kit)
        return Advance(replace(body, detailed_at=work.now_ms), links=(link,))

    async def _details(self, body: IssueBody, work: Work, kit: Kit) -> IssueBody:
        path = f"/repos/{body.repo}/issues/{body.number}"
        response = await self.github.get(kit, path, conditional=False)
        if response.status in MOVED:
            return await self._after_move(body, response.headers.get("location", ""), work, kit)
        if response.status in (404, 410, 451):
            return replace(body, state="deleted")
        return await self._read(body, json_object(response, path), path, work, kit)

    async def _after_move(self, body: IssueBody, location: str, work: Work, kit: Kit) -> IssueBody:
        """Follow once: a renamed repository still has the issue, a transferred issue belongs to another repository."""
        response = await self.github.get(kit, location, conditional=False)
        if response.status != 200:
            return replace(body, state="deleted")
        data = json_object(response, location)
        if data.get("number") != body.number:
            return replace(body, state="moved")
        return await self._read(body, data, location, work, kit)

    async def _read(self, body: IssueBody, data: Any, path: str, work: Work, kit: Kit) -> IssueBody:
        body = replace(with_issue(body, data), text=(text_of(data, "body") or "")[:TEXT_CHARS_MAX])
        if is_pull_request(data):
            return replace(body, state="unlisted")
        if body.state == "open" and body.vanished:
            # It is open and yet not in the list of its label: the label was taken off.
            return replace(body, state="unlisted")
        comments = await self._comments(body, path, kit) if body.state == "open" and body.comments else []
        told = [each for each in comments if each.association in MAINTAINERS]
        claim = find_claim(body.assignees, comments, now_ms=work.now_ms, holds_ms=self.claim_holds_ms)
        return replace(
            body,
            claimed_by=claim.by if claim else None,
            claimed_how=claim.way if claim else None,
            claimed_at=rfc3339(claim.at_ms) if claim else None,
            freshness=freshness(body, work.now_ms),
            answered=any(each.author != body.author for each in told) if comments or not body.comments else None,
            maintainer_comments=[
                each.text[:MAINTAINER_COMMENT_CHARS_MAX]
                for each in told[-MAINTAINER_COMMENTS_MAX:]
                if each.text.strip()
            ],
        )

    async def _comments(self, body: IssueBody, path: str, kit: Kit) -> list[Comment]:
        """Read the first comments and, of a long conversation, the last; assigned issues need none."""
        if body.assignees:
            return []
        address = f"{path.partition('?')[0]}/comments"
        response = await self.github.get(kit, address, {"per_page": "100"}, conditional=False)
        if response.status != 200:
            raise Transient(f"{body.repo}#{body.number} is there but its comments are not ({response.status})")
        comments = json_list(response, address)
        last = links(response.headers).get("last")
        if last is not None:
            response = await self.github.get(kit, last, conditional=False)
            comments += json_list(response, address) if response.status == 200 else []
        return [comment for each in comments if (comment := _comment(each)) is not None]


def carried_over(body: IssueBody, accepted: IssueBody | None) -> IssueBody:
    """Bring what readers see into a new revision: an unchanged text needs no second analysis."""
    if accepted is None or body.detailed_at is not None:
        return replace(body, error=None)
    if body.vanished or body.state == "unlisted":
        # The finding of such an issue says only that it is no longer listed.
        return replace(accepted, repo=body.repo, state=body.state, vanished=body.vanished, error=None)
    return replace(
        body,
        introduction=accepted.introduction,
        difficulty=accepted.difficulty,
        reasons=accepted.reasons,
        first_steps=accepted.first_steps,
        names_little=accepted.names_little,
        has_steps=accepted.has_steps,
        analysis_of=accepted.analysis_of,
        analysis_version=accepted.analysis_version,
        analyzed_by=accepted.analyzed_by,
        first_shown_at=accepted.first_shown_at,
    )


def _comment(data: Any) -> Comment | None:
    user = data.get("user")
    author = text_of(user, "login") if isinstance(user, dict) else None
    at_ms = read_time(text_of(data, "created_at"))
    if author is None or at_ms is None or author.endswith("[bot]") or user.get("type") == "Bot":
        return None
    return Comment(author, text_of(data, "body") or "", at_ms, text_of(data, "author_association") or "NONE")


def freshness(body: IssueBody, now_ms: int) -> Literal["fresh", "quiet", "stale"]:
    """Tell how lately an issue moved: within 30 days, within 180, or longer ago."""
    age_ms = now_ms - (read_time(body.updated_at) or body.found_at)
    if age_ms < FRESH_MS:
        return "fresh"
    return "quiet" if age_ms < QUIET_MS else "stale"


def look_again_at(body: IssueBody, now_ms: int, claim_holds_ms: int) -> int:
    """Return when what we say of an issue may be wrong by mere passing of time."""
    moved_ms = read_time(body.updated_at) or body.found_at
    moments = [now_ms + LOOK_AGAIN_MS, moved_ms + FRESH_MS, moved_ms + QUIET_MS]
    claimed_ms = read_time(body.claimed_at)
    if claimed_ms is not None:
        moments.append(claimed_ms + claim_holds_ms)
    return min(moment for moment in moments if moment > now_ms)


def issue_facts(body: IssueBody, now_ms: int) -> IssueFacts:
    """Return what an analysis is made of."""
    opened_ms = read_time(body.created_at)
    return IssueFacts(
        title=body.title,
        body=body.text,
        labels=body.labels,
        comments=body.comments,
        age_days=max(0, now_ms - opened_ms) // DAY_MS if opened_ms is not None else 0,
        repo=body.repo,
        language=body.language,
        by_maintainer=body.author_association in MAINTAINERS,
        maintainer_comments=body.maintainer_comments,
    )


async def analyze(work: Work, kit: Kit) -> Outcome:
    """Ask for introduction, difficulty and first steps, unless the facts are those of the last answer."""
    body: IssueBody = work.body
    facts = issue_facts(body, work.now_ms)
    mark = fingerprint(msgspec.to_builtins(replace(facts, age_days=0)))
    is_current = body.analysis_of == mark and body.analysis_version == ANALYSIS_VERSION
    if body.introduction is not None and is_current:
        return Advance(note="the facts are the same, the analysis stands")
    answer, provenance = await kit.enricher.analyze_issue(facts, pipeline=PIPELINE)
    reading = read_issue(facts)
    changed = replace(
        body,
        introduction=answer.introduction,
        difficulty=answer.difficulty,
        reasons=answer.reasons,
        first_steps=answer.first_steps,
        names_little=reading.names_little,
        has_steps=reading.has_steps,
        analysis_of=mark,
        analysis_version=ANALYSIS_VERSION,
        analyzed_by=provenance,
    )
    return Advance(changed, provenance=provenance)


def publish(work: Work, *, claim_holds_ms: int) -> Outcome:
    """Show the issue until it changes, or until time alone makes it another."""
    body: IssueBody = replace(work.body, processed_at=work.now_ms, error=None)
    if body.first_shown_at is None:
        body = replace(body, first_shown_at=work.now_ms)
    return Advance(body, due_at=look_again_at(body, work.now_ms, claim_holds_ms))


def close(work: Work, *, keep_closed_ms: int) -> Outcome:
    """Mark the issue as closed; its card stays for a while."""
    return Advance(replace(work.body, processed_at=work.now_ms, error=None), due_at=work.now_ms + keep_closed_ms)


def forget(work: Work) -> Outcome:
    """Take a closed issue's card away."""
    return Advance(replace(work.body, forgotten=True))


def mark_failed(work: Work) -> Outcome:
    """Show that the last try failed, beside whatever readers had before."""
    body = carried_over(work.body, work.accepted)
    if work.accepted is not None and body.detailed_at is None:
        body = replace(body, text=work.accepted.text, processed_at=work.accepted.processed_at)
    return Advance(replace(body, error=work.error or "marked as failed by hand"))
