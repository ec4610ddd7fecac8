"""Markdown is read for its prose: whole paragraphs, resolved, without what surrounds them."""

from __future__ import annotations

import pytest

from tidings.model.answers import RepoFacts
from tidings.process.enrich import local
from tidings.process.enrich.local.markdown import plain, read


def test_only_a_list_mark_at_the_beginning_of_a_line_is_one() -> None:
    body = "Folding (Ctrl+F9) is final. It passes *and* it fails.\n- [ ] the first entry\n\n12) the second\n- the third"
    parts = read(body)

    assert parts.prose == ["Folding (Ctrl+F9) is final. It passes and it fails.", "the third"]
    assert parts.numbered == ["the second"]


WRAPPED = "This line was wrapped because its author's editor found"


@pytest.mark.parametrize(
    ("text", "prose"),
    [
        (f"{WRAPPED}\nthat it goes on.", [f"{WRAPPED} that it goes on."]),
        ("Name: one\nOther: two", ["Name: one", "Other: two"]),
        ("Tom &amp; Ann&#39;s [guide][g] is &quot;good&quot;.\n\n[g]: x", ["Tom & Ann's guide is \"good\"."]),
        ("[![Build](b.svg)](ci) ![stars](s.svg)\n\nIt counts sheep.", ["It counts sheep."]),
        ("[Docs](a) | [Site](b) • [Chat](c)\n\nIt counts sheep.", ["It counts sheep."]),
        ("| a | b |\n|---|---|\n| one. | two. |\n\nIt counts sheep.", ["It counts sheep."]),
        ("<!-- one.\n\ntwo. -->\nIt counts sheep.", ["It counts sheep."]),
        ('<p align="center">\n  <img src="x.png">\n  <b>Fast</b> sheep.<br>\n</p>\n<h1>Name</h1>', ["Fast sheep."]),
        ("<table><tr><td>One. Two.</td></tr></table>\n\nIt counts sheep.", ["It counts sheep."]),
        ("<details>\n<summary>Logs</summary>\n\nA long log.\n\n</details>\n\nIt counts sheep.", ["It counts sheep."]),
        ("**Describe the bug**\nIt counts sheep.", ["It counts sheep."]),
        ("> [!NOTE]\n> It counts sheep :sheep:", ["It counts sheep"]),
        ("It counts sheep[^1].\n\n```\ncode.\n```", ["It counts sheep ."]),
    ],
)  # fmt: skip
def test_prose_is_what_a_reader_reads(text: str, prose: list[str]) -> None:
    assert read(text).prose == prose


def test_sections_are_left_out_by_their_heading_and_quotes_on_request() -> None:
    text = "One.\n\n## License\n\nTwo.\n\nUnder\n---\n\nThree.\n\n> Four."

    assert read(text, frozenset({"license"})).prose == ["One.", "Three.", "Four."]
    assert read(text, frozenset({"license"}), quotes=False).prose == ["One.", "Three."]


def test_names_are_kept_apart_from_prose() -> None:
    parts = read("See `a_b` in [code](https://example.org/x) and https://example.org/y.\n\n```\nrun it\n```")

    assert parts.code_spans == ["a_b"]
    assert parts.links == ["https://example.org/x", "https://example.org/y"]
    assert parts.code_blocks == ["run it\n"]
    assert plain("**Fast** [sheep](x) &amp; goats") == "Fast sheep & goats"


README = """<div align="center">

# Sheep

[![CI](https://ci.example/b.svg)](https://ci.example) [![pypi](https://p.example/b.svg)](https://p.example)

</div>

[Website](https://example.org) · [Docs](https://docs.example.org)

Sheep is a library that counts [sheep](https://en.wikipedia.org/wiki/Sheep), goats &amp; other animals
so that you need not stay awake for them. It runs wherever
Python does.

## Features

- Fast
- Small
"""


def test_a_repositorys_summary_has_whole_sentences() -> None:
    assert local.summarize_repo(RepoFacts(full_name="ada/sheep", readme=README)).summary == (
        "Sheep is a library that counts sheep, goats & other animals so that you need not stay awake for them. "
        "It runs wherever Python does."
    )
