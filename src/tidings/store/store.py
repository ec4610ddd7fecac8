"""The store, whole: every part over one database."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidings.model.pipeline import Deliver, Pipeline, no_deliveries
from tidings.store.alerts import AlertStore
from tidings.store.database import Database
from tidings.store.desk import StoreDesk
from tidings.store.glance import Glance
from tidings.store.index import SearchIndex
from tidings.store.intake import IntakeLog
from tidings.store.items import ItemStore
from tidings.store.ledgers import Ledgers
from tidings.store.lifelines import Lifelines
from tidings.store.links import LinkStore
from tidings.store.operating import Operations
from tidings.store.rebuild import Rebuilder
from tidings.store.retention import RetentionStore
from tidings.store.schedules import ScheduleStore
from tidings.store.shelf import ShelfStore
from tidings.store.tombstones import TombstoneStore


@dataclass(frozen=True, slots=True)
class Store:
    """All parts, sharing one database and one set of declared pipelines."""

    database: Database
    intake: IntakeLog
    items: ItemStore
    links: LinkStore
    shelf: ShelfStore
    index: SearchIndex
    ledgers: Ledgers
    schedules: ScheduleStore
    operations: Operations
    retention: RetentionStore
    rebuilder: Rebuilder
    alerts: AlertStore
    tombstones: TombstoneStore
    desk: StoreDesk


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
    links, ledgers = LinkStore(database), Ledgers(database)
    schedules, index = ScheduleStore(database), SearchIndex(database)
    operations = Operations(database, pipelines, on_work=on_work, deliver=deliver)
    retention = RetentionStore(
        database, pipelines, dead_letter_days=dead_letter_days, journal_days=journal_days, monotonic=monotonic
    )
    named = channels or {}
    glance = Glance(
        database,
        pipelines,
        intake=intake,
        ledgers=ledgers,
        schedules=schedules,
        channels=named,
        limiters=limiters or {},
    )
    desk = StoreDesk(
        database,
        pipelines,
        glance=glance,
        lifelines=Lifelines(database, pipelines, items=items, links=links),
        ledgers=ledgers,
        schedules=schedules,
        index=index,
        operations=operations,
        retention=retention,
        channels=named,
    )
    return Store(
        database,
        intake,
        items,
        links,
        ShelfStore(database),
        index,
        ledgers,
        schedules,
        operations,
        retention,
        Rebuilder(database, pipelines),
        AlertStore(database),
        TombstoneStore(database),
        desk,
    )
