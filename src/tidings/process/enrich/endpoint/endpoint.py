"""Asks any OpenAI-compatible endpoint one question about one item, as strictly as the server allows."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeVar

import msgspec

from tidings.model.clock import Clock, seconds_left_in_day
from tidings.model.errors import Ambiguous, Permanent, Transient
from tidings.model.web import Response
from tidings.process.enrich.endpoint.check import Unusable, check
from tidings.process.enrich.endpoint.completion import (
    Complaint,
    Completion,
    OutOfCredit,
    failure,
    read_complaint,
    read_completion,
)
from tidings.process.enrich.endpoint.questions import Question, QuestionMaterial

A = TypeVar("A", bound=msgspec.Struct)
Message = dict[str, str]
Strictness = Literal["schema", "json", "text"]

FORM_REFUSED: Final = frozenset({400, 422, 500})
"""Workers AI answers 500 when a model cannot keep to JSON; then only its words tell."""
ADAPTIONS_MAX: Final = 5
REPAIRS_MAX: Final = 1
REPEATED_CHARS_MAX: Final = 2_000
BYTES_PER_TOKEN: Final = 4
"""A guess for English, where an endpoint does not count."""
BYTES_PER_TOKEN_RESERVED: Final = 2
"""What a budget has to be ready for: few texts have more tokens than that."""
MESSAGE_TOKENS: Final = 16


class HttpCaller(Protocol):
    """The face of the web client that calls configured endpoints."""

    async def call(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        json: Any = None,  # Any: whatever can be written as JSON.
        timeout_seconds: float = 30,
    ) -> Response:
        """Send a request and return the answer, whatever its status."""
        ...


@dataclass(slots=True)
class Tab:
    """The tokens used for one question, repairs included; filled even when the question fails."""

    tokens_in: int = 0
    tokens_out: int = 0
    is_unknown: bool = False
    """A request was sent and its outcome is unknown: it may have been paid for."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a server understands; learned from its refusals and kept for later questions."""

    strictness: Strictness = "schema"
    tokens_field: str = "max_tokens"
    temperature: float | None = 0.0


