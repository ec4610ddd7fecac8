"""What tidings is for: one folder a pipeline, none knows another."""

from importlib import import_module
from types import ModuleType

BUILT_IN = ("bitcoin_news", "hacker_news", "eu_funding", "first_issues", "feeds")


def load(name: str) -> ModuleType:
    """Return a built-in pipeline's module, which offers `Settings`, `build` and `endpoints`."""
    return import_module(f"tidings.pipelines.{name}")
