import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.addresses import FORBIDDEN_V4, FORBIDDEN_V6, PUBLIC

from tidings.model.errors import Misconfigured, Permanent
from tidings.net.guard import Forbidden, Guard, is_public

GUARD = Guard(frozenset({("127.0.0.1", 4711)}))


@pytest.mark.parametrize("net", FORBIDDEN_V4 + FORBIDDEN_V6)
def test_every_special_range_is_forbidden_from_end_to_end(net):
    network = ipaddress.ip_network(net)
    for address in (network[0], network[-1], network[network.num_addresses // 2]):
        assert not is_public(address)
        assert not is_public(str(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_allowed(address):
    assert is_public(address)


@pytest.mark.parametrize("address", ["", "nonsense", "127.1", "0177.0.0.1", "2130706433", "fe80::1%eth0", "1.2.3.4.5"])
def test_what_cannot_be_read_is_not_public(address):
    assert not is_public(address)


@given(st.ip_addresses(v=4))
def test_a_mapped_address_is_judged_by_the_inner_one(inner):
    assert is_public(ipaddress.IPv6Address(f"::ffff:{inner}")) == is_public(inner)


@given(st.ip_addresses())
def test_the_guard_is_never_more_generous_than_the_standard_library(address):
    if is_public(address):
        assert address.is_global
        assert not address.is_private
        assert not address.is_multicast


def test_only_the_web_ports_are_open():
    assert GUARD.allows("93.184.216.34", 80)
    assert GUARD.allows("93.184.216.34", 443)
    assert not GUARD.allows("93.184.216.34", 22)
    assert not GUARD.allows("93.184.216.34", 8080)


def test_loopback_is_allowed_by_exact_address_and_port_only():
    assert GUARD.allows("127.0.0.1", 4711)
    assert not GUARD.allows("127.0.0.1", 4712)
    assert not GUARD.allows("127.0.0.2", 4711)
    assert not GUARD.allows("::1", 4711)


def test_only_loopback_can_be_allowed():
    for host in ("10.0.0.1", "example.com", "169.254.169.254"):
        with pytest.raises(Misconfigured):
            Guard(frozenset({(host, 80)}))


def test_the_socket_gate_judges_literals_and_names_alike():
    for target in (("169.254.169.254", 80), ("127.0.0.1", 80), ("::1", 80, 0, 0), ("93.184.216.34", 25)):
        family = socket.AF_INET6 if ":" in str(target[0]) else socket.AF_INET
        with pytest.raises(Forbidden):
            GUARD.open_socket((family, socket.SOCK_STREAM, 6, "", target))
    GUARD.open_socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 4711))).close()


@pytest.mark.parametrize(
    "text",
    [
        "https://example.com/a?b=c",
        "http://EXAMPLE.com:80/",
        "https://example.com./",
        "https://münchen.de/straße",
        "http://93.184.216.34/",
        "http://[2606:2800:220:1:248:1893:25c8:1946]/",
        "http://127.0.0.1:4711/x",
        "https://a_b.example.com/",
        "https://xn--mnchen-3ya.de/",
    ],
)
def test_ordinary_addresses_pass(text):
    assert GUARD.checked(text).scheme in ("http", "https")


def test_the_fragment_stays_home():
    assert str(GUARD.checked("https://example.com/a#secret")) == "https://example.com/a"


def test_refusals_are_permanent_and_show_no_query():
    with pytest.raises(Permanent) as refused:
        GUARD.checked("http://user:hunter2@10.0.0.1/a?key=canary")
    assert "canary" not in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_redirect_may_not_step_down_from_https():
    page = GUARD.checked("https://example.com/a")
    assert str(GUARD.next_hop(page, "/b")) == "https://example.com/b"
    assert str(GUARD.next_hop(page, "//other.example/b")) == "https://other.example/b"
    with pytest.raises(Forbidden):
        GUARD.next_hop(page, "http://example.com/a")
