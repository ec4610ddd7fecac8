"""Form parts for the few services that want `multipart/form-data`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_SAFE = re.compile(r"[^\x00-\x1f\x7f\"\\]+")


@dataclass(frozen=True, slots=True)
class FormPart:
    """One field of a form."""

    name: str
    content: bytes
    content_type: str = "text/plain; charset=utf-8"
    filename: str | None = None


def encode_parts(parts: Sequence[FormPart], boundary: str) -> bytes:
    """Write a form; names that could break out of their header are refused."""
    body = bytearray()
    for part in parts:
        if not all(_SAFE.fullmatch(text) for text in (part.name, part.content_type, part.filename or "none")):
            raise ValueError(f"form part {part.name!r} has an unsafe name or type")
        filename = f'; filename="{part.filename}"' if part.filename else ""
        body += f'--{boundary}\r\nContent-Disposition: form-data; name="{part.name}"{filename}\r\n'.encode()
        body += f"Content-Type: {part.content_type}\r\n\r\n".encode() + part.content + b"\r\n"
    return bytes(body + f"--{boundary}--\r\n".encode())
