"""HTML of strangers: a safe subset, or words."""

from __future__ import annotations

import pytest

from tidings.net.sanitizer import lines_of, safe_html, without_tags, words_of


@pytest.mark.parametrize(
    ("html", "safe"),
    [
        ("plain > simple", "plain > simple"),
        ("<p onclick=x>one<script>bad()</script></p>", "<p>one</p>"),
        ("<img src=x onerror=y><svg><text>no</text></svg>yes", "yes"),
        ('<a href="javascript:x()">in</a>', '<a rel="nofollow noopener">in</a>'),
        ('<a href="/here">in</a>', '<a rel="nofollow noopener">in</a>'),
        (
            '<a href="https://a.example/?b&c">out</a>',
            '<a href="https://a.example/?b&amp;c" rel="nofollow noopener">out</a>',
        ),
    ],
)
def test_nothing_that_acts_survives_and_cleaning_twice_changes_nothing(html: str, safe: str) -> None:
    assert safe_html(html) == safe
    assert safe_html(safe) == safe


def test_a_title_keeps_its_text_and_stays_html() -> None:
    assert without_tags("<b>Q&A</b> 1 &lt; 2") == "Q&amp;A 1 &lt; 2"


def test_blocks_end_lines() -> None:
    assert lines_of("<p>one &amp; two</p><ul><li>three</li></ul>") == "one & two\nthree\n\n"


def test_words_are_parted_by_blocks_and_not_by_emphasis() -> None:
    assert words_of(safe_html("<p>un<i>happy</i>, 1 &lt; 2</p><p>end</p>")) == "unhappy, 1 < 2  end"
