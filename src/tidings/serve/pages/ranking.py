"""Ranked lists on pages, with a switch between them."""

from __future__ import annotations

from functools import partial

from tidings.model.pipeline import Pipeline
from tidings.serve.api.filters import read_number, write_cursor
from tidings.serve.api.rankings import RankedLists, list_of, list_parameter
from tidings.serve.http.operations import CURSOR, Call, Operation
from tidings.serve.http.replies import Reply
from tidings.serve.pages.environment import ROW
from tidings.serve.pages.frame import Frame, page_at

PAGE = 30


class RankingPages:
    """One page per list."""

    def __init__(self, frame: Frame, lists: RankedLists) -> None:
        self._frame = frame
        self._backend = frame.backend
        self._lists = lists

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        return [
            page_at(
                f"/pipelines/{pipeline.name}/lists/{{list}}",
                partial(self._show, pipeline),
                (list_parameter(pipeline), CURSOR),
            )
            for pipeline in self._backend.pipelines.values()
            if pipeline.lists
        ]

    async def _show(self, pipeline: Pipeline, call: Call) -> Reply:
        ranked = list_of(pipeline, call["list"])
        collection = pipeline.collection(ranked.collection)
        after = max(0, read_number(call["cursor"]) or 0)
        page = await self._lists.read(pipeline, ranked, PAGE, after)
        cards = self._lists.cards(pipeline, ranked, page, self._backend.root_path)
        return await self._frame.page(
            call,
            "ranking.html",
            pipeline=pipeline,
            collection=collection,
            ranked=ranked,
            row_template=self._frame.environment.template_of(collection, ROW),
            places=list(zip(page.places, cards, strict=True)),
            listing=page,
            next_cursor=None if page.next_after is None else write_cursor(page.next_after),
            has_cursor=call["cursor"] is not None,
        )
