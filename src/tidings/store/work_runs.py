"""What workers did, run by run: a record each, with what was left in the queue."""

from __future__ import annotations

from tidings.model.views import WorkRunView
from tidings.model.work_run import WorkRun
from tidings.store.db.database import Database
from tidings.store.reservations import checkpoint


class WorkRunStore:
    """The records of the processors' runs; kept for days, since there may be one a minute."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, process: str, run: WorkRun, took_ms: int) -> int:
        """Keep the record of a run that has just ended; return how long the queue of its pipeline is now."""
        with self._database.transaction() as tx:
            unmerged = tx.value("count_unmerged", pipeline=run.pipeline, checkpoint=checkpoint(tx, run.pipeline))
            waiting = tx.value("count_waiting", pipeline=run.pipeline)
            queue_length = int(unmerged + waiting + tx.value("count_leased", pipeline=run.pipeline))
            tx.run(
                "put_work_run",
                pipeline=run.pipeline,
                process=process,
                took_ms=took_ms,
                loaded=run.loaded,
                processed=run.processed,
                removed=run.removed,
                moved_to_end=run.moved_to_end,
                queue_length=queue_length,
            )
        return queue_length

    def last(self, pipeline: str, limit: int = 1) -> list[WorkRunView]:
        """Return the latest runs of a pipeline, newest first."""
        with self._database.reading() as tx:
            return tx.rows(WorkRunView, "last_work_runs", pipeline=pipeline, limit=limit)
