"""Hacker News, end to end: real store, real loops, on both databases."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations, zip_longest
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import Engine

from tidings.discover.upload import admit_lines, read_lines
from tidings.model.item import Appended, Rejected
from tidings.model.outcome import Outcome, Postpone
from tidings.model.pipeline import Pipeline
from tidings.model.workflow import Work
from tidings.pipelines import hacker_news
from tidings.pipelines.hacker_news import Settings
from tidings.sample.hacker_news import HackerNews
from tidings.sample.serving import StandIn

REAL = (
    "threads_first_items",
    "hiring_comments",
    "comments_string_ids",
    "official_examples",
    "edge_items",
    "synthetic_pollopts",
)
HOUR = 3600


def pipeline(**settings: Any) -> Pipeline:
    return hacker_news.build(Settings.model_validate({"base_url": "http://127.0.0.1:9/v0", **settings}))


@pytest.fixture
async def engine(database_url):
    async with Engine(database_url, [pipeline()], endpoints=["http://127.0.0.1:9"]) as engine:
        yield engine


def upload(
    engine: Engine, data: bytes | Iterable[dict[str, Any]], way: str = "BULK"
) -> tuple[Appended, list[Rejected]]:
    """Append what the command line would."""
    raw = data if isinstance(data, bytes) else "\n".join(json.dumps(each) for each in data).encode()
    appended, refused = Appended(), []
    admit = engine.app.pipelines["hacker_news"].admit
    assert admit is not None
    for findings, rejected, _ in admit_lines(read_lines(io.BytesIO(raw)), admit, way):
        appended += engine.store.intake.append("hacker_news", findings)
        refused += rejected
    return appended, refused


def real_lines(samples: Path) -> list[bytes]:
    folder = samples / "hackernews"
    return [line for name in REAL for line in (folder / f"{name}.jsonl").read_bytes().splitlines()]


def a_story(number: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "id": number,
        "type": "story",
        "by": "a",
        "time": 1_700_000_000,
        "title": f"Story {number}",
        "score": 1,
        **fields,
    }


def a_comment(number: int, parent: int, **fields: Any) -> dict[str, Any]:
    return {
        "id": number,
        "type": "comment",
        "by": "b",
        "time": 1_700_000_100,
        "text": f"reply {number}",
        "parent": parent,
        **fields,
    }


def thread(engine: Engine, root: int) -> list[tuple[str, str | None, int]]:
    nodes = engine.store.links.thread("hacker_news", "reply", f"item:{root}")
    return [(node.ref, node.parent, node.depth) for node in nodes]


def threads(engine: Engine, lines: list[bytes]) -> dict[int, list[tuple[str, str | None, int]]]:
    """Return every thread below a root of the file, or below an item that is not in it."""
    items = [json.loads(line) for line in lines]
    known = {int(item["id"]) for item in items}
    roots = {int(item["id"]) for item in items if "parent" not in item}
    roots |= {int(item["parent"]) for item in items if "parent" in item} - known
    return {root: thread(engine, root) for root in sorted(roots)}


async def test_every_real_item_is_completed_and_a_second_upload_changes_nothing(engine, samples):
    lines = real_lines(samples)

    appended, rejected = upload(engine, b"\n".join(lines))
    await engine.work_until_idle()

    assert (appended.new, appended.changed, appended.unchanged, rejected) == (len(lines), 0, 0, [])
    assert engine.states("item") == {"completed": len(lines)}
    assert engine.store.shelf.count("hacker_news", "items") == len(lines)

    version = engine.store.shelf.version("hacker_news")
    again, rejected = upload(engine, b"\n".join(lines))
    await engine.work_until_idle()
    assert (again.accepted, again.unchanged, rejected) == (0, len(lines), [])
    assert engine.store.shelf.version("hacker_news") == version


async def test_shelf_and_search_can_be_rebuilt_from_the_items(engine, samples):
    upload(engine, b"\n".join(real_lines(samples)))
    await engine.work_until_idle()
    upload(engine, [a_story(3, score=-1), a_comment(33103581, 33103150, text="edited", dead=True)])
    await engine.work_until_idle()
    cards, hits = engine.cards("items"), engine.search("erlang", limit=500)

    engine.store.rebuilder.rebuild()

    assert engine.cards("items") == cards
    assert [hit.key for hit in engine.search("erlang", limit=500)] == [hit.key for hit in hits]


async def test_order_does_not_matter_for_threads_and_cards(database_url, tmp_path, samples, request):
    lines = real_lines(samples)
    orders = [sorted(lines, key=lambda line: int(json.loads(line)["id"])), random.Random(5).sample(lines, len(lines))]
    ends = []
    for number, order in enumerate(orders):
        url = database_url if number == 0 else another(database_url, tmp_path, request)
        async with Engine(url, [pipeline()], endpoints=["http://127.0.0.1:9"]) as engine:
            upload(engine, b"\n".join(order))
            await engine.work_until_idle()
            ends.append((threads(engine, lines), sorted(engine.cards("items"), key=lambda card: card["id"])))

    assert ends[0] == ends[1]
    assert sum(len(nodes) - 1 for nodes in ends[0][0].values()) > 3_000


def another(url: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    from tests.support.postgres import new_postgres_database

    if url.startswith("sqlite"):
        return f"sqlite:///{tmp_path / 'another.db'}"
    return new_postgres_database(request.getfixturevalue("postgres_server"))


async def test_the_edge_lines_are_rejected_failed_or_completed_with_the_right_reason(engine, samples):
    text = (samples / "hackernews" / "synthetic_bulk_edge_lines.jsonl").read_text()
    raw = "\n".join(json.loads(line)["line"] for line in text.splitlines())

    appended, rejected = upload(engine, raw.encode())
    await engine.work_until_idle()

    assert [(each.line, each.reason) for each in rejected] == [
        (2, "null is no item"),
        (3, "id is missing"),
        (10, "cut off: it ends inside a value"),
        (11, "id: -1 is not positive"),
    ]
    assert (appended.new, appended.changed) == (7, 1)
    assert engine.states("item") == {"completed": 4, "failed": 3}
    failed = {row.key: row.last_error for row in engine.items("item", state="failed")}
    assert failed == {
        "9000002": "is_valid: type: missing",
        "9000003": "is_valid: type: 'podcast' is none of story, comment, job, poll, pollopt",
        "9000004": "is_hierarchy_valid: parent: 9000004 is the item itself",
    }
    assert engine.card("items", "9000001")["score"] == 9


async def test_an_item_leaves_a_trace_of_every_step(engine):
    upload(engine, [a_story(1, kids=[2])], way="POST")
    await engine.work_until_idle()

    view = engine.item("item", "1")

    assert [step.transition for row in view.life for step in row.steps] == [
        "auto_ingest",
        "validate_item",
        "check_duplicates",
        "resolve_hierarchy",
        "index_item",
        "complete_processing",
    ]
    body = view.body
    assert (body["source_type"], body["arrival"]) == ("POST", "new")
    assert {"ingested_at", "last_updated", "indexed_at"} <= set(body)
    assert view.transitions == ["mark_failed"]


async def test_updates_are_merged_and_older_copies_change_nothing(engine):
    upload(engine, [a_story(1, score=5, kids=[3], text="first")])
    await engine.work_until_idle()
    upload(engine, [a_story(1, score=9, kids=[4, 3], text="second", descendants=2)])
    await engine.work_until_idle()
    newer = engine.card("items", "1")
    upload(engine, [a_story(1, score=2, text="zeroth")])
    await engine.work_until_idle()

    assert newer is not None
    assert (newer["score"], newer["kids"], newer["text"]) == (9, [4, 3], "second")
    assert engine.card("items", "1") == newer
    assert engine.item("item", "1").body["arrival"] == "duplicate"
    assert engine.item("item", "1").item.state == "completed"


async def test_copies_that_arrive_before_the_first_is_accepted_are_merged_in_turn(engine):
    copies = [
        a_story(1, score=9, kids=[4, 3], text="second", descendants=2),
        a_story(1, score=5, kids=[3], text="first"),
        a_story(1, score=-2),
        a_story(1, score=3, text="zeroth", descendants=7, dead=True),
    ]
    for copy in copies:
        upload(engine, [copy])
    await engine.work_until_idle()

    view = engine.item("item", "1")
    card = engine.card("items", "1")
    assert (view.item.state, card["score"], card["descendants"], card["kids"]) == ("completed", 9, 7, [4, 3])
    assert card["dead"] is True
    assert [row.to_state for row in view.life if row.kind == "attempt"] == [
        "completed",
        "completed",
        "failed",
        "completed",
    ]


async def test_copies_in_one_file_end_as_if_each_had_been_uploaded_alone(engine):
    copies = [a_story(1, score=9, text="second"), a_story(1, score=5, text="first"), a_story(2)]
    upload(engine, copies)
    await engine.work_until_idle()

    assert (engine.card("items", "1")["score"], engine.card("items", "1")["text"]) == (9, "second")


async def test_a_comment_is_listed_by_its_words_and_not_by_its_markup(engine):
    upload(engine, [a_story(1, kids=[2]), a_comment(2, 1, text="<p>It&#x27;s <i>so</i> simple")])
    await engine.work_until_idle()

    titles = {row.key: row.title for row in engine.store.item_views.items(pipeline="hacker_news")}
    assert titles["2"] == "It's so simple"


async def test_a_deleted_item_is_withdrawn_from_shelf_and_search(engine):
    upload(engine, [a_story(1, kids=[2]), a_comment(2, 1, text="a regrettable confession", kids=[3]), a_comment(3, 2)])
    await engine.work_until_idle()
    assert [hit.key for hit in engine.search("regrettable")] == ["2"]

    upload(engine, [{"id": 2, "type": "comment", "parent": 1, "time": 1_700_000_100, "deleted": True, "kids": [3]}])
    await engine.work_until_idle()

    assert engine.search("regrettable") == []
    card = engine.card("items", "2")
    assert card is not None
    assert card["deleted"] is True
    assert not {"text", "by"} & set(card)
    assert thread(engine, 1) == [("item:1", None, 0), ("item:2", "item:1", 1), ("item:3", "item:2", 2)]
    assert "regrettable" not in str(engine.item("item", "2").body)


async def test_words_that_come_with_a_deletion_are_kept_nowhere(engine):
    upload(engine, [a_comment(2, 1, text="a regrettable confession", deleted=True)])
    await engine.work_until_idle()

    view = engine.item("item", "2")
    assert view.item.state == "completed"
    assert "regrettable" not in f"{view.body} {view.accepted} {engine.card('items', '2')}"


async def test_an_invalid_update_does_not_damage_what_readers_see(engine):
    upload(engine, [a_story(1)])
    await engine.work_until_idle()
    upload(engine, [a_story(1, score=-5)])
    await engine.work_until_idle()

    assert engine.item("item", "1").item.state == "failed"
    assert engine.item("item", "1").item.last_error == "score: -5 is negative"
    assert engine.card("items", "1")["score"] == 1
    assert [hit.key for hit in engine.search("story")] == ["1"]


@pytest.mark.parametrize("order", [[1, 2, 3, 4], [4, 3, 2, 1], [3, 1, 4, 2]])
async def test_replies_join_whichever_arrives_first_in_the_order_of_the_kids(engine, order):
    items = {
        1: a_story(1, kids=[4, 2]),
        2: a_comment(2, 1, kids=[3]),
        3: a_comment(3, 1),
        4: a_comment(4, 1),
    }
    for number in order:
        upload(engine, [items[number]], way="POST")
        await engine.work_until_idle()

    # 3 names 1 as its parent; 2 claims it, and what a parent says counts.
    assert thread(engine, 1) == [
        ("item:1", None, 0),
        ("item:4", "item:1", 1),
        ("item:2", "item:1", 1),
        ("item:3", "item:2", 2),
    ]


async def test_a_poll_and_its_options_are_joined(engine):
    option = {"type": "pollopt", "by": "a", "time": 1_700_000_000, "poll": 1}
    upload(engine, [{"id": 3, **option, "text": "no", "score": 2}, {"id": 2, **option, "text": "yes", "score": 9}])
    upload(engine, [a_story(1, type="poll", parts=[2, 3])])
    await engine.work_until_idle()

    assert engine.states("item") == {"completed": 3}
    assert engine.store.links.children("hacker_news", "option", "item:1") == ["item:2", "item:3"]


async def test_moved_comments_join_their_newer_story_in_any_order(engine):
    upload(engine, [a_comment(5, 9), a_story(9), a_comment(6, 5)])
    await engine.work_until_idle()

    assert [ref for ref, _, _ in thread(engine, 9)] == ["item:9", "item:5", "item:6"]


CIRCLES = [
    [(1, 2), (2, 1)],
    [(1, 3), (2, 1), (3, 2)],
    [(1, 4), (4, 2), (2, 3), (3, 1)],
]
"""Comments and the parents they name."""


@pytest.mark.parametrize("way", ["BULK", "POST", "FIREBASE"])
@pytest.mark.parametrize("at_once", [True, False])
async def test_circles_are_refused_in_any_order(engine, way, at_once):
    orders = [order for circle in CIRCLES for order in permutations(circle)]
    groups = [[(n + 10 * at, p + 10 * at) for n, p in order] for at, order in enumerate(orders)]
    uploads = [[pair for group in groups for pair in group]] if at_once else zip_longest(*groups)
    for some in uploads:
        upload(engine, [a_comment(*pair) for pair in some if pair is not None], way=way)
        await engine.work_until_idle()

    refused = {n: f"parent: {p} is a comment newer than {n}, which" for group in groups for n, p in group if p > n}
    failed = {int(row.key): row.last_error for row in engine.items("item", state="failed")}
    assert failed.keys() == refused.keys()
    assert all(reason in (failed[number] or "") for number, reason in refused.items())
    for number, parent in [pair for group in groups for pair in group]:
        is_refused = number in refused
        assert (engine.card("items", str(number)) is None) == is_refused
        above = engine.store.links.parents("hacker_news", "reply", f"item:{number}")
        assert above == ([] if is_refused else [f"item:{parent}"])


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1), (1, 3, 0, 2), (2, 1, 0, 3)])
async def test_what_stands_at_the_top_is_nobodys_reply(engine, order):
    lines = [a_story(9, kids=[5]), a_comment(5, 9, kids=[6]), a_comment(6, 5, kids=[9]), a_story(4, kids=[9, 5])]
    for at in order:
        upload(engine, [lines[at]])
        await engine.work_until_idle()

    assert engine.states("item") == {"completed": 4}
    assert [ref for ref, _, _ in thread(engine, 6)] == ["item:6"]
    assert engine.store.links.parents("hacker_news", "reply", "item:9") == []


async def test_a_comment_readers_saw_is_withdrawn_when_its_parent_turns_out_to_be_a_newer_comment(engine):
    upload(engine, [a_comment(5, 9, text="a misplaced remark"), a_comment(6, 5)])
    await engine.work_until_idle()
    assert [hit.key for hit in engine.search("misplaced")] == ["5"]

    upload(engine, [a_comment(9, 6)])
    await engine.work_until_idle()

    item = engine.item("item", "5").item
    assert (item.state, item.last_error) == (
        "failed",
        "is_complete: parent: 9 is a comment newer than 5, which cannot belong to it",
    )
    assert engine.search("misplaced") == []
    assert engine.card("items", "5") is None
    assert [row.kind for row in engine.store.items.life(item.id)] == ["born", "attempt", "woken", "attempt"]


async def test_no_copy_and_no_failure_closes_a_circle(engine):
    """A parent counts only once it is accepted; what a copy is, and when it fails, changes nothing of that."""
    told = [
        *[a_comment(20, 10), a_comment(10, 1), a_comment(10, 20, type="story")],  # the type stays, the parent is new
        *[a_story(40, url="nonsense"), a_comment(30, 40), a_comment(40, 30)],  # no story after all
        *[a_comment(50, 60), a_comment(50, 60, time=5), a_comment(60, 50)],  # the later copy fails before its place
        *[a_story(90, url="nonsense"), a_comment(80, 90, kids=[85]), a_comment(85, 80, kids=[90])],
    ]
    for line in told:
        upload(engine, [line])
        await engine.work_until_idle()

    for start in (10, 20, 30, 40, 50, 60, 80, 85, 90):
        path = [f"item:{start}"]
        while above := engine.store.links.parents("hacker_news", "reply", path[-1]):
            assert above[0] not in path
            path.append(above[0])


async def test_a_parent_without_a_type_is_awaited_until_it_is_complete(engine):
    upload(engine, [{"id": 9, "by": "a", "time": 1_700_000_000, "title": "?"}, a_comment(5, 9)])
    await engine.work_until_idle()
    upload(engine, [a_story(9)])
    await engine.work_until_idle()

    assert engine.states("item") == {"completed": 2}
    assert [ref for ref, _, _ in thread(engine, 9)] == ["item:9", "item:5"]


async def test_a_withdrawn_comment_stays_away_however_often_it_is_tried_and_shown_anew(engine):
    upload(engine, [a_comment(5, 9, text="a misplaced remark"), a_comment(6, 5)])
    await engine.work_until_idle()
    upload(engine, [a_comment(9, 6)])
    await engine.work_through()

    assert engine.item("item", "5").item.standing == "dead"
    engine.store.rebuilder.rebuild()
    assert engine.card("items", "5") is None
    assert engine.search("misplaced") == []

    upload(engine, [a_comment(5, 3, text="well placed")], way="FIREBASE")
    await engine.work_until_idle()
    assert engine.card("items", "5")["text"] == "well placed"


async def test_copies_that_wait_are_merged_even_if_the_awaited_story_comes_between(engine):
    upload(engine, [a_comment(5, 9)])
    await engine.work_until_idle()
    first = engine.item("item", "5").accepted["ingested_at"]
    engine.advance_clock(seconds=60)
    upload(engine, [a_comment(5, 9, score=50), a_comment(5, 9, kids=[7]), a_story(9)])
    engine.store.intake.merge("hacker_news")
    await engine.work_until_idle()

    known = engine.item("item", "5").accepted
    assert (known["score"], known["kids"], known["ingested_at"]) == (50, [7], first)


async def test_search_finds_by_words_and_qualifiers(engine):
    upload(
        engine,
        [
            a_story(1, title="Ask HN: a lighthouse in winter", score=250, by="pg"),
            a_story(2, title="Something else", text="with a lighthouse<p>in it", score=3),
            a_comment(3, 1, text="no &quot;light&quot; here"),
        ],
    )
    await engine.work_until_idle()

    assert [hit.key for hit in engine.search("lighthouse")] == ["1", "2"]
    assert [hit.key for hit in engine.search("type:story by:pg score:>100")] == ["1"]
    assert [hit.key for hit in engine.search("topic:ask")] == ["1"]
    assert [hit.key for hit in engine.search("parent:1 light")] == ["3"]
    assert [hit.key for hit in engine.search("lighthouse -winter")] == ["2"]


# Failure and retry.


async def test_a_failed_item_is_tried_three_times_and_then_dead(engine):
    upload(engine, [a_story(1, type="podcast")])
    await engine.work_until_idle()
    first = engine.item("item", "1")
    assert (first.item.state, first.body["retry_count"], first.body["error"].split(":")[0]) == ("failed", 1, "is_valid")
    assert first.item.standing == "open"

    engine.advance_clock(seconds=59)
    await engine.work_until_idle()
    assert engine.item("item", "1").body["retry_count"] == 1
    engine.advance_clock(seconds=2)
    await engine.work_until_idle()
    second = engine.item("item", "1")
    assert second.body["retry_count"] == 2
    assert second.body["retry_attempt_at"] > first.body["last_failure_at"]

    engine.advance_clock(seconds=241)
    await engine.work_until_idle()
    third = engine.item("item", "1")
    assert (third.item.state, third.item.standing, third.body["retry_count"]) == ("failed", "dead", 3)
    assert [group.cause for group in engine.store.item_views.dead_letters()] == [
        third.body["error"].replace("podcast", "…")
    ]

    engine.advance_clock(seconds=48 * HOUR)
    await engine.work_until_idle()
    assert engine.item("item", "1").body["retry_count"] == 3


async def test_dead_letters_of_one_sort_are_one_group_whatever_the_value(engine):
    upload(engine, [a_story(1, url="nonsense"), a_story(2, url="other nonsense"), a_comment(3, 3), a_comment(4, 4)])
    await engine.work_through()

    groups = {group.cause: group.count for group in engine.store.item_views.dead_letters()}
    assert groups == {"url: no web address": 2, "is_hierarchy_valid: parent: the item itself": 2}
    assert engine.item("item", "1").item.last_error == "url: 'nonsense' is no web address"


async def test_a_retry_after_the_window_is_refused(engine):
    upload(engine, [a_story(1, type="podcast")])
    await engine.work_until_idle()

    engine.advance_clock(seconds=25 * HOUR)
    await engine.work_until_idle()

    view = engine.item("item", "1")
    assert (view.item.state, view.item.standing, view.body["retry_count"]) == ("failed", "dead", 1)
    assert view.item.cause == "is_retryable: last_failure_at: more than 24 h ago"


async def test_a_revived_item_has_all_its_tries_again(engine):
    upload(engine, [a_story(1, type="podcast")])
    await engine.work_through()
    assert engine.item("item", "1").item.standing == "dead"

    engine.store.operations.revive(item=engine.item("item", "1").item.id, actor="tester")
    await engine.work_until_idle()

    view = engine.item("item", "1")
    assert (view.item.state, view.item.standing, view.body["retry_count"]) == ("failed", "open", 1)


async def test_newer_data_starts_a_failed_item_afresh(engine):
    upload(engine, [a_story(1, type="podcast")])
    await engine.work_until_idle()
    upload(engine, [a_story(1)])
    await engine.work_until_idle()

    view = engine.item("item", "1")
    assert (view.item.state, view.body.get("retry_count", 0), view.body.get("error")) == ("completed", 0, None)


async def test_marking_by_hand_and_retrying_by_hand(engine):
    upload(engine, [a_story(1)])
    await engine.work_until_idle()
    item = engine.item("item", "1").item.id

    engine.store.operations.transition(item, "mark_failed", actor="tester", reason="a look at it")
    failed = engine.item("item", "1")
    assert failed.item.state == "failed"
    assert failed.body["retry_count"] == 1
    assert failed.transitions == ["retry_processing"]
    engine.store.operations.transition(item, "retry_processing", actor="tester", reason="looked")
    await engine.work_until_idle()

    view = engine.item("item", "1")
    assert (view.item.state, view.body.get("error")) == ("completed", None)
    assert view.body["retry_attempt_at"] >= failed.body["last_failure_at"]


async def test_an_item_marked_failed_by_hand_is_gone_everywhere_until_it_is_completed_again(engine):
    upload(engine, [a_story(1, kids=[2]), a_comment(2, 1)])
    await engine.work_until_idle()
    item = engine.item("item", "1").item.id
    engine.store.operations.transition(item, "mark_failed", actor="tester", reason="a look at it")

    for _ in range(2):
        assert engine.card("items", "1") is None
        assert [card["id"] for card in engine.cards("items")] == [2]
        assert [hit.key for hit in engine.search("story")] == []
        engine.store.rebuilder.rebuild()
    engine.store.operations.transition(item, "retry_processing", actor="tester", reason="looked")
    await engine.work_until_idle()

    card = engine.card("items", "1")
    assert card is not None
    assert card["state"] == "completed"
    assert [hit.key for hit in engine.search("story")] == ["1"]


async def test_a_card_tells_that_a_newer_copy_of_its_item_failed(engine):
    upload(engine, [a_story(1)])
    await engine.work_until_idle()
    upload(engine, [a_story(1, score=7, url="no address")])
    await engine.work_until_idle()

    for _ in range(2):
        card = engine.card("items", "1")
        assert card is not None
        # An invalid update never damages what readers see.
        assert (card["state"], card["score"], card.get("url")) == ("failed", 1, None)
        assert [hit.key for hit in engine.search("story")] == ["1"]
        engine.store.rebuilder.rebuild()
    upload(engine, [a_story(1, score=8)])
    await engine.work_until_idle()

    card = engine.card("items", "1")
    assert card is not None
    assert (card["state"], card["score"]) == ("completed", 8)


async def test_titles_are_listed_as_plain_text(engine):
    upload(engine, [a_story(1, title="Q&amp;A: is 1 &lt; 2?")])
    await engine.work_until_idle()

    (row,) = engine.items("item")
    assert row.title == "Q&A: is 1 < 2?"


@pytest.mark.parametrize(
    ("given", "url"),
    [
        (" https://a.example/x \n", "https://a.example/x"),
        ("https://a.example/a b?q=c d#e f", "https://a.example/a%20b?q=c%20d#e%20f"),
        ('https://a.example/"x"<y>\t', "https://a.example/%22x%22%3Cy%3E"),
        ("https://a.example?a b", "https://a.example?a%20b"),
    ],
)
async def test_an_address_is_spelled_as_browsers_send_it(engine, given, url):
    upload(engine, [a_story(1, url=given, kids=[2]), a_comment(2, 1)])
    await engine.work_until_idle()

    card = engine.card("items", "1")
    assert card is not None
    assert card["url"] == url


async def test_what_stands_at_the_top_shows_no_parent(engine):
    upload(engine, [a_story(1), a_story(2, parent=1, poll=1), a_comment(3, 2, poll=1)])
    await engine.work_until_idle()

    for number, parent in ((2, None), (3, 2)):
        card = engine.card("items", str(number))
        assert card is not None
        assert (card.get("parent"), card.get("poll")) == (parent, None)
    assert [hit.key for hit in engine.search("parent:1")] == []


async def test_a_step_that_raised_stands_in_the_life_line(database_url):
    def collapse(work: Work) -> Outcome:
        raise ZeroDivisionError("the roof came down")

    async with Engine(database_url, [with_step("index_item", collapse)], endpoints=["http://127.0.0.1:9"]) as engine:
        upload(engine, [a_story(1)])
        await engine.work_through()

        rows = [row for row in engine.item("item", "1").life if row.error]
        assert rows
        for row in rows:
            raised = [(m.from_state, m.to_state, m.note) for m in row.steps if m.transition == "index_item"]
            place = "hierarchy_resolved"
            assert raised == [(place, place, "raised ZeroDivisionError: the roof came down")]


STEPS = ("auto_ingest", "validate_item", "check_duplicates", "resolve_hierarchy", "index_item", "complete_processing")


def with_step(name: str, processor: Any) -> Pipeline:
    """Return the pipeline with another processor in one of its steps."""
    declared = pipeline()
    life = declared.workflows["item"]
    steps = tuple(replace(t, processor=processor) if t.name == name else t for t in life.transitions)
    return replace(declared, workflows={**declared.workflows, "item": replace(life, transitions=steps)})


@pytest.mark.parametrize("step", STEPS[1:])
async def test_a_step_that_breaks_is_tried_again_and_then_fails_with_its_stack(database_url, step):
    def collapse(work: Work) -> Outcome:
        raise ZeroDivisionError("the roof came down")

    async with Engine(database_url, [with_step(step, collapse)], endpoints=["http://127.0.0.1:9"]) as engine:
        upload(engine, [a_story(1)])
        await engine.work_until_idle()
        assert engine.item("item", "1").item.standing == "open"
        await engine.work_through()

        view = engine.item("item", "1")
        assert (view.item.state, view.item.standing, view.body["retry_count"]) == ("failed", "dead", 3)
        assert view.body["error"] == "ZeroDivisionError: the roof came down"
        assert "in collapse" in view.body["stack"]
        life = [move for row in view.life for move in row.steps]
        state = engine.wiring.pipelines[0].workflows["item"].named(step).source
        assert [move.from_state for move in life if move.transition == "mark_failed"] == [state] * 3


async def test_an_item_that_breaks_before_it_is_ingested_is_ingested_by_its_retry(database_url):
    def collapse(work: Work) -> Outcome:
        raise ZeroDivisionError("the roof came down")

    async with Engine(database_url, [with_step("auto_ingest", collapse)], endpoints=["http://127.0.0.1:9"]) as engine:
        upload(engine, [a_story(1)])
        await engine.work_through()

        view = engine.item("item", "1")
        assert (view.item.state, view.body["retry_count"], view.body.get("error")) == ("completed", 1, None)
        moves = [move for row in view.life for move in row.steps if move.transition == "mark_failed"]
        assert [move.from_state for move in moves] == ["initial_state"]


@pytest.mark.parametrize("step", STEPS)
async def test_an_item_can_be_marked_as_failed_in_every_state(database_url, step):
    def wait(work: Work) -> Outcome:
        return Postpone(work.now_ms + HOUR * 1000, "for the test")

    declared = with_step(step, wait)
    async with Engine(database_url, [declared], endpoints=["http://127.0.0.1:9"]) as engine:
        upload(engine, [a_story(1)])
        await engine.work_until_idle()
        resting = engine.item("item", "1")
        assert resting.item.state == declared.workflows["item"].named(step).source

        engine.store.operations.transition(resting.item.id, "mark_failed", actor="tester", reason="enough")

        failed = engine.item("item", "1")
        assert (failed.item.state, failed.body["retry_count"]) == ("failed", 1)
        engine.store.operations.transition(resting.item.id, "retry_processing", actor="tester", reason="once more")
        again = engine.item("item", "1")
        assert (again.item.state, again.body.get("error")) == ("ingested", None)


# The live API.


async def test_the_live_api_is_followed_to_threads_and_search(database_url):
    world = HackerNews.from_package()
    async with StandIn(world.app) as server:
        declared = pipeline(base_url=f"{server.url}/v0", first_items=1_000)
        async with Engine(database_url, [declared], endpoints=[server.url]) as engine:
            (run,) = await engine.discover()
            await engine.work_until_idle()

            assert (run.error, run.rejected) == (None, 0)
            assert run.new == len(world.items())
            states = engine.states("item")
            assert states["completed"] + states["failed"] == len(world.items())
            odd = [item for item in world.items().values() if item["type"] == "banana"]
            assert states["failed"] == len(odd)
            discussed = max(world.items().values(), key=lambda item: item.get("descendants", 0))["id"]
            assert len(thread(engine, discussed)) > world.items()[discussed]["descendants"] > 5

            (again,) = await engine.discover()
            assert (again.new, again.changed) == (0, 0)
            world.change(discussed, score=999)
            reply = world.add(type="comment", parent=discussed, by="late", text="a quokka appears")
            (later,) = await engine.discover()
            await engine.work_until_idle()
            assert (later.new, later.changed) == (1, 1)
            card = engine.card("items", str(discussed))
            assert card is not None
            assert card["score"] == 999
            assert [hit.key for hit in engine.search("quokka")] == [str(reply)]


async def test_a_backfill_reads_a_range(database_url, samples):
    lines = (samples / "hackernews" / "threads_first_items.jsonl").read_text().splitlines()
    world = HackerNews(json.loads(line) for line in lines)
    async with (
        StandIn(world.app) as server,
        Engine(database_url, [pipeline(base_url=f"{server.url}/v0")], endpoints=[server.url]) as engine,
    ):
        (run,) = await engine.discover(options={"from": 1, "to": 590})
        await engine.work_until_idle()

        assert (run.error, run.new) == (None, 375)
        assert engine.states("item") == {"completed": 375}
