"""Whatever happens in whatever order, the store keeps its promises: a model in plain Python watches every step."""

from __future__ import annotations

import itertools
import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from tests.support import example
from tests.support.postgres import new_postgres_database
from tests.support.store import LEASE_SECONDS, Ground

from tidings.model.errors import BadInput
from tidings.model.item import Finding, Item, JournalRow, Lease
from tidings.model.publication import Retention
from tidings.model.settlement import Merged, Reservation, Settlement
from tidings.model.workflow import leaves

KEYS = tuple("abcdefgh")
FATES = ("", "", "", "fail", "break", "reject", "postpone", "refuse", "die")
DAY_SECONDS = 86_400.0
LOST_LEASES_MAX = 3
# No sum of the small waits comes near a lease's end, so that the real time a step takes decides nothing.
WAITS = (2.0, 70.0, LEASE_SECONDS + 1, LEASE_SECONDS + 1, 3_700.0, 11 * DAY_SECONDS, 40 * DAY_SECONDS)
CLOSING = frozenset({("attempt", None), ("released", None), ("swept", "lost")})
IS_FULL = os.environ.get("TIDINGS_STORM") == "full"
pytestmark = pytest.mark.storm

# What is drawn never depends on what the store answered: which items are due is for a real clock to say.
findings = st.builds(
    lambda key, text, fate: example.thing(key, text, fate=fate),
    st.sampled_from(KEYS),
    st.sampled_from(("one", "two")),
    st.sampled_from(FATES),
)
picks = st.integers(0, 50)


class Logged(NamedTuple):
    """A finding the store accepted."""

    key: str
    fingerprint: str


class Buried(NamedTuple):
    """What is remembered of a removed thing."""

    fingerprint: str
    forget_at: int


class Grant(NamedTuple):
    """The newest lease of an item that nothing has ended yet."""

    token: int
    until: int


class Copy(NamedTuple):
    """What tells one accepted copy of a thing from another."""

    text: str
    fate: str


