from __future__ import annotations

import pytest
from tests.unit.pipelines.hacker_news.working import NOW_MS, a_body, a_comment, work_on

from tidings.model.outcome import No
from tidings.pipelines.hacker_news.criteria import HOUR_MS, is_complete, is_hierarchy_valid, is_retryable, is_valid


@pytest.mark.parametrize("kind", ["story", "comment", "job", "poll", "pollopt"])
def test_the_five_types_are_valid(kind):
    assert is_valid(work_on(a_body(type=kind))) is True


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"id": 0}, "id: 0 is not positive"),
        ({"id": -7}, "id: -7 is not positive"),
        ({"type": None}, "type: missing"),
        ({"type": "podcast"}, "type: 'podcast' is none of story, comment, job, poll, pollopt"),
        ({"type": "Story"}, "type: 'Story' is none of story, comment, job, poll, pollopt"),
    ],
)
def test_an_invalid_item_is_named_with_the_offending_value(fields, reason):
    assert is_valid(work_on(a_body(**fields))) == No(reason)


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [
        ({"type": "comment", "parent": 5}, True),
        ({"type": "comment"}, No("parent: missing")),
        ({"type": "comment", "parent": 0}, No("parent: 0 is not positive", "parent: not positive")),
        ({"type": "comment", "parent": 100}, No("parent: 100 is the item itself", "parent: the item itself")),
        ({"type": "pollopt", "poll": 5}, True),
        ({"type": "pollopt"}, No("poll: missing")),
        ({"type": "pollopt", "poll": 100}, No("poll: 100 is the item itself", "poll: the item itself")),
        ({"type": "story"}, True),
        ({"type": "job"}, True),
        ({"type": "poll"}, True),
    ],
)
def test_a_comment_needs_a_parent_and_an_option_its_poll(fields, verdict):
    assert is_hierarchy_valid(work_on(a_body(**fields))) == verdict


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [
        ({}, True),
        ({"ingested_at": None}, No("ingested_at: missing")),
        ({"last_updated": None}, No("last_updated: missing")),
        ({"parent": None}, No("parent: missing")),
        ({"type": "pollopt"}, No("poll: missing")),
        ({"type": "pollopt", "poll": 7}, True),
    ],
)
def test_completion_asks_that_every_step_left_its_mark(fields, verdict):
    body = a_comment(**{"ingested_at": 1, "last_updated": 2, **fields})

    assert is_complete(work_on(body)) == verdict


@pytest.mark.parametrize(
    ("failures", "hours_ago", "verdict"),
    [
        (1, 0, True),
        (2, 23.99, True),
        (2, 24, No("last_failure_at: more than 24 h ago")),
        (3, 0, No("retry_count: 3 of 3 used")),
    ],
)
def test_three_failures_or_a_day_end_the_retries(failures, hours_ago, verdict):
    body = a_body(retry_count=failures, last_failure_at=NOW_MS - round(hours_ago * HOUR_MS))

    assert is_retryable(work_on(body, state="failed")) == verdict


def test_the_retry_limits_are_settings():
    body = a_body(retry_count=3, last_failure_at=NOW_MS - 2 * HOUR_MS)

    assert is_retryable(work_on(body), max_retries=4, window_ms=3 * HOUR_MS) is True
    assert not is_retryable(work_on(body), max_retries=4, window_ms=2 * HOUR_MS)
    assert not is_retryable(work_on(a_body(retry_count=0)))
