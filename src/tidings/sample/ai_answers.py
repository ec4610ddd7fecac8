"""What the stand-in endpoint says: honest answers in OpenAI's shape, and errors in OpenAI's and Cloudflare's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from starlette.responses import JSONResponse, Response

from tidings.model.answers import IssueFacts, RepoFacts
from tidings.process.enrich import local

CREATED: Final = 1_700_000_000


@dataclass(frozen=True, slots=True)
class AiRequest:
    """One request as the stand-in understands it."""

    question: str
    data: str
    words_max: int
    body: Mapping[str, Any]


def answer_locally(asked: AiRequest) -> dict[str, Any]:
    """Answer well, the same bytes every time."""
    answer: msgspec.Struct
    if asked.question == "summarize_repo":
        answer = local.summarize_repo(msgspec.json.decode(asked.data.encode(), type=RepoFacts))
    elif asked.question == "analyze_issue":
        answer = local.analyze_issue(msgspec.json.decode(asked.data.encode(), type=IssueFacts))
    else:
        title, text = _title_and_text(asked.data)
        answer = (
            local.judge_sentiment(text, title)
            if asked.question == "judge_sentiment"
            else local.summarize(text, title, asked.words_max)
        )
    plain: dict[str, Any] = msgspec.to_builtins(answer)
    return plain


def completion(
    asked: AiRequest, content: object, *, finish_reason: str = "stop", counts_tokens: bool = True, **message: Any
) -> Response:
    """Write a chat completion in OpenAI's shape; an object is written as JSON text."""
    text = content if isinstance(content, str) or content is None else msgspec.json.encode(content).decode()
    reply = {"role": "assistant", "content": text, "refusal": None, "annotations": [], **message}
    body: dict[str, Any] = {
        "id": "chatcmpl-sample",
        "object": "chat.completion",
        "created": CREATED,
        "model": asked.body["model"],
        "choices": [{"index": 0, "finish_reason": finish_reason, "logprobs": None, "message": reply}],
    }
    if counts_tokens:
        sent = sum(len(str(m["content"])) for m in asked.body["messages"]) // 4
        written = len(text or "") // 4
        body["usage"] = {"prompt_tokens": sent, "completion_tokens": written, "total_tokens": sent + written}
    headers = {"x-request-id": "req_sample", "x-ratelimit-remaining-requests": "59", "openai-processing-ms": "1"}
    return JSONResponse(body, headers=headers)


def error(status: int, message: str, kind: str, code: str | None = None, **headers: str) -> Response:
    """Write an error in OpenAI's envelope."""
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return JSONResponse(
        body, status_code=status, headers={name.replace("_", "-"): text for name, text in headers.items()}
    )


def cloudflare_error(status: int, code: int, message: str) -> Response:
    """Write an error in Cloudflare's envelope."""
    body = {"success": False, "errors": [{"code": code, "message": message}], "messages": [], "result": None}
    return JSONResponse(body, status_code=status)


def _title_and_text(data: str) -> tuple[str | None, str]:
    if data.startswith("Title: "):
        title, _, rest = data.removeprefix("Title: ").partition("\n")
        text = rest.strip()
        if text.startswith("Description: "):
            text = text.partition("\n")[2].strip() or text.removeprefix("Description: ")
        return title, text
    return None, data
