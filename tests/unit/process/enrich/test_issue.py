"""An issue is rated by evidence only, begins where it names something, and is introduced by what its author wrote."""

from __future__ import annotations

from typing import Any

import pytest

from tidings.model.answers import IssueFacts
from tidings.process.enrich import local
from tidings.process.enrich.local.difficulty import CANNOT_TELL, CONTRADICTORY, rating_of_label, rating_of_words

REPO = "ada/engine"


def analyzed(body: str = "", title: str = "Export crashes", **more: Any) -> Any:
    return local.analyze_issue(IssueFacts(title=title, body=body, repo=REPO, **more))


BUG = """The export command crashes when the output folder is missing. It should create the folder instead.

**Steps to reproduce**

1. Remove the `out` folder
2. Run `engine export`

```
Traceback (most recent call last):
  File "/srv/reports/venv/lib/python3.11/site-packages/engine/export.py", line 12, in run
  File "/srv/reports/work/my_report.py", line 3, in <module>
```
"""


def test_what_says_nothing_of_difficulty_rates_nothing() -> None:
    analysis = analyzed(BUG, labels=["good first issue", "bug", "beginner"], comments=12, age_days=800)

    assert analysis.difficulty is None
    assert analysis.reasons == [CANNOT_TELL]


@pytest.mark.parametrize(
    ("label", "rating"),
    [
        ("difficulty: easy", 3),
        ("Difficulty/1:Easy", 3),
        ("E-easy", 3),
        ("E-hard", 7),
        ("size/XS", 1),
        ("size: L", 7),
        ("effort: medium", 5),
        ("Level:Starter", 3),
        ("exp/beginner", 3),
        ("status: hard", 7),
        ("complexity - very hard", 9),
        ("difficulty: 4/10", 4),
        ("low-hanging fruit :apple:", 3),
        ("Easy", 3),
        ("easy-pick", 3),
        ("epic", 9),
        ("good first issue", None),
        ("beginner", None),
        ("priority: low", None),
        ("impact level: high", None),
        ("documentation", None),
        ("hardware", None),
        ("size", None),
        ("", None),
    ],
)
def test_only_labels_of_difficulty_and_size_rate(label: str, rating: int | None) -> None:
    assert rating_of_label(label) == rating


@pytest.mark.parametrize(
    ("sentence", "rating"),
    [
        ("This should be an easy fix.", 3),
        ("It's a one-line fix in the parser.", 2),
        ("Should be straightforward to implement.", 3),
        ("That would be a trivial change.", 2),
        ("The fix is pretty simple.", 3),
        ("This is harder than it looks.", 7),
        ("It's non-trivial to fix.", 7),
        ("This will be quite involved.", 7),
        ("This shouldn't be too hard.", 3),
        ("It isn't an easy fix.", 6),
        ("Not a good first issue, sorry.", 7),
        ("Is this an easy fix?", None),
        ("If it is an easy fix, go on.", None),
        ("The API should be easy to use.", None),
        ("Print one line per peer.", None),
        ("Use a simple example.", None),
    ],
)
def test_only_statements_about_the_work_rate(sentence: str, rating: int | None) -> None:
    assert rating_of_words(sentence) == rating


def test_a_maintainers_word_counts_and_a_strangers_does_not() -> None:
    says = "Thanks! This should be an easy fix, see `engine/io.py`."
    stranger = analyzed("It crashes. This should be an easy fix.")
    maintainer = analyzed("It crashes.", maintainer_comments=["> should be a hard fix\n\n" + says])

    assert stranger.difficulty is None
    assert maintainer.difficulty == 3
    assert maintainer.reasons == ["a maintainer says: “This should be an easy fix, see engine/io.py.”"]
    assert maintainer.first_steps == ["Open engine/io.py, which a maintainer names."]
    assert analyzed("It crashes. This should be an easy fix.", by_maintainer=True).difficulty == 3


def test_a_projects_label_stands_above_words_and_contradictions_rate_nothing() -> None:
    hard = analyzed("It crashes.", labels=["size: XL"], maintainer_comments=["This should be an easy fix."])
    torn = analyzed("It crashes.", labels=["easy", "size: XL"])

    assert hard.difficulty == 9
    assert hard.reasons[0] == "the project labels it “size: XL”"
    assert torn.difficulty is None
    assert torn.reasons[0] == CONTRADICTORY


FAILING = "Run the test tests/test_io.py::test_write, which is said to fail."


