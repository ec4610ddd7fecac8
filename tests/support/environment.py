"""The checkout, and the environment in which tests start other processes."""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = ("PATH", "HOME", "LANG", "TMPDIR")
_REGISTRY = re.compile(r"(PIP_|SSL_)\w+|REQUESTS_CA_BUNDLE|\w+_proxy|\w+_PROXY")


def clean_environment(temporary: Path | None = None, /, **values: str) -> dict[str, str]:
    """Return the least a child process needs to import this checkout, and these values.

    Nothing else of the shell goes along: a TIDINGS_ setting, a PYTHON or a terminal variable of the person who runs the
    tests would decide what they find. A folder for temporary files is made where one is named.
    """
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    if temporary is not None:
        temporary.mkdir(parents=True, exist_ok=True)
        kept["TMPDIR"] = str(temporary)
    return {**kept, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1", **values}


def package_registry() -> dict[str, str]:
    """Return how this machine reaches the package registry: proxies, certificates, pip's own settings."""
    registry = {name: value for name, value in os.environ.items() if _REGISTRY.fullmatch(name)}
    pip = Path.home() / ".config" / "pip" / "pip.conf"
    return ({"PIP_CONFIG_FILE": str(pip)} if pip.exists() else {}) | registry
