"""One query language for API, pages, command line, feeds and routes; `docs/search.md` explains it with examples.

    query     := either*                            every one must hold
    either    := part ("OR" part)*                  OR binds the parts beside it
    part      := ["-" | "NOT"] ( "(" query ")" | text | name ":" value )
    text      := word | word"*" | "a phrase"
    value     := text | op text | text ".." text    op: > >= < <=

Only the names of the vocabulary make a qualifier: `HN:`, `10:30` and `std::vector` are text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidings.model.errors import BadInput
from tidings.model.query_tree import AllOf, AnyOf, InThread, Not, Part, TextField, Words
from tidings.model.query_values import NUMBER_NAMES, between, compared, is_number, since_or_before
from tidings.model.vocabulary import MOMENTS, TEXT_NAMES, THREAD_NAMES, Vocabulary
from tidings.model.words import tokens

LENGTH_MAX = 1_000
PARTS_MAX = 40
DEPTH_MAX = 20
NOTHING = AnyOf(())
"""Holds for no document."""

_QUOTES = str.maketrans("“”„‟", '""""')
_NAME = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*):(?![:/])")
_OPERATOR = re.compile(r">=|<=|>|<")
_RANGE = re.compile(r"(?P<low>.*?)\.\.(?P<high>.*)")


@dataclass(frozen=True, slots=True)
class Query:
    """What was asked, parsed, and what the asker should know about it."""

    root: Part = AllOf()
    warnings: tuple[str, ...] = ()
    unknown_names: tuple[str, ...] = ()
    """What stands before a colon, and is no qualifier here: `name:value` was read as text."""

    @property
    def is_empty(self) -> bool:
        """Tell whether everything matches."""
        return self.root == AllOf()


def parse(text: str, vocabulary: Vocabulary, *, now_ms: int) -> Query:
    """Parse a query, or raise BadInput pointing at the offending character. `now_ms` is what `after:7d` counts from."""
    if len(text) > LENGTH_MAX:
        raise BadInput(f"the query has {len(text)} characters; at most {LENGTH_MAX} are allowed", position=LENGTH_MAX)
    if "\0" in text:
        raise BadInput("the query holds a NUL character", position=text.index("\0"))
    parser = _Parser(text.translate(_QUOTES), vocabulary, now_ms)
    root = parser.whole()
    return Query(root, tuple(dict.fromkeys(parser.warnings)), tuple(dict.fromkeys(parser.unknown_names)))


def point_at(text: str, error: BadInput) -> str:
    """Show the query with a mark under the offending character."""
    if error.position is None:
        return str(error)
    return f"{error}\n  {text}\n  {' ' * error.position}^"


@dataclass(frozen=True, slots=True)
class _Value:
    """A word or a quoted text, and where it begins."""

    text: str
    position: int
    is_quoted: bool = False


