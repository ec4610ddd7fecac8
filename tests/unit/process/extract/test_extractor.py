import asyncio
import gzip
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.waiting import until, wait_until

from tidings.model.errors import Misconfigured, Permanent, Transient
from tidings.process.extract.extractor import MIB, ChildExtractor
from tidings.process.extract.page import cut_at_sentence, decode_page, extract_page, language_of

SENTENCE = "The quick brown fox jumps over the lazy dog near the quiet river bank on a sunny day. "
PAGE = f"""<html lang="en"><head><title>Foxes | Example</title><link rel="canonical" href="/a?utm_source=x">
<meta name="author" content="Jane Doe"><meta property="article:published_time" content="2024-03-02T10:00:00Z">
<meta property="og:title" content="Foxes at the river"></head><body><nav>Home About Subscribe</nav>
<article><h1>Foxes at the river</h1><p>{SENTENCE * 5}</p><p>Again: {SENTENCE * 5}</p></article>
<footer>Cookie notice</footer></body></html>"""
URL = "https://www.example.com/a?utm_source=x"


@pytest.fixture
async def extractor() -> AsyncIterator[ChildExtractor]:
    async with ChildExtractor() as running:
        yield running


def child_of(extractor: ChildExtractor) -> int:
    (pid,) = extractor.child_pids()
    return pid


