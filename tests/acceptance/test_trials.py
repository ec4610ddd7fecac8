"""The page that tries a route: what it would have sent, drawn as a chat would, without sending anything."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.funding_world import PIPELINE, a_result, a_world
from tests.unit.serve.asgi import Client

from tidings.backends import backend_of
from tidings.config import Server
from tidings.process.enrich.enricher import Terms
from tidings.sample.ai_endpoint import AiEndpoint
from tidings.sample.ai_endpoint import build as build_endpoint
from tidings.sample.eu_portal import EuPortal
from tidings.sample.serving import StandIn
from tidings.serve.application import build
from tidings.wiring import AiSpec

SERVER = Server().model_dump()


async def test_a_route_is_tried_on_a_page(tmp_path: Path) -> None:
    rows = [a_result(1), a_result(2, frameworkProgramme=["43108390"], title=["Of <b>boats</b> & *seals*"])]
    async with a_world(f"sqlite:///{tmp_path}/t.db", EuPortal.of(rows)) as world:
        await world.crawl()
        await world.settle_down()
        before = len(world.discord.messages)
        client = Client(build(backend_of(world.opened.app, SERVER, loopback=True)))

        whole = await client.get("/deliveries/try?pipeline=eu_funding&q=&days=365")
        assert "<b>2 notices</b>" in whole.text
        one = await client.get("/deliveries/try?pipeline=eu_funding&q=programme%3AHORIZON&days=365")
        assert "<b>1 notice</b> of 2 stored items" in one.text
        assert "Of &lt;b&gt;boats&lt;/b&gt; &amp; *seals*" in one.text, "strangers' text stays text, without escapes"
        assert "style=" not in one.text, "the page keeps to its content security policy"
        wrong = await client.get("/deliveries/try?pipeline=eu_funding&q=statos%3Aopen&days=365")
        assert 'role="alert"' in wrong.text
        assert "statos" in wrong.text
        assert (await client.get("/deliveries/try")).status == 200
        assert len(world.discord.messages) == before


async def test_a_replay_tells_its_price_first(database_url: str) -> None:
    terms = Terms(price_in=1.0, price_out=2.0, rate_per_minute=60_000)
    async with StandIn(build_endpoint(AiEndpoint())) as server:
        ai = AiSpec(base_url=f"{server.url}/v1", model="stand-in", terms=terms)
        portal = EuPortal.of([a_result(n) for n in range(3)])
        async with a_world(database_url, portal, ai=ai) as world:
            await world.crawl()
            await world.settle_down()

            replay = world.opened.store.operations.replay
            price = replay(PIPELINE, state=None, actor="ada", dry_run=True)
            assert (price.items, price.calls) == (3, 3)
            assert price.tokens > 0
            assert price.cost_micros > 0
            items = world.opened.store.items
            lives = [items.life(row.id) for row in world.opened.items("opportunity")]
            spent = sum(s.tokens for life in lives for row in life for s in row.steps)
            assert price.tokens == spent, "as their last time took"
            assert set(world.opened.states("opportunity")) == {"published"}, "nothing began again"
