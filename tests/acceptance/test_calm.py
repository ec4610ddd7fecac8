"""Routes that disturb less: digests, quiet hours and a limit by the hour, over real HTTP, with crashes and DST."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.acceptance.funding_world import HARVEST, PIPELINE, World, a_result, a_world, day

from tidings.backtest import Backtest, backtest
from tidings.model.publication import Calm, Route, Texts
from tidings.sample.discord import FaultName
from tidings.sample.eu_portal import EuPortal

MORNING = Calm(digest="daily at 08:00 Europe/Brussels")
BEFORE = datetime(2026, 8, 20, 12, tzinfo=UTC)


async def found(world: World, *numbers: int, **changes: Any) -> None:
    """Let the portal publish calls, and the engine find and queue them."""
    now = datetime.fromtimestamp(world.now(), UTC)
    for number in numbers:
        world.portal.put(a_result(number, now=now, **changes))
    await world.crawl()
    await world.settle_down(hours=0.2)


async def pass_time(world: World, until: datetime) -> None:
    """Let the clock run, working whenever something is due."""
    lanes = ("pure", "fetch", "ai", "notify")
    for number in range(10_000):
        if number % 20 == 19:
            await world.opened.sweep()
        await world.opened.work_until_idle()
        left = until.timestamp() - world.now()
        if left <= 0:
            return
        waits = world.opened.store.items.next_due_ms([PIPELINE], lanes)
        step = left if waits is None else min(left, max(waits / 1000, 0.5))
        world.opened.advance_clock(seconds=step)
    raise AssertionError("the time did not pass")


def embeds(world: World) -> list[dict[str, Any]]:
    return [posted.body["embeds"][0] for posted in world.discord.messages]


def told(world: World) -> Counter[str]:
    """Count how often each call was told, in a message of its own or in a digest."""
    counts: Counter[str] = Counter()
    for embed in embeds(world):
        text = embed["title"] + "\n" + embed.get("description", "")
        for number in range(1, 100):
            counts[f"Call {number}"] += f"Call {number}" in text.replace("\\", "").replace("]", "\n").split("\n") or (
                f"[Call {number}](" in text
            )
    return Counter({name: count for name, count in counts.items() if count})


def at(hour: int, minute: int = 0, *, days: int = 0) -> datetime:
    """A time in Brussels in summer, counted from the harvest's day."""
    return datetime(2026, 8, 22, hour - 2, minute, tzinfo=UTC) + timedelta(days=days)


async def test_a_digest_tells_all_of_a_day_in_one_message(database_url: str) -> None:
    async with a_world(database_url, EuPortal.of([]), calm=MORNING) as world:
        await world.crawl()
        await found(world, 1, 2, 3)

        view = world.opened.item("delivery", "eu/opportunity/1TOPICS/1")
        assert view.item.state == "gathered"
        assert "the digest at 08:00 (Europe/Brussels) on Sunday, 23 August" in view.waits_for
        parent = world.opened.item("opportunity", "1TOPICS")
        assert [each.waits_for for each in parent.deliveries] == [
            "the digest at 08:00 (Europe/Brussels) on Sunday, 23 August"
        ]
        await pass_time(world, at(7, 59, days=1))
        assert world.discord.messages == []

        await pass_time(world, at(8, 5, days=1))
        (embed,) = embeds(world)
        assert embed["title"] == "Digest: 3 new"
        assert embed["description"].count("](http") == 3, "each is linked"
        assert told(world) == {"Call 1": 1, "Call 2": 1, "Call 3": 1}
        assert world.opened.states("delivery") == {"sent": 4}
        (message,) = world.discord.messages
        ids = {world.body(f"eu/opportunity/{n}TOPICS/1")["message_id"] for n in (1, 2, 3)}
        assert ids == {message.id}, "each notice keeps the proof"


async def test_each_notice_goes_into_one_digest_and_a_late_one_into_the_next(database_url: str) -> None:
    async with a_world(database_url, EuPortal.of([]), calm=MORNING) as world:
        await world.crawl()
        await found(world, 1)
        await pass_time(world, at(8, 0, days=1))
        await found(world, 2)
        await pass_time(world, at(8, 5, days=2))

        assert [embed["title"] for embed in embeds(world)] == ["Digest: 1 new", "Digest: 1 new"]
        assert told(world) == {"Call 1": 1, "Call 2": 1}


