from __future__ import annotations

import io
import json
from collections import Counter

import pytest
from tests.unit.pipelines.hacker_news.fused import live_through
from tests.unit.pipelines.hacker_news.working import presented

from tidings.discover.upload import admit_lines, read_lines
from tidings.pipelines.hacker_news.upload import admit

FILES = {
    "threads_first_items.jsonl": 375,
    "hiring_comments.jsonl": 2_406,
    "comments_string_ids.jsonl": 666,
    "official_examples.jsonl": 6,
    "edge_items.jsonl": 11,
    "synthetic_pollopts.jsonl": 4,
}


@pytest.mark.parametrize(("name", "count"), FILES.items())
def test_every_real_item_is_admitted_and_completed(samples, name, count):
    ends: Counter[str] = Counter()
    with (samples / "hackernews" / name).open("rb") as file:
        for findings, rejected, _ in admit_lines(read_lines(file), admit, "BULK"):
            assert rejected == []
            for finding in findings:
                state, body = live_through(finding)
                ends[state] += 1
                assert state == "completed", body.error
                assert presented(body).card.id == body.id

    assert ends == {"completed": count}


def test_dead_and_deleted_items_are_told_apart(samples):
    marks: Counter[str] = Counter()
    with (samples / "hackernews" / "hiring_comments.jsonl").open("rb") as file:
        for findings, _, _ in admit_lines(read_lines(file), admit, "BULK"):
            for finding in findings:
                _, body = live_through(finding)
                shown = presented(body)
                marks["deleted"] += shown.card.deleted
                marks["dead"] += shown.card.dead and not shown.card.deleted
                assert (shown.document is None) == shown.card.deleted
                assert not (shown.card.deleted and shown.card.text)

    assert marks == {"deleted": 54, "dead": 39}


def test_the_edge_lines_end_as_they_should(samples):
    text = (samples / "hackernews" / "synthetic_bulk_edge_lines.jsonl").read_text()
    told = [json.loads(line) for line in text.splitlines()]

    ends = []
    for each in told:
        lines = read_lines(io.BytesIO(each["line"].encode()))
        ((findings, rejected, _),) = admit_lines(lines, admit, "BULK")
        if rejected:
            ends.append(f"rejected: {rejected[0].reason}")
            continue
        state, body = live_through(findings[0])
        ends.append(f"{state}: {body.error}" if body.error else state)

    assert ends == [
        "completed",
        "rejected: null is no item",
        "rejected: id is missing",
        "completed",
        "failed: is_valid: type: missing",
        "failed: is_valid: type: 'podcast' is none of story, comment, job, poll, pollopt",
        "failed: is_hierarchy_valid: parent: 9000004 is the item itself",
        "completed",
        "completed",
        "rejected: cut off: it ends inside a value",
        "rejected: id: -1 is not positive",
        "completed",
    ]
