"""A workflow is data: states, and the declared moves between them. It checks and draws itself."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from tidings.model.backoff import RetryPolicy
from tidings.model.errors import Misconfigured
from tidings.model.item import Lease
from tidings.model.outcome import Outcome, Verdict
from tidings.model.workflow_checks import check

PURE = "pure"
"""The lane of what never waits."""
NOTIFY = "notify"
"""The lane of deliveries: their order counts."""
STEPS_MAX = 100
LANE_PHASES = {"ai": "summarize", NOTIFY: "announce"}
"""What items wait for that wait for a lane, unless their workflow says otherwise."""
ANY = "*"
"""As a transition's source: every state but its own target."""

Trigger = Literal["automatic", "manual", "scheduled", "chosen"]
"""automatic: as soon as the item is due. manual: only by a person, or by the engine where a retry policy names it.
scheduled: by a person, or by the engine at the time the item asked to be woken (`Advance.due_at`).
chosen: only by a processor of another way out of the same state, which names it (`Advance.way`)."""


class Work(msgspec.Struct):
    """What a criterion or a processor sees of one item: a snapshot under lease."""

    pipeline: str
    kind: str
    key: str
    state: str
    attempt: int
    revision: int
    now_ms: int
    """The database's clock at the claim."""
    body: Any
    accepted: Any = None
    """The body readers see, or None."""
    related: dict[str, Any] = msgspec.field(default_factory=dict)
    """Prefetched bodies by ref; a missing item is absent."""
    error: str | None = None
    """Why the engine performs a failure transition."""
    stack: str | None = None
    deadline: float = float("inf")
    """No side effect may start after this instant of `time.monotonic()`."""
    item_id: int = 0
    lost_leases: int = 0
    """How many leases ran out here since the last settle or revive; for a delivery each may have been a send."""
    state_since_ms: int = 0
    """When the item came to its state, or was revived into it; 0 where that is unknown."""


