"""Each alert rule reads what it should."""

from __future__ import annotations

import msgspec
import pytest

from tidings.model.views import BudgetView, ChannelView, IntakeView, PipelineView, SourceView, StatusView
from tidings.watch.rules import Facts, Reading, Thresholds, readings

QUIET = PipelineView(states={"found": 0}, intake=IntakeView(0, 0, 0))


def asked(
    view: PipelineView = QUIET, *, channels: tuple[ChannelView, ...] = (), facts: Facts | None = None
) -> list[Reading]:
    status = StatusView({"p": view}, [])
    found = readings(status, channels, facts or Facts(), Thresholds(), error_share=0.0)
    return [reading for reading in found if reading.value > reading.threshold]


def changed(**fields: object) -> PipelineView:
    return msgspec.structs.replace(QUIET, **fields)


def test_a_quiet_pipeline_fires_nothing() -> None:
    assert asked() == []


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"phases": {"summarize": 101}}, "summarize queue"),
        ({"phases": {"announce": 51}}, "announce queue"),
        ({"dead_letters": 21}, "dead letters"),
        ({"leased": 11}, "leases"),
        ({"lag_seconds": 7201.0, "lags": {"fetch": 7201.0}}, "processing lag"),
        ({"shelf_writes_today": 901, "shelf_writes_limit": 1000}, "shelf writes"),
        ({"budgets": [BudgetView("newsdata:p", "2026-11-15", 95, 0, 100)]}, "budget nearly spent"),
        (
            {"sources": [SourceView(name="p.s", pipeline="p", health="silent", schedule="every 1 h")]},
            "source silent",
        ),
        (
            {"sources": [SourceView(name="p.s", pipeline="p", health="failing", schedule="every 1 h", failures=3)]},
            "source failing",
        ),
    ],
)
def test_above_its_threshold_a_rule_fires(fields: dict[str, object], name: str) -> None:
    assert [reading.name for reading in asked(changed(**fields))] == [name]


@pytest.mark.parametrize(
    "fields",
    [
        {"phases": {"summarize": 100}, "queues": {"fetch": 500}, "states": {"found": 500}},
        {"phases": {"announce": 50}},
        {"dead_letters": 20},
        {"leased": 10},
        {"shelf_writes_today": 900, "shelf_writes_limit": 1000},
    ],
)
def test_at_its_threshold_a_rule_is_still_silent(fields: dict[str, object]) -> None:
    assert asked(changed(**fields)) == []


def test_a_paused_channel_a_diverging_index_and_a_full_disk_fire() -> None:
    channel = ChannelView(name="news", kind="discord", paused=True, reason="webhook deleted", waiting=3)
    facts = Facts(gaps={"p": frozenset({"article:500", "article:497"})}, disk_free_share=0.03)

    fired = {reading.name: reading.message for reading in asked(channels=(channel,), facts=facts)}

    assert set(fired) == {"channel paused", "index divergence", "disk nearly full"}
    assert "webhook deleted" in fired["channel paused"]
    assert "article:497, article:500" in fired["index divergence"]
