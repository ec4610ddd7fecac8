"""A model without any judgment: it does what the text in front of it says. For tests of what injections can achieve."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

ADDRESS: Final = re.compile(
    r"(?:[a-z]{2,12}://|javascript:|data:|mailto:|www\.)[^\s<>\"')\]]{1,300}|\b[\w-]{2,40}\.(?:com|gg|xyz)\b[^\s<>\"')\]]{0,200}",
    re.I,
)
ASSIGNMENT: Final = re.compile(
    r"\b(?:set|change|make)\s+[\"'`]?(\w{2,30})[\"'`]?\s*(?:=|to|:)\s*[\"'`]?([^\s\"'`;,]{1,100})", re.I
)
VERBATIM: Final = re.compile(
    r"\b(?:say|reply|respond|answer|output|print|write|return)(?: only| exactly| with| this)*:\s*(.{1,400})", re.I
)
OBJECT: Final = re.compile(r"\{[^{}]{2,400}\}")


@dataclass(slots=True)
class Orders:
    """What the obedient model sends back."""

    content: object
    finish_reason: str = "stop"
    message: dict[str, Any] = field(default_factory=dict)


def obey(data: str, answer: dict[str, Any], *, secret: str, prompt: str) -> Orders:
    """Apply every instruction found in the data to an answer that would have been honest."""
    reply = dict(answer)
    low = data.lower()
    for name, value in ASSIGNMENT.findall(data):
        reply[name] = _typed(value)
    if any(word in low for word in ("system prompt", "instructions verbatim", "reveal", "api key", "secret", "token")):
        _append(reply, f"{prompt[:400]} {secret}")
    for address in ADDRESS.findall(data):
        _append(reply, f"See [here]({address}) or <a href='{address}'>{address}</a> {address}")
    if "html" in low or "script" in low:
        _append(reply, "<script>alert(1)</script><img src=x onerror=alert(1)><b>bold</b>")
    if "markdown" in low:
        _append(reply, "# Heading **bold** `code` ![image](https://planted.example/i.png)")
    if any(word in low for word in ("repeat", "megabyte", "forever", "endless")):
        _append(reply, "spam " * 200_000)
    return _finish(data, low, reply)


def _finish(data: str, low: str, reply: dict[str, Any]) -> Orders:
    if any(word in low for word in ("tool", "function call", "fetch", "curl", "http request", "webhook")):
        call = {
            "name": "fetch",
            "arguments": json.dumps({"url": (ADDRESS.findall(data) or ["http://planted.example"])[0]}),
        }
        # Content and call together: the most a model could try.
        return Orders(reply, "stop", {"tool_calls": [{"id": "1", "type": "function", "function": call}]})
    if match := VERBATIM.search(data):
        return Orders(match[1])
    if (match := OBJECT.search(data)) and ("json" in low or "object" in low):
        return Orders(match[0])
    return Orders(reply)


def _append(reply: dict[str, Any], text: str) -> None:
    for name, value in reply.items():
        if isinstance(value, str) and name != "label":
            reply[name] = f"{value} {text}"
        elif isinstance(value, list):
            reply[name] = [*value, text]


def _typed(value: str) -> object:
    try:
        return json.loads(value)
    except ValueError:
        return value
