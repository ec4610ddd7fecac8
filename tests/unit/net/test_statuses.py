import pytest

from tidings.model.errors import Misconfigured, Permanent, SlowDown, Transient
from tidings.model.web import Response
from tidings.net.statuses import raise_for_status, retry_after_seconds

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("12", 12.0),
        ("0.65", 0.65),
        (" 7 ", 7.0),
        ("1000000000", 3600.0),
        ("1e9", 3600.0),
        ("-5", None),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("-inf", None),
        ("9" * 5000, None),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60.0),
        ("Tue, 14 Nov 2023 22:12:20 GMT", 0.0),
        ("Tue, 14 Nov 2033 22:12:20 GMT", 3600.0),
        ("Tue, 14 Nov 2023 22:14:20", 60.0),
        ("Tue, 99 Nov 99999 22:14:20 GMT", None),
        ("2023-11-14T22:14:20Z", None),
    ],
)
def test_retry_after_survives_whatever_is_sent(value, seconds):
    assert retry_after_seconds({"retry-after": value}, NOW) == seconds


def test_no_header_means_no_wish():
    assert retry_after_seconds({}, NOW) is None


@pytest.mark.parametrize("status", [200, 201, 202, 203, 206])
def test_success_passes(status):
    raise_for_status(Response(status, "https://example.com/"), "the thing")


@pytest.mark.parametrize(
    ("status", "trusted", "expected"),
    [
        (204, True, Transient),
        (301, True, Permanent),
        (400, True, Permanent),
        (401, True, Misconfigured),
        (402, True, Misconfigured),
        (403, True, Misconfigured),
        (401, False, Permanent),
        (403, False, Permanent),
        (404, True, Permanent),
        (408, True, Transient),
        (410, True, Permanent),
        (422, True, Permanent),
        (425, True, Transient),
        (429, True, SlowDown),
        (500, True, Transient),
        (503, True, Transient),
        (599, True, Transient),
    ],
)
def test_each_status_says_what_to_do(status, trusted, expected):
    with pytest.raises(expected) as raised:
        raise_for_status(Response(status, "https://example.com/?key=canary"), "the portal", trusted=trusted)
    assert type(raised.value) is expected
    assert "the portal" in str(raised.value)
    assert "canary" not in str(raised.value)


def test_the_wish_to_wait_travels_with_the_error():
    with pytest.raises(SlowDown) as raised:
        raise_for_status(Response(429, "https://example.com/", {"retry-after": "30"}), "it")
    assert raised.value.retry_after_seconds == 30