def is_alive(pid: int) -> bool:
    """A zombie that its new parent has not collected yet counts as dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


# What is read from a page


def test_a_page_gives_its_text_and_what_it_says_of_itself():
    extract = extract_page(PAGE.encode(), URL)
    assert extract.text.count("quick brown fox") == 10
    assert "Cookie" not in extract.text
    assert extract.title == "Foxes at the river"
    assert extract.author == "Jane Doe"
    assert extract.published_at == "2024-03-02"
    assert extract.canonical_url == "https://www.example.com/a"
    assert extract.language == "en"


def test_nobody_speaks_for_somebody_elses_articles():
    page = PAGE.replace('href="/a?utm_source=x"', 'href="https://victim.example/article"')
    assert extract_page(page.encode(), URL).canonical_url is None
    sibling = PAGE.replace('href="/a?utm_source=x"', 'href="https://example.com/a"')
    assert extract_page(sibling.encode(), "https://amp.example.com/a").canonical_url == "https://example.com/a"


@pytest.mark.parametrize("html", [b"", b"   ", b"\x00\x01\x02", b"<", b"<html></html>", b"{}", b"\xff\xfe"])
def test_nothing_readable_is_empty_text(html):
    assert len(extract_page(html, URL).text) < 20


def test_nul_and_lone_surrogates_never_leave():
    body = PAGE.replace("lazy", "la\x00zy &#xD800; &#0;").encode() + b"\xed\xa0\x80"
    extract_page(body, URL).text.encode("utf-8")
    assert "\x00" not in extract_page(body, URL).text


@pytest.mark.parametrize(
    ("body", "charset", "text"),
    [
        ("Köln".encode(), None, "Köln"),
        ("Köln".encode("latin-1"), None, "Köln"),
        ("Köln".encode("latin-1"), "utf-8", "Köln"),
        ("Köln".encode(), "iso-8859-1", "Köln"),
        ("“Köln”".encode("cp1252"), "iso-8859-1", "“Köln”"),
        ("Привет".encode("cp1251"), "windows-1251", "Привет"),
        (b"<meta charset=koi8-r>" + "Привет".encode("koi8-r"), None, "<meta charset=koi8-r>Привет"),
        ("日本".encode("shift_jis"), "Shift_JIS", "日本"),
        ("日本".encode("iso2022_jp"), "iso-2022-jp", "日本"),
        ("日本".encode("gb18030"), "gb2312", "日本"),
        ("Köln".encode("utf-16"), None, "Köln"),
        ("Köln".encode("utf-16-le"), "utf-16-le", "Köln"),
        (b"\xef\xbb\xbfK\xc3\xb6ln", "latin-1", "Köln"),
        (b"plain", "no-such-charset", "plain"),
        (b"plain", "hex", "plain"),
        (b"+AGE-", "utf-7", "+AGE-"),
        (b"a\xff\xfeb", "utf-8", "aÿþb"),
    ],
)
def test_text_is_read_whatever_the_server_calls_it(body, charset, text):
    assert decode_page(body, charset) == text


def test_the_cut_falls_at_a_sentence():
    text = SENTENCE * 50
    cut = cut_at_sentence(text, 1000)
    assert len(cut) <= 1000
    assert cut.endswith("day.")
    assert text.startswith(cut)


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("One two. Three four.", 100, "One two. Three four."),
        ("One two. Three four.", 12, "One two."),
        ("One two. Three four.", 20, "One two. Three four."),
        ('He said "Go." Then more came', 15, 'He said "Go."'),
        ("Price is 3.50 dollars today and", 20, "Price is 3.50"),
        ("これは文です。次の文です。終", 8, "これは文です。"),
        ("abcdefghijklmnop", 5, "abcde"),
        ("A. bcdefghijklmno pqrst", 20, "A. bcdefghijklmno"),
    ],
)
def test_the_cut_is_kind_to_every_text(text, limit, cut):
    assert cut_at_sentence(text, limit) == cut


def test_too_little_text_has_no_language():
    assert language_of("Hi.") is None
    assert language_of("Der schnelle braune Fuchs springt über den faulen Hund am stillen Fluss.") == "de"


def test_extraction_reaches_its_quality_floor(samples):
    pages = samples / "pages"
    score = load(pages / "score.py")
    truth = json.loads((pages / "ground-truth.json").read_text("utf-8"))
    rows = []
    for key, told in truth.items():
        html = gzip.decompress((pages / "html" / f"{key}.html.gz").read_bytes())
        text = extract_page(html, told["url"]).text
        assert len(text) <= 10_240
        rows.append(score.page_score(told["articleBody"][:10_240], text))
    assert score.aggregate(rows)["f1"] >= 0.95


def load(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The child


async def test_the_child_reads_what_the_function_reads(extractor):
    assert await extractor.extract(PAGE.encode(), URL) == extract_page(PAGE.encode(), URL)
    assert len((await extractor.extract(PAGE.encode(), URL, max_chars=200)).text) <= 200
    latin = PAGE.replace("lazy", "träge").encode("latin-1")
    assert "träge" in (await extractor.extract(latin, URL, charset="latin-1")).text


async def test_a_page_that_takes_too_long_costs_one_attempt(extractor):
    await extractor.extract(PAGE.encode(), URL)
    extractor._page_seconds = 0.3
    os.kill(child_of(extractor), signal.SIGSTOP)  # What a parser stuck in C looks like from outside.
    stuck = child_of(extractor)
    with pytest.raises(Transient, match="longer than"):
        await extractor.extract(PAGE.encode(), URL)
    assert not is_alive(stuck)
    extractor._page_seconds = 10
    assert (await extractor.extract(PAGE.encode(), URL)).title == "Foxes at the river"


async def test_a_page_that_really_stalls_the_parser_is_stopped(extractor):
    await extractor.extract(PAGE.encode(), URL)
    extractor._page_seconds = 0.5
    attributes = b" ".join(b"a%d=1" % n for n in range(200_000))
    stuck = child_of(extractor)
    with pytest.raises(Transient, match="longer than"):
        await extractor.extract(b"<p " + attributes + b">x</p>", URL)
    assert not is_alive(stuck)


async def test_a_child_that_dies_costs_one_attempt(extractor):
    await extractor.extract(PAGE.encode(), URL)
    os.kill(child_of(extractor), signal.SIGSTOP)
    reading = asyncio.create_task(extractor.extract(b"<p>" * 300_000, URL))
    await asyncio.sleep(0.05)
    os.kill(child_of(extractor), signal.SIGKILL)
    with pytest.raises(Transient, match="killed its parser"):
        await reading
    assert (await extractor.extract(PAGE.encode(), URL)).title == "Foxes at the river"


async def test_a_page_that_eats_memory_costs_one_attempt():
    paragraphs = b"<html><body>" + b"<p><b>x</b><i>y</i></p>" * 400_000 + b"</body></html>"
    async with ChildExtractor(memory_bytes=400 * MIB) as extractor:
        with pytest.raises(Transient, match="MiB"):
            await extractor.extract(paragraphs, URL)
        assert (await extractor.extract(PAGE.encode(), URL)).title == "Foxes at the river"


READY = "import struct, sys; sys.stdout.buffer.write(struct.pack('>I', 1) + b'\\x80'); sys.stdout.flush(); "
"""What a child says when its parser is loaded: a frame with an empty answer."""


def dying(program: str) -> ChildExtractor:
    """An extractor whose child is another program."""
    return ChildExtractor(program=(sys.executable, "-c", program))


async def failure(extractor: ChildExtractor) -> Exception:
    async with extractor:
        with pytest.raises((Transient, Permanent, Misconfigured)) as caught:
            await extractor.extract(PAGE.encode(), URL)
        assert extractor.child_pids() == []
    return caught.value


async def test_a_parser_that_is_not_installed_says_what_is_missing_and_is_not_tried_again_at_once(tmp_path):
    starts = tmp_path / "starts"
    missing = f"open({str(starts)!r}, 'a').write('x'); import no_such_parser"
    async with dying(missing) as extractor:
        for _ in range(3):
            with pytest.raises(Misconfigured, match=r"No module named 'no_such_parser'.*tidings doctor"):
                await extractor.extract(PAGE.encode(), URL)
    assert starts.read_text() == "x"


async def test_a_module_missing_only_when_a_page_is_read_is_no_page_s_fault():
    assert isinstance(error := await failure(dying(READY + "sys.stdin.read(1); import no_such_parser")), Misconfigured)
    assert "No module named 'no_such_parser'" in str(error)


@pytest.mark.parametrize(
    ("program", "kind", "said"),
    [
        ("raise MemoryError", Transient, "out of memory, of which it may have 512 MiB"),
        ("raise ImportError('libx.so: failed to map segment from shared object')", Transient, "out of memory"),
        ("import os; os.kill(os.getpid(), 9)", Transient, "out of memory.*SIGKILL"),
        ("import os; os.kill(os.getpid(), 15)", Transient, "SIGTERM"),
        ("import os; os.kill(os.getpid(), 4)", Misconfigured, "cannot start: it was ended by SIGILL"),
        ("import sys; sys.exit(7)", Misconfigured, "exited with code 7"),
        ("print('no frame at all')", Misconfigured, "something else than a frame|exited with code 0"),
        ("raise ValueError('first line\\nsecond line')", Misconfigured, "ValueError: first line second line"),
        (READY + "sys.stdin.read(1); raise MemoryError", Transient, "killed its parser: out of memory"),
        (READY + "import os; sys.stdin.read(1); os.kill(os.getpid(), 11)", Transient, "killed its parser.*SIGSEGV"),
        (READY + "sys.stdin.read(1); raise OSError('disk')", Transient, "killed its parser.*OSError: disk"),
    ],
)
async def test_how_a_child_died_is_told(program, kind, said):
    error = await failure(dying(program))
    assert type(error) is kind
    assert re.search(said, str(error))


async def test_a_child_that_talks_without_end_is_heard_shortly_and_blocks_nothing():
    noise = "sys.stderr.write('noise ' * 400_000); sys.stderr.flush(); sys.stdin.read(1); raise OSError('x' * 5_000)"
    error = await failure(dying(READY + noise))
    assert "OSError: xxx" in str(error)
    assert len(str(error)) < 500


async def test_a_program_that_is_not_there_is_misconfigured(tmp_path):
    async with ChildExtractor(program=(str(tmp_path / "python"),)) as extractor:
        with pytest.raises(Misconfigured, match="No such file"):
            await extractor.extract(PAGE.encode(), URL)


async def test_the_extractor_can_be_tried(extractor):
    await extractor.check()
    assert len(extractor.child_pids()) == 1
    with pytest.raises(Misconfigured, match="no_such_parser"):
        async with dying("import no_such_parser") as broken:
            await broken.check()


async def test_a_page_beyond_the_limit_is_not_even_tried(extractor):
    with pytest.raises(Permanent, match="too large"):
        await extractor.extract(b"x" * (20 * MIB + 1), URL)
    assert extractor.child_pids() == []


async def test_a_cancelled_reader_does_not_leave_its_answer_to_the_next(extractor):
    await extractor.extract(PAGE.encode(), URL)
    os.kill(child_of(extractor), signal.SIGSTOP)
    first = child_of(extractor)
    reading = asyncio.create_task(extractor.extract(PAGE.encode(), URL))
    await asyncio.sleep(0.05)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await until(lambda: not is_alive(first))
    other = PAGE.replace("Foxes at the river", "Hares in the field")
    assert (await extractor.extract(other.encode(), URL)).title == "Hares in the field"


async def test_children_are_replaced_before_they_grow_old():
    async with ChildExtractor(pages_per_child=2) as extractor:
        seen = set()
        for _ in range(3):
            await extractor.extract(PAGE.encode(), URL)
            seen.add(child_of(extractor))
        assert len(seen) == 2


async def test_two_children_share_the_work_and_nothing_is_left_of_them():
    async with ChildExtractor(children=2) as extractor:
        found = await asyncio.gather(*(extractor.extract(PAGE.encode(), URL) for _ in range(8)))
        pids = extractor.child_pids()
        assert len(pids) == 2
    assert len(set(found)) == 1
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)  # noqa: ASYNC240 - not even zombies


async def test_the_child_knows_none_of_our_secrets(extractor, monkeypatch):
    monkeypatch.setenv("TIDINGS_API_KEY", "canary")
    await extractor.extract(PAGE.encode(), URL)
    assert b"canary" not in environment_of(child_of(extractor))


async def test_outside_its_block_the_extractor_refuses():
    with pytest.raises(RuntimeError):
        await ChildExtractor().extract(PAGE.encode(), URL)


def test_children_die_with_a_killed_parent():
    program = (
        "import asyncio\n"
        "from tidings.process.extract.extractor import ChildExtractor\n"
        "async def main():\n"
        "    async with ChildExtractor() as extractor:\n"
        "        await extractor.extract(b'<p>hello</p>', 'https://example.com/')\n"
        "        print(*extractor.child_pids(), flush=True)\n"
        "        await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_alive(child)
        parent.kill()
        parent.wait()
        wait_until(lambda: not is_alive(child))
