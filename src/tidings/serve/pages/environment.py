"""The templates of all pages, ours and those that pipelines bring, in one environment that escapes everything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from jinja2 import (
    BaseLoader,
    ChoiceLoader,
    Environment,
    PackageLoader,
    PrefixLoader,
    StrictUndefined,
    TemplateNotFound,
    TemplateSyntaxError,
    select_autoescape,
)

from tidings.model.clock import rfc3339
from tidings.model.errors import Misconfigured
from tidings.model.publication import Collection
from tidings.serve import markup
from tidings.serve.pages import phrases, source_words
from tidings.serve.pages.needs import dead_command

ROW, CARD = "row", "card"


class _BroughtLoader(PrefixLoader):
    """Loads `package/name`. Jinja's own drops the prefix, and a template could not ask for one beside it."""

    load = BaseLoader.load


class PageEnvironment(Environment):
    """Knows our own templates by name, and those of a pipeline as `package/name`; beside each other as `./name`."""

    def __init__(self, collections: Iterable[Collection]) -> None:
        declared = [each for each in collections if each.templates]
        brought = {each.templates: _folder_of(each) for each in declared}
        super().__init__(
            loader=ChoiceLoader([PackageLoader("tidings.serve.pages"), _BroughtLoader(brought)]),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            finalize=markup.visible_value,
        )
        self.filters |= {
            "tidy": markup.tidy,
            "exactly": markup.exactly,
            "clean_html": markup.clean_html,
            "lasting": phrases.lasting,
            "number": phrases.number,
            "shell": phrases.shell,
            "segment": markup.segment,
            "lines": markup.lines,
            "coded": markup.coded,
            "marked": markup.marked_text,
            "safe_url": markup.safe_url,
            "host": markup.host_of,
            "day": phrases.day,
            "exact": rfc3339,
            "command": phrases.command,
            "answered": phrases.answered,
            "run": phrases.run_words,
            "paced": phrases.paced,
            "remedy": source_words.remedy,
            "next_why": source_words.next_why,
            "updater": phrases.updater_words,
            "processor": phrases.processor_words,
        }
        self.globals |= {"count": phrases.count, "query": link_query, "dead_command": dead_command}
        self._brought = {name for each in declared for part in (ROW, CARD) if self._is_there(name := _name(each, part))}

    def join_path(self, template: str, parent: str) -> str:
        """Find a template beside the one that asks for it, so that a pipeline's folder can be copied as it is."""
        return f"{parent.rpartition('/')[0]}{template[1:]}" if template.startswith("./") else template

    def template_of(self, collection: Collection, part: str) -> str:
        """Return the template of a collection's rows or cards: its pipeline's own, or the plain one."""
        name = _name(collection, part)
        return name if name in self._brought else f"plain_{part}.html"

    def _is_there(self, name: str) -> bool:
        # Read at the start: a template that cannot be read should stop the server, not the page of one card.
        try:
            self.get_template(name)
        except TemplateSyntaxError as error:
            raise Misconfigured(f"the template {name} cannot be read, line {error.lineno}: {error.message}") from error
        except TemplateNotFound:
            return False
        return True


def _name(collection: Collection, part: str) -> str:
    return f"{collection.templates}/{collection.singular}_{part}.html"


def _folder_of(collection: Collection) -> PackageLoader:
    try:
        return PackageLoader(collection.templates)
    except (ImportError, ValueError) as error:
        raise Misconfigured(
            f"the collection {collection.name} says its templates are in {collection.templates!r}: {error}"
        ) from error


def link_query(values: Mapping[str, Any], **changes: Any) -> str:
    """Return a query string of the values that are set, some of them changed."""
    chosen = {name: value for name, value in {**values, **changes}.items() if value not in (None, "")}
    return f"?{urlencode(chosen)}" if chosen else "?"
