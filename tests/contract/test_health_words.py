"""How a source is, in a word that is true."""

from __future__ import annotations

import pytest
from tests.support.engine import Engine
from tests.support.example import ThingSource, pipeline, thing

from tidings.model.errors import Misconfigured, SlowDown, TidingsError, Transient
from tidings.model.pipeline import Page
from tidings.model.views import SourceView

FULL = [Page(tuple(thing(str(n)) for n in range(188)))]
HOURS_LEFT = 7200.0


class Listing(ThingSource):
    """A source that lists what there is at every run."""

    lists_anew = True


def source_view(engine: Engine) -> SourceView:
    (view,) = engine.store.status_views.sources()
    return view


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (SlowDown("credits are used up", retry_after_seconds=HOURS_LEFT), "out of credits"),
        (SlowDown("slow down", retry_after_seconds=30), "slow"),
        (Misconfigured("401: check the key"), "refused"),
        (Transient("502"), "failing"),
    ],
)
async def test_a_run_that_read_nothing_is_no_success(database_url: str, error: TidingsError, word: str) -> None:
    source = ThingSource(all_pages=FULL)
    async with Engine(database_url, [pipeline(source)]) as engine:
        assert source_view(engine).health == "waiting"
        await engine.discover()
        first = source_view(engine)
        assert first.health == "healthy"
        engine.advance_clock(seconds=60)
        source.all_pages, source.error = [], error
        await engine.discover()

        view = source_view(engine)
        assert (view.health, view.last_success_at) == (word, first.last_success_at)
        if word == "out of credits":
            assert view.until is not None
            assert view.until - engine.now_ms() > (HOURS_LEFT - 60) * 1000
        await engine.app.alert_loop().check()
        fired = {alert.name: alert.message for alert in engine.store.status_views.alerts()}
        if word in ("refused", "out of credits"):
            assert str(error) in fired[f"source {word}"]

        source.all_pages, source.error = FULL, None
        await engine.discover()
        await engine.app.alert_loop().check()
        assert source_view(engine).health == "healthy"
        assert not {alert.name for alert in engine.store.status_views.alerts()} & {f"source {word}"}


async def test_an_empty_answer_after_many_results_is_told(database_url: str) -> None:
    source = Listing(all_pages=FULL)
    async with Engine(database_url, [pipeline(source)]) as engine:
        await engine.discover()
        source.all_pages = [Page(())]
        await engine.discover()
        assert source_view(engine).health == "empty"
        source.all_pages = FULL
        await engine.discover()
        assert source_view(engine).health == "healthy"


async def test_a_source_that_tells_only_changes_may_be_empty(database_url: str) -> None:
    source = ThingSource(all_pages=FULL)
    async with Engine(database_url, [pipeline(source)]) as engine:
        await engine.discover()
        source.all_pages = [Page(())]
        await engine.discover()
        assert source_view(engine).health == "healthy"