class StoreMachine(RuleBasedStateMachine):
    """Workers, sources, operators and crashes around one store."""

    def __init__(self, url: str, *, in_turn: bool = False, fuse: bool = True) -> None:
        super().__init__()
        rule = Retention("thing", days=10, forget_days=20)
        declared = example.pipeline(retention=(rule,), tombstone_days=30, in_turn=in_turn, fuse=fuse)
        self.in_turn = in_turn
        self.workflow = declared.workflows["thing"]
        self.ground = Ground(url, declared, dead_letter_days=30, journal_days=100_000)
        self.store = self.ground.store
        self.accepted: set[str] = set()
        self.waiting: list[Logged] = []
        self.current: dict[str, str] = {}
        self.buried: dict[str, Buried] = {}
        self.copies: dict[str, Copy] = {}
        """By fingerprint."""
        self.turns: dict[str, list[Copy]] = {}
        """Where copies take turns: those of a thing that have not had theirs yet, the current one first."""
        self.repeats: set[str] = set()
        """Things whose current copy was accepted before and is worked on again by hand."""
        self.working: dict[str, Copy] = {}
        """The copy each thing stands for now."""
        self.checkpoint = 0
        self.hands: list[Lease] = []
        self.reservations: list[Reservation] = []
        self.ever: list[Lease] = []
        self.grants: dict[int, Grant] = {}
        self.tokens: dict[int, int] = {}

    def teardown(self) -> None:
        """Close the store's connections."""
        self.ground.close()

    # What happens.

    @initialize(page=st.lists(findings, min_size=3, max_size=6), limit=st.integers(0, 4))
    def begin(self, page: list[Finding], limit: int) -> None:
        """No history begins with nothing."""
        self.append(page)
        self.merge(len(page))
        if limit:
            self.claim(limit)

    @rule(page=st.lists(findings, min_size=1, max_size=4))
    def append(self, page: list[Finding]) -> None:
        """A source, or several, report things: new ones, the same again, changed ones."""
        known = self.current | dict(self.waiting)
        new = changed = 0
        for finding in page:
            body = msgspec.json.decode(finding.payload, type=example.Thing)
            self.copies[finding.fingerprint] = Copy(body.text, body.fate)
            before = known.get(finding.key)
            tombstone = self.buried.get(finding.key) if before is None else None
            if finding.fingerprint in (before, tombstone and tombstone.fingerprint):
                continue
            new, changed = new + (before is None), changed + (before is not None)
            known[finding.key] = finding.fingerprint
            self.waiting.append(Logged(finding.key, finding.fingerprint))
            self.accepted.add(finding.key)
        appended = self.store.intake.append("example", page)
        assert (appended.new, appended.changed) == (new, changed)
        assert appended.unchanged == len(page) - new - changed

    @rule(limit=st.integers(1, 5))
    def merge(self, limit: int) -> None:
        """The merger takes the next findings, in the order of the log."""
        merged = self.store.intake.merge("example", limit)
        assert merged.read == len(self.waiting[:limit])
        self._note_merge(merged)

    @rule(workers=st.integers(1, 3), limit=st.integers(1, 3))
    def reserve(self, workers: int, limit: int) -> None:
        """Workers take the next findings, to run them before their items are born."""
        for _ in range(workers):
            merged, reservation = self.store.intake.claim_findings("example", limit)
            self._note_merge(merged)
            if reservation is not None:
                keys = {lease.key for lease in reservation.leases()}
                assert not keys & (self.current.keys() | self.buried.keys())
                self.reservations.append(reservation)

    @rule(number=picks)
    def settle_reserved(self, number: int) -> None:
        """What a worker has run is written, unless its right to it is over or others come first."""
        if self.reservations:
            self._settle_reserved(self.reservations[number % len(self.reservations)])

    @rule(number=picks)
    def give_back_reserved(self, number: int) -> None:
        """A worker that stops gives back what it has not run."""
        if self.reservations:
            reservation = self.reservations.pop(number % len(self.reservations))
            self._note_merge(self.store.intake.give_back(reservation))

    @rule(page=st.lists(findings, min_size=2, max_size=4))
    def overtake(self, page: list[Finding]) -> None:
        """Of two workers that run ahead, the one behind is done first."""
        self.append(page)
        self.reserve(2, 1)
        for reservation in reversed(self.reservations):
            self._settle_reserved(reservation)

    def _settle_reserved(self, reservation: Reservation) -> None:
        settlements = [self.ground.attempt(lease) for lease in reservation.leases()]
        settled = self.store.items.settle(settlements)
        written = [s for s in settlements if s.id in settled.done]
        self._note_merge(settled.merged, {s.key: _has_had_turn(s) for s in written})
        if not settled.must_wait:
            self.reservations.remove(reservation)

    def _note_merge(self, merged: Merged, ran: Mapping[str, bool] = MappingProxyType({})) -> None:
        """Check what became of the next findings of the log; `ran` tells whose turn a run before birth has ended."""
        batch, self.waiting = self.waiting[: merged.read], self.waiting[merged.read :]
        born = changed = 0
        for key, fingerprint in batch:
            before = self.current.get(key)
            tombstone = self.buried.get(key) if before is None else None
            if fingerprint in (before, tombstone and tombstone.fingerprint):
                continue
            self.buried.pop(key, None)
            born, changed = born + (before is None), changed + (before is not None)
            self.current[key] = fingerprint
            self._line_up(key, self.copies[fingerprint])
            if before is None and ran.get(key):
                self._end_turn(key)
        assert (len(batch), merged.born, merged.changed) == (merged.read, born, changed)
        assert merged.unchanged == merged.read - born - changed

    def _line_up(self, key: str, copy: Copy) -> None:
        """A copy arrives: it waits behind those that have not had their turn."""
        waiting = self.turns.setdefault(key, [])
        waiting.append(copy)
        self.working[key] = waiting[0]

    def _end_turn(self, key: str) -> None:
        """The current copy was accepted, or came to an end of its own; the next one begins."""
        waiting = self.turns.get(key, [])
        del waiting[:1]
        self.repeats.discard(key)
        if waiting:
            self.working[key] = waiting[0]

    def _turn_again(self, key: str) -> None:
        """A person has the current copy worked on again."""
        if not self.turns.get(key):
            self.turns[key] = [self.working[key]]
            if self._count(f"key = '{key}' AND accepted_revision = revision"):
                self.repeats.add(key)

    @rule(limit=st.integers(1, 4))
    def claim(self, limit: int) -> None:
        """A worker leases what is due."""
        now = self.ground.now_ms()
        leases = self.ground.claim(limit)
        assert len(leases) == len({lease.id for lease in leases}) <= limit
        for lease in leases:
            held = self.grants.get(lease.id)
            assert held is None or held.until <= now, "two workers hold one item"
            assert lease.token > self.tokens.get(lease.id, 0), "a token came twice"
            self.grants[lease.id] = Grant(lease.token, lease.lease_until)
        self.hands += leases
        self.ever += leases

    @rule(chosen=st.lists(picks, min_size=1, max_size=4), ghosts=st.lists(picks, max_size=2))
    def settle(self, chosen: list[int], ghosts: list[int]) -> None:
        """Attempts end as their fates say; a worker thought dead may have its say in the same batch."""
        if not self.hands:
            return
        mine = [self.hands[n % len(self.hands)] for n in chosen]
        batch = _distinct([*mine, *(self.ever[n % len(self.ever)] for n in ghosts)])
        self._settle(batch)
        self.hands = [lease for lease in self.hands if lease not in batch]

    @rule(limit=st.integers(1, 4))
    def work(self, limit: int) -> None:
        """A worker in good health claims and settles."""
        self.claim(limit)
        batch, self.hands = self.hands[-limit:], self.hands[:-limit]
        self._settle(batch)

    @rule(number=picks)
    def settle_stale(self, number: int) -> None:
        """An attempt whose lease is over changes no row of any table."""
        stale = [lease for lease in self.ever if not self._holds(lease)]
        if not stale:
            return
        before = self.ground.dump()
        self._settle([stale[number % len(stale)]])
        assert self.ground.dump() == before

    @rule(number=picks)
    def heartbeat(self, number: int) -> None:
        """A worker prolongs a lease, if it still has it."""
        if not self.hands:
            return
        lease = self.hands[number % len(self.hands)]
        prolonged = self.store.items.renew([(lease.id, lease.token)], LEASE_SECONDS)
        assert prolonged == ({lease.id} if self._holds(lease) else set())
        if prolonged:
            self.grants[lease.id] = Grant(lease.token, self.ground.now_ms() + round(LEASE_SECONDS * 1000))

    @rule(number=picks)
    def release(self, number: int) -> None:
        """A worker that stops gives a lease back, unless somebody else has ended it."""
        if not self.hands:
            return
        lease = self.hands.pop(number % len(self.hands))
        grant = self.grants.get(lease.id)
        is_open = grant is not None and grant.token == lease.token
        assert self.store.items.release([(lease.id, lease.token)]) == int(is_open)
        if is_open:
            del self.grants[lease.id]

    @rule()
    def crash(self) -> None:
        """The worker is gone, and with it all it knew."""
        self.hands.clear()
        self.reservations.clear()

    @rule(seconds=st.sampled_from(WAITS))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.ground.advance(seconds=seconds)

    @rule()
    def sweep(self) -> None:
        """Leases that ran out go back to the queue; what lost its third is a dead letter."""
        now = self.ground.now_ms()
        expired = {item for item, grant in self.grants.items() if grant.until <= now}
        lost = {i: (key, count) for i, key, count in self.ground.sql("SELECT id, key, lost_leases FROM items")}
        assert self.store.items.sweep().expired == len(expired)
        for item in expired:
            del self.grants[item]
            key, count = lost[item]
            if count + 1 >= LOST_LEASES_MAX:
                self._end_turn(key)

    @rule()
    def crash_thrice(self) -> None:
        """Nobody survives work on what is leased or due."""
        for _ in range(LOST_LEASES_MAX):
            self.crash_once()
        assert self.store.items.sweep().expired == 0

    def crash_once(self) -> None:
        """Claim all that is due, vanish, and be swept."""
        self.claim(4)
        self.hands.clear()
        self.ground.advance(seconds=LEASE_SECONDS + 1)
        self.sweep()

    @rule()
    def revive(self) -> None:
        """An operator brings the dead letters back."""
        dead = self._count("standing = 'dead'")
        keys = [key for (key,) in self.ground.sql("SELECT key FROM items WHERE standing = 'dead'")]
        assert self.store.operations.revive(pipeline="example", actor="operator") == dead
        assert self._count("standing = 'dead'") == 0
        for key in keys:
            self._turn_again(key)

    @rule(key=st.sampled_from(KEYS), name=st.sampled_from(("fail", "retry", "read")))
    def move_by_hand(self, key: str, name: str) -> None:
        """An operator performs a manual transition, where one is declared; it ends the lease."""
        item = self.store.items.find("example", "thing", key)
        if item is None:
            return
        is_allowed = name in {t.name for t in self.workflow.by_hand_from(item.state)}
        try:
            self.store.operations.transition(item.id, name, actor="operator", reason="by hand")
        except BadInput:
            assert not is_allowed
        else:
            assert is_allowed
            assert self.ground.item(key).lease_token > item.lease_token
            self.grants.pop(item.id, None)
            if name == "fail":
                self._end_turn(key)
            else:
                self._turn_again(key)

    @rule(key=st.sampled_from(KEYS), state=st.sampled_from((None, None, "read", "checked")))
    def replay(self, key: str, state: str | None) -> None:
        """An operator has a thing processed again, from a state it came past."""
        item = self.store.items.find("example", "thing", key)
        is_allowed = item is not None and (state is None or state in _visited(self.store.items.life(item.id)))
        done = self.store.operations.replay(
            "example", state=state, keys=[("thing", key)], actor="operator", dry_run=False
        )
        assert done[:2] == (int(is_allowed), int(item is not None and not is_allowed))
        if item is not None and is_allowed:
            self.grants.pop(item.id, None)
            self._turn_again(key)

    @rule()
    def purge(self) -> None:
        """An operator buries the dead letters."""
        hides_nothing = "(accepted_revision IS NULL OR accepted_revision = revision)"
        rows = self.ground.sql(f"SELECT key FROM items WHERE standing = 'dead' AND {hides_nothing}")
        dead = {key for (key,) in rows}
        assert self.store.retention.purge(pipeline="example") == len(dead)
        assert self._note_burials() == dead

    @rule()
    def tidy(self) -> None:
        """What has had its time goes, and leaves a tombstone; tombstones go when theirs comes."""
        restless = "lease_until IS NOT NULL OR standing IN ('open', 'parked')"
        kept = {key for (key,) in self.ground.sql(f"SELECT key FROM items WHERE {restless}")}
        self.store.retention.tidy()
        self.store.intake.trim("example")
        assert not self._note_burials() & kept

    # What must hold after each step.

    @invariant()
    def every_accepted_key_is_somewhere(self) -> None:
        """A1, A2, A4: in the log, among the items or under a tombstone, and nowhere twice."""
        keys = [key for (key,) in self.ground.sql("SELECT key FROM items")]
        tombstones = {key for (key,) in self.ground.sql("SELECT key FROM tombstones")}
        log = self._unmerged()
        assert len(keys) == len(set(keys))
        assert not tombstones & set(keys)
        assert tombstones == set(self.buried)
        assert log == self.waiting
        assert set(keys) | tombstones | {entry.key for entry in log} == self.accepted

    @invariant()
    def findings_are_merged_in_order(self) -> None:
        """A5: the checkpoint never goes back, and each item knows the newest finding behind it."""
        checkpoint = self._checkpoint()
        assert checkpoint >= self.checkpoint
        self.checkpoint = checkpoint
        assert dict(self.ground.sql("SELECT key, fingerprint FROM items")) == self.current
        assert self._count(f"intake_id > {checkpoint}") == 0

    @invariant()
    def no_copy_is_replaced_unread(self) -> None:
        """B12: where copies take turns, all that have not had theirs are there, in the order they came."""
        if not self.in_turn:
            return
        rows = self.ground.sql(
            "SELECT i.key, b.body FROM items i JOIN bodies b ON b.item = i.id AND b.revision >= i.revision "
            "ORDER BY i.key, b.revision"
        )
        kept: dict[str, list[Copy]] = {}
        for key, body in rows:
            thing = msgspec.json.decode(bytes(body), type=example.Thing)
            kept.setdefault(key, []).append(Copy(thing.text, thing.fate))
        for key in self.repeats & kept.keys():
            # A copy that is only repeated has had its turn: a newer one may take its place at once, or let it finish.
            if kept[key] == self.turns[key][1:]:
                self._end_turn(key)
        assert kept == {key: self.turns.get(key) or [self.working[key]] for key in self.current}

    @invariant()
    def items_stand_where_their_journal_ends(self) -> None:
        """A6, B2, B9, C1, for each item."""
        for key in self.current:
            item = self.ground.item(key)
            life = self.store.items.life(item.id)
            assert item.state == life[-1].to_state
            assert item.lease_token >= self.tokens.get(item.id, 0), "a token went back"
            self.tokens[item.id] = item.lease_token
            self._check_lease(item)
            self._check_life(life)
            lost = _lost_in_a_row(life)
            assert item.lost_leases == lost
            if lost >= LOST_LEASES_MAX:
                assert (item.standing, item.cause, item.due_at) == ("dead", "poison", None)

    def _check_lease(self, item: Item) -> None:
        """B1: the row tells of the one lease that the model knows, or of none."""
        grant = self.grants.get(item.id)
        if grant is None:
            assert item.lease_until is None
        else:
            assert item.lease_until is not None
            assert item.lease_token == grant.token

    def _check_life(self, life: Sequence[JournalRow]) -> None:
        closing = Counter(row.token for row in life if (row.kind, None) in CLOSING or (row.kind, row.ended) in CLOSING)
        assert all(count == 1 for count in closing.values()), "two rows close one lease"
        assert (life[0].kind, life[0].from_state, life[0].to_state) == ("born", "", self.workflow.start)
        for before, row in itertools.pairwise(life):
            assert row.from_state == before.to_state
            self._check_moves(row)

    def _check_moves(self, row: JournalRow) -> None:
        if row.kind == "changed":
            assert row.to_state == self.workflow.start
            return
        if row.kind == "replayed":
            return  # its rule says from where
        if row.kind == "revived":
            assert row.to_state in (row.from_state, self.workflow.start)
            return
        state = row.from_state
        for step in row.steps:
            assert step.from_state == state
            transition = self.workflow.named(step.transition)
            assert leaves(transition, state)
            assert (transition.trigger == "manual") == (row.kind == "manual")
            if step.to_state == state:
                was_refused = step.verdict not in (None, "yes")
                assert was_refused or (step.note or "").startswith("raised "), "a step to nowhere without a reason"
            else:
                assert step.to_state == transition.target
            state = step.to_state
        assert row.to_state == state, "the item moved without a step"
        if row.kind == "manual":
            assert row.actor
            assert row.error

    def _settle(self, batch: list[Lease]) -> None:
        held = {lease.id for lease in batch if self._holds(lease)}
        gone = {lease.id for lease in batch} - held
        settlements = [self.ground.attempt(lease) for lease in batch]
        settled = self.store.items.settle(settlements)
        assert settled.done == held
        assert settled.stale == gone
        for item in held:
            del self.grants[item]
        # Of two attempts at one item only the newer can hold its lease.
        for s in {s.id: s for s in sorted(settlements, key=lambda s: s.right.token) if s.id in held}.values():
            if _has_had_turn(s):
                self._end_turn(s.key)

    def _holds(self, lease: Lease) -> bool:
        grant = self.grants.get(lease.id)
        return grant is not None and grant.token == lease.token and grant.until > self.ground.now_ms()

    def _note_burials(self) -> set[str]:
        """Take over what a purge or the retention did, if it was allowed; return the keys buried."""
        now = self.ground.now_ms()
        keys = {key for (key,) in self.ground.sql("SELECT key FROM items")}
        rows = self.ground.sql("SELECT key, fingerprint, forget_at FROM tombstones")
        tombstones = {key: Buried(fingerprint, forget_at) for key, fingerprint, forget_at in rows}
        gone = set(self.current) - keys
        assert gone <= set(tombstones)
        forgotten = {key for key in self.buried if key not in tombstones}
        assert all(self.buried[key].forget_at <= now for key in forgotten)
        self.buried = tombstones
        self.current = {key: fingerprint for key, fingerprint in self.current.items() if key in keys}
        self.turns = {key: copies for key, copies in self.turns.items() if key in keys}
        self.accepted -= forgotten - keys - {entry.key for entry in self.waiting}
        return gone

    def _checkpoint(self) -> int:
        rows = self.ground.sql("SELECT checkpoint FROM checkpoints WHERE pipeline = 'example'")
        return int(rows[0][0]) if rows else 0

    def _unmerged(self) -> list[Logged]:
        rows = self.ground.sql(
            "SELECT key, fingerprint FROM intake WHERE id > :checkpoint ORDER BY id", checkpoint=self._checkpoint()
        )
        return [Logged(*row) for row in rows]

    def _count(self, condition: str) -> int:
        return int(self.ground.sql(f"SELECT count(*) FROM items WHERE {condition}")[0][0])


