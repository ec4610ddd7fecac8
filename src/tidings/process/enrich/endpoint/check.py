"""Turns what a model said into an answer we may show: parsed, closed, stripped of markup and of links it made up."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from tidings.model.answers import Sentiment
from tidings.model.errors import Transient
from tidings.model.harmless import visible
from tidings.process.enrich.endpoint.questions import Question, QuestionMaterial
from tidings.process.enrich.local.markdown import TAG
from tidings.process.enrich.local.sentences import split_sentences

A = TypeVar("A", bound=msgspec.Struct)

CONTENT_CHARS_MAX: Final = 64_000
OBJECTS_TRIED_MAX: Final = 8
TAG_ROUNDS_MAX: Final = 5
NUMBER_DIGITS_MIN: Final = 3
NEUTRAL_SCORE_MAX: Final = 0.3

THINK_OPENS, THINK_CLOSES = "<think>", "</think>"
_NAME = r"(?<![\w@])(?:[\w-]{1,63}[.。．｡]){1,5}"
"""The beginning of a host's name, with every dot that browsers take for one."""
ADDRESS: Final = re.compile(
    r"(?:[a-z][a-z0-9+.-]{1,20}://|\bwww[.。．｡])[^\s<>\"']{1,2000}|(?:mailto|javascript|data|tel|vbscript):[^\s<>\"']{1,2000}|"
    rf"{_NAME}[a-z]{{2,24}}(?:/|:\d)[^\s<>\"']{{0,2000}}",
    re.IGNORECASE,
)
HOST: Final = re.compile(
    rf"{_NAME}(?:com|net|org|io|co|xyz|info|biz|me|app|gg|ly|ru|cn|top|site|online|link|click|shop|club|live|cc|tk|ml|ga|"
    r"eu|uk|de|fr|us|dev|ai|example|finance|exchange|wallet|zip|mov)(?![\w-])",
    re.IGNORECASE,
)
# Every quantifier is bounded or excludes its own opening, so that no input makes a search start over and over.
IMAGE: Final = re.compile(r"!\[[^\[\]]{0,300}\](?:\([^()\s]{0,500}[^()]{0,200}\)|\[[^\[\]]{0,100}\])")
LINK: Final = re.compile(r"\[([^\[\]]{0,500})\](?:\([^()\s]{0,500}[^()]{0,200}\)|\[[^\[\]]{0,100}\])")
HALF_LINK: Final = re.compile(r"\[([^\[\]]{0,500})\]\([)\s]{0,2}")
"""What is left of a link whose address held brackets of its own."""
MARKS: Final = re.compile(r"\*{1,3}|_{2,3}|`{1,3}|~~|^\s{0,3}#{1,6}\s|^\s{0,3}>\s", re.MULTILINE)
NUMBER: Final = re.compile(r"\d[\d.,]*\d")


class Unusable(Transient):
    """The model's answer does not fit the question; the reason is told without repeating the answer."""


def check(question: Question[A], content: object, material: QuestionMaterial, secret: str | None = None) -> A:
    """Return the answer within its schema, or raise Unusable; text fields come back plain."""
    said = parse(content)
    try:
        answer = msgspec.convert(said, question.answer)
    except msgspec.ValidationError as error:
        raise Unusable(f"the answer does not fit the schema: {error}") from error
    own = frozenset(host.lower() for host in HOST.findall(material.text))
    cleaned = _clean_fields(answer, lambda text: plain(text, own))
    if secret and any(secret in text for text in _texts(cleaned)):
        raise Unusable("the answer repeats a credential")
    return _fitted(cleaned, material)


def parse(content: object) -> Mapping[str, Any]:
    """Find the JSON object in what was said: bare, fenced, after thinking aloud, within prose, or already an object."""
    if isinstance(content, dict):
        return content
    text = _joined(content)
    if len(text) > CONTENT_CHARS_MAX:
        raise Unusable(f"the answer has {len(text)} characters, far more than any question needs")
    text = _after_thinking(text)
    start = text.find("{")
    for _ in range(OBJECTS_TRIED_MAX):
        if start < 0:
            break
        found = _object_at(text, start)
        if found is not None:
            return found
        start = text.find("{", start + 1)
    raise Unusable("the answer holds no JSON object" if text else "the answer is empty")


