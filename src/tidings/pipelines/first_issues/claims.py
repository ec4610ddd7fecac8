"""Tells whether a person already works on an issue: by assignment, or by a comment that is not too old."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

Way = Literal["assigned", "comment"]

TEXT_CHARS_MAX = 5_000
"""A claim is made early in a comment, if at all; the rest is not searched."""

_QUOTED = re.compile(r"^[ \t]*>[^\n]*$|```.*?```|~~~.*?~~~|<!--.*?-->|`[^`\n]*`", re.MULTILINE | re.DOTALL)

_JOB = r"(?:this|it|that|these|the (?:issue|task|bug|problem|feature|fix)|#\d+)\b"
_VERB = (
    r"(?:work|working|take|taking|tackle|tackling|pick|picking|do|doing|fix|fixing|try|trying|handle|handling"
    r"|implement|implementing|solve|solving|resolve|resolving|contribute|contributing|help|helping|give|look|looking"
    r"|start|starting|claim|claiming|add|adding|address|addressing|have a (?:go|crack|stab|look))"
)
_DOES_IT = rf"{_VERB}\b(?: (?:with|up|on|over|into|at|to|out|working|fixing|implementing))* {_JOB}"
_SOFTLY = r"(?: (?:please|maybe|perhaps|gladly|happily|definitely|also|just|really|actually|still))?"
_INTENDS = r"(?:want|wish|hope|plan|planning|intend|going)"
_IS_READY = r"(?:interested in|willing to|happy to|keen to|keen on|up for)"
_SENT = r"(?:opened|raised|submitted|created|made|sent)"
_WISHES = r"(?:like|love|be (?:happy|glad|interested|willing|keen|honou?red))"

_CLAIMS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        rf"\b(?:i|we)(?:'d| would){_SOFTLY} {_WISHES}(?: (?:to|in))?{_SOFTLY} {_DOES_IT}",
        rf"\b(?:i|we)(?:'m| am|'re| are)?{_SOFTLY} {_INTENDS}{_SOFTLY} to {_DOES_IT}",
        rf"\b(?:can|could|may|shall|might) (?:i|we){_SOFTLY} {_DOES_IT}",
        rf"\b(?:(?:i|we)(?:'ll| will| shall| can)|let me|mind if i|allow me to){_SOFTLY} {_DOES_IT}",
        rf"\b(?:i'm|i am|i've been|i have been|we're|we are)(?: (?:already|currently|now))? {_DOES_IT}",
        rf"\b(?:i'm|i am|we're)(?: very| really)? {_IS_READY} {_DOES_IT}",
        rf"\bi(?:'ve| have)?(?: just| already)? (?:started|begun|began)(?: to)? {_DOES_IT}",
        rf"\bi(?:'ve| have)?(?: just)? {_SENT} (?:a|the) (?:\w+ )?(?:pr|pull request)\b",
        r"\bassign (?:(?:this|it|that)(?: issue| task| one)? to )?me\b",
        r"\b(?:can|could|may) (?:i|this|it)(?: issue)?(?: please)? (?:be|get) assigned\b",
        r"\bdibs\b",
        r"^\s*[./]?(?:take|assign|claim)(?: me)?\s*$",
    )
)
_RELEASES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        rf"\b(?:no longer|can't|cannot|can not|won't|unable to|stopped)(?: be able to)?(?: \w+)? {_VERB}\b",
        r"\b(?:i|we) (?:don't|do not|no longer) have (?:the )?(?:time|capacity|bandwidth)\b",
        r"\bunassign(?:ing)? (?:me|myself|this|it)\b|^\s*/unassign\b",
        r"\b(?:feel free to|someone else can|anyone can|anybody can) (?:take|pick|work|grab)\b",
        r"\b(?:giving up on|stepping back from|dropping) (?:this|it)\b|\bup for grabs\b",
    )
)
_NOT_MEANT = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b(?:\w+n't|do not|not)(?: \w+)? (?:think|sure|know|want|believe|plan)\b[^.!?\n]{{0,80}}{_VERB}",
        r"\b(?:if|unless|until|once) (?:nobody|no one|noone|anyone|someone|you)\b[^.!?\n]{0,80}\bi (?:might|may)\b",
    )
)


class Comment(msgspec.Struct, frozen=True):
    """What we keep of a comment while looking for a claim."""

    author: str
    text: str
    at_ms: int
    association: str = "NONE"
    """What its author is to the project, in GitHub's words."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Who works on an issue, since when, and how we know."""

    by: str
    way: Way
    at_ms: int | None = None


def find_claim(assignees: Sequence[str], comments: Iterable[Comment], *, now_ms: int, holds_ms: int) -> Claim | None:
    """Return who has the issue: the first assignee, or the last commenter who asked for it and did not give up."""
    if assignees:
        return Claim(assignees[0], "assigned")
    held: dict[str, int] = {}
    for comment in sorted(comments, key=lambda each: each.at_ms):
        if releases(comment.text):
            held.pop(comment.author, None)
        elif comment.author in held or claims(comment.text):
            # A further comment of the same person renews the claim.
            held[comment.author] = comment.at_ms
    live = [(at_ms, author) for author, at_ms in held.items() if at_ms + holds_ms > now_ms]
    if not live:
        return None
    at_ms, author = max(live)
    return Claim(author, "comment", at_ms)


def claims(text: str) -> bool:
    """Tell whether a comment's author asks for the issue."""
    words = _own_words(text)
    return _any(_CLAIMS, words) and not _any(_NOT_MEANT, words)


def releases(text: str) -> bool:
    """Tell whether a comment's author lets go of the issue."""
    return _any(_RELEASES, _own_words(text))


def _any(patterns: tuple[re.Pattern[str], ...], words: str) -> bool:
    return any(pattern.search(words) for pattern in patterns)


def _own_words(text: str) -> str:
    """Leave out quotations and code: they are not the author's own words."""
    plain = _QUOTED.sub(" ", text[:TEXT_CHARS_MAX]).lower()
    return re.sub(r"[ \t]+", " ", plain.replace("’", "'"))
