from __future__ import annotations

import pytest
from tests.unit.pipelines.hacker_news.working import NOW_MS, a_body, a_comment, work_on

from tidings.model.errors import Permanent
from tidings.model.item import AWAITS, TOP, Link, above
from tidings.model.outcome import No
from tidings.pipelines.hacker_news.cards import present
from tidings.pipelines.hacker_news.criteria import HOUR_MS, is_complete
from tidings.pipelines.hacker_news.processors import (
    deduplicate,
    index,
    ingest,
    named_above,
    prepare_retry,
    record_failure,
    resolve_hierarchy,
    validate,
)


def test_ingestion_notes_time_and_source():
    body = ingest(work_on(a_body(source_type="POST"))).body

    assert (body.source_type, body.ingested_at) == ("POST", NOW_MS)


def test_ingestion_names_an_unknown_source_and_a_missing_type():
    outcome = ingest(work_on(a_body(type=None)))

    assert outcome.body.source_type == "UNKNOWN"
    assert outcome.note == "type is missing"


def test_what_failed_and_was_revived_begins_a_new_life():
    failed = a_body(retry_count=3, last_failure_at=4, error="e", stack="s", retry_attempt_at=5, arrival="updated")

    body = ingest(work_on(failed)).body

    assert (body.retry_count, body.last_failure_at, body.error, body.stack) == (0, None, None, None)
    assert body.retry_attempt_at is None


def test_validation_cleans_title_and_text_and_notes_the_time():
    body = a_body(
        title="A &lt;b&gt; <script>x</script>&amp; c",
        text="one<p>two <img src=x onerror=alert(1)><a href='javascript:x'>bad</a> &#x27;ok&#x27;",
    )

    cleaned = validate(work_on(body)).body

    assert cleaned.title == "A &lt;b&gt; &amp; c"
    assert cleaned.text == "one<p>two <a rel=\"nofollow noopener\">bad</a> 'ok'</p>"
    assert cleaned.last_updated == NOW_MS


def test_validation_twice_changes_nothing_more():
    once = validate(
        work_on(a_body(title="a &amp;lt; b", text="x<p>y &amp;amp; <pre><code> z &lt; 1\n</code></pre>"))
    ).body

    assert validate(work_on(once)).body == once


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"time": 0}, "time: 0 is no plausible"),
        ({"time": 1_160_418_091}, "time: 1160418091"),
        ({"time": NOW_MS // 1000 + 86_401}, "time: "),
        ({"time": NOW_MS}, "time: "),
        ({"url": "javascript:alert(1)"}, "url: 'javascript:alert\\(1\\)' is no web address"),
        ({"url": "example.com/a"}, "url: "),
        ({"url": "https://"}, "url: "),
        ({"url": "https://a b.example/"}, "url: "),
        ({"url": 'https://a.example"><script>/'}, "url: "),
        ({"url": "https://a..example/"}, "url: "),
        ({"url": "https://a.example:65536/"}, "url: "),
        ({"url": "https://a.example:http/"}, "url: "),
        ({"url": "https://[::1/"}, "url: "),
        ({"url": "https://[abc]/"}, "url: "),
        ({"url": "https://a@b@c.example/"}, "url: "),
        ({"score": -1}, "score: -1 is negative"),
    ],
)
def test_validation_refuses_what_cannot_be(fields, reason):
    with pytest.raises(Permanent, match=reason):
        validate(work_on(a_body(**fields)))


