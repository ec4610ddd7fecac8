"""A pipeline that is installed from elsewhere brings its own templates, and what it shows is escaped like our own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import NOW_MS, World, showcase

from tidings.model.errors import Misconfigured
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Collection, Document
from tidings.model.workflow import Transition, Workflow
from tidings.serve.application import build

BROWSER = {"accept": "text/html"}
EVIL = "<script>alert(1)</script>\u202e{{ 7 * 191 }}"
ROW = """{% from "./wind.html" import wind with context %}
<li class="row gust"><h2><a href="{{ card.href }}">{{ card.title }}</a></h2>
{{ wind(card["wind"]) }} {{ when(card.at) }}</li>
"""
WIND = """{% macro wind(words) %}<b class="wind">{{ words }}</b>{% endmacro %}"""
CARD = """{% from "macros.html" import outside with context %}
<p class="gust-card" title="{{ card["wind"] }}">{{ outside(card.url, "Chart") }}</p>{{ card.raw("note") | clean_html }}
"""


class Report(msgspec.Struct, frozen=True):
    """A weather report."""

    id: str
    title: str
    wind: str
    url: str
    note: str


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with templates, where an installer would put it; its folder of templates."""
    folder = tmp_path / "weather_reports" / "templates"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("")
    for name, text in (("report_row", ROW), ("wind", WIND), ("report_card", CARD)):
        (folder / f"{name}.html").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    sys.modules.pop("weather_reports", None)


def weather(templates: str = "weather_reports") -> Pipeline:
    reports = Collection("reports", "report", "report", Report, "Reports", templates=templates)
    life = Workflow(
        "report",
        "found",
        ("found", "shown"),
        (Transition("show", "found", "shown", publishes=True),),
        terminal=frozenset({"shown"}),
    )
    declared = Pipeline("weather", "Weather", "Winds.", workflows={"report": life}, collections=(reports,))
    return showcase(declared)


def shown(world: World, text: str) -> Client:
    """Publish a report that says the text everywhere."""
    pipeline = world.pipelines["weather"]
    card = Report("r1", text, text, text, text)
    document = Document(text, text, None, None, None, NOW_MS, None, {})
    world.show("weather", pipeline.collections[0], {"r1": card}, document)
    return Client(build(world.backend()))


async def test_a_pipelines_own_templates_are_on_the_pages(package: Path) -> None:
    with World(weather()) as world:
        client = shown(world, "Fresh breeze")
        row = (await client.get("/pipelines/weather/reports", headers=BROWSER)).text
        card = (await client.get("/pipelines/weather/reports/r1", headers=BROWSER)).text

    assert '<li class="row gust"><h2><a href="/pipelines/weather/reports/r1">Fresh breeze</a></h2>' in row
    assert '<b class="wind">Fresh breeze</b>' in row
    assert '<p class="gust-card" title="Fresh breeze">' in card


async def test_hostile_text_is_escaped_in_a_template_from_elsewhere(package: Path) -> None:
    with World(weather()) as world:
        client = shown(world, f"{EVIL} javascript:alert(1)")
        pages = [await client.get(f"/pipelines/weather/reports{path}", headers=BROWSER) for path in ("", "/r1")]

    for page in pages:
        assert page.status == 200
        assert "<script>alert" not in page.text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text
        assert 'href="javascript' not in page.text
        assert "\u202e" not in page.text
        assert "1337" not in page.text


async def test_what_a_pipeline_does_not_bring_looks_plain(package: Path) -> None:
    (package / "report_card.html").unlink()
    with World(weather()) as world:
        client = shown(world, "Fresh breeze")
        row = (await client.get("/pipelines/weather/reports", headers=BROWSER)).text
        card = (await client.get("/pipelines/weather/reports/r1", headers=BROWSER)).text

    assert "row gust" in row
    assert "<dt>wind</dt><dd><bdi>Fresh breeze</bdi></dd>" in card


def test_a_template_that_cannot_be_read_stops_the_start(package: Path) -> None:
    (package / "report_row.html").write_text("<li>\n{% for %}")

    with World(weather()) as world, pytest.raises(Misconfigured, match=r"weather_reports/report_row\.html.*line 2"):
        build(world.backend())


def test_templates_that_are_nowhere_stop_the_start() -> None:
    with World(weather("no_such_package")) as world, pytest.raises(Misconfigured, match="no_such_package"):
        build(world.backend())
