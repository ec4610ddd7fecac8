"""The ways in which an AI endpoint may misbehave, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from starlette.responses import JSONResponse, Response

from tidings.sample.ai_answers import AiRequest, answer_locally, cloudflare_error, completion, error

LONG_FIELD_CHARS: Final = 1_000_000

Fault = Callable[[AiRequest], Response]


def _cut(asked: AiRequest) -> Response:
    whole = _written(asked)
    return completion(asked, whole[: len(whole) // 2], finish_reason="length")


def _as_object(asked: AiRequest) -> Response:
    return _with_content(asked, answer_locally(asked))


def _as_parts(asked: AiRequest) -> Response:
    return _with_content(asked, [{"type": "text", "text": _written(asked)}])


def _with_content(asked: AiRequest, content: object) -> Response:
    body = msgspec.json.decode(completion(asked, "").body)
    body["choices"][0]["message"]["content"] = content
    return JSONResponse(body)


def _written(asked: AiRequest) -> str:
    return msgspec.json.encode(answer_locally(asked)).decode()


FAULTS: Final[Mapping[str, Fault]] = {
    "rate_limited": lambda _: error(
        429, "Rate limit reached", "requests", "rate_limit_exceeded", retry_after="7", x_ratelimit_reset_requests="6m0s"
    ),
    "rate_limited_ms": lambda _: error(429, "Slow down", "requests", "slow_down", retry_after_ms="1500"),
    "rate_limited_reset": lambda _: error(
        429, "Rate limit reached", "requests", "rate_limit_exceeded", x_ratelimit_reset_requests="1m30s"
    ),
    "insufficient_quota": lambda _: error(
        429, "You exceeded your current quota, please check your plan", "insufficient_quota", "insufficient_quota"
    ),
    "cloudflare_allowance": lambda _: cloudflare_error(
        429, 4006, "you have used up your daily free allocation of 10,000 neurons"
    ),
    "payment_required": lambda _: error(402, "Insufficient balance", "billing"),
    "server_error": lambda _: error(500, "The server had an error", "server_error"),
    "overloaded": lambda _: error(503, "The engine is overloaded", "server_error", "server_is_overloaded"),
    "bad_gateway": lambda _: Response("<html>502 Bad Gateway</html>", 502, media_type="text/html"),
    "bad_key": lambda _: error(401, "Incorrect API key provided", "invalid_request_error", "invalid_api_key"),
    "no_model": lambda _: error(404, "The model does not exist", "invalid_request_error", "model_not_found"),
    "too_long": lambda _: error(
        400, "This model's maximum context length is 8192 tokens", "invalid_request_error", "context_length_exceeded"
    ),
    "flagged": lambda _: error(
        400,
        "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
        "invalid_request_error",
        "invalid_prompt",
    ),
    "wants_max_completion_tokens": lambda _: error(
        400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "invalid_request_error"
    ),
    "no_temperature": lambda _: error(400, "Unsupported value: 'temperature'", "invalid_request_error"),
    "json_mode_failed": lambda _: cloudflare_error(500, 5024, "JSON Mode couldn't be met"),
    "cloudflare_in_success": lambda _: JSONResponse(
        {"success": False, "errors": [{"code": 7009, "message": "Upstream service unavailable"}], "result": None}
    ),
    "native_envelope": lambda asked: JSONResponse(
        {"result": {"response": _written(asked)}, "success": True, "errors": []}
    ),
    "empty": lambda asked: completion(asked, ""),
    "null": lambda asked: completion(asked, None),
    "no_choices": lambda _: JSONResponse({"id": "x", "object": "chat.completion", "choices": []}),
    "not_json": lambda _: Response("certainly!", media_type="text/plain"),
    "refusal": lambda asked: completion(asked, None, refusal="I cannot help with that."),
    "content_filter": lambda asked: completion(asked, "", finish_reason="content_filter"),
    "tool_call": lambda asked: completion(
        asked,
        None,
        finish_reason="tool_calls",
        tool_calls=[{"id": "1", "type": "function", "function": {"name": "fetch", "arguments": "{}"}}],
    ),
    "prose": lambda asked: completion(asked, f"Sure! Here it is: {_written(asked)} Hope that helps."),
    "code_fence": lambda asked: completion(asked, f"```json\n{_written(asked)}\n```"),
    "think_block": lambda asked: completion(asked, f"<think>Is {{this}} JSON?</think>\n{_written(asked)}"),
    "as_object": _as_object,
    "as_parts": _as_parts,
    "wrong_schema": lambda asked: completion(asked, {"verdict": "great", "difficulty": "eleven"}),
    "extra_field": lambda asked: completion(asked, {**answer_locally(asked), "state": "published"}),
    "cut_short": _cut,
    "long_field": lambda asked: completion(asked, {"summary": "x" * LONG_FIELD_CHARS}),
    "no_schemas": lambda _: error(400, "response_format json_schema is not supported", "invalid_request_error"),
    "nested": lambda asked: completion(asked, '{"summary":' + "[" * 30_000),
}
"""Misbehavior by name: each answers one request."""
