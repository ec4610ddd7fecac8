"""Answers recorded from the real GitHub are understood."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.support.clock import ManualClock
from tests.unit.pipelines.first_issues.hub import NOW_MS, open_hub

from tidings.model.errors import Misconfigured, Permanent, Transient
from tidings.model.web import Response
from tidings.pipelines.first_issues.body_issue import issue_from
from tidings.pipelines.first_issues.body_repo import repo_from, with_metadata
from tidings.pipelines.first_issues.client import (
    block_reason,
    failure,
    is_pull_request,
    label_names,
    links,
    message,
    readme_text,
)
from tidings.pipelines.first_issues.labels import match_label
from tidings.pipelines.first_issues.lists import ListedRepo
from tidings.pipelines.first_issues.processors_repo import only_issues
from tidings.sample.github import GitHub
from tidings.sample.github_world import Repository

ENTRY = ListedRepo(1, "a", "b", "good first issue", "x")


def recorded(samples, name):
    return json.loads((samples / "github" / f"{name}.json").read_text())


def as_response(exchange):
    body = exchange["response"]["body"]
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Response(exchange["response"]["status"], "", exchange["response"]["headers"], raw)


def test_link_headers_name_the_next_page_by_number(samples):
    pages = recorded(samples, "octokit_paginate_issues")
    following = [links(page["response"]["headers"]).get("next") for page in pages]

    assert following[0] == "https://api.github.com/repositories/1000/issues?per_page=3&page=2"
    assert following[-1] is None
    assert sum(len(only_issues(page["response"]["body"], set())) for page in pages) == 13


def test_of_thirty_entries_six_are_pull_requests(samples):
    (listing,) = [
        each for each in recorded(samples, "octokit_rb_rails_admin") if isinstance(each["response"]["body"], list)
    ]
    entries = listing["response"]["body"]

    assert sum(is_pull_request(entry) for entry in entries) == 6
    assert len(only_issues(entries, set())) == 24


def test_old_answers_carry_the_key_of_pull_requests_on_every_issue(samples):
    (exchange,) = [
        each for each in recorded(samples, "pygithub_304_label_errors") if "issues?labels" in each["request"]["path"]
    ]
    issues = exchange["response"]["body"]

    assert all("pull_request" in issue for issue in issues)
    assert {issue["number"]: is_pull_request(issue) for issue in issues} == {52: False, 50: True}
    assert all("Label with spaces and strange characters (&*#$)" in label_names(issue["labels"]) for issue in issues)


def test_recorded_repositories_and_issues_become_bodies(samples):
    repository = recorded(samples, "octokit_get_repository")[0]["response"]["body"]
    rails = {each["request"]["path"]: each["response"]["body"] for each in recorded(samples, "octokit_rb_rails_admin")}
    body = repo_from(ENTRY, repository, NOW_MS)
    bodies = [
        issue_from(body, "a/b", each, NOW_MS)
        for answer in rails.values()
        if isinstance(answer, list)
        for each in answer
    ]

    assert (body.full_name, body.id) == ("octokit-fixture-org/hello-world", 1000)
    assert len(bodies) == 30
    assert all(issue.title and issue.created_at for issue in bodies)


def test_hostile_metadata_becomes_a_body_too():
    body = repo_from(ENTRY, {}, NOW_MS)
    odds: list = [None, 7, "text", [], {}, -1, True, 2**80, 1.5]
    for odd in odds:
        fields = ("full_name", "id", "html_url", "description", "topics", "license", "open_issues_count", "archived")
        assert with_metadata(body, dict.fromkeys(fields, odd)).full_name


def test_recorded_labels_are_found(samples):
    labels = label_names(recorded(samples, "octokit_labels")[0]["response"]["body"])

    assert match_label("Good-first-issue", labels).names == ("good first issue",)


def test_recorded_refusals_say_what_to_do(samples):
    answers = {
        (each["response"]["status"], each["request"]["path"]): as_response(each)
        for each in recorded(samples, "pygithub_304_label_errors") + recorded(samples, "octokit_errors")
    }
    kinds = {status: type(failure(answer, path, NOW_MS)) for (status, path), answer in answers.items() if status >= 401}

    assert kinds[401] is Misconfigured
    assert kinds[422] is Permanent
    assert kinds[503] is Transient


def test_reasons_are_given_for_what_is_out_of_reach(samples):
    errors = {each["name"]: each for each in recorded(samples, "synthetic_errors")}
    said = {
        name: block_reason(as_response({"response": errors[name]}))
        for name in ("not_found", "issues_disabled", "blocked_for_legal_reasons")
    }

    assert said == {
        "not_found": "Not Found",
        "issues_disabled": "Issues are disabled for this repo",
        "blocked_for_legal_reasons": "Repository access blocked (dmca)",
    }
    assert message(as_response({"response": errors["bad_gateway_html"]})) == ""


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"encoding": "none", "content": ""}', b'{"encoding":"base64","content":7}']
)
def test_an_unreadable_readme_counts_as_none(body):
    assert readme_text(Response(200, "", {}, body), 100) == ""


async def test_the_synthetic_repositories_go_their_ways(samples):
    clock = ManualClock(NOW_MS)
    records = recorded(samples, "synthetic_repos_and_issues")
    world = GitHub(listing={"repositories": [each["list_entry"] for each in records]}, now_ms=clock.now_ms)
    for record in records:
        world.add(as_repository(record), former_name=former_name(record))
    async with open_hub(world, clock) as hub:
        pages = await hub.discover()
        found = {f.key: json.loads(f.payload) for page in pages for f in page.findings}
        numbers = {}
        for key, payload in found.items():
            if payload.get("availability", "available") == "available":
                body = hub.pipeline.workflows["repo"].body
                decoded = msgspec.convert(payload, body)
                outcome = await hub.perform("repo", "survey", hub.work("repo", key, decoded))
                numbers[key] = (outcome.body.issues_status, outcome.body.issues)

    assert found["pharo-project/pharo"]["availability"] == "gone"
    assert found["arviz-devs/arviz"]["availability"] == "moved"
    assert numbers["imolorhe/altair"][0] == "disabled"
    assert numbers["php-censor/php-censor"][0] == "archived"
    listed = [issues for status, issues in numbers.values() if status == "listed"]
    assert len(listed) == 9
    assert all(len(issues) == 3 for issues in listed)


def former_name(record):
    if "301" not in record["behaviour"]:
        return None
    link = record["list_entry"]["link"]
    return link.removeprefix("https://github.com/")


def as_repository(record):
    data = dict(record["repo"])
    if former_name(record):
        data["full_name"] = "renamed-" + data["full_name"]
    labels = {label["name"]: label for issue in record["issues"] for label in issue["labels"]}
    return Repository(
        data,
        languages=record["languages"],
        readme="# A readme",
        labels=list(labels.values()),
        issues={issue["number"]: issue for issue in record["issues"]},
        comments={issue["number"]: [] for issue in record["issues"]},
        status=404 if "404" in record["behaviour"] else 200,
        issues_status=410 if "410" in record["behaviour"] else 200,
    )
