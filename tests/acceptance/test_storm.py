"""Storms: workers, senders, pollers and uploaders are killed by the hundred while copies of one item follow each other.

The size is `TIDINGS_STORM`: a number of kills, or `full`. What happened is judged by what outsiders saw: uploaders what
was accepted, the source where it was asked to go on, the rooms what was posted.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import NamedTuple

import apsw
import msgspec
import pytest
from starlette.types import Receive, Scope, Send
from tests.acceptance.storm_processes import Child, Nursery, nursery
from tests.acceptance.storm_world import COPIES, ROOMS, SOURCE, Room, page_keys, storm_wiring
from tests.support.engine import Engine, engine_of
from tests.support.example import Thing
from tests.support.own_sql import own_sql

from tidings.publish.delivery import Delivery
from tidings.sample.discord import DiscordStandIn
from tidings.sample.discord_rates import DiscordRates
from tidings.sample.serving import StandIn
from tidings.store.db.database import Database, connect
from tidings.store.upkeep.migrate import migrate

SIZE = os.environ.get("TIDINGS_STORM", "")
KILLS = (
    {"sqlite": 3_000, "postgres": 1_000}
    if SIZE == "full"
    else {"sqlite": int(SIZE or 60), "postgres": int(SIZE or 90) // 3}
)
FLEET = ("work", "work", "ahead", "ahead", "send", "poll", "upload")
HOLDERS = ("work", "send", "poll")
LIFE_SECONDS_MAX = 0.2
LOOKS_MAX = 200
READY_SECONDS_MAX = 60
STEP_SECONDS = 130
"""More than a room is kept closed by a sender that died in it."""
STEPS_MAX = 200

pytestmark = pytest.mark.slow


@dataclass
class Figures:
    """What a storm comes to."""

    kills: int = 0
    holding_work: int = 0
    """Of them, killed while they held leases."""
    things: int = 0
    copies_accepted: int = 0
    copies_lost: int = 0
    buried_as_poison: int = 0
    """Copies whose workers were killed three times, as designed; not counted as lost."""
    settled_twice: int = 0
    notices: int = 0
    notices_lost: int = 0
    notices_repeated: int = 0
    outcomes_unknown: int = 0
    """Senders that vanished with a delivery, or could not know: no more notices may repeat."""
    integrity: str = "ok"
    seconds: int = 0
    kills_by_role: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        rows = [(each.name.replace("_", " "), getattr(self, each.name)) for each in fields(self)]
        return "\n".join(f"  {name:18} {dict(value) if isinstance(value, Counter) else value}" for name, value in rows)


class Rooms:
    """Many channels behind one address."""

    def __init__(self) -> None:
        self._standins = {
            str(number): DiscordStandIn(
                channel={"webhook_id": str(number)}, rates=DiscordRates(per_webhook=10**6, per_channel=10**6)
            )
            for number in range(1_000, 1_000 + ROOMS)
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request to the room it names."""
        await self._standins[scope["path"].split("/")[-2]].app(scope, receive, send)

    def named(self, url: str) -> list[Room]:
        """Return the rooms with their addresses."""
        return [Room(f"room{n}", room.webhook_url(url)) for n, room in enumerate(self._standins.values())]

    def posts(self) -> Counter[str]:
        """Count the messages of each delivery."""
        return Counter(message.delivery_id for room in self._standins.values() for message in room.messages)


