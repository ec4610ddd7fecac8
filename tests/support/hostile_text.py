"""Hostile text, and cards that have it in every field."""

from __future__ import annotations

import importlib
import types
import typing
from html import escape
from typing import Any

from tidings.model.pipeline import Pipeline
from tidings.model.publication import Collection, Document

PIPELINES = ("bitcoin_news", "eu_funding", "feeds", "first_issues", "hacker_news")
LIVE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)><iframe src=//evil.example></iframe>"
    '<a href="javascript:alert(1)">x</a>'
)
HOSTILE = {
    "escaped": escape(LIVE),
    "escaped twice": escape(escape(LIVE)),
    "escaped three times": escape(escape(escape(LIVE))),
    "escaped by numbers": "".join(f"&#{ord(c)};" for c in LIVE),
    "escaped by hexadecimal numbers": "".join(f"&#x{ord(c):x};" if c in "<>" else c for c in LIVE),
    "escaped numbers": escape("".join(f"&#{ord(c)};" for c in LIVE)),
    "escaped without semicolons": LIVE.replace("<", "&lt").replace(">", "&gt"),
    "escaped and live": f"{escape(LIVE)} {LIVE} {escape(escape(LIVE))}",
    "escaped in cdata": f"<![CDATA[{escape(LIVE)}]]>",
    "script": "<script>alert(1)</script>",
    "handler": '"><img src=x onerror=alert(1)><svg/onload=alert(1)>',
    "attribute": "' autofocus onfocus=alert(1) x='",
    "link": '<a href="javascript:alert(1)">x</a><a href="data:text/html,<script>alert(1)</script>">y</a>',
    "address": "javascript:alert(1)",
    "template": "{{ 7 * 191 }}{% for %}${7*191}#{7*191}",
    "end": "</bdi></p></main></body></html><script>alert(1)</script><!--",
    "feed": "]]><script>alert(1)</script><![CDATA[",
    "controls": "\x00\x01\x08\x0b\x1b[31m\x7f\x85\ufeff",
    "direction": "\u202egnp.exe\u2066\u2067\u200f",
    "combining": "Z\u0351\u036b\u0343\u036a" * 500,
    "giant": "W" * 20_000,
    "unicode": "\U0001f4a9\U0010ffff\ufffe\u2028\u2029",
}


def pipelines() -> dict[str, Pipeline]:
    modules = [importlib.import_module(f"tidings.pipelines.{name}") for name in PIPELINES]
    return {module.__name__.rpartition(".")[2]: module.build(module.Settings()) for module in modules}


def hostile(form: Any, evil: str, name: str = "") -> Any:
    """Return a value of a card field's type with the text wherever text may be."""
    origin = typing.get_origin(form)
    if origin in (typing.Union, types.UnionType):
        return hostile(next(each for each in typing.get_args(form) if each is not type(None)), evil, name)
    if origin in (list, tuple, set, frozenset):
        return [hostile(typing.get_args(form)[0], evil)]
    if origin is dict:
        return {evil: hostile(typing.get_args(form)[1], evil)}
    if form is bool:
        return name in ("dead", "unclaimed")
    if form is int:
        return 3
    if form is float:
        return 0.5
    return evil


def card_of(collection: Collection, evil: str) -> dict[str, Any]:
    hints = typing.get_type_hints(collection.card)
    card = {name: hostile(hints[name], evil, name) for name in collection.card.__struct_fields__}
    return card | {"parent": None, "poll": None, "parts": [], "deleted": False}


def document_of(evil: str) -> Document:
    """Return what the search knows of a card with the text in every field."""
    return Document(evil, f"needle {evil}", evil, evil, 3, 1_790_000_000_000, evil, {"tag": evil})
