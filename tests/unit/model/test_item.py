"""Names and fingerprints of the things that travel."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.item import Appended, Item, fingerprint, ref, split_ref


@given(kind=st.from_regex(r"[a-z_]+", fullmatch=True), key=st.text(min_size=1))
def test_a_ref_is_undone(kind: str, key: str) -> None:
    assert split_ref(ref(kind, key)) == (kind, key)


def test_keys_may_hold_colons() -> None:
    assert split_ref("article:https://example.org/a:b") == ("article", "https://example.org/a:b")


def test_an_item_names_itself_as_links_do() -> None:
    fields = dict.fromkeys(Item._fields) | {"kind": "story", "key": "42"}
    assert Item(**fields).ref == "story:42"  # type: ignore[arg-type]  # only the name matters here


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    assert fingerprint("title", 3, None, ["a"]) == fingerprint("title", 3, None, ["a"])
    assert fingerprint("a") == "fe20fb775a8812074a216e42"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b"), ("ab",)),
        (("a", "b"), ("b", "a")),
        ((1,), ("1",)),
        ((None,), ("",)),
        ((), (None,)),
        ((["a"],), ("a",)),
    ],
)
def test_different_fields_have_different_fingerprints(one: tuple[object, ...], other: tuple[object, ...]) -> None:
    assert fingerprint(*one) != fingerprint(*other)


@given(one=st.tuples(*[st.integers(0, 99)] * 3), other=st.tuples(*[st.integers(0, 99)] * 3))
def test_sums_of_pages(one: tuple[int, int, int], other: tuple[int, int, int]) -> None:
    total = Appended(*one) + Appended(*other)
    assert (total.new, total.changed, total.unchanged) == tuple(a + b for a, b in zip(one, other, strict=True))
    assert total.accepted == total.new + total.changed
