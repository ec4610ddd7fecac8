"""Writes a summary: the filtered lead, which is the first sentences of a text without what surrounds it on its page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final

from tidings.model.answers import Summary
from tidings.model.harmless import visible
from tidings.process.enrich.local.furniture import is_furniture, is_sentence, phrases_in
from tidings.process.enrich.local.language import WIDE, language_of, length_in_words
from tidings.process.enrich.local.sentences import split_line

TEXT_CHARS_MAX: Final = 60_000
TITLE_CHARS_MAX: Final = 500
LINES_MAX: Final = 400
"""Sentences looked at before the furniture is taken out."""
SUMMARY_CHARS_MAX: Final = 1_200
WORDS_MAX: Final = 80
LEAD_SENTENCES: Final = 3
SENTENCE_WORDS_MIN: Final = 3
QUESTION_WORDS_MAX: Final = 15
"""A question of up to so many words that stands alone in its line is a heading."""

WORD: Final = re.compile(r"[^\W_]{2,}")
LIST_MARK: Final = re.compile(r"(?:[-*•‣▪·–—]|\d{1,2}[.)])\s+")
_STOP_WORDS = """
    the a an and or but of to in on at by for with from as is are was were be been being it its this that these
    those he she his her him they them their we our us you your i my me not no so if then than there here what
    which who whom when where how why will would can could should may might must do does did has have had having
    about into over after before between out up down off under again more most some such only own same too very
    just also said says say one two
"""
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())


def summarize(
    text: str,
    title: str | None = None,
    words_max: int = WORDS_MAX,
    sentences_max: int = LEAD_SENTENCES,
    *,
    description: str | None = None,
) -> Summary:
    """Return whole sentences from the beginning of the text, at most so many words and sentences of them.

    Where the text has none, the page's own description stands in.
    """
    sentences = readable_sentences(visible(text[:TEXT_CHARS_MAX], " "))
    if description and not any(map(is_sentence, sentences)):
        sentences = readable_sentences(visible(description[:TEXT_CHARS_MAX], " ")) or sentences
    return Summary(summary=lead_of(sentences, title, words_max, sentences_max))


def lead_of(sentences: list[str], title: str | None, words_max: int, sentences_max: int) -> str:
    """Join the first sentences as far as they fit, without the title repeated; shorten the first where it does not."""
    if title:
        heading = _plain(title[:TITLE_CHARS_MAX])
        sentences = [each for each in sentences if _plain(each) != heading] or sentences
    return _joined(_lead(sentences, words_max, sentences_max)) or _cut(sentences, words_max)


def readable_sentences(text: str) -> list[str]:
    """Return the sentences of the article without the page's furniture; all of them where nothing else is left."""
    lines = list(islice(_lines(text), LINES_MAX))
    everything = [sentence for line in lines for sentence in line][:LINES_MAX]
    phrases = phrases_in("\n".join(everything))
    article = [s for line in lines if not _is_heading(line) for s in line if not is_furniture(s, phrases)]
    whole = [sentence for sentence in article if is_sentence(sentence)]
    return whole or article or everything


def _lines(text: str) -> Iterator[list[str]]:
    """Cut each line into sentences, without the mark of a list in front."""
    language = language_of(text) or "en"
    for line in text.splitlines():
        bare = line.strip()
        mark = LIST_MARK.match(bare)
        if sentences := split_line(bare[mark.end() :] if mark else bare, language):
            yield [" ".join(sentence.split()) for sentence in sentences]


def _is_heading(line: list[str]) -> bool:
    return len(line) == 1 and line[0].endswith(("?", "？")) and length_in_words(line[0]) <= QUESTION_WORDS_MAX


def _lead(sentences: list[str], words_max: int, sentences_max: int) -> list[str]:
    """Take sentences from the beginning until one does not fit; skip what says nothing by itself."""
    lead: list[str] = []
    words_left, chars_left = words_max, SUMMARY_CHARS_MAX
    for sentence in sentences:
        words = length_in_words(sentence)
        if words < SENTENCE_WORDS_MIN or sentence in lead:
            continue
        fits = words <= words_left and len(sentence) < chars_left
        if len(lead) == sentences_max or (lead and not fits):
            break
        if fits:
            lead.append(sentence)
            words_left, chars_left = words_left - words, chars_left - len(sentence) - 1
    return lead


def _joined(sentences: list[str]) -> str:
    """Join sentences by a space, except where the script writes none."""
    text = ""
    for sentence in sentences:
        text += sentence if not text or (WIDE.match(sentence) and text[-1] in "。！？」』）") else f" {sentence}"
    return text


def _plain(text: str) -> str:
    return " ".join(text.split()).strip(" .!").lower()


def _terms(text: str) -> Counter[str]:
    return Counter(word for word in WORD.findall(text.lower()) if word not in STOP_WORDS)


def _cut(sentences: list[str], words_max: int) -> str:
    """Shorten the first sentence where none fits whole."""
    words = " ".join(sentences[:1]).split()[:words_max]
    cut = " ".join(words)[: SUMMARY_CHARS_MAX - 1]
    if WIDE.search(cut):
        cut = cut[: 2 * words_max]
    return cut + "…" if words else ""


def shared_terms(one: str, other: str) -> float:
    """Return the share of the first text's words that the second one holds too."""
    terms = _terms(one[:TEXT_CHARS_MAX])
    return len(terms.keys() & _terms(other[:TEXT_CHARS_MAX]).keys()) / len(terms) if terms else 0.0
