"""The lists are read whole; what cannot be used is told, with its place."""

from __future__ import annotations

import json

import pytest

from tidings.model.errors import Transient
from tidings.model.item import Rejected
from tidings.pipelines.first_issues.lists import ListedRepo, collect, read_awesome, read_configured, split_name


def test_the_whole_real_list_is_read(samples):
    listing = collect(read_awesome((samples / "github" / "awesome_for_beginners_data.json").read_bytes()))

    assert len(listing.entries) == 222
    assert len(listing.rejected) == 7
    assert all("not a repository on GitHub" in each.reason for each in listing.rejected)
    assert {each.line for each in listing.rejected} == {33, 41, 119, 128, 181, 214, 223}
    assert "mem0ai/mem0" in {entry.key for entry in listing.entries}
    assert "microsoft/typescript" in {entry.key for entry in listing.entries}


@pytest.mark.parametrize(
    ("link", "full_name"),
    [
        ("https://github.com/ppy/osu", "ppy/osu"),
        ("https://github.com/mem0ai/mem0/", "mem0ai/mem0"),
        ("http://www.github.com/ppy/osu.git", "ppy/osu"),
        ("https://github.com/ppy/osu/issues?q=label:easy#top", "ppy/osu"),
        (" https://GitHub.com/spectreconsole/spectre.console ", "spectreconsole/spectre.console"),
    ],
)
def test_links_to_github_are_understood(link, full_name):
    (entry,) = collect(read_awesome(_list({"name": "x", "link": link, "label": "easy"}))).entries

    assert entry.full_name == full_name


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "x", "link": "https://gitlab.com/a/b"},
        {"name": "x", "link": "https://github.com/only-an-owner"},
        {"name": "x", "link": "https://github.com/-bad-/name"},
        {"name": "x", "link": "https://github.com/a/.."},
        {"name": "x", "link": "https://github.com.evil.example/a/b"},
        {"name": "x", "link": 7},
        {"name": "x"},
        "https://github.com/a/b",
        None,
    ],
)
def test_other_links_are_rejected_with_their_place(entry):
    listing = collect(read_awesome(_list({"link": "https://github.com/a/b"}, entry)))

    assert [e.key for e in listing.entries] == ["a/b"]
    assert [r.line for r in listing.rejected] == [2]


def test_entries_without_a_label_are_kept_and_told():
    listing = collect(read_awesome(_list({"link": "https://github.com/a/b", "technologies": None})))

    assert listing.entries[0].tag is None
    assert listing.notes == ("a/b has no label",)


def test_a_repository_counts_once_and_the_configuration_wins():
    configured = read_configured([("A/B", "mine")])
    listing = collect([*configured, *read_awesome(_list({"link": "https://github.com/a/b", "label": "theirs"}))])

    assert [(e.full_name, e.tag, e.source) for e in listing.entries] == [("A/B", "mine", "configuration")]
    assert listing.rejected == (Rejected(1, "a/b is already listed in place 1"),)


@pytest.mark.parametrize("data", [b"", b"<html>", b"[]", b"{}", b'{"repositories": {}}', b'{"repositories": []}'])
def test_a_broken_list_is_a_passing_trouble(data):
    with pytest.raises(Transient):
        read_awesome(data)


def test_names_github_cannot_have_are_refused():
    assert split_name("ppy/osu") == ("ppy", "osu")
    for name in ("ppy", "ppy/", "/osu", "p p/osu", "ppy/o/u", "ppy/os\nu", "../osu", "a" * 40 + "/b"):
        assert split_name(name) is None


def test_an_entry_is_known_by_its_name_in_lower_case():
    assert ListedRepo(1, "Microsoft", "TypeScript", None, "x").key == "microsoft/typescript"


def _list(*entries):
    return json.dumps({"repositories": list(entries)}).encode()