def test_steps_come_from_stack_frames_and_commands_of_the_project() -> None:
    assert analyzed(BUG).first_steps == ["Open engine/export.py.", "Run: engine export"]


@pytest.mark.parametrize(
    ("body", "steps"),
    [
        (
            "See https://github.com/Ada/Engine/blob/0a1b2c/engine/export.py#L12-L20 for the cause.",
            [
                "Read engine/export.py, lines 12 to 20: "
                "https://github.com/Ada/Engine/blob/0a1b2c/engine/export.py#L12-L20"
            ],
        ),
        ("See [here](https://github.com/eve/other/blob/main/other/export.py#L12).", []),
        ("The table is in `docs/commands.md`, and lib/io/write.rb writes it.", None),
        ("In my app/models/user.rb I have nothing.", []),
        ("It is in /Users/eve/project/app/models/user.rb here.", []),
        ("I use `C:\\work\\engine\\main.py` and ~/engine/main.py.", []),
        ("Look at node_modules/engine/lib/index.js.", []),
        ("Edit path/to/file.py.", []),
        ("My code in `config.rb` is short.", []),
        ("Visit https://example.org/a/b.html first.", []),
        ("- [ ] change src/a.py\n- [x] change src/b.py", []),
        ("<!-- name the file, such as src/a.py -->", []),
        ("> Somebody wrote src/quoted.py", []),
        ("The test tests/test_io.py::test_write fails on Windows.", [FAILING]),
        ("```\nFAILED tests/test_io.py::test_write - assert 1 == 2\n```", [FAILING]),
        ("Run `pip install engine` and see.", []),
        ("```\n$ pytest -k write\n```", ["Run: pytest -k write"]),
        ("It does not work.", []),
    ],
)  # fmt: skip
def test_steps_name_what_the_issue_names_or_there_are_none(body: str, steps: list[str] | None) -> None:
    expected = ["Open docs/commands.md.", "Open lib/io/write.rb."] if steps is None else steps
    assert analyzed(body, title="It is wrong").first_steps == expected


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("`--drafts` is not documented", ["--drafts"]),
        ("Graph::node returns nil", ["Graph::node"]),
        ("read_text() fails for empty files", ["read_text()"]),
        ("useState is called twice", ["useState"]),
        ("TypeError in TypeScript on GitHub", []),
        ("Crash on macOS with PostgreSQL", []),
        ("Engine is slow", []),
        ("Add dark mode", []),
    ],
)
def test_identifiers_in_the_title_are_searched_for(title: str, names: list[str]) -> None:
    assert analyzed("It is so.", title=title).first_steps == [f"Search the code for {name}." for name in names]


TEMPLATE = """### Describe the bug

A clear and concise description of what the bug is.

The menu stays open after a click outside,
which hides the page.

**To Reproduce**
Steps to reproduce the behavior:
1. Go to '...'
2. Click on '....'

### Checklist

- [x] I have searched the existing issues
- [ ] I agree to follow this project's Code of Conduct

### Environment

OS: [e.g. iOS]
"""


def test_an_introduction_is_what_the_reporter_wrote() -> None:
    said = "The menu stays open after a click outside, which hides the page."
    assert analyzed(TEMPLATE, title="Menu").introduction == said


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("", "`-` as the value should mean stdin, as it does elsewhere."),
        ("When we call this:\n\n```\nx()\n```\n\nwhich is short. ", "The menu stays open until it is clicked again."),
        ("| a | b |\n|---|---|\n| x. | y. |\n\n", "The table has one row and should have two of them."),
        ("![a picture](x.png)\n\n**Describe the bug**\n", "The table has one row and should have two of them."),
    ],
)
def test_an_introduction_begins_where_a_sentence_does(before: str, said: str) -> None:
    assert analyzed(before + said).introduction == said.replace("`", "")


def test_what_helps_a_beginner_is_read_from_the_text() -> None:
    helpful = local.read_issue(IssueFacts(title="Export crashes", body=BUG, repo=REPO))
    wide = local.read_issue(IssueFacts(title="Rewrite the exporter", body="See `engine/export.py`.", repo=REPO))
    vague = local.read_issue(IssueFacts(title="It is slow", body="Please help.", repo=REPO))

    assert (helpful.names_little, helpful.has_steps) == (True, True)
    assert (wide.names_little, wide.has_steps) == (False, False)
    assert (vague.names_little, vague.has_steps) == (False, False)
