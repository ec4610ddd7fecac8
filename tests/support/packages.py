"""Packages that a page of the documentation describes, installed the way an installer would leave them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_BLOCK = re.compile(r"^`([\w./]+)`\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def install_page(page: Path, folder: Path) -> set[str]:
    """Write down every file of a page and the metadata of its package; return the files' names."""
    blocks = dict(_BLOCK.findall(page.read_text("utf-8")))
    for name, text in blocks.items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    project = tomllib.loads(blocks["pyproject.toml"])["project"]
    information = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines: list[str] = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in points.items())]
    (information / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return set(blocks)
