"""`tidings try`: what the enrichment makes of one page or text, or of many."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec
import typer
from rich.progress import Progress

from tidings.cli.options import ConfigOption, JsonOption, settings_from
from tidings.cli.output import console, end, fail, say, show_json
from tidings.config import Settings
from tidings.follow.stories.grouping import Grouping, StoryItem
from tidings.model.answers import IssueFacts
from tidings.model.errors import BadInput, TidingsError
from tidings.net.client import Web
from tidings.parts import opened_bench
from tidings.process.enrich.enricher import MeteredEnricher
from tidings.process.extract.extractor import ChildExtractor
from tidings.wiring import wiring_from

QUESTIONS = ("extract", "summarize", "sentiment", "issue", "stories")
STORIES = QUESTIONS[-1]
NOWHERE = "https://page.invalid/"
"""The address of a page that came from no address."""
AT_ONCE_MAX = 4


def try_(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help=f"One of {', '.join(QUESTIONS)}.")],
    material: Annotated[
        str | None, typer.Argument(metavar="FILE|URL|-", help="A page or text; - reads standard input.")
    ] = None,
    config: ConfigOption = None,
    jsonl: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="IN OUT",
            help='A batch: lines {"id", "text" or "html"} (stories: "title", "time") in, answers out; - is a pipe.',
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what tidings makes of a page or text. Extraction, summary, sentiment, issue analysis, stories of many."""
    if question not in QUESTIONS:
        fail(f"{question!r} is no question; use one of {', '.join(QUESTIONS)}")
    if (material is None) == (jsonl is None):
        fail(f"give one file, address or -, or a batch: tidings try {question} --jsonl IN OUT")
    if question == STORIES and jsonl is None:
        fail("stories are made of many items: tidings try stories --jsonl IN OUT")
    settings = settings_from(config)
    try:
        if jsonl is not None:
            failed = _group(*jsonl) if question == STORIES else asyncio.run(_try_many(settings, question, *jsonl))
            if failed:
                fail(f"{failed} of the lines failed; their errors stand in {jsonl[1]}", 1)
            return
        assert material is not None
        answer = asyncio.run(_try_one(settings, question, material))
    except TidingsError as error:
        end(error)
    show_json(answer) if as_json else _show(answer)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is asked about: a page, a text or the facts of an issue."""

    html: bytes | None = None
    text: str | None = None
    title: str | None = None
    description: str | None = None
    url: str = NOWHERE
    facts: IssueFacts | None = None


@dataclass(frozen=True, slots=True)
class Bench:
    """The parts that answer."""

    web: Web
    extractor: ChildExtractor
    enricher: MeteredEnricher

    async def answer(self, question: str, material: Subject) -> dict[str, Any]:
        """Answer one question, with how long it took."""
        started = time.perf_counter()
        if question == "extract":
            if material.html is None:
                raise BadInput("extract needs a page: html, not text")
            found = asdict(await self.extractor.extract(material.html, material.url))
            answer = {name: value for name, value in found.items() if value not in (None, NOWHERE)}
        else:
            answer = await self._judge(question, await self._readable(material))
        return {**answer, "ms": round((time.perf_counter() - started) * 1000, 2)}

    async def _readable(self, material: Subject) -> Subject:
        if material.html is None:
            return material
        page = await self.extractor.extract(material.html, material.url)
        return Subject(text=page.text, title=page.title, description=page.description)

    async def _judge(self, question: str, material: Subject) -> dict[str, Any]:
        text = material.text or ""
        if question == "summarize":
            given, by = await self.enricher.summarize(text, title=material.title, description=material.description)
        elif question == "sentiment":
            given, by = await self.enricher.judge_sentiment(text, title=material.title)  # type: ignore[assignment]
        else:
            facts = material.facts or _issue_in(text, material.title)
            given, by = await self.enricher.analyze_issue(facts)  # type: ignore[assignment]
        return {**msgspec.structs.asdict(given), "model": by.model}


@asynccontextmanager
async def _bench(settings: Settings, children: int, question: str) -> AsyncIterator[Bench]:
    """Open the parts; only the AI endpoint and the manners of fetching are taken from the settings."""
    alone = settings.model_copy(update={"pipelines": {}, "routes": [], "notifiers": {}, "mirrors": {}})
    wiring = wiring_from(alone)
    async with opened_bench(wiring, children=children) as (web, extractor, enricher):
        if question == "extract":
            await extractor.check()  # No page pays for the start of the children.
        yield Bench(web, extractor, enricher)


async def _try_one(settings: Settings, question: str, source: str) -> dict[str, Any]:
    async with _bench(settings, 1, question) as bench:
        if source.startswith(("http://", "https://")):
            page = await bench.web.page(source)
            is_text = page.headers.get("content-type", "").startswith("text/plain")
            material = _material(page.body, question, is_text=is_text, url=page.url)
        else:
            material = _material(await asyncio.to_thread(_read, source), question)
        return await bench.answer(question, material)


def _read(source: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise BadInput(f"{source} cannot be read: {error.strerror}") from None


def _material(body: bytes, question: str, *, is_text: bool = False, url: str = NOWHERE) -> Subject:
    """Tell a page from a text by its first mark."""
    if question == "extract" or (not is_text and body.lstrip()[:1] == b"<"):
        return Subject(html=body, url=url)
    if question == "issue" and body.lstrip()[:1] == b"{":
        return Subject(facts=_facts(body))
    return Subject(text=body.decode("utf-8", "replace"))


def _facts(body: bytes) -> IssueFacts:
    try:
        return msgspec.json.decode(body, type=IssueFacts)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"the issue cannot be read: {error}; its fields are title, body, labels, comments") from None


def _issue_in(text: str, title: str | None) -> IssueFacts:
    first, _, rest = text.strip().partition("\n")
    return IssueFacts(title=title or first[:300], body=text if title else rest)


async def _try_many(settings: Settings, question: str, source: str, target: str) -> int:
    """Answer line by line, a few at once, in order; a bad line gets an error and the rest goes on."""
    at_once = min(AT_ONCE_MAX, os.cpu_count() or 1)
    failed = 0
    with _opened(source, "rb", sys.stdin.buffer) as lines, _opened(target, "wb", sys.stdout.buffer) as out:
        async with _bench(settings, at_once, question) as bench:
            waiting: list[asyncio.Task[dict[str, Any]]] = []
            with Progress(console=console, transient=True, disable=not console.is_terminal or target == "-") as bar:
                task = bar.add_task(question, total=None)
                for number, line in enumerate(lines, 1):
                    if line.strip():
                        waiting.append(asyncio.create_task(_try_line(bench, question, number, line)))
                    if len(waiting) >= at_once:
                        failed += _write(out, await waiting.pop(0))
                    bar.update(task, completed=number)
                for rest in waiting:
                    failed += _write(out, await rest)
    return failed


async def _try_line(bench: Bench, question: str, number: int, line: bytes) -> dict[str, Any]:
    name: Any = number
    try:
        given = msgspec.json.decode(line)
        if not isinstance(given, dict):
            raise BadInput('write an object such as {"id": 1, "text": "..."}')
        name = given.get("id", number)
        return {"id": name, **await bench.answer(question, _material_of(given))}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return {"id": name, "error": f"line {number} is not JSON: {error}"}
    except TidingsError as error:
        return {"id": name, "error": f"line {number}: {error}"}


def _material_of(given: dict[str, Any]) -> Subject:
    text, html, title = given.get("text"), given.get("html"), given.get("title")
    if isinstance(html, str):
        return Subject(html=html.encode("utf-8", "replace"), url=str(given.get("url") or NOWHERE))
    if isinstance(text, str):
        return Subject(text=text, title=title if isinstance(title, str) else None)
    raise BadInput("a line needs text or html, as a string")


class StoryLine(msgspec.Struct):
    """A line that `try stories` reads."""

    id: str | int
    title: str
    time: int
    text: str = ""
    url: str = ""


def _group(source: str, target: str) -> int:
    """Put the items into stories in the order given, with the code that runs live; a bad line gets an error."""
    grouping, names, failed = Grouping(), [""], 0
    with _opened(source, "rb", sys.stdin.buffer) as lines, _opened(target, "wb", sys.stdout.buffer) as out:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                given = msgspec.json.decode(line, type=StoryLine)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                failed += _write(out, {"id": number, "error": f"line {number} cannot be read: {error}"})
                continue
            item = StoryItem(len(names), given.time, given.title, given.text, given.url)
            names.append(str(given.id))
            # A story is named after its first item.
            _write(out, {"id": given.id, "story": names[grouping.place(item).story]})
    return failed


def _write(out: BinaryIO, answer: dict[str, Any]) -> int:
    out.write(msgspec.json.encode(answer) + b"\n")
    return int("error" in answer)


@contextmanager
def _opened(name: str, mode: str, pipe: BinaryIO) -> Iterator[BinaryIO]:
    if name == "-":
        yield pipe
        pipe.flush() if mode == "wb" else None
        return
    with ExitStack() as held:
        try:
            opened: Any = held.enter_context(Path(name).open(mode))
        except OSError as error:
            raise BadInput(f"{name} cannot be opened: {error.strerror}") from None
        yield opened


def _show(answer: dict[str, Any]) -> None:
    by = answer.pop("model", None)
    took = f"{answer.pop('ms'):g} ms"
    main = next((answer.pop(name) for name in ("text", "summary", "introduction") if name in answer), None)
    for name, value in answer.items():
        say(f"{name}: {'; '.join(value) if isinstance(value, list) else value}")
    if main is not None:
        say(f"\n{main or '(nothing readable was found)'}" if answer else main or "(nothing readable was found)")
    say(f"\n{took}{f', by {by}' if by else ''}")