@pytest.mark.parametrize(
    "fields",
    [
        {"time": None},
        {"time": 1_160_418_092},
        {"time": NOW_MS // 1000 + 86_000},
        {"url": None},
        {"url": "http://www.example.com/a,b?c=d'e#f"},
        {"url": "HTTPS://EXAMPLE.COM"},
        {"url": "http://me:secret@host_1.example.:8080?q"},
        {"url": "http://[2001:db8::1]:65535/"},
        {"url": "https://ja.wikipedia.org/wiki/日本"},
        {"score": 0},
    ],
)
def test_validation_lets_real_ones_pass(fields):
    assert validate(work_on(a_body(**fields))).body.last_updated == NOW_MS


def test_an_unknown_item_is_new():
    assert deduplicate(work_on(a_body())).body.arrival == "new"


def test_what_arrives_deleted_loses_its_words_at_once():
    body = deduplicate(work_on(a_comment(deleted=True, text="secret", kids=(105,)))).body

    assert (body.by, body.title, body.url, body.text) == (None,) * 4
    assert (body.parent, body.kids, body.arrival) == (50, (105,), "new")


def test_an_item_processed_again_keeps_how_it_came():
    assert deduplicate(work_on(a_body(arrival="updated"))).body.arrival == "updated"


def test_newer_data_is_merged_and_marked_as_updated():
    known = a_body(score=5, kids=(101,), source_type="BULK", ingested_at=1)

    outcome = deduplicate(work_on(a_body(score=9, kids=(101, 102), source_type="BULK"), accepted=known))

    assert (outcome.body.arrival, outcome.body.score, outcome.body.kids) == ("updated", 9, (101, 102))
    assert outcome.body.ingested_at == 1
    assert outcome.note == "updated: score, kids"


def test_older_data_is_marked_as_duplicate():
    known = a_body(score=9, kids=(101, 102), source_type="BULK")

    outcome = deduplicate(work_on(a_body(score=5, kids=(101,), source_type="BULK"), accepted=known))

    assert (outcome.body.arrival, outcome.body.score) == ("duplicate", 9)
    assert outcome.note == "duplicate: nothing newer in it"


def test_a_comment_is_linked_to_its_parent_and_its_kids_to_it():
    body = a_comment(kids=(103, 101))

    outcome = resolve_hierarchy(work_on(body, related={"item:50": a_body(id=50)}))

    assert outcome.links == (
        Link("item:100", "item:50", "reply"),
        Link("item:103", "item:100", "reply", 0),
        Link("item:101", "item:100", "reply", 1),
    )
    assert outcome.note is None


def test_a_missing_parent_is_remembered():
    outcome = resolve_hierarchy(work_on(a_comment()))

    assert outcome.links == (Link("item:100", "item:50", "reply"),)
    assert outcome.note is None


def test_a_poll_and_its_options_name_each_other():
    poll = resolve_hierarchy(work_on(a_body(type="poll", parts=(102, 101), kids=(105,))))
    option = resolve_hierarchy(work_on(a_body(id=101, type="pollopt", poll=100)))

    assert poll.links == (
        Link("item:100", TOP, "reply"),
        Link("item:100", TOP, "option"),
        Link("item:105", "item:100", "reply", 0),
        Link("item:102", "item:100", "option", 0),
        Link("item:101", "item:100", "option", 1),
    )
    assert option.links == (Link("item:101", "item:100", "option"),)


def test_kids_that_cannot_stand_below_a_comment_are_noted_and_left_out():
    outcome = resolve_hierarchy(work_on(a_comment(kids=(101, 100, 99, 101, -1)), related={"item:50": a_body(id=50)}))

    assert [link.child for link in outcome.links or ()] == ["item:100", "item:101"]
    assert outcome.note == "cannot stand below 100: 100, 99, -1"
    assert outcome.body.kids == (101,)
    assert resolve_hierarchy(work_on(a_body(kids=(100,), parts=(0,)))).body.kids is None


def test_comments_moved_to_a_newer_story_stand_below_it():
    story = resolve_hierarchy(work_on(a_body(kids=(101, 99, 100))))
    moved = resolve_hierarchy(work_on(a_comment(parent=120), related={"item:120": a_body(id=120)}))

    assert [link.child for link in story.links or () if link.parent != TOP] == ["item:101", "item:99"]
    assert moved.links == (Link("item:100", "item:120", "reply"),)


def test_a_newer_parent_that_is_not_here_is_awaited():
    outcome = resolve_hierarchy(work_on(a_comment(parent=120)))

    assert outcome.links == (Link("item:100", "item:120", AWAITS),)


NEWER = {
    "comment": (a_comment(parent=120), a_comment(id=120, parent=110)),
    "pollopt": (a_body(type="pollopt", poll=120), a_body(id=120, type="pollopt", poll=100)),
    "story": (a_body(type="pollopt", poll=120), a_body(id=120)),
}


@pytest.mark.parametrize("kind", NEWER)
def test_what_is_newer_and_no_story_cannot_stand_above(kind):
    item, above = NEWER[kind]
    work = work_on(item, related={"item:120": above})

    with pytest.raises(Permanent, match=f": 120 is a {kind} newer than 100, which cannot belong to it"):
        resolve_hierarchy(work)


def test_what_an_item_names_above_it_cannot_stand_below_it_too():
    reply = resolve_hierarchy(work_on(a_comment(parent=120, kids=(120, 130))))
    option = resolve_hierarchy(work_on(a_body(type="pollopt", poll=120, parts=(120,))))

    assert [link.child for link in reply.links or ()] == ["item:100", "item:130"]
    assert [link.child for link in option.links or ()] == ["item:100"]


def test_an_item_that_readers_saw_is_withdrawn_when_its_newer_parent_turns_out_to_be_a_comment():
    related = {"item:120": a_comment(id=120)}
    seen = resolve_hierarchy(work_on(a_comment(parent=120, indexed_at=NOW_MS), related=related))
    later = work_on(a_comment(parent=120, text="edited"), accepted=a_comment(parent=120), related=related)

    for outcome in (seen, resolve_hierarchy(later)):
        assert outcome.links == ()
        assert outcome.body.misplaced == "parent: 120 is a comment newer than 100, which cannot belong to it"
        assert present("100", outcome.body) is None
        verdict = is_complete(work_on(outcome.body))
        assert isinstance(verdict, No)
        assert verdict.reason == outcome.body.misplaced


def test_a_copy_with_an_impossible_parent_leaves_what_readers_see_alone():
    work = work_on(a_comment(parent=120), accepted=a_comment(parent=50), related={"item:120": a_comment(id=120)})

    with pytest.raises(Permanent, match="parent: 120 is a comment newer than 100"):
        resolve_hierarchy(work)


def test_what_found_its_place_is_misplaced_no_longer():
    item = a_comment(parent=120, misplaced="parent: 120 is a comment newer than 100, which cannot belong to it")

    assert prepare_retry(work_on(item)).body.misplaced == item.misplaced, "it is still withdrawn"
    assert resolve_hierarchy(work_on(item, related={"item:120": a_body(id=120)})).body.misplaced is None


def test_a_copy_without_its_parent_is_placed_by_the_parent_we_know():
    copy = a_comment(parent=None, text="edited", source_type="POST")
    work = work_on(copy, accepted=a_comment(parent=120, source_type="POST"), related={"item:120": a_body(id=120)})

    assert list(named_above(work)) == ["item:120"]
    work.body = deduplicate(work).body
    outcome = resolve_hierarchy(work)
    assert outcome.links == (Link("item:100", "item:120", "reply"),)
    assert outcome.note is None


def test_only_what_is_newer_is_looked_up():
    def wanted(item, accepted=None):
        return list(named_above(work_on(item, accepted=accepted)))

    assert wanted(a_comment()) == wanted(a_comment(parent=None)) == []
    assert wanted(a_comment(parent=120)) == wanted(a_body(type="pollopt", poll=120)) == ["item:120"]
    assert wanted(a_body(parent=120)) == ["item:120"], "if a comment is known, this copy does not make it a story"
    assert wanted(a_comment(parent=120), accepted=a_comment(parent=130)) == [
        "item:120",
        "item:130",
        above("item:100", "reply"),
    ]


def test_an_item_without_relations_withdraws_what_it_stated():
    assert resolve_hierarchy(work_on(a_comment(parent=None))).links == ()


def test_indexing_notes_the_time():
    assert index(work_on(a_body())).body.indexed_at == NOW_MS


def test_a_failure_is_kept_counted_and_a_retry_is_scheduled():
    outcome = record_failure(work_on(a_body(), error="is_valid: type: missing", stack="Traceback ..."))

    assert (outcome.body.error, outcome.body.stack) == ("is_valid: type: missing", "Traceback ...")
    assert (outcome.body.retry_count, outcome.body.last_failure_at) == (1, NOW_MS)
    assert outcome.due_at == NOW_MS + 60_000
    assert outcome.note == "failure 1 of 3: next try in 60 s"


def test_the_second_retry_waits_longer_and_the_third_failure_is_the_last():
    second = record_failure(work_on(a_body(retry_count=1)))
    third = record_failure(work_on(a_body(retry_count=2)))

    assert second.due_at == NOW_MS + 240_000
    assert (third.due_at, third.body.retry_count) == (None, 3)
    assert third.note == "failure 3 of 3: permanently failed"


def test_a_retry_beyond_the_window_is_not_scheduled():
    assert record_failure(work_on(a_body(), error="x"), window_ms=HOUR_MS, base_ms=HOUR_MS).due_at is None


def test_a_failure_by_hand_says_so_and_long_errors_are_cut():
    assert record_failure(work_on(a_body())).body.error == "marked as failed by hand"
    cut = record_failure(work_on(a_body(), error="e" * 9_000, stack="s" * 90_000 + "end")).body
    assert (len(cut.error), len(cut.stack), cut.stack[-3:]) == (500, 8_000, "end")


def test_a_retry_clears_flags_and_errors_and_notes_the_time():
    failed = a_body(
        ingested_at=1,
        last_updated=2,
        arrival="new",
        indexed_at=3,
        retry_count=2,
        last_failure_at=4,
        error="e",
        stack="s",
    )

    body = prepare_retry(work_on(failed)).body

    assert (body.last_updated, body.arrival, body.indexed_at, body.error, body.stack) == (None,) * 5
    assert (body.ingested_at, body.retry_count, body.last_failure_at) == (1, 2, 4)
    assert body.retry_attempt_at == NOW_MS


def test_a_retry_ingests_what_failed_before_it_was_ingested():
    body = prepare_retry(work_on(a_body(retry_count=1, last_failure_at=4))).body

    assert (body.source_type, body.ingested_at) == ("UNKNOWN", NOW_MS)
