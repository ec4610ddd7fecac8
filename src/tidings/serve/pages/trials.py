"""A page to try a route while one writes it: how much it would send, and how that would look."""

from __future__ import annotations

from tidings.model.errors import BadInput
from tidings.serve.http.operations import Call, Operation, Parameter
from tidings.serve.http.replies import Reply
from tidings.serve.pages.frame import Frame, page_at

DAYS = (7, 30, 90, 365)
QUERY_LENGTH_MAX = 1000


class TrialPage:
    """One page: a form, and what came of it."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._backend = frame.backend

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        parameters = (Parameter("pipeline", "Pipeline"), Parameter("q", "Query"), Parameter("days", "Days"))
        return [page_at("/deliveries/try", self._show, parameters)] if self._backend.try_route is not None else []

    async def _show(self, call: Call) -> Reply:
        announcing = [each for each in self._backend.pipelines.values() if each.announce]
        chosen = next((each.name for each in announcing if each.name == call["pipeline"]), None)
        query = (call["q"] or "").strip()[:QUERY_LENGTH_MAX]
        days = next((each for each in DAYS if str(each) == call["days"]), 30)
        found = trouble = None
        if chosen is not None and self._backend.try_route is not None:
            try:
                found = await self._backend.executor.read(self._backend.try_route, chosen, query, days)
            except BadInput as error:
                trouble = str(error)
        return await self._frame.page(
            call,
            "trial.html",
            announcing=announcing,
            chosen=chosen,
            q=query,
            days=days,
            spans=DAYS,
            found=found,
            trouble=trouble,
            a_day=found.a_day if found is not None else 0,
            most=max(found.per_day.values(), default=1) if found is not None else 1,
        )
