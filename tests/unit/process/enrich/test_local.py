"""The local default answers every input, always the same, within its limits."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.answers import IssueAnalysis, IssueFacts, RepoFacts, RepoSummary, Sentiment, Summary
from tidings.model.harmless import visible
from tidings.process.enrich import local
from tidings.process.enrich.local import lexicon
from tidings.process.enrich.local.furniture import is_furniture
from tidings.process.enrich.local.sentences import split_sentences

ANY_TEXT = st.text(
    alphabet=st.one_of(
        st.characters(),
        st.sampled_from(list(". !?\n\t'\"<>[]()*_`#|-:/@$%0123456789")),
        st.sampled_from(list("abcdefghijklmnopqrstuvwxyzABC")),
    ),
    max_size=1500,
)
WORDY_TEXT = st.lists(
    st.sampled_from(
        [
            "Profit",
            "rose",
            "fell",
            "not",
            "from",
            "12.5",
            "mn",
            "-3%",
            "costs",
            "Bitcoin",
            "hack.",
            "Subscribe",
            "now.",
            "By",
            "?",
            "and",
        ]
    ),
    max_size=120,
).map(" ".join)
TEXT = st.one_of(ANY_TEXT, WORDY_TEXT)

HOSTILE = {
    "dots": ". " * 100_000,
    "one giant word": "a" * 500_000,
    "images": "![" * 100_000,
    "brackets": "[" * 200_000,
    "tags": "<a " * 100_000,
    "line ends": "\n" * 500_000,
    "emphasis": "*_" * 100_000,
    "short sentences": "A b c. " * 50_000,
    "versions": "1." * 100_000,
    "paths": "a/" * 100_000,
    "dotted paths": "a-." * 100_000,
    "stack": "\n   at " * 30_000,
    "code": "`a" * 100_000,
    "comparisons": "compared to 1 profit 2 " * 10_000,
    "addresses": "http://" * 30_000,
    "comments": "<!--" * 50_000,
    "binary": "".join(map(chr, range(1, 3000))) * 40,
    "half characters": "\ud800a\udfff " * 20_000,
    "emoji": "🚀📈🔥 " * 20_000,
    "right to left": "ارتفع سعر البيتكوين اليوم. " * 4_000,
}


def all_answers(text: str) -> list[msgspec.Struct]:
    return [
        local.summarize(text, text),
        local.judge_sentiment(text, text),
        local.summarize_repo(RepoFacts(full_name=text, description=text, readme=text, languages=[text], topics=[text])),
        local.analyze_issue(IssueFacts(title=text, body=text, labels=[text], comments=3, age_days=800, repo=text)),
    ]


@settings(max_examples=200, deadline=None)
@given(TEXT)
def test_every_text_gets_schema_valid_answers_and_the_same_bytes_again(text: str) -> None:
    answers = all_answers(text)
    encoded = [msgspec.json.encode(answer) for answer in answers]

    for answer, data in zip(answers, encoded, strict=True):
        assert msgspec.json.decode(data, type=type(answer)) == answer
    assert encoded == [msgspec.json.encode(answer) for answer in all_answers(text)]


@settings(max_examples=200, deadline=None)
@given(TEXT, st.integers(5, 120))
def test_a_summary_holds_only_sentences_of_the_text_and_few_words(text: str, words: int) -> None:
    summary = local.summarize(text, words_max=words).summary

    assert len(summary.split()) <= words
    flat = " ".join(visible(text, " ").split())
    whole = summary.removesuffix("…")
    assert not whole or all(word in flat for word in whole.split())


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_texts_cost_little_time(kind: str) -> None:
    started = time.process_time()
    answers = all_answers(HOSTILE[kind])
    assert time.process_time() - started < 1.0
    for answer in answers:
        assert msgspec.json.decode(msgspec.json.encode(answer), type=type(answer)) == answer


def test_an_empty_text_is_answered_too() -> None:
    assert local.summarize("") == Summary(summary="")
    assert local.judge_sentiment("") == Sentiment(label="unknown", score=0.0, reason="there are no words to judge")
    repo = local.summarize_repo(RepoFacts(full_name="ada/engine", languages=["Python"]))
    assert repo == RepoSummary(summary="ada/engine is a project written in Python; it does not describe itself.")
    issue = local.analyze_issue(IssueFacts(title=""))
    assert isinstance(issue, IssueAnalysis)
    assert issue.introduction == "The issue has neither a title nor a text."


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Der Kurs von Bitcoin ist am Montag stark gefallen, und die Anleger sind nicht froh.", "(de)"),
        ("Le cours du bitcoin a fortement chuté dans la nuit et les marchés sont inquiets.", "(fr)"),
        ("比特币价格大跌", "(zh)"),
        ("Цена биткоина резко упала в понедельник.", "(ru)"),
        ("AEMD", "so few words"),
        ("12.5 % 🚀", "no words"),
    ],
)
def test_what_cannot_be_judged_is_unknown_with_its_reason(text: str, reason: str) -> None:
    answer = local.judge_sentiment(text)

    assert (answer.label, answer.score) == ("unknown", 0.0)
    assert reason in (answer.reason or "")


def test_short_english_is_not_taken_for_another_language() -> None:
    assert local.judge_sentiment("$TQQQ: No Risk No Reward").label != "unknown"
    assert local.judge_sentiment("Orders rise 23% Y/Y").label == "positive"
    assert local.judge_sentiment("The company will publish its report on Tuesday.").label == "neutral"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Operating costs fell sharply", "positive"),
        ("Operating costs rose sharply", "negative"),
        ("Net sales rose to EUR 12.4 mn from EUR 10.1 mn", "positive"),
        ("Net sales fell to EUR 10.1 mn from EUR 12.4 mn", "negative"),
        ("Operating profit totalled EUR 9.6 mn, compared to EUR 8.3 mn a year earlier", "positive"),
        ("Operating profit totalled EUR 8.3 mn, compared to EUR 9.6 mn a year earlier", "negative"),
        ("Unemployment drops for the third month", "positive"),
        ("The company is not profitable", "negative"),
        ("Exchange drained in $40 million exploit", "neutral"),
        ("Crypto exchange drained in $40 million exploit", "negative"),
        ("Regulator approves spot Bitcoin ETF", "positive"),
        ("Country bans Bitcoin mining", "negative"),
        ("Bitcoin hits all-time high as ETF inflows grow", "positive"),
        ("Analyst cuts to Sell", "negative"),
        ("Maker shares +4.2% after results", "positive"),
        ("Maker shares -4.2% after results", "negative"),
        ("Annual general meeting to be held on 12 May", "neutral"),
        ("The plant is located in the south of the country", "neutral"),
    ],
)
def test_sentiment_knows_directions_negation_and_the_words_of_its_field(text: str, label: str) -> None:
    assert local.judge_sentiment(text).label == label


def test_the_title_counts_twice() -> None:
    body = "The network went live in March. It serves payments in two countries."
    assert local.judge_sentiment(body).label == "neutral"
    assert local.judge_sentiment(body, "Exchange collapses into bankruptcy").label == "negative"


def test_only_the_first_three_sentences_of_a_text_count() -> None:
    dull = "The meeting took place on Monday. It lasted two hours. Coffee was served. "
    assert local.judge_sentiment(dull + "Then the company went bankrupt after a fraud.").label == "neutral"


FURNITURE = [
    "We use cookies to improve your experience on our site.",
    "Subscribe to our newsletter and never miss a story.",
    "By Ada Example, Markets Editor",
    "Published March 3, 2024 at 10:15 AM",
    "Share this article on Facebook",
    "Share Tweet Email",
    "Read more: five things to watch this week",
    "Photo by a photographer/Getty Images",
    "Advertisement",
    "Already have an account? Log in to continue reading.",
    "4 min read",
]
ARTICLE = (
    "The harbour town of Lindholm will close its last coal plant in June, two years earlier than planned. "
    "The plant heats nine thousand homes and employs two hundred people. "
    "A new heat pump station at the waterworks will take over in May. "
    "Workers were offered places at the station or early retirement."
)


@pytest.mark.parametrize("line", FURNITURE)
def test_furniture_is_told_from_the_article(line: str) -> None:
    assert any(is_furniture(sentence) for sentence in split_sentences(line))


def test_a_summary_begins_with_the_article_not_with_the_page() -> None:
    for glue in ("\n", " "):
        page = glue.join([*[f"{line}." if glue == " " else line for line in FURNITURE], ARTICLE])
        summary = local.summarize(page).summary
        assert summary.startswith("The harbour town of Lindholm")
        assert "cookies" not in summary


def test_an_article_about_cookies_is_not_furniture() -> None:
    assert not is_furniture("The bakery sold nine thousand cookies on its first day.")
    assert not is_furniture("Subscribers to the streaming service grew by a tenth last year.")


def test_an_article_about_cookies_keeps_its_sentences() -> None:
    article = (
        "The regulator fined the retailer for the use of cookies without consent. "
        "Its cookie policy was nine pages long and named four hundred partners. "
        "Under the GDPR a visitor must be able to refuse. "
        "The retailer uses cookies to measure how often an advertisement is seen. "
        "It said that it will appeal."
    )
    assert [s for s in split_sentences(article) if is_furniture(s)] == []


def test_a_summary_is_whole_sentences_without_headings_dashes_or_the_title() -> None:
    page = (
        "Harbour to close\nHarbour to close.\nWhy does it matter?\n- The harbour closes in May.\n"
        "12 ferries a day leave from it.\nPhoto: the harbour\nA new one opens 4 km to the south."
    )
    assert local.summarize(page, "Harbour to close").summary == (
        "The harbour closes in May. 12 ferries a day leave from it. A new one opens 4 km to the south."
    )


def test_the_pages_description_stands_in_where_the_text_has_no_sentence() -> None:
    said = "The harbour closes in May, the town says."
    assert local.summarize("Menu\nHome\nHarbour", description=said).summary == said
    assert local.summarize("Ferries leave from the south.", description=said).summary == "Ferries leave from the south."


def test_a_chinese_lead_is_measured_in_characters() -> None:
    sentence = "香港证监会周二宣布将于下月推出新的虚拟资产交易平台发牌制度并邀请业界提出意见。"
    summary = local.summarize(sentence + "第二句话也很重要并且说明了细节。" + "第三句。" + "很长" * 200 + "。").summary
    assert summary.startswith(sentence)
    assert len(summary) <= 160


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Am 4. Mai kam er mit dem Zug in Berlin an. Er blieb bis zum 7. Juni und reiste nach Wien weiter.", 2),
        ("He moved to Sioux Falls, S.D. in May. The U.S. Senate voted on it.", 2),
        ("東京は晴れ。大阪は雨。", 2),
    ],
)
def test_sentences_of_many_languages_are_told_apart(text: str, count: int) -> None:
    assert len(split_sentences(text)) == count


def test_sentences_are_cut_at_their_ends_only() -> None:
    assert split_sentences(
        'Dr. Ada met the U.S. envoy at 3 p.m. on Monday. "It went well." She left. 東京は晴れ。大阪は雨。'
    ) == [
        "Dr. Ada met the U.S. envoy at 3 p.m. on Monday.",
        '"It went well."',
        "She left.",
        "東京は晴れ。",
        "大阪は雨。",
    ]


README = """# engine
[![Build](https://ci.example/badge.svg)](https://ci.example) ![stars](https://img.example/s.svg)

<p align="center"><img src="logo.png"></p>

Engine computes tables of numbers without mistakes. It runs on any machine that has wheels.

| a | b |
|---|---|
| 1 | 2 |

```python
print("hello.")
```

## Installation

Run the installer and wait. It takes a while.

## License

MIT. You may do what you like.
"""


def test_a_repository_is_its_description_and_the_readmes_prose() -> None:
    facts = RepoFacts(full_name="ada/engine", description="An analytical engine", readme=README)
    assert local.summarize_repo(facts).summary == (
        "An analytical engine. Engine computes tables of numbers without mistakes. "
        "It runs on any machine that has wheels."
    )


def test_a_readme_that_repeats_the_description_is_not_quoted() -> None:
    facts = RepoFacts(
        full_name="ada/engine", description="An analytical engine for tables", readme="An analytical engine for tables."
    )
    assert local.summarize_repo(facts).summary == "An analytical engine for tables."


BUG = """The export command crashes when the output folder is missing. It should create the folder instead.

Steps to reproduce:

1. Remove the `out` folder
2. Run `engine export`

```
Traceback (most recent call last):
  File "engine/export.py", line 12, in run
```
"""


def test_the_lexicon_is_large_and_both_ways() -> None:
    general = lexicon.general().by_first_word.values()
    entries = [entry for rows in general for _, entry in rows if entry.role == "polar"]
    assert sum(entry.weight > 0 for entry in entries) > 300
    assert sum(entry.weight < 0 for entry in entries) > 300
