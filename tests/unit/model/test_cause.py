"""Dead letters are grouped by the sort of their cause."""

from __future__ import annotations

import pytest

from tidings.model.endings import cause_of as sort_of


@pytest.mark.parametrize(
    ("reasons", "sort"),
    [
        ([f"type: 'kind{n}' is none of story, job" for n in range(1000)], "type: '…' is none of story, job"),
        ([f"https://example.com/a/{n}?x=1 answered 404" for n in range(9)], "https://example.com/… answered 404"),
        ([f"details of LIFE-2026-{n:05} answered 502" for n in range(9)], "details of … answered 502"),
        ([f"item {n} is gone" for n in range(40_000, 40_009)], "item … is gone"),
        (["waited longer than 7 days"], "waited longer than 7 days"),
    ],
)
def test_what_differs_from_item_to_item_is_left_out(reasons: list[str], sort: str) -> None:
    assert {sort_of(reason) for reason in reasons} == {sort}
