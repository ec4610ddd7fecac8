"""A stand-in for any OpenAI-compatible endpoint: real HTTP, exact shapes, answers from the local default.

Tests and the demo script its faults by name (`FAULTS`); an *obedient* model does whatever the data tells it to, so that
tests can show how little that achieves.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tidings.process.enrich.endpoint.questions import QUESTIONS
from tidings.sample.ai_answers import AiRequest, answer_locally, completion, error
from tidings.sample.ai_faults import FAULTS
from tidings.sample.obedience import obey

BLOCK: Final = re.compile(
    r"^(?P<code>[0-9a-f]{8,64}) BEGIN DATA\n(?P<data>.*)\n(?P=code) END DATA$", re.DOTALL | re.MULTILINE
)
WORDS: Final = re.compile(r"Use at most (\d{1,4}) words")


@dataclass(slots=True)
class AiEndpoint:
    """What the stand-in does, and what it has seen."""

    faults: deque[str] = field(default_factory=deque)
    """Names from `FAULTS` for the next requests, one each; "" answers well."""
    faults_about: dict[str, deque[str]] = field(default_factory=dict)
    """The same for the next requests whose data holds certain words."""
    is_obedient: bool = False
    knows_schemas: bool = True
    knows_json_mode: bool = True
    counts_tokens: bool = True
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    def script(self, *names: str) -> None:
        """Queue faults for the next requests."""
        self.faults.extend(_known(names))

    def script_about(self, words: str, *names: str) -> None:
        """Queue faults for the next requests about something, whatever else is asked in between."""
        self.faults_about.setdefault(words, deque()).extend(_known(names))

    async def complete(self, request: Request) -> Response:
        """Answer one chat completion, or misbehave as scripted."""
        body = msgspec.json.decode(await request.body())
        self.requests.append(body)
        self.keys.append(request.headers.get("authorization", ""))
        refusal = self._refusal(body)
        if refusal is not None:
            return refusal
        asked = read_request(body)
        fault = self._next_fault(asked)
        if fault:
            return FAULTS[fault](asked)
        if self.is_obedient:
            return obedient(asked, self.keys[-1])
        return completion(asked, answer_locally(asked), counts_tokens=self.counts_tokens)

    def _next_fault(self, asked: AiRequest) -> str:
        for words, queued in self.faults_about.items():
            if queued and words in asked.data:
                return queued.popleft()
        return self.faults.popleft() if self.faults else ""

    def _refusal(self, body: Mapping[str, Any]) -> Response | None:
        """Refuse what this server does not understand, as servers do."""
        if not isinstance(body.get("messages"), list) or not body.get("model"):
            return error(400, "you must provide model and messages", "invalid_request_error")
        wanted = (body.get("response_format") or {}).get("type", "text")
        if (wanted == "json_schema" and not self.knows_schemas) or (
            wanted == "json_object" and not self.knows_json_mode
        ):
            return error(400, f"response_format type {wanted} is not supported", "invalid_request_error")
        return None


def build(endpoint: AiEndpoint | None = None) -> Starlette:
    """Return the stand-in as an application; its base address ends in /v1."""
    endpoint = endpoint or AiEndpoint()
    app = Starlette(routes=[Route("/v1/chat/completions", endpoint.complete, methods=["POST"])])
    app.state.endpoint = endpoint
    return app


def _known(names: tuple[str, ...]) -> tuple[str, ...]:
    unknown = [name for name in names if name and name not in FAULTS]
    if unknown:
        raise ValueError(f"no such fault: {', '.join(unknown)}; there are {', '.join(sorted(FAULTS))}")
    return names


def read_request(body: Mapping[str, Any]) -> AiRequest:
    """Find which question is asked, by its prompt, and the data between the boundaries."""
    system = next((m["content"] for m in body["messages"] if m["role"] == "system"), "")
    user = next((m["content"] for m in body["messages"] if m["role"] == "user"), "")
    block = BLOCK.search(user)
    words = WORDS.search(user.partition("\n")[0])
    return AiRequest(
        question=next((question.name for question in QUESTIONS if question.prompt == system), "summarize"),
        data=block["data"] if block else user,
        words_max=int(words[1]) if words else 80,
        body=body,
    )


def obedient(asked: AiRequest, key: str) -> Response:
    """Let the data give the orders."""
    orders = obey(asked.data, answer_locally(asked), secret=key, prompt=str(asked.body["messages"][0]["content"]))
    return completion(asked, orders.content, finish_reason=orders.finish_reason, **orders.message)
