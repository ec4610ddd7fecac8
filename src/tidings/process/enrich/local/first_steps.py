"""Says where to begin with an issue, from what it really names; where it names nothing, nothing is said."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from tidings.model.answers import IssueFacts
from tidings.model.harmless import visible
from tidings.process.enrich.local import markdown, names
from tidings.process.enrich.local.difficulty import COMMENT_CHARS_MAX, COMMENTS_MAX
from tidings.process.enrich.local.markdown import Markdown

STEPS_MAX: Final = 5
STEP_CHARS_MAX: Final = 300


def first_steps(facts: IssueFacts, title: str, parts: Markdown) -> list[str]:
    """Point to what the issue and the project's maintainers name, in the order a newcomer would go."""
    steps = dict.fromkeys(visible(step, " ") for step in _steps(facts, title, parts))
    return [step for step in steps if len(step) <= STEP_CHARS_MAX][:STEPS_MAX]


def _steps(facts: IssueFacts, title: str, parts: Markdown) -> Iterator[str]:
    repo, most = facts.repo, names.NAMES_MAX
    told = [_comment(text) for text in facts.maintainer_comments[:COMMENTS_MAX]]
    linked = names.linked_lines([link for each in (parts, *told) for link in each.links], repo) if repo else []
    yield from (f"Read {place}" for place in linked[:most])
    seen = " ".join(linked)
    failing = [test for test in names.failing_tests(parts) if test not in seen][:most]
    for path in islice((path for each in told for path in _places(each, repo)), most):
        if path not in seen:
            seen += f" {path}"
            yield f"Open {path}, which a maintainer names."
    for test in failing:
        yield f"Run the test {test}, which is said to fail."
    seen += " ".join(failing)
    own = _places(parts, repo) if facts.by_maintainer else names.paths(parts, repo)
    yield from (f"Open {path}." for path in own[:most] if path not in seen)
    yield from (f"Search the code for {name}." for name in names.identifiers(title, repo)[:most])
    yield from (f"Run: {command}" for command in names.commands(title, parts, repo)[:most])


def _comment(text: str) -> Markdown:
    return markdown.read(visible(text[:COMMENT_CHARS_MAX], " "), quotes=False)


def _places(parts: Markdown, repo: str) -> list[str]:
    """Return what a maintainer names: paths, and files without their folder too."""
    found = names.paths(parts, repo)
    bare = [name for name in names.file_names(parts) if not any(path.endswith(f"/{name}") for path in found)]
    return [*found, *bare]