async def test_a_storm_of_kills_loses_no_copy_and_no_notice(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    began, rooms, figures = time.monotonic(), Rooms(), Figures()
    accepted: set[tuple[str, str]] = set()
    async with StandIn(rooms) as server:
        words = (database_url, "127.0.0.1", str(server.port), *(room.webhook_url for room in rooms.named(server.url)))
        with closing(connect(database_url, durability="crash-safe")) as database:
            migrate(database)
            async with nursery() as born:
                await _storm(born, database, words, figures, accepted)
        wiring = storm_wiring(database_url, rooms.named(server.url), ("127.0.0.1", server.port))
        await _work_to_the_end(engine_of(wiring))
    with closing(connect(database_url)) as database:
        _judge(database, accepted, rooms.posts(), figures)
    if database.dialect == "sqlite":
        figures.integrity = _integrity(Path(database_url.removeprefix("sqlite:///")))
    figures.seconds = round(time.monotonic() - began)
    with capsys.disabled():
        print(f"\nstorm on {database.dialect}:\n{figures}")  # the figures are what a storm is run for
    assert figures.kills == KILLS[database.dialect]
    assert figures.holding_work > figures.kills / 20, "the storm was no storm"
    assert (figures.copies_lost, figures.notices_lost, figures.settled_twice) == (0, 0, 0)
    assert figures.notices_repeated <= figures.outcomes_unknown
    assert figures.integrity == "ok"


async def _storm(
    born: Nursery, database: Database, words: tuple[str, ...], figures: Figures, accepted: set[tuple[str, str]]
) -> None:
    rng = random.Random(15)
    fleet = [await born.start(role, *words) for role in FLEET]
    while figures.kills < KILLS[database.dialect]:
        place = rng.randrange(len(fleet))
        victim = fleet[place]
        async with asyncio.timeout(READY_SECONDS_MAX):
            await victim.ready.wait()
        await _hold_something(database, victim, rng)
        assert await born.kill(victim) == -signal.SIGKILL, f"{victim.role} ended by itself"
        figures.kills += 1
        figures.kills_by_role[victim.role] += 1
        figures.holding_work += _held(database, victim)
        accepted |= _accepted_by(victim)
        fleet[place] = await born.start(victim.role, *words)
    for child in fleet:
        await born.kill(child)
        accepted |= _accepted_by(child)


async def _hold_something(database: Database, victim: Child, rng: random.Random) -> None:
    """Let it live a moment; then, if it is one that takes leases, until it is seen to hold one, or a little longer."""
    await asyncio.sleep(rng.uniform(0, LIFE_SECONDS_MAX))
    for _ in range(LOOKS_MAX):
        if victim.role not in HOLDERS or _held(database, victim):
            return
        await asyncio.sleep(0.002)


def _held(database: Database, victim: Child) -> bool:
    """Tell whether a process that is dead now held items or a source."""
    select = (
        "SELECT 1 FROM items WHERE lease_until IS NOT NULL AND lease_owner = :owner "
        "UNION ALL SELECT 1 FROM schedules WHERE lease_owner = :owner LIMIT 1"
    )
    with database.reading() as tx:
        return bool(own_sql(tx, select, {"owner": victim.owner}))


def _accepted_by(child: Child) -> set[tuple[str, str]]:
    """Return the copies whose page was acknowledged: with each page go the second copies of the one before."""
    first = {(key, COPIES[0]) for page in range(child.accepted) for key in page_keys(child.owner, page)}
    second = {(key, COPIES[1]) for page in range(child.accepted - 1) for key in page_keys(child.owner, page)}
    return first | second


async def _work_to_the_end(engine: Engine) -> None:
    """Let one process finish, moving the clock past the places that dead senders hold."""
    async with engine:
        for _ in range(STEPS_MAX):
            await engine.sweep()
            # Who lost three workers is a dead letter, as designed; an operator brings it back.
            engine.store.operations.revive(pipeline="example", cause="poison", actor="test")
            await engine.work_until_idle()
            with engine.app.database.reading() as tx:
                if own_sql(tx, "SELECT count(*) FROM items WHERE standing <> 'done'") == [(0,)]:
                    return
            engine.advance_clock(seconds=STEP_SECONDS)
    pytest.fail("the work did not come to its end")


class ItemRow(NamedTuple):
    """An item with its accepted body."""

    id: int
    kind: str
    key: str
    state: str
    body: bytes


def _judge(database: Database, accepted: set[tuple[str, str]], posts: Counter[str], figures: Figures) -> None:
    joined = "items i JOIN bodies b ON b.item = i.id AND b.revision = i.accepted_revision"
    with database.reading() as tx:
        items = [ItemRow(*row) for row in own_sql(tx, f"SELECT i.id, i.kind, i.key, i.state, b.body FROM {joined}", {})]
        closed = own_sql(tx, "SELECT item, token FROM journal WHERE kind IN ('attempt', 'born') AND token > 0")
        swept = own_sql(tx, "SELECT item, ended FROM journal WHERE kind = 'swept'")
        unknown = own_sql(tx, "SELECT count(*) FROM journal WHERE error LIKE '%mbiguous%' AND kind = 'attempt'")[0][0]
        cursors = own_sql(tx, "SELECT cursor FROM cursors WHERE source = :source", {"source": SOURCE})
    polled = {(f"p{number}", "polled") for number in range(int(cursors[0][0]) if cursors else 0)}
    things = {item.key: item for item in items if item.kind == "thing" and item.state == "shown"}
    deliveries = {
        item.id: msgspec.json.decode(item.body, type=Delivery).id for item in items if item.kind == "delivery"
    }
    figures.things = len(things)
    figures.settled_twice = sum(count - 1 for count in Counter(closed).values())
    _judge_copies(accepted | polled, things, Counter(item for item, ended in swept if ended == "dead"), figures)
    figures.notices = len(deliveries)
    figures.notices_lost = sum(1 for delivery in deliveries.values() if not posts[delivery])
    figures.notices_repeated = sum(posts.values()) - len(posts)
    figures.outcomes_unknown = unknown + sum(1 for item, _ in swept if item in deliveries)


def _judge_copies(
    accepted: set[tuple[str, str]], things: dict[str, ItemRow], buried: Counter[int], figures: Figures
) -> None:
    """Compare what was accepted with what each thing has heard: every copy, and none of them twice."""
    figures.copies_accepted = len(accepted)
    heard = {key: Counter(msgspec.json.decode(item.body, type=Thing).heard) for key, item in things.items()}
    figures.settled_twice += sum(count - 1 for copies in heard.values() for count in copies.values())
    missing = Counter(key for key, text in accepted if not heard.get(key, Counter())[text])
    for key, count in missing.items():
        excused = min(count, buried[things[key].id]) if key in things else 0
        figures.buried_as_poison += excused
        figures.copies_lost += count - excused


def _integrity(file: Path) -> str:
    """Check in full, through a connection of its own."""
    with closing(apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return str(next(iter(connection.execute("PRAGMA integrity_check(1)")))[0])
