from __future__ import annotations

from itertools import pairwise

from tidings.pipelines.hacker_news.unread import GIVEN_UP_MAX, TRIES, Unread, UnreadIds


def test_waits_double_from_half_a_minute_to_a_day() -> None:
    unread = UnreadIds({}, now_ms=0)
    waits = []
    for _ in range(TRIES + 5):
        unread.count_try(7, "answered 500")
        waits.append(unread.entries["7"].due_ms / 1000)

    assert waits[0] == 30
    assert all(longer == min(2 * wait, 86_400) for wait, longer in pairwise(waits))
    assert waits[-1] == 86_400


def test_giving_up_is_reported_once_with_the_reason() -> None:
    unread = UnreadIds({}, now_ms=0)
    reports = [unread.count_try(7, "answered 500") for _ in range(TRIES + 5)]

    assert [len(report) for report in reports] == [*[0] * (TRIES - 1), 1, *[0] * 5]
    assert reports[TRIES - 1][0].reason == "item 7: given up after 10 tries: answered 500"
    assert unread.given_up() == [7]


def test_only_ids_whose_time_has_come_are_due_and_those_waiting_longest_come_first() -> None:
    entries = {"1": Unread(1, 500, ""), "2": Unread(1, 400, ""), "3": Unread(1, 600, ""), "4": Unread(TRIES, 0, "")}
    unread = UnreadIds(entries, now_ms=500)

    assert unread.due(10) == [2, 1]
    assert unread.due(1) == [2]
    assert [unread.is_early(number) for number in (1, 3, 4, 5)] == [False, True, False, False]


def test_a_restart_gives_all_tries_again_at_once() -> None:
    unread = UnreadIds({"4": Unread(TRIES, 9_000, "answered 401")}, now_ms=500)
    unread.restart()

    assert unread.due(10) == [4]
    assert unread.given_up() == []


def test_the_list_of_what_is_given_up_is_bounded_and_tells_what_it_drops() -> None:
    entries = {str(number): Unread(TRIES, 0, "") for number in range(1, GIVEN_UP_MAX + 1)}
    entries["9999"] = Unread(TRIES - 1, 0, "")
    unread = UnreadIds(entries, now_ms=0)

    given_up, dropped = unread.count_try(9_999, "answered 500")

    assert (given_up.line, dropped.line) == (9_999, 1)
    assert "dropped" in dropped.reason
    assert len(unread.given_up()) == GIVEN_UP_MAX
