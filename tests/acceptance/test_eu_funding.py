"""EU funding to Discord, whole: from the recorded pages of the portal to the channel, on both databases."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from starlette.responses import HTMLResponse
from tests.acceptance.funding_world import CLOSED, HARVEST, OPEN, PIPELINE, World, a_result, a_world, day, recorded

from tidings.model.views import PipelineView
from tidings.pipelines.eu_funding.body import spoken_date
from tidings.process.enrich.enricher import Terms
from tidings.sample.ai_endpoint import AiEndpoint
from tidings.sample.ai_endpoint import build as build_endpoint
from tidings.sample.eu_portal import EuPortal
from tidings.sample.serving import StandIn
from tidings.wiring import AiSpec

DETAILS = "/info/funding-tenders/opportunities/data/topicDetails"


async def test_recorded_calls_are_announced_once_and_in_order(database_url: str, samples: Path) -> None:
    rows = recorded(samples)
    late = [row for row in rows if row["metadata"]["status"] == [OPEN]][:40]
    portal = EuPortal.of((row for row in rows if row not in late), disorder=4)
    async with a_world(database_url, portal) as world:
        first = await world.crawl()
        await world.settle_down()
        assert (first.error, first.new, first.rejected) == (None, 340, 0)
        assert world.opened.states("opportunity") == {"published": 340}
        assert world.titles() == [], "the first run is a baseline"

        for row in late:
            portal.put(row)
        second = await world.crawl()
        await world.settle_down()
        assert (second.new, second.changed) == (40, 0)
        assert Counter(world.titles()) == Counter(title_of(row) for row in late)
        assert world.sent_in_order()
        assert world.discord.refused == [], "no message broke a limit or a rate"

        third = await world.crawl()
        await world.settle_down()
        assert (third.new, third.changed) == (0, 0)
        assert len(world.discord.messages) == 40

        moved = next(row for row in late if row["metadata"]["type"] == ["1"])
        portal.change(moved["reference"], deadlineDate=[day(HARVEST, 200, "17:00")])
        for _ in range(2):
            await world.crawl()
            await world.settle_down()
        assert len(world.discord.messages) == 41
        assert world.titles()[-1] == f"Update: {title_of(moved)}"
        assert "→ 10 March 2027, 17:00 Brussels time" in world.discord.messages[-1].body["embeds"][0]["description"]


async def test_the_first_run_announces_only_what_is_recent(database_url: str) -> None:
    old = a_result(1, startDate=[day(HARVEST, -30)])
    async with a_world(database_url, EuPortal.of([old, a_result(2)])) as world:
        await world.crawl()
        await world.settle_down()

        assert world.titles() == ["Call 2"]


async def test_the_card_and_the_search_show_a_call_until_it_closes(database_url: str) -> None:
    soon = a_result(1, deadlineDate=[day(HARVEST, 10, "17:00"), day(HARVEST, 40, "17:00")])
    async with a_world(database_url, EuPortal.of([soon])) as world:
        await world.crawl()
        await world.settle_down()
        engine = world.opened

        card = engine.card("opportunities", "1TOPICS")
        assert card is not None
        assert (card["status"], card["deadline"], card["programme"]) == ("open", "2026-09-01T17:00:00Z", "LIFE")
        assert "seal colony" in card["summary"]
        assert [hit.key for hit in engine.search("seal programme:LIFE status:open")] == ["1TOPICS"]
        assert [d.message_id for d in engine.item("opportunity", "1TOPICS").deliveries] == [
            world.discord.messages[0].id
        ]

        engine.advance_clock(seconds=11 * 86_400)
        await engine.work_until_idle()
        card = engine.card("opportunities", "1TOPICS")
        assert card is not None
        assert (card["status"], card["deadline"]) == ("open", "2026-10-01T17:00:00Z")

        engine.advance_clock(seconds=30 * 86_400)
        await engine.work_until_idle()
        card = engine.card("opportunities", "1TOPICS")
        assert card is not None
        assert card["status"] == "closed"
        assert engine.states("opportunity") == {"closed": 1}
        assert world.titles() == ["Call 1"], "a foreseen end is no news"

        engine.advance_clock(seconds=91 * 86_400)
        world.portal.remove("1TOPICSen")
        await engine.tidy()
        assert engine.card("opportunities", "1TOPICS") is None
        world.portal.put(a_result(1, deadlineDate=[day(HARVEST, 300, "17:00")]))
        again = await world.crawl()
        assert again.new == 0, "what was seen is remembered for 90 days more"


async def test_an_early_end_is_told(database_url: str) -> None:
    async with a_world(database_url, EuPortal.of([a_result(1)])) as world:
        await world.crawl()
        world.portal.change("1TOPICSen", status=[CLOSED])
        await world.settle_down()
        await world.crawl()
        await world.settle_down()

        assert world.titles() == ["Call 1", "Update: Call 1"]
        assert world.discord.messages[-1].body["embeds"][0]["color"] == 0x6E7681
        assert world.opened.states("opportunity") == {"closed": 1}


async def test_routes_choose_what_a_channel_hears(database_url: str) -> None:
    results = [a_result(1), a_result(2, frameworkProgramme=["43108390"])]
    async with a_world(database_url, EuPortal.of(results), query="programme:HORIZON status:open") as world:
        await world.crawl()
        await world.settle_down()

        assert world.titles() == ["Call 2"]


async def test_a_summary_that_fails_three_times_is_a_dead_letter_that_revives(database_url: str) -> None:
    portal = EuPortal.of([a_result(1, described=False)])
    portal.faults.script(DETAILS, *[HTMLResponse("", 502)] * 3)
    async with a_world(database_url, portal) as world:
        await world.crawl()
        await world.settle_down(hours=24)
        (group,) = world.opened.store.item_views.dead_letters()
        assert (group.cause, group.count) == ("the portal's details of … answered 502; it may recover", 1)
        assert len([r for r in portal.faults.requests if r[1].startswith(DETAILS)]) == 3

        assert world.opened.store.operations.revive(actor="test") == 1
        await world.settle_down()
        assert world.titles() == ["Call 1"]


async def test_what_waits_longer_than_a_week_ends_visibly_and_can_be_revived(database_url: str) -> None:
    async with a_world(database_url, EuPortal.of([a_result(1)])) as world:
        await world.crawl()
        world.opened.store.intake.merge(PIPELINE)
        world.opened.advance_clock(seconds=7 * 86_400 + 1)
        await world.settle_down()
        (group,) = world.opened.store.item_views.dead_letters()
        assert group.cause == "is_fresh: waited longer than 7 days"
        assert world.opened.store.status_views.status().pipelines[PIPELINE].dead_letters == 1

        world.opened.store.operations.revive(cause=group.cause, actor="test")
        await world.settle_down()
        assert world.opened.states("opportunity") == {"published": 1}


async def test_dead_letters_are_kept_for_thirty_days(database_url: str) -> None:
    portal = EuPortal.of([a_result(1, described=False)])
    portal.faults.script(DETAILS, *[HTMLResponse("", 502)] * 3)
    async with a_world(database_url, portal) as world:
        await world.crawl()
        await world.settle_down(hours=24)
        world.opened.advance_clock(seconds=29 * 86_400)
        await world.opened.tidy()
        assert len(world.opened.items("opportunity")) == 1

        world.opened.advance_clock(seconds=2 * 86_400)
        await world.opened.tidy()
        assert world.opened.items("opportunity") == []


async def test_a_rate_limit_costs_no_attempt_and_keeps_the_order(database_url: str) -> None:
    portal = EuPortal.of(a_result(n) for n in range(12))
    async with a_world(database_url, portal) as world:
        world.discord.script("429", "global_429", "html_429")
        await world.crawl()
        await world.settle_down()

        assert len(world.discord.messages) == 12
        assert world.sent_in_order()
        assert [status for status, _ in world.discord.refused] == [429, 429, 429]
        assert all(row.standing == "done" for row in world.opened.items("delivery"))
        retried = [step for row in world.opened.items("delivery") for step in life(world, row.key) if step == "retried"]
        assert retried == []


async def test_a_failing_message_is_not_overtaken(database_url: str) -> None:
    portal = EuPortal.of(a_result(n) for n in range(6))
    async with a_world(database_url, portal) as world:
        world.discord.script("502", "502", "reset")
        await world.crawl()
        await world.settle_down()

        assert len(world.discord.messages) == 6
        assert world.sent_in_order()
        assert sum(d.ambiguous for d in world.opened.store.item_views.deliveries()) == 3


async def test_five_failures_bury_one_message_and_free_the_channel(database_url: str) -> None:
    portal = EuPortal.of([a_result(1), a_result(2)])
    async with a_world(database_url, portal) as world:
        world.discord.script("502", "502", "502", "502", "502")
        await world.crawl()
        await world.settle_down()

        assert len(world.discord.messages) == 1
        dead, sent = sorted(world.opened.store.item_views.deliveries(), key=lambda d: d.state)
        assert (dead.standing, dead.ambiguous, sent.standing) == ("dead", 5, "done")


async def test_a_deleted_webhook_pauses_the_channel_and_loses_nothing(database_url: str) -> None:
    portal = EuPortal.of(a_result(n) for n in range(8))
    async with a_world(database_url, portal) as world:
        world.discord.script("404", "404", "404", "404", "404")
        await world.crawl()
        await world.settle_down(hours=1)
        await world.opened.app.alert_loop().check()
        assert world.discord.requests == 1
        (channel,) = world.opened.store.status_views.channels()
        assert (channel.paused, channel.waiting) == (True, 8)
        (alert,) = [a for a in world.opened.store.status_views.alerts() if a.name == "channel paused"]
        assert "discord:eu answered 404" in alert.message

        world.discord.faults.clear()
        world.opened.store.switches.resume("channel:eu")
        await world.settle_down()
        assert len(world.discord.messages) == 8
        assert world.sent_in_order()


async def test_a_paused_channel_waits_and_goes_on(database_url: str) -> None:
    async with a_world(database_url, EuPortal.of([a_result(1)])) as world:
        world.opened.store.switches.pause("channel:eu", reason="a holiday")
        await world.crawl()
        await world.settle_down(hours=1)
        assert world.discord.requests == 0

        world.opened.store.switches.resume("channel:eu")
        await world.settle_down()
        assert world.titles() == ["Call 1"]


async def test_what_waited_longer_than_its_route_allows_expires(database_url: str) -> None:
    """A channel that was paused for 20 days does not announce the news of then."""
    async with a_world(database_url, EuPortal.of([a_result(1)])) as world:
        engine = world.opened
        engine.store.switches.pause("channel:eu", reason="a long holiday")
        await world.crawl()
        await world.settle_down(hours=1)
        engine.advance_clock(seconds=20 * 86_400)

        engine.store.switches.resume("channel:eu")
        await world.settle_down()

        assert world.discord.requests == 0
        (delivery,) = engine.store.item_views.deliveries()
        assert (delivery.standing, delivery.state) == ("rejected", "expired")
        assert "queue_days" in (delivery.last_error or "")


async def test_a_late_notice_tells_of_the_call_as_it_is_now(database_url: str) -> None:
    soon, later, moved = day(HARVEST, 2, "17:00"), day(HARVEST, 90, "17:00"), day(HARVEST, 120, "17:00")
    portal = EuPortal.of([a_result(1, deadlineDate=[soon]), a_result(2, deadlineDate=[later])])
    async with a_world(database_url, portal) as world:
        engine = world.opened
        engine.store.switches.pause("channel:eu", reason="a holiday")
        await world.crawl()
        await world.settle_down(hours=1)
        portal.put(a_result(2, deadlineDate=[moved]))
        engine.advance_clock(seconds=3 * 86_400)
        await world.crawl()
        await world.settle_down(hours=1)

        engine.store.switches.resume("channel:eu")
        await world.settle_down()

        assert world.titles() == ["Call 2", "Update: Call 2"]
        first, _ = (posted.body["embeds"][0]["fields"] for posted in world.discord.messages)
        deadline = next(field["value"] for field in first if field["name"] == "Deadline")
        assert deadline.startswith(f"{spoken_date(f'{moved[:19]}Z')}\n<t:"), "with the reader's own time"
        states = {delivery.title: delivery.state for delivery in engine.store.item_views.deliveries()}
        assert states["Call 1"] == "expired"


async def test_calls_wait_for_an_ai_endpoint_that_is_down_for_all(database_url: str) -> None:
    """An outage of hours without the fall-back: attempts are not spent, and nothing is buried."""
    model = AiEndpoint()
    model.faults.extend(["server_error"] * 60)
    terms = Terms(falls_back=False, rate_per_minute=60_000)
    async with StandIn(build_endpoint(model)) as server:
        ai = AiSpec(base_url=f"{server.url}/v1", model="stand-in", terms=terms)
        portal = EuPortal.of(a_result(n) for n in range(20))
        async with a_world(database_url, portal, ai=ai) as world:
            await world.crawl()
            await world.settle_down(hours=3)
            assert [row.key for row in world.opened.items() if row.standing == "dead"] == []
            assert len(model.faults) > 0, "the outage lasted"

            model.faults.clear()
            await world.settle_down(hours=1)
            assert len(world.discord.messages) == 20


async def test_two_workers_share_one_rate_and_one_place(database_url: str) -> None:
    portal = EuPortal.of(a_result(n) for n in range(45))
    async with a_world(database_url, portal) as world, world.opened.with_wiring() as second:
        second.app.database.move_clock(world.opened.offset_ms)
        await world.crawl()
        for _ in range(400):
            await world.opened.work_until_idle()
            second.app.database.move_clock(world.opened.offset_ms)
            await second.work_until_idle()
            if len(world.discord.messages) == 45:
                break
            world.opened.advance_clock(seconds=1)

        assert len(world.discord.messages) == 45
        assert world.discord.refused == []
        times = [posted.at for posted in world.discord.messages]
        assert all(times[n + 30] - times[n] >= 60 for n in range(15))


async def test_a_call_held_by_a_dead_worker_is_free_after_15_minutes_at_most(database_url: str) -> None:
    async with a_world(database_url, EuPortal.of([a_result(1)])) as world:
        engine = world.opened
        await world.crawl()
        engine.store.intake.merge(PIPELINE)
        assert len(engine.store.items.claim(PIPELINE, "ai", 1, "dead", engine.wiring.lease_seconds)) == 1

        engine.advance_clock(seconds=15 * 60)
        await engine.sweep()
        await world.settle_down(hours=0.1)
        assert view(world).states["published"] == 1


async def test_status_metrics_and_alerts_show_the_warning_signs(database_url: str) -> None:
    portal = EuPortal.of(a_result(n, startDate=[day(HARVEST, -1 if n < 51 else -30)]) for n in range(101))
    async with a_world(database_url, portal) as world:
        engine = world.opened
        await world.crawl()
        engine.store.intake.merge(PIPELINE)
        engine.store.switches.pause("channel:eu", reason="test")
        assert await firing(world) == {"summarize queue", "channel paused"}
        assert view(world).states["found"] == 101

        leases = engine.store.items.claim(PIPELINE, "ai", 11, "somebody", 900)
        assert "leases" in await firing(world)
        assert view(world).leased == 11
        engine.store.items.release([(lease.id, lease.token) for lease in leases])

        await world.settle_down(hours=0.1)
        assert await firing(world) == {"announce queue", "channel paused"}
        assert view(world).deliveries == {"queued": 51}

        for n in range(200, 221):
            portal.put(a_result(n, described=False))
        portal.faults.script(DETAILS, *[HTMLResponse("", 502)] * 63)
        await world.crawl()
        await world.settle_down(hours=1)
        assert await firing(world) == {
            "announce queue",
            "channel paused",
            "dead letters",
            "dead letters growing",
        }

        engine.store.switches.resume("channel:eu")
        await world.settle_down()
        engine.store.operations.revive(actor="test")
        await world.settle_down()
        assert await firing(world) == set()
        assert view(world).deliveries == {"sent": 72}
        shown = engine.app.metrics.render()[0].decode()
        assert 'tidings_deliveries_total{channel="eu",outcome="sent"} 72.0' in shown
        assert 'tidings_item_state{kind="delivery",pipeline="eu_funding",state="sent"} 72.0' in shown
        assert 'tidings_dead_letters{pipeline="eu_funding"' not in shown
        assert 'tidings_items_total{outcome="advanced",pipeline="eu_funding"}' in shown


def view(world: World) -> PipelineView:
    return world.opened.store.status_views.status().pipelines[PIPELINE]


async def firing(world: World) -> set[str]:
    await world.opened.app.alert_loop().check()
    return {alert.name for alert in world.opened.store.status_views.alerts() if alert.name != "processing lag"}


def life(world: World, key: str) -> list[str]:
    return [step.ended for step in world.opened.item("delivery", key).life]


def title_of(row: dict) -> str:
    known = row["metadata"]
    own = known.get("callTitle") or known.get("caName") if known["type"] == ["8"] else None
    return " ".join((own or known["title"])[0].split())
