"""Finds what an issue names in its project: lines that are linked, paths, identifiers, failing tests, commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import unquote

from tidings.process.enrich.local.markdown import Markdown
from tidings.process.enrich.local.sentences import split_sentences

NAMES_MAX: Final = 3
NAME_CHARS_MAX: Final = 100
SEARCHED_CHARS_MAX: Final = 20_000

_EXTENSIONS = (
    "py|pyi|pyx|js|mjs|cjs|jsx|ts|tsx|vue|svelte|c|cc|cpp|cxx|h|hpp|cs|java|kt|go|rs|rb|erb|haml|php|swift|m|scala|clj|ex|exs|"
    "erl|hs|ml|dart|lua|r|jl|pl|sh|ps1|sql|html|css|scss|less|md|mdx|rst|adoc|txt|json|ya?ml|toml|ini|cfg|xml|gradle|"
    "lock|proto|ipynb|tf|cmake|zig|nim"
)
_TEST = r"(?:::[\w\[\]-]{1,80}){0,3}"
PATH: Final = re.compile(
    rf"(?<![\w/.\\~:@$-])(?:\./)?((?:[\w.@-]{{1,60}}/){{1,10}}[\w.-]{{1,80}}\.(?:{_EXTENSIONS})(?![\w/-]){_TEST})"
)
FILE_NAME: Final = re.compile(rf"(?<![\w/.\\~:@$-])([A-Za-z_][\w.-]{{0,60}}\.(?:{_EXTENSIONS}))(?![\w/-])")
FRAME: Final = re.compile(
    rf"(?<![\w.@+-])(?P<path>(?:[\w.@+-]{{1,80}}/){{1,20}}[\w.-]{{1,80}}\.(?:{_EXTENSIONS}))(?:\", line |:|\()\d{{1,6}}"
)
PERMALINK: Final = re.compile(
    r"https://github\.com/(?P<repo>[\w.-]{1,100}/[\w.-]{1,100})/blob/(?P<ref>[\w./-]{1,200}?)/"
    r"(?P<path>[\w.%@+/-]{1,300}?)#L(?P<first>\d{1,7})(?:-L?(?P<last>\d{1,7}))?$"
)
BLOB: Final = re.compile(
    r"https://github\.com/(?P<repo>[\w.-]{1,100}/[\w.-]{1,100})/(?:blob|tree)/(?P<ref>[^/\s]{1,100})/(?P<path>[\w.%@+/-]{1,300})$"
)
FAILS: Final = re.compile(
    r"\b(?:fail(?:s|ed|ing|ure)?|flaky|broken|intermittent(?:ly)?|skipped|xfail)\b", re.IGNORECASE
)
FAILING_TEST: Final = re.compile(
    r"^(?:FAILED|FAIL:?|ERROR|--- FAIL:)\s{1,4}(?P<test>[\w./:\[\]-]{4,120})", re.MULTILINE
)
TEST_PATH: Final = re.compile(r"(?:^|/)(?:tests?|specs?|__tests__)/|(?:^|/)test_|[._](?:test|spec)\.", re.IGNORECASE)
MINE: Final = re.compile(r"\b(?:my|our|i (?:have|created|added|wrote|put|made)|i've)\b[^.!?\n]{0,40}$", re.IGNORECASE)

_NOT_OURS = """
    users home tmp temp downloads desktop documents node_modules site-packages dist-packages venv .venv env appdata
    target build dist var opt usr etc gems vendor .gem .cache cache windows private workspace __pycache__ pods
    bower_components deriveddata path to foo bar baz your your-project my-project my-app myapp my_app mnt root
    program runner www
