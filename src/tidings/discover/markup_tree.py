"""A page as a tree, and what CSS selectors find in it. Pages are strangers': used only in a child process."""

from __future__ import annotations

import codecs
import re
from functools import lru_cache
from typing import Any
from urllib.parse import urljoin

import lxml.html
from cssselect import HTMLTranslator, SelectorError
from lxml import etree

from tidings.model.errors import BadInput
from tidings.model.harmless import storable

_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_SKIPPED = {"script", "style", "template", "noscript", "svg", "head", "iframe"}
_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset", "figcaption", "figure"}
    | {"footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre"}
    | {"section", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"}
)
DEPTH_MAX = 200


def tree_of(body: bytes, content_type: str | None) -> Any:
    """Parse a page, whatever it calls its characters; None where there is nothing."""
    found = _CHARSET.search(content_type or "")
    encoding = found[1] if found and _is_known(found[1]) else None
    try:
        body.decode()
        encoding = "utf-8"  # Other codings do not look like it by accident.
    except UnicodeDecodeError:
        pass
    try:
        return lxml.html.document_fromstring(body, parser=lxml.html.HTMLParser(encoding=encoding, huge_tree=False))
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return None


def base_of(tree: Any, url: str) -> str:
    """Return the address that links of a page are relative to."""
    href = next((each.get("href") for each in tree.iter("base") if each.get("href")), "")
    return urljoin(url, href) if href else url


def select(tree: Any, selector: str) -> list[Any]:
    """Return the elements that a selector finds below an element, in the order of the page."""
    found: list[Any] = _path(selector)(tree)
    return found


def value_of(element: Any, selector: str) -> str:
    """Return what `selector` or `selector@attribute` finds below an element: an attribute, or words."""
    css, _, attribute = selector.partition("@")
    elements = select(element, css) if css.strip() else [element]
    if not elements:
        return ""
    return str(elements[0].get(attribute.strip()) or "").strip() if attribute else words_of(elements[0]).strip()


def check_selector(name: str, selector: str) -> None:
    """Raise BadInput if a selector cannot be read."""
    css, at, attribute = selector.partition("@")
    if at and not re.fullmatch(r"[\w:-]{1,60}", attribute.strip()):
        raise BadInput(f"options.{name}: `{attribute}` is no attribute; write it as in a@href")
    if not css.strip():
        if at:
            return
        raise BadInput(f"options.{name}: a selector is empty")
    try:
        _path(css)
    except SelectorError as error:
        raise BadInput(f"options.{name}: `{css}` is no CSS selector that is understood: {error}") from error


def words_of(element: Any) -> str:
    """Return the words below an element, each block on a line of its own."""
    pieces: list[str] = []
    _gather(element, pieces, 0)
    lines = (" ".join(line.split()) for line in "".join(pieces).split("\n"))
    return storable("\n".join(line for line in lines if line))


def html_of(element: Any) -> str:
    """Return an element as HTML, to be sanitized."""
    return storable(str(etree.tostring(element, encoding="unicode", method="html", with_tail=False)))


def _gather(element: Any, pieces: list[str], depth: int) -> None:
    if not isinstance(element.tag, str) or element.tag in _SKIPPED or depth > DEPTH_MAX:
        return
    edge = "\n" if element.tag in _BLOCKS else ""
    pieces += (edge, re.sub(r"\s+", " ", element.text or ""))
    for child in element:
        _gather(child, pieces, depth + 1)
        pieces.append(re.sub(r"\s+", " ", child.tail or ""))
    pieces.append(edge)


@lru_cache(maxsize=256)
def _path(selector: str) -> etree.XPath:
    return etree.XPath(HTMLTranslator().css_to_xpath(selector.strip(), prefix="descendant::"))


def _is_known(charset: str) -> bool:
    try:
        return codecs.lookup(charset).name not in ("utf-7", "idna", "punycode")
    except (LookupError, ValueError):
        return False
