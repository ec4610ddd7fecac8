"""Reads what an OpenAI-compatible endpoint sends back: a completion, or an error told apart by what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from tidings.model.backoff import RETRY_AFTER_SECONDS_MAX
from tidings.model.errors import Misconfigured, Permanent, SlowDown, TidingsError, Transient
from tidings.model.harmless import visible
from tidings.model.web import Response
from tidings.net.statuses import retry_after_seconds

MESSAGE_CHARS_MAX: Final = 200
OVERLOADED_SECONDS: Final = 60.0
TOO_LONG: Final = frozenset({"context_length_exceeded", "string_above_max_length", "request_too_large"})
TOO_LONG_WORDS: Final = ("context_length", "maximum context", "context window")
NO_MONEY: Final = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "billing_hard_limit_reached",
        "billing_not_active",
        "account_deactivated",
        "quota_exceeded",
    }
)
NO_MONEY_WORDS: Final = (
    "exceeded your current quota",
    "insufficient quota",
    "insufficient credit",
    "insufficient balance",
    "credit balance is too low",
    "daily free allocation",
    "billing",
)
"""How servers without codes of their own say that money, not speed, is missing."""
DURATION: Final = re.compile(r"(?:(\d{1,4})h)?(?:(\d{1,4})m(?!s))?(?:(\d{1,4}(?:\.\d{1,6})?)s)?(?:(\d{1,7})ms)?$")
RESET_HEADERS: Final = ("x-ratelimit-reset-requests", "x-ratelimit-reset-tokens")


class OutOfCredit(SlowDown):
    """The account behind the key has no money or quota left; asking again today cannot help."""


class TooLong(Permanent):
    """The text does not fit into what the model can read."""


class AnswerRefused(Permanent):
    """The model declined to answer, or a filter stopped it."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model said, how it ended, and the tokens the endpoint says it used (None where it does not say)."""

    content: Any  # Any: text, an object, or parts, as servers differ.
    finish_reason: str
    tokens_in: int | None
    tokens_out: int | None


@dataclass(frozen=True, slots=True)
class Complaint:
    """An error as the endpoint words it, in OpenAI's or in Cloudflare's envelope."""

    code: str
    message: str
    parameter: str


def read_completion(response: Response) -> Completion:
    """Return the completion of a successful answer; raise where it is none, a refusal, or an error in disguise."""
    body = _decode(response.body)
    if "error" in body or body.get("success") is False:
        raise failure(response, seconds_to_next_day=None)
    if isinstance(native := body.get("result"), dict) and "response" in native:
        return Completion(native["response"], "stop", *_usage(native))
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise Transient(f"the AI endpoint answered {response.status} without a completion")
    return _read_choice(choices[0], body)


def _read_choice(choice: Mapping[str, Any], body: Mapping[str, Any]) -> Completion:
    message = choice.get("message")
    message = message if isinstance(message, dict) else {"content": choice.get("text")}
    reason = str(choice.get("finish_reason") or "stop")
    if message.get("refusal") or reason == "content_filter":
        raise AnswerRefused("the model refused to answer")
    return Completion(message.get("content"), reason, *_usage(body))


def _usage(body: Mapping[str, Any]) -> tuple[int | None, int | None]:
    usage = body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    counts = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    tokens_in, tokens_out = (count if isinstance(count, int) and 0 <= count < 10**9 else None for count in counts)
    return tokens_in, tokens_out


def failure(response: Response, seconds_to_next_day: float | None) -> TidingsError:
    """Say what an error means: slow down, come back tomorrow, shorten, fix the settings, or just try again."""
    complaint = read_complaint(response)
    sentence = f"the AI endpoint answered {response.status}{f': {complaint.message}' if complaint.message else ''}"
    status = response.status
    if is_out_of_credit(status, complaint):
        return OutOfCredit(f"{sentence}; add credit or raise the quota", retry_after_seconds=seconds_to_next_day)
    if status == 429:
        return SlowDown(sentence, retry_after_seconds=wait_seconds(response.headers))
    if complaint.code in TOO_LONG or status == 413 or any(words in sentence.lower() for words in TOO_LONG_WORDS):
        return TooLong(sentence)
    if complaint.code == "content_filter":
        return AnswerRefused(sentence)
    if status in {401, 403}:
        return Misconfigured(f"{sentence}; check ai.api_key and what it may use")
    if status == 404:
        return Misconfigured(f"{sentence}; check ai.base_url and ai.model")
    if status == 503:
        return Transient(sentence, retry_after_seconds=wait_seconds(response.headers) or OVERLOADED_SECONDS)
    if status < 400 or status in {408, 409, 425} or status >= 500:
        return Transient(sentence, retry_after_seconds=wait_seconds(response.headers))
    return Permanent(sentence)


def is_out_of_credit(status: int, complaint: Complaint) -> bool:
    """Tell "no money" from "too fast": both come as 429, only the code or the words differ."""
    if status == 402 or complaint.code in NO_MONEY:
        return True
    return status in {403, 429} and any(words in complaint.message.lower() for words in NO_MONEY_WORDS)


def read_complaint(response: Response) -> Complaint:
    """Read the error object, whichever envelope it comes in; a proxy's HTML says nothing we repeat."""
    try:
        body = _decode(response.body)
    except Transient:
        return Complaint("", "", "")
    errors = body.get("errors")
    error = body.get("error") or (errors[0] if isinstance(errors, list) and errors else {})
    if not isinstance(error, dict):
        error = {"message": str(error)}
    code = error.get("code") or error.get("type") or ""
    return Complaint(str(code)[:80], _plain(error.get("message")), str(error.get("param") or "")[:80])


def wait_seconds(headers: Mapping[str, str]) -> float | None:
    """Return how long we are asked to wait: `Retry-After`, its millisecond twin, or the time to the limit's reset."""
    if (milliseconds := headers.get("retry-after-ms", "")).isascii() and milliseconds.isdigit():
        return min(int(milliseconds[:9]) / 1000, RETRY_AFTER_SECONDS_MAX)
    wish_seconds = retry_after_seconds(headers)
    resets = [seconds for name in RESET_HEADERS if (seconds := duration_seconds(headers.get(name, ""))) is not None]
    return wish_seconds if wish_seconds is not None or not resets else min(max(resets), RETRY_AFTER_SECONDS_MAX)


def duration_seconds(text: str) -> float | None:
    """Read a duration such as 6m0s or 20ms."""
    match = DURATION.match(text.strip()[:40])
    if not match or not any(match.groups()):
        return None
    hours, minutes, seconds, milliseconds = (float(group or 0) for group in match.groups())
    return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000


def _decode(body: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Transient("the AI endpoint answered with something that is not JSON") from error
    if not isinstance(value, dict):
        raise Transient("the AI endpoint answered with JSON that is no object")
    return value


def _plain(message: object) -> str:
    """Return a foreign message fit for a log line."""
    text = message if isinstance(message, str) else ""
    return " ".join(visible(text[:1000], " ").split())[:MESSAGE_CHARS_MAX]
