import asyncio
import time

import pytest

from tidings.model.errors import Permanent, SlowDown, Transient
from tidings.model.web import Response
from tidings.net.robots import Robots, only_our_groups


class Site:
    """Answers for robots.txt as told."""

    def __init__(self, answer: bytes | Exception) -> None:
        self.answer = answer
        self.asked = 0

    async def fetch(self, url: str) -> Response:
        self.asked += 1
        assert url == "https://example.com/robots.txt"
        await asyncio.sleep(0.01)
        if isinstance(self.answer, Exception):
            raise self.answer
        return Response(200, url, {}, self.answer)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def robots_of(site: Site, clock: Clock | None = None) -> Robots:
    return Robots(site.fetch, robot="tidings", fresh_seconds=3600, retry_seconds=300, clock=clock or Clock())


async def check(robots: Robots, path: str) -> float | None:
    return await robots.check("https://example.com", f"https://example.com{path}", "the page")


async def test_rules_with_wildcards_are_obeyed():
    robots = robots_of(Site(b"User-agent: *\nDisallow: /*/private\nDisallow: /*.pdf$\nAllow: /a/private/ok\n"))
    await check(robots, "/a/public")
    await check(robots, "/a/private/ok")
    for path in ("/a/private/x", "/b/file.pdf"):
        with pytest.raises(Permanent):
            await check(robots, path)


async def test_rules_for_us_come_before_rules_for_all():
    robots = robots_of(Site(b"User-agent: *\nDisallow: /\n\nUser-agent: Tidings\nDisallow: /no\n"))
    await check(robots, "/yes")
    with pytest.raises(Permanent):
        await check(robots, "/no")


async def test_rules_for_others_do_not_concern_us():
    robots = robots_of(Site(b"User-agent: GPTBot\nDisallow: /\n\nUser-agent: ings\nDisallow: /\n"))
    assert await check(robots, "/a") is None


async def test_a_crawl_delay_is_passed_on():
    assert await check(robots_of(Site(b"User-agent: *\nCrawl-delay: 7\n")), "/a") == 7.0


async def test_a_missing_robots_txt_allows_everything():
    assert await check(robots_of(Site(Permanent("gone"))), "/a") is None


async def test_garbage_allows_everything():
    assert await check(robots_of(Site(b"\x00\xff<html>not found</html>")), "/a") is None


async def test_an_unreachable_robots_txt_means_not_now():
    site, clock = Site(Transient("down")), Clock()
    robots = robots_of(site, clock)
    for _ in range(3):
        with pytest.raises(Transient) as failed:
            await check(robots, "/a")
        assert not isinstance(failed.value, SlowDown)
    assert site.asked == 1
    clock.now += 301
    site.answer = b""
    assert await check(robots, "/a") is None


async def test_a_busy_site_is_left_alone():
    robots = robots_of(Site(SlowDown("busy", retry_after_seconds=40)))
    with pytest.raises(SlowDown) as failed:
        await check(robots, "/a")
    assert failed.value.retry_after_seconds == pytest.approx(40)


async def test_many_pages_ask_once_and_again_only_when_stale():
    site, clock = Site(b""), Clock()
    robots = robots_of(site, clock)
    await asyncio.gather(*(check(robots, f"/{n}") for n in range(50)))
    assert site.asked == 1
    clock.now += 3601
    await check(robots, "/a")
    assert site.asked == 2


async def test_ten_thousand_robots_over_ten_thousand_rules_do_not_stall():
    hostile = "\n".join(f"User-agent: r{n}" for n in range(10_000)) + "\nUser-agent: *\n"
    hostile += "\n".join(f"Disallow: /*a*b*c{n}" for n in range(12_000))
    robots = robots_of(Site(hostile.encode()))
    started = time.process_time()
    assert await check(robots, "/aaaaaaaaaaaaaaaaaaaaaaaaaaaa") is None
    assert time.process_time() - started < 5.0


def test_our_groups_keep_their_rules():
    text = "USER-AGENT : Tidings # us\nDisallow: /a\nuser agent other\nDisallow: /b"
    assert only_our_groups(text, "tidings").splitlines()[0].startswith("USER-AGENT")
    assert "some-other-robot" in only_our_groups(text, "tidings")
