"""Pages that the code writes are as the code would write them now."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.generate import DOCS, PAGES

from tidings.config import Settings, pipeline_modules


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_current(name: str) -> None:
    file = DOCS / name
    assert file.exists(), f"docs/{name} is missing; run python docs/generate.py"
    assert file.read_text("utf-8") == PAGES[name](), f"docs/{name} is stale; run python docs/generate.py"


def test_every_setting_says_what_it_means() -> None:
    models = {"": Settings, **{name: module.Settings for name, module in pipeline_modules().items()}}
    silent = [f"{n}.{f}" for n, m in models.items() for f, info in m.model_fields.items() if not info.description]
    assert silent == []


def test_every_metric_of_the_rules_and_the_dashboard_exists() -> None:
    known = PAGES["reference/metrics.md"]()
    deploy = Path(DOCS).parent / "deploy"
    for file in (*deploy.glob("*.yml"), *deploy.glob("*.json")):
        for word in file.read_text("utf-8").replace("(", " ").replace("{", " ").replace("[", " ").split():
            if word.startswith("tidings_"):
                bare = word.strip('",)').removesuffix("_bucket").removesuffix("_count").removesuffix("_sum")
                assert f"`{bare}`" in known, f"{file.name} names {bare}"
