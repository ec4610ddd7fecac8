"""The work of each transition of the repository workflow: survey, summary, and issues as children."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from tidings.model.answers import RepoFacts
from tidings.model.clock import DAY_MS
from tidings.model.contracts import Kit
from tidings.model.errors import Transient
from tidings.model.item import Finding, fingerprint
from tidings.model.outcome import Advance, Outcome
from tidings.model.workflow import Work
from tidings.pipelines.first_issues.body_issue import IssueBody, issue_from, issue_key
from tidings.pipelines.first_issues.body_repo import PIPELINE, TEXT_CHARS_MAX, RepoBody, with_metadata
from tidings.pipelines.first_issues.client import GitHubClient, is_pull_request, json_object, label_names, readme_text
from tidings.pipelines.first_issues.labels import LabelMatch, match_label

LABEL_PAGES_MAX = 10
GUIDE = re.compile(
    r"\bcontributing(?:\.(?:md|rst|adoc|txt|html))\b|\bcontribut(?:ing|ion|or'?s?)[- ]guide|"
    r"^#{1,4}[^\n]{0,20}\b(?:contributing|how to contribute)\b",
    re.IGNORECASE | re.MULTILINE,
)
"""What a README says where the project tells newcomers how to take part."""
FACTS_MS = 6 * DAY_MS
"""How long languages, README and labels are taken as read; the issues are read every time."""


@dataclass(frozen=True, slots=True)
class Survey:
    """Reads a repository and the list of its issues."""

    github: GitHubClient
    issue_pages_max: int = 10

    async def __call__(self, work: Work, kit: Kit) -> Outcome:
        """Read what is due; new, changed and vanished issues become children."""
        body = carried_over(work.body, work.accepted)
        if body.availability != "available":
            return Advance(replace(body, issues=[]), children=tuple(withdrawn(work.key, body)), note=body.reason)
        if not has_facts(body, work.now_ms):
            body = await self._facts(body, work.now_ms, kit)
        numbers = set(body.issues)
        body, children = await self._issues(body, work, kit)
        gone = numbers.difference(body.issues)
        if body.issues_status == "cut":
            # A list that was cut says nothing about the issues behind the cut.
            body, gone = replace(body, issues=sorted(numbers.union(body.issues))), set()
        children += [vanished(work.key, body, number, work.now_ms) for number in sorted(gone)]
        return Advance(replace(body, surveyed_at=work.now_ms), children=tuple(children), note=survey_note(body))

    async def _facts(self, body: RepoBody, now_ms: int, kit: Kit) -> RepoBody:
        """Read what seldom changes."""
        if body.surveyed_at is not None:
            body = await self._metadata(body, kit)
        match = await self._label(body, kit)
        readme = await self._readme(body, kit)
        return replace(
            body,
            languages=await self._languages(body, kit),
            readme=readme,
            has_guide=GUIDE.search(readme) is not None,
            labels=list(match.names),
            label_status=match.status,
            label_note=match.note,
            facts_at=now_ms,
        )

    async def _metadata(self, body: RepoBody, kit: Kit) -> RepoBody:
        """Refresh what discovery read, perhaps long ago. Whether a repository is out of reach is left to discovery."""
        path = f"/repos/{body.full_name}"
        response = await self.github.get(kit, path)
        return with_metadata(body, json_object(response, path)) if response.status == 200 else body

    async def _languages(self, body: RepoBody, kit: Kit) -> dict[str, int]:
        response = await self.github.get(kit, f"{_path(body)}/languages")
        if response.status != 200:
            raise Transient(f"{body.full_name} was there, its languages are not ({response.status})")
        counted = json_object(response, f"{body.full_name}/languages")
        return {name: count for name, count in counted.items() if isinstance(count, int) and count >= 0}

    async def _readme(self, body: RepoBody, kit: Kit) -> str:
        response = await self.github.get(kit, f"{_path(body)}/readme")
        return readme_text(response, TEXT_CHARS_MAX) if response.status == 200 else ""

    async def _label(self, body: RepoBody, kit: Kit) -> LabelMatch:
        labels, _, response = await self.github.pages(kit, f"{_path(body)}/labels", {}, pages_max=LABEL_PAGES_MAX)
        if response.status != 200:
            raise Transient(f"{body.full_name} was there, its labels are not ({response.status})")
        return match_label(body.tag, label_names(labels))

    async def _issues(self, body: RepoBody, work: Work, kit: Kit) -> tuple[RepoBody, list[Finding]]:
        if body.archived or not body.has_issues:
            return replace(body, issues=[], issues_status="archived" if body.archived else "disabled"), []
        if not body.labels:
            return replace(body, issues=[], issues_status="no_label"), []
        listed, is_cut, status = await self._labelled(body, kit)
        if status == 410:
            return replace(body, issues=[], issues_status="disabled"), []
        if status != 200:
            raise Transient(f"{body.full_name} was there, its issues are not ({status})")
        body = replace(
            body, issues=sorted(data["number"] for data in listed), issues_status="cut" if is_cut else "listed"
        )
        return body, [issue_finding(issue_from(body, work.key, data, work.now_ms)) for data in listed]

    async def _labelled(self, body: RepoBody, kit: Kit) -> tuple[list[Any], bool, int]:
        """Read the open issues that carry every label, without pull requests."""
        params = {"state": "open", "sort": "updated", "direction": "desc"}
        # A comma joins labels in the query, so a label that holds one cannot be asked for.
        if not any("," in name for name in body.labels):
            params["labels"] = ",".join(body.labels)
        path = f"{_path(body)}/issues"
        entries, is_cut, response = await self.github.pages(kit, path, params, pages_max=self.issue_pages_max)
        wanted = {name.casefold() for name in body.labels}
        return only_issues(entries, wanted), is_cut, response.status


def _path(body: RepoBody) -> str:
    # By number: a repository that was renamed since keeps it.
    return f"/repositories/{body.id}" if body.id is not None else f"/repos/{body.full_name}"


def carried_over(body: RepoBody, accepted: RepoBody | None) -> RepoBody:
    """Bring what earlier work learned into a new revision, so that nothing is asked or paid for twice."""
    body = replace(body, error=None)
    if accepted is None or body.surveyed_at is not None or accepted.surveyed_at is None:
        return body
    body = replace(
        body,
        issues=accepted.issues,
        summary=accepted.summary,
        summary_of=accepted.summary_of,
        summarized_by=accepted.summarized_by,
    )
    if (body.full_name, body.tag) != (accepted.full_name, accepted.tag):
        return body
    return replace(
        body,
        languages=accepted.languages,
        readme=accepted.readme,
        has_guide=accepted.has_guide,
        labels=accepted.labels,
        label_status=accepted.label_status,
        label_note=accepted.label_note,
        facts_at=accepted.facts_at,
    )


def has_facts(body: RepoBody, now_ms: int) -> bool:
    """Tell whether what seldom changes was read lately."""
    return body.facts_at is not None and now_ms - body.facts_at < FACTS_MS


def only_issues(entries: Iterable[Any], labels: set[str]) -> list[Any]:
    """Drop pull requests, repetitions and whatever does not carry the labels or a number."""
    kept: dict[int, Any] = {}
    for data in entries:
        number = data.get("number")
        carried = {name.casefold() for name in label_names(data.get("labels"))}
        if isinstance(number, int) and number > 0 and not is_pull_request(data) and labels <= carried:
            # Pages shift while they are read: what moved from one to the next is met twice.
            kept.setdefault(number, data)
    return list(kept.values())


def issue_finding(body: IssueBody) -> Finding:
    """Report an issue: comments, state and assignees are what counts, and an edit of title or text moves its date."""
    mark = fingerprint(body.comments, body.state, body.assignees, body.updated_at)
    return Finding(PIPELINE, "issue", issue_key(body.repo_key, body.number), mark, msgspec.json.encode(body))


def vanished(key: str, body: RepoBody, number: int, now_ms: int) -> Finding:
    """Report an issue that is no longer listed; its own details will say why."""
    issue = replace(issue_from(body, key, {"number": number}, now_ms), vanished=True)
    return Finding(PIPELINE, "issue", issue_key(key, number), fingerprint("vanished"), msgspec.json.encode(issue))


def withdrawn(key: str, body: RepoBody) -> Iterable[Finding]:
    """Report that the issues of a repository out of reach are out of reach too."""
    for number in body.issues:
        issue = replace(issue_from(body, key, {"number": number}, body.found_at), state="unlisted")
        mark = fingerprint("out of reach")
        yield Finding(PIPELINE, "issue", issue_key(key, number), mark, msgspec.json.encode(issue))


def survey_note(body: RepoBody) -> str:
    """Say in one line what a survey found."""
    note = {
        "listed": f"{len(body.issues)} open issues for beginners",
        "cut": f"{len(body.issues)} issues for beginners are known; there are more",
        "disabled": "issues are disabled",
        "archived": "the repository is archived",
        "no_label": "no issues: the label is unknown",
        "unread": "issues were not read",
    }[body.issues_status]
    return f"{note}; {body.label_note}" if body.label_note else note


def repo_facts(body: RepoBody) -> RepoFacts:
    """Return what a summary is made of."""
    return RepoFacts(
        full_name=body.full_name,
        description=body.description,
        readme=body.readme,
        languages=body.languages_ordered,
        topics=body.topics,
    )


async def summarize(work: Work, kit: Kit) -> Outcome:
    """Ask for a summary, unless the facts are those of the last one."""
    body: RepoBody = work.body
    facts = repo_facts(body)
    mark = fingerprint(msgspec.to_builtins(facts))
    if body.summary is not None and body.summary_of == mark:
        return Advance(note="the facts are the same, the summary stands")
    answer, provenance = await kit.enricher.summarize_repo(facts, pipeline=PIPELINE)
    changed = replace(body, summary=answer.summary, summary_of=mark, summarized_by=provenance)
    return Advance(changed, provenance=provenance)


def publish(work: Work, *, reread_seconds: float) -> Outcome:
    """Show the repository and plan the next reading of its issues."""
    body: RepoBody = replace(work.body, processed_at=work.now_ms, error=None)
    return Advance(body, due_at=work.now_ms + round(reread_seconds * 1000))


def mark_failed(work: Work) -> Outcome:
    """Show that the last try failed, beside whatever readers had before."""
    body = carried_over(work.body, work.accepted)
    if work.accepted is not None and body.surveyed_at is None:
        body = replace(body, issues_status=work.accepted.issues_status, processed_at=work.accepted.processed_at)
    return Advance(replace(body, error=work.error or "marked as failed by hand"))
