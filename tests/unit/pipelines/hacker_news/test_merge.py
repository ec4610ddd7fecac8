from __future__ import annotations

from itertools import permutations

import pytest
from tests.unit.pipelines.hacker_news.working import a_body, a_comment

from tidings.pipelines.hacker_news.merge import is_newer, merge


def live(**fields):
    return a_body(source_type="FIREBASE", **fields)


def uploaded(**fields):
    return a_body(source_type="BULK", **fields)


def test_a_live_copy_is_newer_in_every_field():
    known = live(score=10, descendants=5, kids=(101, 102), text="old", title="Old", time=1_700_000_000, dead=True)
    new = live(score=8, descendants=4, kids=(102,), text="new", title="New", time=1_700_009_999)

    merged, changed = merge(known, new)

    assert (merged.score, merged.descendants, merged.kids) == (8, 4, (102,))
    assert (merged.text, merged.title, merged.time, merged.dead) == ("new", "New", 1_700_009_999, None)
    assert set(changed) == {"score", "descendants", "kids", "text", "title", "time", "dead"}


def test_a_field_that_is_absent_says_nothing():
    merged, changed = merge(live(url="https://a.example/", score=3), live(dead=True, title=None))

    assert (merged.url, merged.score, merged.title, merged.dead) == ("https://a.example/", 3, "A title", True)
    assert changed == ("dead",)


def test_kids_gone_from_the_live_copy_are_gone():
    assert merge(live(kids=(101,)), live())[0].kids is None


def test_an_uploaded_copy_with_lower_counts_is_older():
    known = uploaded(score=10, text="edited", kids=(102, 101))
    merged, changed = merge(known, uploaded(score=4, text="first", url="https://a.example/", kids=(101, 103)))

    assert (merged.score, merged.text, merged.url) == (10, "edited", "https://a.example/")
    assert merged.kids == (102, 101, 103)
    assert changed == ("url", "kids")


def test_of_two_equal_uploads_the_later_arrival_counts():
    assert merge(uploaded(text="first"), uploaded(text="second"))[0].text == "second"


def test_an_upload_outweighs_a_live_copy_only_if_it_has_grown():
    known = live(score=10, text="live")

    assert not is_newer(known, uploaded(score=10, text="upload"))
    assert merge(known, uploaded(score=10, text="upload"))[0].text == "live"
    assert merge(known, uploaded(score=11, text="upload"))[0].text == "upload"
    assert merge(live(), uploaded(text="fills a gap"))[0].text == "fills a gap"


def test_counts_of_uploads_never_shrink():
    known = uploaded(score=10, descendants=3)
    merged, _ = merge(known, uploaded(score=4, descendants=7))

    assert (merged.score, merged.descendants) == (10, 7)


@pytest.mark.parametrize("form", [live, uploaded])
def test_deletion_withdraws_the_words(form):
    known = form(text="words", url="https://a.example/", kids=(101,), score=3)
    deleted = form(deleted=True, by=None, title=None, kids=(101,))

    merged, changed = merge(known, deleted)

    assert (merged.by, merged.title, merged.url, merged.text) == (None,) * 4
    assert (merged.deleted, merged.kids) == (True, (101,))
    assert {"deleted", "text", "by"} <= set(changed)


def test_an_old_upload_does_not_bring_a_deleted_item_back():
    known = live(deleted=True, by=None, title=None)

    merged, changed = merge(known, uploaded(text="words", score=900, kids=(101,)))

    assert (merged.deleted, merged.text, merged.title, merged.by) == (True, None, None, None)
    assert changed == ("score", "kids")


def test_death_is_kept_against_uploads_and_lifted_by_the_live_copy():
    known = uploaded(dead=True, text="[dead]")

    assert merge(known, uploaded(text="words"))[0].dead is True
    assert merge(known, uploaded(text="words"))[0].text == "[dead]"
    assert merge(known, live(text="vouched"))[0].dead is None


def test_a_type_stays_unless_it_was_inferred():
    assert merge(uploaded(), live(type="job"))[0].type == "story"
    merged, _ = merge(a_comment(type_inferred=True), a_comment(source_type="FIREBASE"))
    assert (merged.type, merged.type_inferred) == ("comment", False)


def test_a_moved_comment_gets_its_new_parent():
    known = a_comment(parent=50, source_type="FIREBASE")

    assert merge(known, a_comment(parent=60, source_type="FIREBASE"))[0].parent == 60


def test_the_same_copy_changes_nothing():
    for form in (live, uploaded):
        body = form(score=1, kids=(101,), text="x", dead=True)
        assert merge(body, body)[1] == ()


def test_uploads_of_growing_copies_end_the_same_in_any_order():
    copies = [
        uploaded(score=1, text="a"),
        uploaded(score=5, kids=(101,), text="b"),
        uploaded(score=9, kids=(102, 101), text="c"),
    ]
    ends = []
    for order in permutations(copies):
        known = order[0]
        for new in order[1:]:
            known, _ = merge(known, new)
        ends.append((known.score, known.kids, known.text))

    assert set(ends) == {(9, (102, 101), "c")}
