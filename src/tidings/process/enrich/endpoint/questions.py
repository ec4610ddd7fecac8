"""The four questions as an endpoint is asked them: prompt, schema, and the material that is asked about."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, Generic, TypeVar

import msgspec

from tidings.model.answers import IssueAnalysis, IssueFacts, RepoFacts, RepoSummary, Sentiment, Summary

A = TypeVar("A", bound=msgspec.Struct)

TITLE_CHARS_MAX: Final = 300
TEXT_CHARS_MAX: Final = 12_000
"""What is sent of a text; an extract holds at most 10,240 characters."""
SCHEMA_WORDS: Final = frozenset({"type", "properties", "required", "additionalProperties", "items", "enum"})
"""What every server that knows schemas understands; lengths and ranges are checked by us anyway."""


@dataclass(frozen=True, slots=True)
class Question(Generic[A]):
    """A question: its name, the version of its prompt, the type of its answer and the room it may take."""

    name: str
    version: int
    answer: type[A]
    tokens_max: int

    @property
    def prompt(self) -> str:
        """The instructions, from the versioned file beside this module."""
        return _read_prompt(f"{self.name}.v{self.version}.md")

    @property
    def schema(self) -> dict[str, Any]:
        """The closed JSON schema of the answer."""
        return _closed_schema(self.answer)


SUMMARIZE: Final = Question("summarize", 1, Summary, 500)
JUDGE_SENTIMENT: Final = Question("judge_sentiment", 1, Sentiment, 100)
SUMMARIZE_REPO: Final = Question("summarize_repo", 1, RepoSummary, 500)
ANALYZE_ISSUE: Final = Question("analyze_issue", 1, IssueAnalysis, 900)
QUESTIONS: Final[tuple[Question[Any], ...]] = (SUMMARIZE, JUDGE_SENTIMENT, SUMMARIZE_REPO, ANALYZE_ISSUE)


@dataclass(frozen=True, slots=True)
class QuestionMaterial:
    """What is asked about: text from strangers, and how many words the answer may have."""

    text: str
    words_max: int | None = None

    @property
    def digest(self) -> str:
        """A hash of the content, by which an answer is remembered."""
        return hashlib.sha256(f"{self.words_max}\n{self.text}".encode("utf-8", "replace")).hexdigest()


def article_material(
    text: str, title: str | None, words_max: int | None = None, description: str | None = None
) -> QuestionMaterial:
    """Put a title, a description and a text together, each under its name."""
    named = (("Title", title), ("Description", description if description != text else None))
    head = "".join(f"{name}: {' '.join(part[:TITLE_CHARS_MAX].split())}\n\n" for name, part in named if part)
    return QuestionMaterial(head + text.strip()[:TEXT_CHARS_MAX], words_max)


def repo_material(facts: RepoFacts, words_max: int) -> QuestionMaterial:
    """Write the facts of a repository as JSON, the README cut to what is sent of a text."""
    short = msgspec.structs.replace(facts, readme=facts.readme[:TEXT_CHARS_MAX])
    return QuestionMaterial(_json(short)[: 2 * TEXT_CHARS_MAX], words_max)


def issue_material(facts: IssueFacts) -> QuestionMaterial:
    """Write the facts of an issue as JSON, the body cut to what is sent of a text."""
    short = msgspec.structs.replace(facts, title=facts.title[:TITLE_CHARS_MAX], body=facts.body[:TEXT_CHARS_MAX])
    return QuestionMaterial(_json(short)[: 2 * TEXT_CHARS_MAX])


def _json(facts: msgspec.Struct) -> str:
    # Halves of characters cannot be encoded; they come from broken sources and mean nothing.
    plain = msgspec.to_builtins(facts)
    return msgspec.json.encode(_encodable(plain)).decode()


def _encodable(value: Any) -> Any:  # Any: builtins of any of our Structs.
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_encodable(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _encodable(entry) for key, entry in value.items()}
    return value


@cache
def _read_prompt(name: str) -> str:
    return files(__package__).joinpath("prompts", name).read_text("utf-8")


@cache
def _closed_schema(answer: type[msgspec.Struct]) -> dict[str, Any]:
    """Derive the schema from the Struct, reduced to the common core, every property required."""
    (schema,), definitions = msgspec.json.schema_components([answer], ref_template="#/{name}")
    return _reduced(definitions[answer.__name__] if "$ref" in schema else schema)


def _reduced(schema: dict[str, Any]) -> dict[str, Any]:
    for choice in schema.get("anyOf", ()):
        if choice.get("type") != "null":
            return _reduced(choice)  # What the local default may leave open, a model is asked for.
    kept: dict[str, Any] = {key: value for key, value in schema.items() if key in SCHEMA_WORDS}
    if "properties" in kept:
        # What has a default is the local default's to say, not a model's.
        asked = {name: part for name, part in kept["properties"].items() if "default" not in part}
        kept["properties"] = {name: _reduced(part) for name, part in asked.items()}
        kept |= {"required": list(kept["properties"]), "additionalProperties": False}
    if "items" in kept:
        kept["items"] = _reduced(kept["items"])
    if "enum" in kept:
        kept.setdefault("type", "string")
    return kept
