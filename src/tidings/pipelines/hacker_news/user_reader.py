"""Reads users from the API: those that someone wishes for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import islice

from tidings.model.errors import SlowDown, TidingsError
from tidings.model.item import Finding
from tidings.model.pipeline import Page, Run
from tidings.model.wishes import GrantedAs, GrantedWishes, Outdated
from tidings.pipelines.hacker_news.client import Firebase
from tidings.pipelines.hacker_news.users import COLLECTION, NAME, finding_of_user

OUTDATED_MAX = 500


class UserReader:
    """Fetches users by name; one that fails costs the others nothing."""

    async def pages(self, api: Firebase, run: Run) -> AsyncIterator[Page]:
        """Read the users that a signal wishes for."""
        names: Sequence[str] = run.options["signal"]["wishes"]
        answers = await asyncio.gather(*(self._read(api, name, run.now_ms) for name in names))
        told: dict[str, GrantedAs] = {}
        for name, answer in zip(names, answers, strict=True):
            told[name] = "found" if isinstance(answer, Finding) else answer
        findings = tuple(answer for answer in answers if isinstance(answer, Finding))
        yield Page(findings, granted=GrantedWishes(COLLECTION, told))

    async def _read(self, api: Firebase, name: str, now_ms: int) -> Finding | GrantedAs:
        # The name becomes a part of the address that is asked.
        if not re.fullmatch(NAME, name):
            return "unknown"
        try:
            value = await api.user(name)
            return "unknown" if value is None else finding_of_user(name, value, now_ms)
        except SlowDown:
            raise
        except (TidingsError, TimeoutError):
            return "failed"

    def outdated(self, names: Iterable[str]) -> Outdated | None:
        """Return which users changed, as far as their names are plausible and not too many."""
        plausible = tuple(islice((name for name in names if re.fullmatch(NAME, name)), OUTDATED_MAX))
        return Outdated(COLLECTION, plausible) if plausible else None