async def test_a_digest_leaves_out_what_is_no_longer_true(database_url: str) -> None:
    weekly = Calm(digest="weekly on Friday at 08:00 Europe/Brussels")
    async with a_world(database_url, EuPortal.of([]), calm=weekly) as world:
        await world.crawl()
        await found(world, 1, deadlineDate=[day(HARVEST, 2, "17:00")])
        await found(world, 2)
        await pass_time(world, at(9, days=6))

        (embed,) = embeds(world)
        assert told(world) == {"Call 2": 1}
        assert "1 left out: what it said is no longer true." in embed["description"]
        left = world.opened.item("delivery", "eu/opportunity/1TOPICS/1")
        assert (left.item.standing, left.item.cause) == ("rejected", "expired: what it says is no longer true")


async def test_a_digest_waits_for_a_paused_channel_and_gathers_meanwhile(database_url: str) -> None:
    async with a_world(database_url, EuPortal.of([]), calm=MORNING) as world:
        await world.crawl()
        world.opened.store.switches.pause("channel:eu", reason="holidays")
        await found(world, 1)
        await pass_time(world, at(12, days=2))
        await found(world, 2)
        await pass_time(world, at(12, days=3))
        assert world.discord.messages == []

        world.opened.store.switches.resume("channel:eu")
        await pass_time(world, at(9, days=4))
        assert [embed["title"] for embed in embeds(world)] == ["Digest: 2 new"]
        assert told(world) == {"Call 1": 1, "Call 2": 1}


async def test_what_waited_too_long_for_a_digest_is_not_told(database_url: str) -> None:
    async with a_world(database_url, EuPortal.of([]), calm=MORNING) as world:
        await world.crawl()
        world.opened.store.switches.pause("channel:eu", reason="holidays")
        await found(world, 1)
        await pass_time(world, at(12, days=6))
        await found(world, 2)
        await pass_time(world, at(12, days=9))
        world.opened.store.switches.resume("channel:eu")
        await pass_time(world, at(12, days=10))

        assert told(world) == {"Call 2": 1}
        assert world.opened.item("delivery", "eu/opportunity/1TOPICS/1").item.standing == "rejected"


@pytest.mark.parametrize("fault", ["store_then_reset", "500", "429"])
async def test_a_digest_that_failed_is_sent_again_whole(database_url: str, fault: Any) -> None:
    async with a_world(database_url, EuPortal.of([]), calm=MORNING) as world:
        await world.crawl()
        await found(world, 1, 2)
        world.discord.script(fault)
        await pass_time(world, at(9, days=1))

        stored = 1 + (fault == "store_then_reset")
        assert told(world) == {"Call 1": stored, "Call 2": stored}
        (digest,) = [row for row in world.opened.items("delivery") if "/digest:" in row.key]
        (view,) = [d for d in world.opened.store.item_views.deliveries() if d.key == digest.key]
        assert view.ambiguous == (fault != "429"), "a repeat is counted"


async def test_killed_senders_lose_and_repeat_no_member(database_url: str) -> None:
    """A worker vanishes at every step on the way into a digest and out of it."""
    async with a_world(database_url, EuPortal.of([]), calm=MORNING) as world:
        await world.crawl()
        now = datetime.fromtimestamp(world.now(), UTC)
        for number in range(1, 6):
            world.portal.put(a_result(number, now=now))
        await world.crawl()
        items = world.opened.store.items
        rng = random.Random(5)
        for _ in range(60):
            for lane in ("ai", "notify", "pure"):
                if rng.random() < 0.5:
                    items.claim(PIPELINE, lane, rng.randint(1, 3), "vanished", 60)
            await world.opened.work_until_idle()
            world.opened.advance_clock(seconds=1_900)
            await world.opened.sweep()
            world.opened.store.operations.revive(actor="test")
        await pass_time(world, at(12, days=4))

        assert told(world) == {f"Call {n}": 1 for n in range(1, 6)}
        assert set(world.opened.states("delivery")) == {"sent"}


async def test_quiet_hours_hold_a_notice_back_until_they_end(database_url: str) -> None:
    async with a_world(
        database_url, EuPortal.of([]), at=at(23), calm=Calm(quiet="22:00-07:00 Europe/Brussels")
    ) as world:
        await world.crawl()
        await found(world, 1)
        view = world.opened.item("delivery", "eu/opportunity/1TOPICS/1")
        assert view.item.state == "resting"
        assert "the end of the quiet hours at 07:00 (Europe/Brussels) on Sunday, 23 August" in view.waits_for
        await pass_time(world, at(6, 59, days=1))
        assert world.discord.messages == []

        await pass_time(world, at(7, 1, days=1))
        assert world.titles() == ["Call 1"]