def plain(text: str, own_hosts: frozenset[str]) -> str:
    """Return a text on one line, without markup and addresses; a bare host's name stays if the source names it too.

    Even the source's own addresses go: a text that plants instructions can plant an address as well.
    """
    text = LINK.sub(r"\1", IMAGE.sub(" ", visible(text, " ")))
    for _ in range(TAG_ROUNDS_MAX):
        text, found = TAG.subn(" ", text)
        if not found:
            break
    if TAG.search(text):
        text = text.replace("<", " ").replace(">", " ")
    text = MARKS.sub("", text)
    text = HOST.sub(lambda match: match[0] if match[0].lower() in own_hosts else " ", ADDRESS.sub(" ", text))
    return " ".join(HALF_LINK.sub(r"\1 ", text).split())


def _fitted(answer: A, material: QuestionMaterial) -> A:
    """Hold an answer to what the question asked beyond its schema."""
    if isinstance(answer, Sentiment):
        return msgspec.structs.replace(answer, score=_agreeing(answer))
    changes: dict[str, Any] = {}
    if isinstance(summary := getattr(answer, "summary", None), str):
        changes["summary"] = _within_words(_without_foreign_numbers(summary, material.text), material.words_max)
    answer = msgspec.structs.replace(answer, **changes)
    if not all(_texts(answer, required_only=True)):
        raise Unusable("the answer leaves a field empty")
    return answer


def _agreeing(answer: Sentiment) -> float:
    """Trust the label where the score contradicts it."""
    size = abs(answer.score)
    if answer.label == "neutral":
        return max(-NEUTRAL_SCORE_MAX, min(NEUTRAL_SCORE_MAX, answer.score))
    return size if answer.label == "positive" else -size


def _without_foreign_numbers(summary: str, source: str) -> str:
    """Drop sentences with numbers that the source does not hold: models invent them with ease."""
    known = " ".join(_digits(number) for number in NUMBER.findall(source))
    return " ".join(
        sentence
        for sentence in split_sentences(summary)
        if all(f" {digits}" in f" {known}" for digits in _long_numbers(sentence))
    )


def _long_numbers(sentence: str) -> list[str]:
    numbers = [_digits(number) for number in NUMBER.findall(sentence)]
    return [number for number in numbers if len(number) >= NUMBER_DIGITS_MIN]


def _digits(number: str) -> str:
    return number.replace(",", "").replace(".", "")


def _within_words(text: str, words_max: int | None) -> str:
    """Keep whole sentences while they fit; cut the first one where even it does not."""
    if words_max is None or len(text.split()) <= words_max:
        return text
    kept: list[str] = []
    for sentence in split_sentences(text):
        if len(" ".join([*kept, sentence]).split()) > words_max:
            break
        kept.append(sentence)
    return " ".join(kept) or " ".join(text.split()[:words_max]) + "…"


def _clean_fields(answer: A, clean: Callable[[str], str]) -> A:
    changes: dict[str, Any] = {}
    for name in answer.__struct_fields__:
        value = getattr(answer, name)
        if isinstance(value, str) and name != "label":
            changes[name] = clean(value)
        elif isinstance(value, list):
            changes[name] = [text for text in map(clean, value) if text]
    return msgspec.structs.replace(answer, **changes)


def _texts(answer: msgspec.Struct, *, required_only: bool = False) -> list[str]:
    values = [getattr(answer, name) for name in answer.__struct_fields__]
    lists = [] if required_only else [text for value in values if isinstance(value, list) for text in value]
    return [value for value in values if isinstance(value, str)] + lists


def _joined(content: object) -> str:
    """Return the text of a message: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def _after_thinking(text: str) -> str:
    """Drop what a model thought aloud; an unclosed thought leaves nothing."""
    if THINK_CLOSES in text:
        return text.rpartition(THINK_CLOSES)[2].strip()
    return text.partition(THINK_OPENS)[0].strip()


def _object_at(text: str, start: int) -> Mapping[str, Any] | None:
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