"""
NOT_OURS: Final = frozenset(_NOT_OURS.split())
"""Folders of the reporter's machine, of what was installed or built, and made-up ones."""
_BRANDS = """
    github gitlab javascript typescript macos ios ipados tvos watchos postgresql mysql mariadb mongodb youtube linkedin
    openai chatgpt devtools nodejs graphql oauth whatsapp iphone ipad icloud powershell jetbrains intellij pycharm
    webstorm vscode vscodium webassembly webgl webgpu websocket websockets webrtc readme opengl opencv pytorch
    tensorflow numpy scipy wordpress duckduckgo circleci travisci dockerhub stackoverflow hacktoberfest coffeescript
    clickhouse elasticsearch cockroachdb sqlite fastapi graphviz bitbucket sourceforge photoshop paypal freebsd openbsd
    netbsd opensuse archlinux raspberrypi ebook esbuild appimage testflight playstation deepmind huggingface langchain
    cloudflare dropbox onedrive sharepoint airpods airplay carplay facetime imessage laTeX bibtex mathjax jquery
    reactjs vuejs nextjs mysqli phpstorm gitignore gitbook gitpod devops devcontainer homebrew microsoft openapi
    openid talkback saml grpc restful macbook opensource esp32 mcdonald
"""
BRANDS: Final = frozenset(_BRANDS.lower().split())
"""Names in mixed case of no single project; searching the code for them finds nothing."""
BUILT_IN: Final = re.compile(
    r"(?:Type|Value|Key|Attribute|Name|Runtime|Index|NoMethod|Argument|Reference|Syntax|Import|ModuleNotFound|OS|IO|"
    r"FileNotFound|Permission|Assertion|Unicode\w{0,6}|Zero\w{0,10}|Recursion|Memory|Timeout|Connection\w{0,10}|"
    r"NullPointer|IllegalArgument|IllegalState|ClassCast|IndexOutOfBounds|StackOverflow|OutOfMemory|Range|Standard|Load|"
    r"Deprecation)(?:Error|Exception|Warning)$"
)
CODE: Final = re.compile(r"`{1,3}([^`\n]{2,100})`{1,3}")
TOKEN: Final = re.compile(
    r"(?<![\w./@:#-])(?P<name>--[a-z][\w-]{1,40}|[A-Za-z_]\w{0,60}(?:(?:::|\.|\#|->)[A-Za-z_]\w{0,60}){0,5}(?:\(\))?)(?![\w/@-])"
)
CAMEL: Final = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
SINGLE: Final = re.compile(r"(?=.*[A-Za-z])[\w.:#@$>/-]{2,80}(?:\(\))?$")

RUNNERS: Final = re.compile(
    r"(?:(?:python3? -m )?pytest|tox|nox|make|just|cargo (?:test|run|bench|clippy|fmt|build)|go (?:test|vet|run|build)|"
    r"npm (?:test|run|start)|(?:yarn|pnpm) (?!add|install)|mvn|\./mvnw|gradle|\./gradlew|rake|bundle exec|mix test|"
    r"dotnet (?:test|run|build)|ctest|pre-commit|rspec|phpunit|swift test|bazel (?:test|run|build))\b",
)
PROMPT: Final = re.compile(r"^\s{0,4}(?:\$|%|❯|>) {1,2}(?P<command>[^\n]{2,200})$", re.MULTILINE)


def linked_lines(links: Iterable[str], repo: str) -> list[str]:
    """Return `path, lines 3 to 7` of what links to code of this very repository, with the address."""
    found = []
    for link in links:
        match = PERMALINK.match(link) or BLOB.match(link)
        if match is None or match["repo"].lower() != repo.lower():
            continue
        path, parts = unquote(match["path"]), match.groupdict()
        where = path
        if first := parts.get("first"):
            last = parts.get("last")
            where = f"{path}, lines {first} to {last}" if last and last != first else f"{path}, line {first}"
        found.append(f"{where}: {link}")
    return [*dict.fromkeys(found)]


def paths(parts: Markdown, repo: str) -> list[str]:
    """Return the paths that prose names, that stand alone in code marks, and those of the project's stack frames."""
    found = [_file(span) for span in parts.code_spans if PATH.fullmatch(_file(span)) and _may_be_ours(span)]
    for text in parts.uncoded:
        named = [match for match in PATH.finditer(text[:SEARCHED_CHARS_MAX]) if _may_be_ours(match[1])]
        found += [_file(match[1]) for match in named if not MINE.search(text[: match.start()])]
    for block in parts.code_blocks:
        found += _frames(block, repo)
    return [*dict.fromkeys(found)]


def file_names(parts: Markdown) -> list[str]:
    """Return files named without a folder, as only those who know the project name its own."""
    found = [span for span in parts.code_spans if FILE_NAME.fullmatch(span)]
    found += [match[1] for text in parts.uncoded for match in FILE_NAME.finditer(text[:SEARCHED_CHARS_MAX])]
    return [*dict.fromkeys(found)]


