import timeit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.errors import BadInput
from tidings.model.urls import canonical_url, public_host


@pytest.mark.parametrize(
    ("spelling", "canonical"),
    [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://Example.COM/Path", "https://example.com/Path"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("http://example.com:80/a", "http://example.com/a"),
        ("http://example.com:8080/a", "http://example.com:8080/a"),
        ("https://example.com./a", "https://example.com/a"),
        ("https://user:secret@example.com/a", "https://example.com/a"),
        ("https://example.com/a#part", "https://example.com/a"),
        ("https://example.com/a?", "https://example.com/a"),
        ("https://example.com/a?utm_source=x&utm_medium=y", "https://example.com/a"),
        ("https://example.com/a?UTM_Source=x&id=7", "https://example.com/a?id=7"),
        ("https://example.com/a?id=7&fbclid=abc&gclid=def", "https://example.com/a?id=7"),
        ("https://example.com/a?b=2&a=1", "https://example.com/a?b=2&a=1"),
        ("https://example.com/a?ref=home&source=list", "https://example.com/a?ref=home&source=list"),
        ("https://example.com/a?q=1&&r=2", "https://example.com/a?q=1&r=2"),
        ("https://example.com/%7euser/%2fx", "https://example.com/~user/%2Fx"),
        ("https://example.com/a/./b/../c", "https://example.com/a/c"),
        ("https://example.com/a/..", "https://example.com/"),
        ("https://example.com/../../a", "https://example.com/a"),
        ("https://example.com/straße?q=ü", "https://example.com/stra%C3%9Fe?q=%C3%BC"),
        ("https://münchen.de/", "https://xn--mnchen-3ya.de/"),
        ("https://example.com/a b", "https://example.com/a%20b"),
        ("  https://example.com/a\n", "https://example.com/a"),
        ("http://[2001:DB8::1]:80/a", "http://[2001:db8::1]/a"),
        ("https://www.example.com/a/", "https://www.example.com/a/"),
    ],
)
def test_one_article_has_one_spelling(spelling, canonical):
    assert canonical_url(spelling) == canonical
    assert canonical_url(canonical) == canonical


def test_the_same_article_from_two_providers_has_one_key():
    from_feed = "https://www.coindesk.com/markets/bitcoin-rises/?utm_source=rss&utm_medium=feed#top"
    from_api = "HTTPS://www.coindesk.com:443/markets/bitcoin-rises/?fbclid=IwAR0"
    assert canonical_url(from_feed) == canonical_url(from_api)


@pytest.mark.parametrize(
    "nonsense",
    ["", "example.com/a", "mailto:a@b.c", "javascript:alert(1)", "http://", "http:///a", "http://[::1", "ftp://a.b/c",
     "http://a.com:99999/", "http://a.com:x/", "data:text/html,hi", "https://" + "a" * 9000 + ".com/"],
)  # fmt: skip
def test_what_is_no_web_address_is_refused(nonsense):
    with pytest.raises(BadInput):
        canonical_url(nonsense)


def test_refusals_repeat_neither_query_nor_credentials():
    with pytest.raises(BadInput) as refused:
        canonical_url("ftp://user:hunter2@example.com/a?key=canary")
    assert "canary" not in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_relative_addresses_are_read_against_their_page():
    assert canonical_url("../b?utm_id=1", base="https://example.com/x/y/z") == "https://example.com/x/b"
    assert canonical_url("//other.example/a", base="https://example.com/") == "https://other.example/a"


@given(st.text(max_size=60))
def test_any_text_gives_a_stable_key_or_a_refusal(text):
    try:
        once = canonical_url("https://example.com/" + text)
    except BadInput:
        return
    assert once.isascii()
    assert canonical_url(once) == once


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://www.Example.com:8443/a", "example.com"),
        ("https://news.example.com.", "news.example.com"),
        ("nonsense", ""),
        ("http://[::1", ""),
    ],
)
def test_readers_see_a_plain_host(url, host):
    assert public_host(url) == host


def test_a_key_costs_microseconds():
    urls = [f"https://www.example.com/2026/{n}.html?utm_source=rss&id={n}" for n in range(500)]
    seconds = min(timeit.repeat(lambda: [canonical_url(url) for url in urls], number=1, repeat=5))
    assert seconds / len(urls) < 100e-6
