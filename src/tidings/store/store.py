"""The store, whole: every part over one database."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidings.model.pipeline import Deliver, Pipeline, no_deliveries
from tidings.store.alerts import AlertStore
from tidings.store.caches import CacheStore
from tidings.store.changes import ChangeStore
from tidings.store.db.database import Database, read_clock
from tidings.store.followers import FollowerNotes
from tidings.store.items.claims import ItemStore
from tidings.store.limits import BudgetStore, LimiterStore
from tidings.store.links import LinkStore
from tidings.store.log import IntakeLog
from tidings.store.marks import MarkStore
from tidings.store.operator.actions import Operations, PartSwitches
from tidings.store.operator.item_views import ItemReader
from tidings.store.operator.status import StatusReader
from tidings.store.pauses import PauseStore
from tidings.store.processes import ProcessNotes
from tidings.store.reloads import ReloadMarks
from tidings.store.replicas import ReplicaNotes
from tidings.store.shelf import ShelfStore
from tidings.store.source_edits import SourceEdits
from tidings.store.source_list import SourceList
from tidings.store.sources import ScheduleStore
from tidings.store.stories import StoryStore
from tidings.store.tokens import TokenStore
from tidings.store.tombstones import TombstoneStore
from tidings.store.tracks import TrackStore
from tidings.store.upkeep.rebuild import Rebuilder
from tidings.store.upkeep.retention import RetentionStore
from tidings.store.wishes import WishStore
from tidings.store.work_runs import WorkRunStore


@dataclass(frozen=True, slots=True)
class Store:
    """All parts, sharing one database and one set of declared pipelines."""

    database: Database
    pipelines: Mapping[str, Pipeline]
    intake: IntakeLog
    items: ItemStore
    links: LinkStore
    shelf: ShelfStore
    changes: ChangeStore
    follower_notes: FollowerNotes
    process_notes: ProcessNotes
    replica_notes: ReplicaNotes
    budgets: BudgetStore
    limiters: LimiterStore
    caches: CacheStore
    pauses: PauseStore
    tokens: TokenStore
    schedules: ScheduleStore
    source_list: SourceList
    source_edits: SourceEdits
    reloads: ReloadMarks
    operations: Operations
    retention: RetentionStore
    rebuilder: Rebuilder
    alerts: AlertStore
    tombstones: TombstoneStore
    tracks: TrackStore
    wishes: WishStore
    work_runs: WorkRunStore
    marks: MarkStore
    status_views: StatusReader
    item_views: ItemReader
    switches: PartSwitches
    stories: StoryStore

    def tidy(self) -> dict[str, int]:
        """Remove what is kept no longer, and the items of forgotten sources; return counts by what it was."""
        forgotten = self.source_edits.forget()
        return self.retention.tidy() | ({"forgotten items": forgotten} if forgotten else {})

    def now_ms(self) -> int:
        """Ask the database for its clock."""
        return read_clock(self.database)


def open_store(
    database: Database,
    pipelines: Mapping[str, Pipeline],
    *,
    on_work: Callable[[], None] = lambda: None,
    deliver: Deliver = no_deliveries,
    channels: Mapping[str, str] | None = None,
    limiters: Mapping[str, str] | None = None,
    intake_days: float = 7,
    dead_letter_days: float = 30,
    journal_days: float = 90,
    monotonic: Callable[[], float] = time.monotonic,
) -> Store:
    """Put the parts together; `channels` are channel names with the kind of their notifier.

    `limiters` name the shared rate of each channel that does not have one of its own; `deliver` makes the deliveries
    of what is published by hand.
    """
    intake = IntakeLog(database, pipelines, keep_days=intake_days, on_append=on_work)
    items = ItemStore(database, pipelines, on_work=on_work)
    links, pauses = LinkStore(database), PauseStore(database)
    schedules, source_list = ScheduleStore(database), SourceList(database, pipelines)
    operations = Operations(database, pipelines, on_work=on_work, deliver=deliver)
    retention = RetentionStore(
        database,
        pipelines,
        dead_letter_days=dead_letter_days,
        journal_days=journal_days,
        intake_days=intake_days,
        monotonic=monotonic,
    )
    named = channels or {}
    status_views = StatusReader(
        database,
        pipelines,
        intake=intake,
        schedules=schedules,
        source_list=source_list,
        channels=named,
        limiters=limiters or {},
    )
    return Store(
        database,
        pipelines,
        intake,
        items,
        links,
        ShelfStore(database),
        ChangeStore(database),
        FollowerNotes(database),
        ProcessNotes(database),
        ReplicaNotes(database),
        BudgetStore(database),
        LimiterStore(database),
        CacheStore(database),
        pauses,
        TokenStore(database),
        schedules,
        source_list,
        SourceEdits(database, pipelines, source_list),
        ReloadMarks(database),
        operations,
        retention,
        Rebuilder(database, pipelines),
        AlertStore(database),
        TombstoneStore(database),
        TrackStore(database),
        WishStore(database),
        WorkRunStore(database),
        MarkStore(database),
        status_views,
        ItemReader(database, pipelines, items=items, links=links),
        PartSwitches(pipelines, pauses=pauses, schedules=schedules, source_list=source_list, channels=named),
        StoryStore(database),
    )
