"""The four questions we ask of a text, and their closed answers.

The Structs are the schema: the local enricher builds them, an AI endpoint's answer is validated against them.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

SentimentLabel = Literal["positive", "negative", "neutral", "unknown"]
Short = Annotated[str, msgspec.Meta(max_length=300)]


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Who answered, and what it cost."""

    model: str = "local"
    cached: bool = False
    fell_back: bool = False
    """The endpoint failed and the local default answered instead."""
    tokens_in: int = 0
    tokens_out: int = 0
    cost_micros: int = 0


class Summary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text in at most 80 words."""

    summary: Annotated[str, msgspec.Meta(max_length=1200)]


class Sentiment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a text is good or bad news for its subject; the score lies between -1 and 1."""

    label: SentimentLabel
    score: Annotated[float, msgspec.Meta(ge=-1, le=1)]
    reason: Short | None = None
    """Why it is unknown."""


class RepoSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a repository is for, in a few sentences a newcomer understands."""

    summary: Annotated[str, msgspec.Meta(max_length=1200)]


class IssueAnalysis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an issue asks for, how hard it is from 1 to 10 and why, or why nobody can tell, and where to begin."""

    introduction: Annotated[str, msgspec.Meta(max_length=1200)]
    difficulty: Annotated[int, msgspec.Meta(ge=1, le=10)] | None
    reasons: Annotated[list[Short], msgspec.Meta(max_length=8)]
    first_steps: Annotated[list[Short], msgspec.Meta(max_length=8)]


class RepoFacts(msgspec.Struct, frozen=True):
    """What is asked about: a repository."""

    full_name: str
    description: str | None = None
    readme: str = ""
    languages: list[str] = []
    topics: list[str] = []


class IssueFacts(msgspec.Struct, frozen=True):
    """What is asked about: an issue."""

    title: str
    body: str = ""
    labels: list[str] = []
    comments: int = 0
    age_days: int = 0
    repo: str = ""
    language: str | None = None
    by_maintainer: bool = False
    """Its author is an owner, a member or a collaborator of the project."""
    maintainer_comments: list[str] = []