@pytest.mark.parametrize(("night", "wakes"), [((2027, 3, 27), 5), ((2027, 10, 30), 6)], ids=["spring", "autumn"])
async def test_quiet_hours_and_digests_keep_to_the_clock_over_dst(
    database_url: str, night: tuple[int, int, int], wakes: int
) -> None:
    evening = datetime(*night, 21, 30, tzinfo=UTC)
    calm = Calm(quiet="22:00-07:00 Europe/Brussels")
    async with a_world(database_url, EuPortal.of([]), at=evening, calm=calm) as world:
        await world.crawl()
        await found(world, 1)
        morning = datetime(*night, wakes, tzinfo=UTC) + timedelta(days=1)
        await pass_time(world, morning - timedelta(minutes=1))
        assert world.discord.messages == []
        await pass_time(world, morning + timedelta(minutes=1))
        assert world.titles() == ["Call 1"]


async def test_what_is_too_much_for_an_hour_goes_into_one_digest(database_url: str) -> None:
    async with a_world(database_url, EuPortal.of([]), calm=Calm(max_per_hour=3)) as world:
        await world.crawl()
        await found(world, *range(1, 11))
        assert len(world.discord.messages) == 3
        waiting = [row for row in world.opened.items("delivery") if row.state == "gathered"]
        assert len(waiting) == 7
        view = world.opened.item("delivery", waiting[0].key)
        assert "3 messages an hour are the most (max_per_hour)" in view.waits_for

        await pass_time(world, at(17))
        assert told(world) == {f"Call {n}": 1 for n in range(1, 11)}
        assert [embed["title"] for embed in embeds(world)][3:] == ["Digest: 7 new"]


async def test_no_hour_has_more_messages_than_its_route_allows(database_url: str) -> None:
    async with a_world(database_url, EuPortal.of([]), calm=Calm(max_per_hour=2)) as world:
        await world.crawl()
        for number in range(1, 25):
            await found(world, number)
            world.opened.advance_clock(seconds=900)
        await pass_time(world, at(23, 59))

        assert told(world) == {f"Call {n}": 1 for n in range(1, 25)}
        times = [posted.at for posted in world.discord.messages]
        assert all(sum(begin <= other < begin + 3600 for other in times) <= 2 for begin in times)


async def test_a_route_sends_its_own_words(database_url: str) -> None:
    texts = Texts(
        title="{title} until {deadline|date}",
        text="{summary|cut:60}",
        footer="EU Fund Tracker • Powered by Cloudflare Workers",
        colors={"open": "#0a0b0c"},
        fields=("Deadline", "Identifier"),
        username="EU funds",
        avatar="https://example.org/eu.png",
    )
    async with a_world(database_url, EuPortal.of([]), texts=texts) as world:
        await world.crawl()
        await found(world, 1)

        (message,) = world.discord.messages
        (embed,) = message.body["embeds"]
        assert embed["title"] == "Call 1 until 20 November 2026"
        assert len(embed["description"]) <= 60
        assert [each["name"] for each in embed["fields"]] == ["Deadline", "Identifier"]
        assert embed["footer"]["text"].startswith("EU Fund Tracker • Powered by Cloudflare Workers • ")
        assert (embed["color"], message.body["username"]) == (0x0A0B0C, "EU funds")
        assert message.body["avatar_url"] == "https://example.org/eu.png"
        assert world.body("eu/opportunity/1TOPICS/1")["id"] == message.delivery_id


async def test_a_route_can_be_tried_on_what_is_stored(database_url: str) -> None:
    async with a_world(database_url, EuPortal.of([a_result(90)])) as world:
        await world.crawl()
        await found(world, 1, 2)
        world.opened.advance_clock(seconds=86_400)
        await found(world, 3, frameworkProgramme=["43108390"])
        views, (pipeline,) = world.opened.store.item_views, world.opened.wiring.pipelines
        now = world.opened.now_ms()

        def tried(query: str, days: int) -> Backtest:
            since = now - days * 86_400_000
            route = Route(PIPELINE, "test", query, texts=Texts(title="Tried: {title}"))
            return backtest(views.stored_copies(PIPELINE, since_ms=since), pipeline, route, since_ms=since, now_ms=now)

        whole = tried("status:open", 30)
        assert [each.notice.title for each in whole.sent] == [f"Tried: Call {n}" for n in (90, 1, 2, 3)]
        assert whole.per_day == {"2026-08-22": 3, "2026-08-23": 1}
        assert [each.item for each in tried("programme:HORIZON", 30).sent] == ["opportunity:3TOPICS"]
        assert [each.item for each in tried("-status:closed", 0).sent] == []
        assert sorted(world.titles()) == ["Call 1", "Call 2", "Call 3", "Call 90"], "trying sends nothing"


