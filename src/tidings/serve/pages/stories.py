"""Stories on pages: the newest ones, and one with all that tells it."""

from __future__ import annotations

from tidings.serve.api.stories import SOURCES, STORY_ID, StoryRoutes
from tidings.serve.http.operations import CURSOR, Call, Operation
from tidings.serve.http.replies import Reply
from tidings.serve.pages.frame import Frame, page_at

PAGE = 30


class StoryPages:
    """The list of stories, and one of them."""

    def __init__(self, frame: Frame, stories: StoryRoutes) -> None:
        self._frame = frame
        self._stories = stories

    def operations(self) -> list[Operation]:
        """Declare the routes; none where nothing is grouped."""
        if self._frame.backend.stories is None:
            return []
        return [page_at("/stories", self._list, (SOURCES, CURSOR)), page_at("/stories/{id}", self._one, (STORY_ID,))]

    async def _list(self, call: Call) -> Reply:
        root = self._frame.backend.root_path
        told, cursor = await self._stories.page(call["sources"], PAGE, call["cursor"], root)
        return await self._frame.page(
            call,
            "stories.html",
            told_stories=told,
            sources=call["sources"],
            next_cursor=cursor,
            has_cursor=call["cursor"] is not None,
        )

    async def _one(self, call: Call) -> Reply:
        told = await self._stories.one(call["id"], self._frame.backend.root_path)
        return await self._frame.page(call, "story.html", story=told.card, shown=told.shown)
