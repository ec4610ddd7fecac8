"""Labels written by hand find the real ones."""

from __future__ import annotations

import pytest

from tidings.pipelines.first_issues.labels import folded, match_label, squashed


@pytest.mark.parametrize(
    ("listed", "real", "names", "status"),
    [
        ("good first issue", ["bug", "good first issue"], ("good first issue",), "exact"),
        ("Good First Issue", ["good first issue"], ("good first issue",), "exact"),
        ("Good-first-issue", ["Good first issue"], ("Good first issue",), "respelled"),
        ("Type:-Jump-In", ["Type: Jump In"], ("Type: Jump In",), "respelled"),
        ("status:-easy", ["status: easy", "type: bug"], ("status: easy",), "respelled"),
        ("good first issue-:wave:", ["good first issue :wave:"], ("good first issue :wave:",), "respelled"),
        ("good first issue-:1st_place_medal:", ["good first issue 🥇"], ("good first issue 🥇",), "respelled"),
        ("👶 Good first issue", ["👶 Good first issue"], ("👶 Good first issue",), "exact"),
        ("GoodFirstIssue", ["good first issue"], ("good first issue",), "respelled"),
        ("Level:Starter", ["Level: Starter"], ("Level: Starter",), "respelled"),
        (
            "Good First Issue, Difficulty/1:Easy",
            ["Difficulty/1:Easy", "Good First Issue"],
            ("Good First Issue", "Difficulty/1:Easy"),
            "respelled",
        ),
        ("Good First Issue, Difficulty/1:Easy", ["Good First Issue"], ("Good First Issue",), "partial"),
        ("easy, really", ["easy, really"], ("easy, really",), "exact"),
        ("See Description", ["bug", "good first issue"], (), "unknown"),
        (None, ["Good First Issue"], ("Good First Issue",), "missing"),
        ("  ", ["bug"], (), "missing"),
    ],
)
def test_a_listed_label_means_a_real_one(listed, real, names, status):
    match = match_label(listed, real)

    assert (match.names, match.status) == (names, status)
    assert (match.note is None) == (status == "exact")


def test_the_exact_spelling_wins_over_a_similar_one():
    assert match_label("help-wanted", ["help wanted", "help-wanted"]).names == ("help-wanted",)


def test_a_label_of_pictures_only_matches_nothing_else():
    assert match_label(":wave:", ["🎉", "!"]).names == ()
    assert folded("👋") == squashed("👋") == ""
