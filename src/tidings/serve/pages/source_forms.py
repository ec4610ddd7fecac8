"""The forms that add a source, change it, and remove it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tidings.model.errors import BadInput
from tidings.model.previews import Trial
from tidings.serve.http.operations import Call, Operation, Parameter
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import Reply
from tidings.serve.http.request_bodies import read_form
from tidings.serve.pages.buttons import check_form, go
from tidings.serve.pages.charts import DAY_MS, day_bars, slices
from tidings.serve.pages.frame import Frame, page_at
from tidings.serve.pages.phrases import day

TEXTS = ("address", "kind", "title", "interval")
"""The fields of the forms; empty ones are as by default."""
DAYS = 14


class SourceForms:
    """Pages for one source: a new one, or one that there is."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._backend = frame.backend
        self._changes = frame.backend.source_changes
        self._read = frame.backend.executor.read
        self._status = frame.backend.status_views

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        source = Parameter("source", "Source", place="path")
        return [
            page_at("/sources/add", self._new, (Parameter("address", "address"),)),
            Operation("POST", "/sources/add", "operate", self._look, "Page", is_page=True),
            Operation("POST", "/actions/source-add", "operate", self._add, "Action", is_page=True),
            page_at("/sources/{source}", self._one, (source,)),
            Operation("POST", "/actions/source-edit", "operate", self._edit, "Action", is_page=True),
            Operation("POST", "/actions/source-remove", "operate", self._remove, "Action", is_page=True),
        ]

    async def _new(self, call: Call) -> Reply:
        return await self._form(call, {"address": call["address"] or ""})

    async def _form(
        self, call: Call, form: dict[str, str], *, trial: Trial | None = None, mistake: str | None = None
    ) -> Reply:
        open_to = [each for each in self._backend.pipelines.values() if each.source_kinds]
        status = 400 if mistake else 200
        return await self._frame.page(
            call, "source_add.html", status=status, form=form, trial=trial, mistake=mistake, open_to=open_to
        )

    async def _look(self, call: Call) -> Reply:
        form = await self._checked(call)
        try:
            trial = await self._backend.previews.look(form.get("pipeline", "feeds"), _said(form))
        except BadInput as error:
            return await self._form(call, form, mistake=str(error))
        return await self._form(call, form, trial=trial)

    async def _add(self, call: Call) -> Reply:
        form = await self._checked(call)
        try:
            name = await self._backend.executor.write(self._changes.add, form.get("pipeline", "feeds"), _said(form))
        except BadInput as error:
            return await self._form(call, form, mistake=str(error))
        return self._done(f"/sources/{quote(name, safe='')}", "added")

    async def _one(self, call: Call) -> Reply:
        return await self._show(call, call["source"])

    async def _show(
        self, call: Call, name: str, form: dict[str, str] | None = None, mistake: str | None = None
    ) -> Reply:
        named = await self._read(self._changes.named, name)
        view = next((each for each in await self._read(self._status.sources) if each.name == name), None)
        if named is None or view is None:
            raise Problem(404, "No such source.", helps="It may have been removed; the page of sources names them all.")
        until = self._backend.clock.now_ms()
        since = until - DAYS * DAY_MS
        points = await self._read(self._status.points, f"found:{name}", since_ms=since)
        labels = [day(since + (place + 1) * DAY_MS) for place in range(DAYS)]
        definition = named.definition
        values = {field: str(getattr(definition, field) or "") for field in TEXTS} if definition else {}
        return await self._frame.page(
            call,
            "source.html",
            status=400 if mistake else 200,
            view=view,
            named=named,
            form=form or values,
            full_text=definition.full_text if definition else True,
            bars=day_bars(slices(points, since, until, DAYS), labels, "New entries a day"),
            mistake=mistake,
        )

    async def _edit(self, call: Call) -> Reply:
        form = await self._checked(call)
        name = form.get("source", "")
        changes: dict[str, Any] = {field: form[field].strip() or None for field in TEXTS if field in form}
        changes["full_text"] = None if "full_text" in form else False
        try:
            await self._backend.executor.write(self._changes.edit, name, changes)
        except BadInput as error:
            return await self._show(call, name, form, str(error))
        return self._done(f"/sources/{quote(name, safe='')}", "changed")

    async def _remove(self, call: Call) -> Reply:
        form = await self._checked(call)
        fate = form.get("items")
        if fate not in ("keep", "forget"):
            return await self._show(call, form.get("source", ""), None, "Say what becomes of its entries.")
        try:
            await self._backend.executor.write(self._changes.remove, form.get("source", ""), items=fate)
        except BadInput as error:
            raise Problem(409, f"{error}.", helps="Go back and look again.") from error
        return self._done("/sources", "removed")

    async def _checked(self, call: Call) -> dict[str, str]:
        form = await read_form(call.request)
        check_form(self._frame, call, form)
        return form

    def _done(self, path: str, told: str) -> Reply:
        self._frame.look_again()
        return go(self._backend.root_path, path, told)


def _said(form: dict[str, str]) -> dict[str, Any]:
    said: dict[str, Any] = {field: form[field].strip() for field in TEXTS if form.get(field, "").strip()}
    return {**said, "full_text": False} if form.get("full_text") == "off" else said