def failing_tests(parts: Markdown) -> list[str]:
    """Return the tests that are said to fail, or that a pasted run reports as failed."""
    found = [
        match["test"] for block in parts.code_blocks for match in FAILING_TEST.finditer(block[:SEARCHED_CHARS_MAX])
    ]
    for sentence in (sentence for text in parts.prose for sentence in split_sentences(text, "en")):
        if FAILS.search(sentence):
            tests = [match[1] for match in PATH.finditer(sentence) if TEST_PATH.search(match[1])]
            found += [test for test in tests if _may_be_ours(test)]
    return [*dict.fromkeys(found)]


def identifiers(title: str, repo: str) -> list[str]:
    """Return the names of code in a title: what stands in code marks, or cannot be an ordinary word."""
    coded = [span.strip() for span in CODE.findall(title)]
    found = [span for span in coded if SINGLE.match(span)]
    found += [match["name"] for match in TOKEN.finditer(CODE.sub(" ", title)) if _is_code(match["name"])]
    own = repo.rpartition("/")[2].lower()
    known = {own, own.replace("-", ""), own.replace("-", "_"), repo.lower()}
    return [name for name in dict.fromkeys(found) if name.lower() not in known and not _is_file(name)]


def commands(title: str, parts: Markdown, repo: str) -> list[str]:
    """Return commands of the project itself, and those that test or build it; how others are installed is no matter."""
    own = repo.rpartition("/")[2].lower()
    said = [*CODE.findall(title), *parts.code_spans]
    for block in parts.code_blocks:
        said += [match["command"] for match in PROMPT.finditer(block[:SEARCHED_CHARS_MAX])]
        lines = block.strip().splitlines()
        said += lines if len(lines) == 1 else []
    return [*dict.fromkeys(" ".join(line.split()) for line in said if _is_command(line.strip(), own))]


def _is_command(line: str, own: str) -> bool:
    if len(line) > NAME_CHARS_MAX or line.endswith((":", "{", "(", ")", ";")) or " = " in line:
        return False
    first, _, rest = line.removeprefix("./").removeprefix("npx ").partition(" ")
    return bool(rest and len(own) > 1 and first.lower() == own and rest[0].isascii()) or RUNNERS.match(line) is not None


def _is_code(name: str) -> bool:
    bare = name.removesuffix("()")
    if name.startswith("--") or name.endswith("()"):
        return True
    if BUILT_IN.match(bare) or bare.lower() in BRANDS or bare.isupper():
        return False
    if "::" in bare or "->" in bare or "#" in bare or "_" in bare.strip("_"):
        return True
    return "." not in bare and CAMEL.search(bare) is not None and bare.lower().rstrip("s") not in BRANDS


def _is_file(name: str) -> bool:
    return FILE_NAME.match(name) is not None or PATH.match(name) is not None


def _frames(block: str, repo: str) -> Iterator[str]:
    """Find the frames of a stack trace that lie in the project: a folder of their path is named after it."""
    own = {repo.rpartition("/")[2].lower(), repo.rpartition("/")[2].lower().replace("-", "_")}
    for match in FRAME.finditer(block[:SEARCHED_CHARS_MAX]):
        folders = match["path"].split("/")
        named = [
            at for at, each in enumerate(folders[:-1]) if each.lower().partition("-")[0] in own or each.lower() in own
        ]
        if not named:
            continue
        is_relative = block[match.start() - 1 : match.start()] != "/"
        if is_relative and _may_be_ours(match["path"]):
            yield match["path"]
        elif rest := _inside(folders, named):
            yield rest


def _inside(folders: list[str], named: list[int]) -> str | None:
    """Return a path as it stands in the project: behind the folder of an installed version, or from its package on."""
    versioned = [at for at in named if "-" in folders[at]]
    start = versioned[0] + 1 if versioned else named[-1]
    if not versioned and start and folders[start - 1] in ("lib", "src"):
        start -= 1
    path = "/".join(folders[start:])
    return path if "/" in path and _may_be_ours(path) else None


def _file(path: str) -> str:
    """Drop what points into a file, `:12` or `::name`, and a leading `./`."""
    return path.removeprefix("./").partition(":")[0]


def _may_be_ours(path: str) -> bool:
    folders = [each.lower() for each in path.removeprefix("./").split("/")[:-1]]
    return not NOT_OURS.intersection(folders) and ".." not in folders and "." not in folders[0][1:]