FAULTS: tuple[FaultName, ...] = (
    "429",
    "global_429",
    "404",
    "500",
    "502",
    "reset",
    "store_then_502",
    "store_then_reset",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "calm", [MORNING, Calm(quiet="22:00-07:00 Europe/Brussels", max_per_hour=2)], ids=["digests", "quiet"]
)
async def test_a_calm_week_of_faults_loses_nothing_and_tells_nothing_outdated(database_url: str, calm: Calm) -> None:
    """84 crawls, a channel that is away for two days, workers that vanish, and calls that close meanwhile."""
    rng, number, ends = random.Random(3), 0, {}
    async with a_world(database_url, EuPortal.of([]), calm=calm) as world:
        await world.crawl()
        switches = world.opened.store.switches
        for step in range(84):
            now = datetime.fromtimestamp(world.now(), UTC)
            for _ in range(rng.choice([0, 0, 1, 2])):
                number += 1
                days = rng.choice([1, 3, 90])
                world.portal.put(a_result(number, now=now, deadlineDate=[day(now, days, "17:00")]))
                ends[number] = datetime(now.year, now.month, now.day, 17, tzinfo=UTC) + timedelta(days=days)
            if rng.random() < 0.4:
                world.discord.script(*rng.choices(FAULTS, k=rng.randint(1, 3)))
            if step == 20:
                switches.pause("channel:eu", reason="holidays")
            await world.crawl()
            if rng.random() < 0.2:
                for lane in ("ai", "notify", "pure"):
                    world.opened.store.items.claim(PIPELINE, lane, 2, "vanished", 60)
            await pass_time(world, now + timedelta(hours=2))
            await world.opened.sweep()
            if step >= 44 or not step >= 20:
                switches.resume("channel:eu")
        for _ in range(30):
            switches.resume("channel:eu")
            world.opened.store.operations.revive(actor="ada")
            await pass_time(world, datetime.fromtimestamp(world.now(), UTC) + timedelta(hours=4))
            await world.opened.sweep()

        own = {row.key: row for row in world.opened.items("delivery") if "/digest:" not in row.key}
        expired = {key for key, row in own.items() if row.standing == "rejected"}
        assert {row.state for key, row in own.items() if key not in expired} == {"sent"}
        assert all((own[key].cause or "").startswith("expired: ") for key in expired)
        counts = told(world)
        new = {n for n in ends if f"eu/opportunity/{n}TOPICS/1" not in expired}
        assert len(new) > 20
        assert all(counts[f"Call {n}"] >= 1 for n in new), "nothing new is lost"
        views = world.opened.store.item_views.deliveries(limit=1_000)
        doubts = sum(view.ambiguous for view in views)
        assert len(world.discord.messages) <= len({view.message_id for view in views if view.message_id}) + doubts
        for posted, embed in zip(world.discord.messages, embeds(world), strict=True):
            text = embed["title"] + embed.get("description", "")
            late = [n for n, end in ends.items() if f"[Call {n}](" in text or embed["title"] == f"Call {n}"]
            assert all(posted.at <= ends[n].timestamp() for n in late), "nothing outdated is sent"


async def test_a_digest_over_the_limit_keeps_no_other_notice_asking(database_url: str) -> None:
    """It waited in the line, and what stood behind it asked twice a second for up to an hour."""
    async with a_world(database_url, EuPortal.of([]), at=at(14, 50), calm=Calm(max_per_hour=1)) as world:
        await world.crawl()
        await found(world, 1, 2)
        await pass_time(world, at(15, 5))
        await found(world, 3)
        await pass_time(world, at(17, 30))

        assert told(world) == {"Call 1": 1, "Call 2": 1, "Call 3": 1}
        items = world.opened.store.items
        attempts = [len(items.life(row.id)) for row in world.opened.items("delivery")]
        assert max(attempts) < 20
