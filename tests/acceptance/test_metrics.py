"""What Prometheus sees of a worker that has a port of its own, over HTTP."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.request import urlopen

from tests.support.commands import tidings
from tests.support.processes import fleet, free_port
from tests.support.waiting import until

STORY = {"type": "story", "by": "ada", "score": 7, "time": 1_700_000_000}


async def test_a_worker_tells_its_metrics_on_a_port_of_its_own(tmp_path: Path, database_url: str) -> None:
    port, metrics = free_port(), free_port()
    (tmp_path / "tidings.toml").write_text(
        f'database_url = "{database_url}"\n[server]\nport = {port}\n'
        '[pipelines.hacker_news]\nbase_url = "http://127.0.0.1:9/v0"\nevery = 3600\nstreams = false\n'
    )
    stories = [STORY | {"id": n, "title": f"Story {n}"} for n in range(1, 21)]
    sent = tidings(
        "upload", "hacker_news", "-", "--config", str(tmp_path / "tidings.toml"), given=json.dumps(stories).encode()
    )
    assert sent.code == 0, sent.err
    async with fleet(tmp_path) as processes:
        worker = await processes.start("run", "--role", "work", "--metrics-port", str(metrics))
        server = await processes.start("run", "--role", "serve")
        await until(lambda: worker.has_started and server.has_started, watching=(worker, server))
        settled = 'tidings_items_total{outcome="advanced",pipeline="hacker_news"} 20.0'
        await until(lambda: settled in text_of(metrics, "/metrics"), watching=(worker,))
        text = text_of(metrics, "/metrics")
        written = re.search(r'tidings_shelf_writes_total{pipeline="hacker_news"} (\d+)', text)
        assert written is not None
        assert int(written[1]) >= 20
        assert written[0] in text_of(port, "/metrics"), "the store counts: every process tells the same"
        for name in ("due_items", "parked_items", "log_findings", "log_unmerged"):
            assert f'tidings_{name}{{pipeline="hacker_news"}}' in text
        assert 'tidings_last_seen_timestamp_seconds{part="worker"} 1' in text
        assert json.loads(text_of(metrics, "/healthz")) == {"status": "alive"}

        for _ in range(5):
            text_of(port, "/api/v1/hacker_news/items")
        served = text_of(port, "/metrics")
        assert re.search(r'tidings_cache_requests_total{cache="answers",result="hit"} [1-9]', served)
        assert 'tidings_cache_requests_total{cache="answers",result="miss"} 1.0' in served


def text_of(port: int, path: str) -> str:
    with urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as response:
        text: str = response.read().decode()
        return text
