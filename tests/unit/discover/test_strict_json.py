from __future__ import annotations

import pytest

from tidings.discover.strict_json import parse
from tidings.model.errors import BadInput


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a":1}', {"a": 1}),
        (b'{"a" : 1, "b":{"a":2}}', {"a": 1, "b": {"a": 2}}),
        (b'{"a":"x\\":y","b":" :"}', {"a": 'x":y', "b": " :"}),
        (b'["\\ud83d\\ude00"]', ["😀"]),
        (b'"\\\\u0000"', "\\u0000"),
        (b'"\\\\ud800"', "\\ud800"),
        (b"9223372036854775807", 2**63 - 1),
        (b"-9223372036854775808", -(2**63)),
        (b"null", None),
        (b"[" * 32 + b"]" * 32, None),
    ],
)
def test_plain_json_is_read(data, value):
    found = parse(data)

    assert value is None or found == value


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"a":NaN}', "NaN"),
        (b"[-Infinity]", "NaN and Infinity"),
        (b'{"a":1,"a":2}', "the key 'a' is given twice"),
        (b'{"a":1,"a" :2}', "the key 'a' is given twice"),
        (b'{"a":1,"\\u0061":2}', "the key 'a' is given twice"),
        (b'[{"b":{"c":1,"c"\n:1}}]', "the key 'c' is given twice"),
        (b'{"a":"x\\u0000y"}', "NUL"),
        (b'{"\\u0000":1}', "NUL"),
        (b'["\\ud800"]', "lone surrogate"),
        (b'["\\ud800\\u0041"]', "lone surrogate"),
        (b'["\\udc00"]', "lone surrogate"),
        (b'["\\ud800 and more"]', "lone surrogate"),
        (b'["\xed\xa0\x80"]', "not UTF-8"),
        (b'["\xff"]', "not UTF-8"),
        (b"\xff", "not UTF-8"),
        (b"9223372036854775808", "64 bits"),
        (b'{"a":[-9223372036854775809]}', "64 bits"),
        (b"9" * 5000, "64 bits"),
        (b"1e400", "too large"),
        (b"[" * 33 + b"]" * 33, "deeper than 32"),
        (b"[" * 100_000, "deeper than 32"),
        (b'{"id":1,"title":', "cut off"),
        (b'{"id":1} x', "trailing characters"),
        (b"{id:1}", "no JSON"),
        (b"", "cut off"),
        (b'"' + b"x" * (1 << 20) + b'"', "longer than 1048576 bytes"),
    ],
)
def test_what_the_databases_would_disagree_on_is_refused(data, reason):
    with pytest.raises(BadInput, match=reason):
        parse(data)
