"""Summarizes a repository: its description, then what its README says best."""

from __future__ import annotations

from typing import Final

from tidings.model.answers import RepoFacts, RepoSummary
from tidings.model.harmless import visible
from tidings.process.enrich.local import markdown
from tidings.process.enrich.local.summary import SUMMARY_CHARS_MAX, WORDS_MAX, shared_terms, summarize

DESCRIPTION_CHARS_MAX: Final = 400
NAMES_MAX: Final = 5
NAME_CHARS_MAX: Final = 100
README_WORDS_MIN: Final = 12
SAME_FROM: Final = 0.7
"""Above this share of common words a sentence only repeats the description."""

_SIDE_SECTIONS = """
    license licence copyright contributing contributors contribute contribution sponsors sponsor backers donate
    funding installation install installing setup build building compiling changelog changes credits
    acknowledgements acknowledgments authors maintainers contents badges roadmap todo thanks support community
    translations conduct
"""
SIDE_SECTIONS: Final = frozenset(_SIDE_SECTIONS.split())


def summarize_repo(facts: RepoFacts) -> RepoSummary:
    """Return the description and the README's best sentences, or what the facts tell where both are silent."""
    description = _sentence(markdown.plain(visible((facts.description or "")[:DESCRIPTION_CHARS_MAX], " ")))
    words_left = WORDS_MAX - len(description.split())
    parts = [description] if description else []
    if words_left >= README_WORDS_MIN:
        parts += _from_readme(facts, description, words_left)
    summary = " ".join(parts) or _from_names(facts)
    return RepoSummary(summary=visible(summary, " ")[:SUMMARY_CHARS_MAX])


def _from_readme(facts: RepoFacts, description: str, words_max: int) -> list[str]:
    prose = markdown.read(facts.readme, SIDE_SECTIONS).prose
    fresh = [paragraph for paragraph in prose if shared_terms(paragraph, description) < SAME_FROM]
    summary = summarize("\n".join(fresh), facts.full_name.rpartition("/")[2], words_max).summary
    # A README without sentences (a list of names, a banner) is not worth quoting.
    return [summary] if summary.endswith((".", "!", "?", "。")) else []


def _from_names(facts: RepoFacts) -> str:
    name = facts.full_name[:NAME_CHARS_MAX] or "This repository"
    languages = ", ".join(language[:NAME_CHARS_MAX] for language in facts.languages[:NAMES_MAX])
    topics = ", ".join(topic[:NAME_CHARS_MAX] for topic in facts.topics[:NAMES_MAX])
    about = f" about {topics}" if topics else ""
    return f"{name} is a project{about}{f' written in {languages}' if languages else ''}; it does not describe itself."


def _sentence(text: str) -> str:
    return text if not text or text.endswith((".", "!", "?", "。", "…")) else f"{text}."