class _Parser:
    """Reads a query from left to right."""

    def __init__(self, text: str, vocabulary: Vocabulary, now_ms: int) -> None:
        self._text = text
        self._end = len(text.rstrip())
        self._position = 0
        self._vocabulary = vocabulary
        self._now_ms = now_ms
        self._parts = 0
        self.warnings: list[str] = []
        self.unknown_names: list[str] = []

    def whole(self) -> Part:
        """Read everything. What holds no word, such as `&`, is left out; where nothing is left, nothing is meant."""
        root = self._all_of(depth=0)
        if self._position < self._end:
            raise BadInput("this parenthesis closes none", position=self._position)
        if root is None and self._end:
            self.warnings.append(f"there is no word to search for in `{self._text.strip()}`")
            return NOTHING
        return root if root is not None else AllOf()

    def _all_of(self, depth: int) -> Part | None:
        parts: list[Part] = []
        while self._next() not in ("", ")"):
            either = self._any_of(depth)
            parts += [] if either is None else [either]
        return _joined(parts, AllOf)

    def _any_of(self, depth: int) -> Part | None:
        self._refuse_or()
        choices = [self._part(depth)]
        while self._is_word("OR"):
            place = self._position
            self._position += 2
            if self._next() in ("", ")"):
                raise BadInput('OR needs something on both sides; for the word write "or"', position=place)
            self._refuse_or()
            choices.append(self._part(depth))
        return _joined([choice for choice in choices if choice is not None], AnyOf)

    def _refuse_or(self) -> None:
        if self._is_word("OR"):
            raise BadInput('OR needs something on both sides; for the word write "or"', position=self._position)

    def _part(self, depth: int) -> Part | None:
        if self._is_word("AND"):
            self._position += 3
            return None
        self._count()
        is_negated = self._negation()
        part = self._group(depth) if self._here() == "(" else self._text_or_qualifier()
        return Not(part) if is_negated and part is not None else part

    def _negation(self) -> bool:
        """Step over a minus or NOT and say whether there is one."""
        if not self._is_word("NOT"):
            is_negated = self._next() == "-"
            self._position += is_negated
            return is_negated
        place = self._position
        self._position += 3
        if self._next() in ("", ")", "-") or any(self._is_word(word) for word in ("AND", "OR", "NOT")):
            raise BadInput('NOT needs something behind it; for the word write "not"', position=place)
        return True

    def _group(self, depth: int) -> Part | None:
        opened = self._position
        if depth >= DEPTH_MAX:
            raise BadInput(f"parentheses stand more than {DEPTH_MAX} deep", position=opened)
        self._position += 1
        part = self._all_of(depth + 1)
        if self._next() != ")":
            raise BadInput("this parenthesis is opened and never closed; add a )", position=opened)
        self._position += 1
        return part

    def _text_or_qualifier(self) -> Part | None:
        match = _NAME.match(self._text, self._position)
        name = match["name"].lower() if match is not None else ""
        if match is None or name not in self._vocabulary:
            self._doubt_name(match)
            return _words(self._value())
        self._position = match.end()
        if name in TEXT_NAMES:
            return _words(self._wanted(name), "title" if name == "title" else "text")
        return self._qualifier(name)

    def _doubt_name(self, match: re.Match[str] | None) -> None:
        """Warn of what is probably a misspelled qualifier. `Rust: a language` is none, since no value follows."""
        if match is None or match.end() >= self._end or self._text[match.end()].isspace():
            return
        self.unknown_names.append(match["name"])
        near = self._vocabulary.nearest(match["name"].lower())
        if near is not None:
            self.warnings.append(
                f'`{match[0]}` is no qualifier and was read as text; did you mean `{near}:`? Text can stand in "quotes"'
            )

    def _qualifier(self, name: str) -> Part:
        operator = _OPERATOR.match(self._text, self._position)
        self._position = operator.end() if operator is not None else self._position
        value = self._wanted(name)
        if name in THREAD_NAMES:
            return InThread(value.text)
        if name in MOMENTS:
            return since_or_before(name, value.text, self._now_ms, value.position)
        if operator is not None:
            self._warn(self._vocabulary.doubt(name, None))
            return compared(name, operator[0], value.text, self._now_ms, value.position)
        limits = _RANGE.fullmatch(value.text) if not value.is_quoted else None
        bounded = between(name, limits["low"], limits["high"], self._now_ms, value.position) if limits else None
        self._warn(self._vocabulary.doubt(name, value.text) or (_odd_value(name, value) if bounded is None else None))
        if bounded is not None:
            return bounded
        return compared(name, "=", value.text, self._now_ms, value.position)

    def _warn(self, doubt: str | None) -> None:
        self.warnings += [] if doubt is None else [doubt]

    def _wanted(self, name: str) -> _Value:
        """Read the value of a qualifier."""
        if self._here() == "(":
            help_text = f"{name}: takes one value; write ({name}:this OR {name}:that)"
            raise BadInput(help_text, position=self._position)
        if self._here() in ("", ")") or self._here().isspace():
            raise BadInput(f"{name}: needs a value, such as {name}:something", position=self._position - 1)
        value = self._value()
        if not value.text.strip():
            raise BadInput(f"{name}: needs a value, such as {name}:something", position=value.position - 1)
        return value

    def _value(self) -> _Value:
        """Read a quoted text, or a word with the parentheses that open and close inside it, as in `main()`."""
        start = self._position
        if self._here() == '"':
            closing = self._text.find('"', start + 1)
            if closing < 0:
                raise BadInput('a quotation mark is opened and never closed; add the second "', position=start)
            is_prefix = self._text.startswith("*", closing + 1)
            self._position = closing + 1 + is_prefix
            return _Value(self._text[start + 1 : closing] + "*" * is_prefix, start + 1, is_quoted=True)
        opened = 0
        while (letter := self._here()) and not letter.isspace() and letter != '"':
            opened += (letter == "(") - (letter == ")")
            if opened < 0:
                break
            self._position += 1
        return _Value(self._text[start : self._position], start)

    def _next(self) -> str:
        """Step over space and return what stands there; empty at the end."""
        while self._here().isspace():
            self._position += 1
        return self._here()

    def _here(self) -> str:
        return self._text[self._position] if self._position < self._end else ""

    def _is_word(self, word: str) -> bool:
        self._next()
        behind = self._position + len(word)
        return self._text.startswith(word, self._position) and (behind >= self._end or self._text[behind] in " \t\n()")

    def _count(self) -> None:
        self._parts += 1
        if self._parts > PARTS_MAX:
            raise BadInput(f"the query has more than {PARTS_MAX} parts", position=self._position)


def _joined(parts: list[Part], join: type[AllOf] | type[AnyOf]) -> Part | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    return join(tuple(parts))


def _odd_value(name: str, value: _Value) -> str | None:
    """Say why a value that is allowed will hardly be what was meant."""
    if name in NUMBER_NAMES and not is_number(value.text):
        return f"`{name}:{value.text}` finds nothing: {name} is a number, as in {name}:100, {name}:>100 or {name}:5..20"
    if value.text.endswith("*") and not value.is_quoted:
        return f"`{name}:{value.text}` asks for that very value: a * completes words of title and text alone"
    return None


def _words(value: _Value, field: TextField = "") -> Words | None:
    text = value.text.rstrip("*")
    return Words(text, field, is_prefix=text != value.text) if tokens(text) else None