Processor = Callable[[Work], Outcome] | Callable[..., Awaitable[Outcome]]
"""Pure: `def f(work)`. Waiting: `async def f(work, kit)`."""
Criterion = Callable[[Work], Verdict]
Prefetch = Callable[[Work], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Transition:
    """One declared move."""

    name: str
    source: str | tuple[str, ...]
    target: str
    processor: Processor | None = None
    criterion: Criterion | None = None
    trigger: Trigger = "automatic"
    lane: str = PURE
    retry: RetryPolicy = RetryPolicy()
    publishes: bool = False
    """Reaching the target makes the working body the accepted one and writes card and document."""
    prefetch: Prefetch | None = None
    """Names the refs of other items the processor needs."""
    is_pure: bool = field(init=False, default=True)
    """The processor never waits."""
    criterion_name: str | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        waits = self.processor is not None and inspect.iscoroutinefunction(_function(self.processor))
        object.__setattr__(self, "is_pure", not waits)
        object.__setattr__(self, "criterion_name", name_of(self.criterion) if self.criterion else None)

    @property
    def sources(self) -> tuple[str, ...]:
        """The source states as declared; may hold ANY."""
        return (self.source,) if isinstance(self.source, str) else self.source

    @property
    def named_sources(self) -> frozenset[str]:
        """The source states that are named."""
        return frozenset(self.sources) - {ANY}


def _function(processor: Any) -> Any:
    while hasattr(processor, "func"):
        processor = processor.func
    return processor if inspect.isroutine(processor) else getattr(processor, "__call__", processor)  # noqa: B004


@dataclass(frozen=True)
class Workflow:
    """The life of one kind of item. Declaring it checks it.

    `terminal` states end well. In a `failures` state an item that nothing will wake is a dead letter.
    """

    kind: str
    start: str
    states: tuple[str, ...]
    transitions: tuple[Transition, ...]
    terminal: frozenset[str] = frozenset()
    failures: frozenset[str] = frozenset()
    body: type[Any] | None = None
    """The Struct the body is decoded to; None leaves it as plain JSON values."""
    fuse: bool = True
    in_turn: bool = False
    """A changed finding waits until the revision before it has been processed; otherwise the newest replaces it."""
    lets_finish: bool = False
    """A changed finding waits until the revision under way has come to its end; then the newest counts."""
    tombstones_are_final: bool = False
    """What was removed stays removed until its tombstone is forgotten, even if its source changes it meanwhile."""
    bounded_cycles: frozenset[str] = frozenset()
    """Names of automatic transitions that may close a cycle because their criterion bounds it."""
    phases: Mapping[str, str] = field(default_factory=dict)
    """What items in a state wait for, as alerts count it: `summarize`, `announce`. Other states: as their lane says."""
    following: Mapping[str, tuple[Transition, ...]] = field(init=False, repr=False, compare=False)
    """What the engine may perform when an item in a state is due."""
    fused: frozenset[str] = field(init=False, repr=False, compare=False)
    """The states in which an attempt goes on in memory."""
    decode: Callable[[bytes], Any] = field(init=False, repr=False, compare=False)
    """Reads a body."""

    def __post_init__(self) -> None:
        check(self)
        automatic: dict[str, tuple[Transition, ...]] = {}
        scheduled: dict[str, tuple[Transition, ...]] = {}
        for state in self.states:
            automatic[state] = tuple(t for t in self.ways_from(state) if t.trigger == "automatic")
            scheduled[state] = tuple(t for t in self.ways_from(state) if t.trigger == "scheduled")
        following = {state: automatic[state] or scheduled[state] for state in self.states}
        object.__setattr__(self, "_automatic", automatic)
        object.__setattr__(self, "following", following)
        object.__setattr__(self, "decode", msgspec.json.Decoder(self.body if self.body is not None else Any).decode)
        object.__setattr__(self, "_by_name", {t.name: t for t in self.transitions})
        object.__setattr__(self, "fused", frozenset(s for s in self.states if self.fuse and _is_fusable(automatic[s])))

    def work(self, lease: Lease, *, deadline: float = float("inf")) -> Work:
        """Return what criteria and processors see of a leased item; raise where its body cannot be read."""
        return Work(
            pipeline=lease.pipeline,
            kind=lease.kind,
            key=lease.key,
            state=lease.state,
            attempt=lease.attempts,
            revision=lease.revision,
            now_ms=lease.granted_at,
            body=self.decode(lease.body),
            accepted=self.decode(lease.accepted) if lease.accepted is not None else None,
            deadline=deadline,
            item_id=lease.id,
            lost_leases=lease.lost_leases,
            state_since_ms=lease.state_since,
        )

    def ways_from(self, state: str) -> tuple[Transition, ...]:
        """Return every way out of a state, in declared order."""
        return tuple(t for t in self.transitions if leaves(t, state))

    def automatic_from(self, state: str) -> tuple[Transition, ...]:
        """Return the automatic ways out of a state, in declared order."""
        return self.__dict__["_automatic"].get(state, ())  # type: ignore[no-any-return]

    def next_from(self, state: str) -> tuple[Transition, ...]:
        """Return what the engine may perform when an item in `state` is due."""
        return self.following.get(state, ())

    def by_hand_from(self, state: str) -> tuple[Transition, ...]:
        """Return what a person may perform in a state."""
        return tuple(t for t in self.ways_from(state) if t.trigger not in ("automatic", "chosen"))

    def chosen_from(self, state: str, name: str) -> Transition:
        """Return the way out of a state that a processor named."""
        transition = self.named(name)
        if transition.trigger != "chosen" or not leaves(transition, state):
            raise Misconfigured(f"the workflow of {self.kind} declares no way {name!r} to choose in state {state!r}")
        return transition

    def named(self, name: str) -> Transition:
        """Return the transition called `name`."""
        try:
            return self.__dict__["_by_name"][name]  # type: ignore[no-any-return]
        except KeyError:
            raise Misconfigured(f"the workflow of {self.kind} declares no transition {name!r}") from None

    def lane_of(self, state: str) -> str | None:
        """Return the lane that moves items out of a state, or None where nothing does by itself."""
        ways = self.next_from(state)
        return ways[0].lane if ways else None

    def phase_of(self, state: str) -> str | None:
        """Return what items in a state wait for, as alerts tell it, or None where that is of no interest."""
        ways = self.automatic_from(state)
        return self.phases.get(state, LANE_PHASES.get(ways[0].lane)) if ways else None

    @property
    def begins_pure(self) -> bool:
        """Tell whether an item may be run before it is born: its life begins with steps that never wait."""
        return self.fuse and self.lane_of(self.start) == PURE

    def leads_through(self, state: str, now: str) -> bool:
        """Tell whether every way from the start to where an item stands now leads through a state."""
        reached, frontier = {self.start}, [self.start]
        while frontier:
            here = frontier.pop()
            for transition in () if here == state else self.ways_from(here):
                if transition.target not in reached:
                    reached.add(transition.target)
                    frontier.append(transition.target)
        return now == state or now not in reached

    def gives_way(self, state: str, standing: str, *, is_accepted: bool) -> bool:
        """Tell whether an item without a lease goes on with a newer copy at once.

        Where the newest counts, always. Where copies take turns, once the current one has had its turn: it is
        accepted, or has come to an end of its own. One that will be tried again keeps its turn.
        """
        return not (self.in_turn or self.lets_finish) or is_accepted or standing != "open" or state in self.failures

    def standing_in(self, state: str, *, due: bool) -> Literal["open", "done", "waits", "dead"]:
        """Tell how an item that arrives in a state stands."""
        if state in self.terminal:
            return "done"
        if self.automatic_from(state) or due:
            return "open"
        return "dead" if state in self.failures else "waits"

    def draw_text(self) -> str:
        """Draw as text, one line a move."""
        return "\n".join([f"[*] -> {self.start}", *(_text_line(t, s) for t, s in _moves(self)), *_ends(self, "text")])

    def draw_mermaid(self) -> str:
        """Draw as a Mermaid state diagram."""
        lines = ["stateDiagram-v2", f"    [*] --> {self.start}"]
        lines += [f"    {s} --> {t.target} : {_label(t)}" for t, s in _moves(self)]
        return "\n".join(lines + _ends(self, "mermaid"))


def _is_fusable(ways: tuple[Transition, ...]) -> bool:
    return bool(ways) and all(t.is_pure and t.lane == PURE for t in ways)


def leaves(transition: Transition, state: str) -> bool:
    """Tell whether a transition starts in a state."""
    if ANY in transition.sources:
        return state != transition.target
    return state in transition.sources


def _moves(workflow: Workflow) -> list[tuple[Transition, str]]:
    return [(t, s) for t in workflow.transitions for s in workflow.states if leaves(t, s)]


def _ends(workflow: Workflow, form: str) -> list[str]:
    ends = [s for s in workflow.states if s in workflow.terminal]
    return [f"{s} -> [*]" if form == "text" else f"    {s} --> [*]" for s in ends]


def _label(transition: Transition) -> str:
    parts = [name_of(part) for part in (transition.processor, transition.criterion) if part is not None]
    label = f"{transition.name} ({' + '.join(parts)})" if parts else transition.name
    mark = {"automatic": "", "chosen": " [chosen]"}.get(transition.trigger, " [manual]")
    return label + mark


def _text_line(transition: Transition, state: str) -> str:
    arrow = "->" if transition.trigger == "automatic" else "~>"
    return f"{state} {arrow} {transition.target}: {_label(transition)}"


def name_of(part: Any) -> str:
    """Return the declared name of a processor or criterion."""
    while hasattr(part, "func"):
        part = part.func
    return getattr(part, "__name__", type(part).__name__)