class Endpoint:
    """One model behind one address."""

    def __init__(
        self,
        caller: HttpCaller,
        *,
        base_url: str,
        model: str,
        api_key: str | None,
        clock: Clock,
        timeout_seconds: float = 60.0,
        boundary: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self.model = model
        self._caller = caller
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._api_key = api_key
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._boundary = boundary
        self._dialect = Dialect()

    async def ask(self, question: Question[A], material: QuestionMaterial, tab: Tab) -> A:
        """Return a checked answer, after at most one repair.

        Raise Unusable when no answer fits, Refused when the model declines, SlowDown, OutOfCredit, Transient, Permanent
        or Misconfigured as the endpoint fails. What was used is written on the tab in any case.
        """
        messages = self._messages(question, material)
        tokens_max = question.tokens_max
        for repairs_left in range(REPAIRS_MAX, -1, -1):
            completion = await self._complete(question, messages, tokens_max, tab)
            try:
                return self._read(question, completion, material)
            except Unusable as problem:
                if not repairs_left:
                    raise
                messages = [*messages, *_repair(completion, str(problem))]
                tokens_max *= 2 if completion.finish_reason == "length" else 1
        raise AssertionError("the last round returns or raises")

    def tokens_at_most(self, question: Question[A], material: QuestionMaterial) -> tuple[int, int]:
        """Return what the question may use in the worst case, repair included: tokens read, tokens written."""
        sent = "".join((question.prompt, material.text, str(question.schema)))
        tokens = count_tokens(sent, BYTES_PER_TOKEN_RESERVED) + 8 * MESSAGE_TOKENS
        return 2 * tokens + REPEATED_CHARS_MAX // BYTES_PER_TOKEN_RESERVED, 3 * question.tokens_max

    def _messages(self, question: Question[A], material: QuestionMaterial) -> list[Message]:
        """Put instructions and data apart: what strangers wrote stands in the user turn, within a random boundary."""
        boundary = self._boundary()
        words = f" Use at most {material.words_max} words." if material.words_max else ""
        data = (
            f"The data stands between the two lines with the code {boundary}.{words} Answer with JSON only.\n"
            f"{boundary} BEGIN DATA\n{material.text}\n{boundary} END DATA"
        )
        return [{"role": "system", "content": question.prompt}, {"role": "user", "content": data}]

    async def _complete(self, question: Question[A], messages: list[Message], tokens_max: int, tab: Tab) -> Completion:
        """Ask once, speaking as strictly as the server understands."""
        dialect = self._dialect
        for _ in range(ADAPTIONS_MAX):
            response = await self._send(_request(self.model, question, messages, tokens_max, dialect), tab)
            if response.status in FORM_REFUSED:
                easier = _easier(dialect, response.status, read_complaint(response))
                if easier is not None:
                    dialect = easier
                    continue
            completion = self._completion(response)
            self._dialect = dialect
            _count(tab, completion, messages)
            return completion
        raise Permanent("the AI endpoint refuses every form of request that we know")

    async def _send(self, request: Mapping[str, Any], tab: Tab) -> Response:
        headers = {"authorization": f"Bearer {self._api_key}"} if self._api_key else {}
        try:
            return await self._caller.call(
                "POST", self._url, headers=headers, json=request, timeout_seconds=self._timeout_seconds
            )
        except asyncio.CancelledError:
            tab.is_unknown = True
            raise
        except Ambiguous as error:
            tab.is_unknown = True
            raise Transient(str(error), retry_after_seconds=error.retry_after_seconds) from error

    def _completion(self, response: Response) -> Completion:
        if response.status >= 300:
            raise failure(response, seconds_left_in_day(self._clock.now_ms()))
        try:
            return read_completion(response)
        except OutOfCredit as error:
            error.retry_after_seconds = seconds_left_in_day(self._clock.now_ms())
            raise

    def _read(self, question: Question[A], completion: Completion, material: QuestionMaterial) -> A:
        if completion.finish_reason == "length":
            raise Unusable("the answer was cut short")
        if completion.finish_reason in {"tool_calls", "function_call"}:
            raise Unusable("the model asked for a tool, and there is none")
        return check(question, completion.content, material, self._api_key)


def count_tokens(text: str, bytes_per_token: int = BYTES_PER_TOKEN) -> int:
    """Guess how many tokens a text has."""
    return len(text.encode("utf-8", "replace")) // bytes_per_token + 1


def _request(
    model: str, question: Question[A], messages: list[Message], tokens_max: int, dialect: Dialect
) -> dict[str, Any]:
    request: dict[str, Any] = {"model": model, "messages": messages, dialect.tokens_field: tokens_max, "stream": False}
    if dialect.temperature is not None:
        request["temperature"] = dialect.temperature
    if dialect.strictness == "schema":
        schema = {"name": question.name, "strict": True, "schema": question.schema}
        request["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif dialect.strictness == "json":
        request["response_format"] = {"type": "json_object"}
    return request


def _easier(dialect: Dialect, status: int, complaint: Complaint) -> Dialect | None:
    """Return what to try next after a refusal of the request's form, or None when its form is not to blame."""
    said = f"{complaint.parameter} {complaint.code} {complaint.message}".lower()
    if status == 500 and not ("json" in said and dialect.strictness != "text"):
        return None
    if any(words in said for words in ("context_length", "maximum context", "context window", "content_filter")):
        return None
    if "max_tokens" in said and dialect.tokens_field == "max_tokens":
        return Dialect(dialect.strictness, "max_completion_tokens", dialect.temperature)
    if "temperature" in said and dialect.temperature is not None:
        return Dialect(dialect.strictness, dialect.tokens_field, None)
    if dialect.strictness == "schema":
        return Dialect("json", dialect.tokens_field, dialect.temperature)
    if dialect.strictness == "json":
        return Dialect("text", dialect.tokens_field, dialect.temperature)
    return None


def _repair(completion: Completion, problem: str) -> list[Message]:
    """Show the model its answer and what is wrong with it."""
    said = completion.content if isinstance(completion.content, str) else ""
    return [
        {"role": "assistant", "content": said[:REPEATED_CHARS_MAX] or "(nothing)"},
        {"role": "user", "content": f"That cannot be used: {problem[:300]}. Answer again with the JSON object only."},
    ]


def _count(tab: Tab, completion: Completion, messages: list[Message]) -> None:
    """Write a completion on the tab, guessing where the endpoint does not count."""
    sent = sum(count_tokens(message["content"]) + MESSAGE_TOKENS for message in messages)
    said = count_tokens(completion.content if isinstance(completion.content, str) else str(completion.content))
    tab.tokens_in += sent if completion.tokens_in is None else completion.tokens_in
    tab.tokens_out += said if completion.tokens_out is None else completion.tokens_out