def _has_had_turn(settlement: Settlement) -> bool:
    """Tell whether a copy was accepted or came to an end; one that is tried again later was not."""
    return settlement.accepts or settlement.ended not in ("advanced", "retried", "postponed")


def _distinct(leases: Sequence[Lease]) -> list[Lease]:
    return list({(lease.id, lease.token): lease for lease in leases}.values())


def _visited(life: Sequence[JournalRow]) -> set[str]:
    """Return the states a thing has been in since its newest revision began."""
    rows = list(life)
    while any(row.kind == "changed" for row in rows[1:]):
        del rows[0]
    return {row.to_state for row in rows} | {step.to_state for row in rows for step in row.steps}


def _lost_in_a_row(life: Sequence[JournalRow]) -> int:
    """Count the leases lost since the item last got on, was changed, or was helped by a person."""
    lost = 0
    for row in life:
        if row.kind == "swept":
            lost += row.ended == "lost"
        elif row.kind != "released" and (row.kind != "attempt" or row.ended == "advanced"):
            lost = 0
    return lost


def run(new_url: Callable[[], str], examples: int, steps: int, **declared: bool) -> None:
    """Let histories happen, each to a store of its own."""
    chosen: dict[str, Any] = {"max_examples": examples, "stateful_step_count": steps}
    run_state_machine_as_test(
        lambda: StoreMachine(new_url(), **declared),  # type: ignore[arg-type]  # any factory will do
        settings=settings(
            **chosen, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
        ),
    )


