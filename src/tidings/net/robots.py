"""Asks a site's robots.txt before its pages, by RFC 9309: gone means allowed, unreachable means not now."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from protego import Protego

from tidings.model.errors import Permanent, SlowDown, TidingsError, Transient
from tidings.model.web import Response

ORIGINS_REMEMBERED_MAX = 5_000
_PARSE_ASIDE_BYTES = 32 * 1024
_AGENT_LINE = re.compile(r"\s*user[-\s]*agent\s*:?\s*(.*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Rules:
    """What one origin allows, or why we do not know."""

    fresh_until: float
    parsed: Protego | None = None
    trouble: Transient | None = None


class Robots:
    """Remembers the rules of every origin for a time; asks once, however many pages wait for the answer."""

    def __init__(
        self,
        fetch: Callable[[str], Awaitable[Response]],
        *,
        robot: str,
        fresh_seconds: float,
        retry_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self._fetch = fetch
        self._robot = robot
        self._fresh_seconds = fresh_seconds
        self._retry_seconds = retry_seconds
        self._clock = clock
        self._rules: OrderedDict[str, _Rules] = OrderedDict()
        self._asking: dict[str, asyncio.Lock] = {}

    async def check(self, origin: str, url: str, shown: str) -> float | None:
        """Return the crawl delay asked for, if any; raise Permanent if the page is off limits, Transient if unknown."""
        rules = await self._rules_of(origin)
        if rules.trouble is not None:
            kind = SlowDown if isinstance(rules.trouble, SlowDown) else Transient
            wait = max(rules.fresh_until - self._clock(), 1.0)
            raise kind(f"robots.txt for {shown} cannot be read: {rules.trouble}", retry_after_seconds=wait)
        if rules.parsed is None:
            return None
        if not rules.parsed.can_fetch(url, self._robot):
            raise Permanent(f"robots.txt asks {self._robot} to stay away from {shown}")
        delay = rules.parsed.crawl_delay(self._robot)
        return float(delay) if delay else None

    async def _rules_of(self, origin: str) -> _Rules:
        if (known := self._known(origin)) is not None:
            return known
        try:
            async with self._asking.setdefault(origin, asyncio.Lock()):
                return self._known(origin) or self._remember(origin, await self._ask(origin))
        finally:
            self._asking.pop(origin, None)

    def _remember(self, origin: str, rules: _Rules) -> _Rules:
        self._rules[origin] = rules
        self._rules.move_to_end(origin)
        while len(self._rules) > ORIGINS_REMEMBERED_MAX:
            self._rules.popitem(last=False)
        return rules

    def _known(self, origin: str) -> _Rules | None:
        rules = self._rules.get(origin)
        return rules if rules is not None and rules.fresh_until > self._clock() else None

    async def _ask(self, origin: str) -> _Rules:
        try:
            response = await self._fetch(f"{origin}/robots.txt")
        except Transient as error:
            return _Rules(self._clock() + (error.retry_after_seconds or self._retry_seconds), trouble=error)
        except TidingsError:
            # Gone, too large or unreadable: the site states no rules.
            return _Rules(self._clock() + self._fresh_seconds)
        text = only_our_groups(response.body.decode("utf-8", "replace"), self._robot)
        aside = len(text) > _PARSE_ASIDE_BYTES
        parsed = await asyncio.to_thread(Protego.parse, text) if aside else Protego.parse(text)
        return _Rules(self._clock() + self._fresh_seconds, parsed=parsed)


def only_our_groups(text: str, robot: str) -> str:
    """Rename every robot that is not us to one stranger.

    The parser copies each rule to each robot named above it, so ten thousand names over ten thousand rules would
    stall the process for minutes.
    """
    return "\n".join(_for_us(line, robot.lower()) for line in text.splitlines())


def _for_us(line: str, robot: str) -> str:
    match = _AGENT_LINE.match(line)
    if match is None:
        return line
    name = match[1].partition("#")[0].strip().lower()
    return line if name == "*" or (name and name.replace("*", "") in robot) else "User-agent: some-other-robot"