NEWEST_COUNTS = {"in_turn": False, "fuse": True}
IN_TURN = {"in_turn": True, "fuse": True}
STEP_BY_STEP = {"in_turn": True, "fuse": False}


@pytest.mark.parametrize("declared", [NEWEST_COUNTS, IN_TURN, STEP_BY_STEP], ids=["newest", "in_turn", "step_by_step"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_any_history_keeps_every_promise(
    kind: str, declared: dict[str, bool], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind == "sqlite":
        numbers, template = itertools.count(), request.getfixturevalue("sqlite_template")
        run(
            lambda: f"sqlite:///{shutil.copyfile(template, tmp_path / f'{next(numbers)}.db')}",
            1_000 if IS_FULL else 70,
            40,
            **declared,
        )
    else:
        server, template = request.getfixturevalue("postgres_server"), request.getfixturevalue("postgres_template")
        run(lambda: new_postgres_database(server, template=template), 200 if IS_FULL else 8, 30, **declared)


def test_a_repetition_may_give_way_and_a_copy_without_its_turn_may_not(database_url: str) -> None:
    """A history that chance finds only in some runs of the whole suite."""
    machine = StoreMachine(database_url, **IN_TURN)
    try:
        machine.append([example.thing("a", "one")])
        machine.merge(4)
        machine.work(1)
        machine.replay("a", None)
        for text in ("two", "three"):
            machine.append([example.thing("a", text)])
            machine.merge(4)
            machine.no_copy_is_replaced_unread()
        assert [copy.text for copy in machine.turns["a"]] == ["two", "three"]
    finally:
        machine.teardown()


def test_an_attempt_that_lost_its_lease_does_not_ride_on_the_newer_one(database_url: str) -> None:
    ground = Ground(database_url)
    try:
        ground.record(example.thing("a"))
        lost = ground.claim_one()
        ground.advance(seconds=LEASE_SECONDS + 1)
        ground.store.items.sweep()
        held = ground.claim_one()

        settled = ground.settle(held, lost)

        assert settled.done == {held.id}
        assert [row.token for row in ground.life("a") if row.kind == "attempt"] == [held.token]
    finally:
        ground.close()
