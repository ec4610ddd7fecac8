"""Web addresses: their canonical form, which serves as a key, and which of them may be followed or shown."""

from __future__ import annotations

import re
from urllib.parse import urljoin, urlsplit

from tidings.model.errors import BadInput
from tidings.model.harmless import HIDDEN

URL_CHARS_MAX = 8_192
LINK_CHARS_MAX = 2_000
PORT_MAX = 65_535

TRACKING_PREFIXES = ("utm_", "mtm_", "matomo_", "piwik_", "hsa_", "at_campaign", "at_medium", "wt_", "__hs")
"""Families of parameters that say where a click came from, never what is shown."""

TRACKING_NAMES = frozenset(
    [
        "fbclid",
        "gclid",
        "gclsrc",
        "dclid",
        "gbraid",
        "wbraid",
        "msclkid",
        "yclid",
        "ysclid",
        "twclid",
        "ttclid",
        "igshid",
        "igsh",
        "li_fat_id",
        "epik",
        "rdt_cid",
        "mc_cid",
        "mc_eid",
        "mkt_tok",
        "_hsenc",
        "_hsmi",
        "hsctatracking",
        "vero_id",
        "vero_conv",
        "oly_anon_id",
        "oly_enc_id",
        "rb_clickid",
        "s_cid",
        "s_kwcid",
        "ss_source",
        "ss_campaign_id",
        "icid",
        "ncid",
        "ocid",
        "cmpid",
        "ito",
        "smid",
        "spm",
        "scm",
        "_ga",
        "_gl",
        "_openstat",
        "wickedid",
        "trk",
        "trkcampaign",
        "guccounter",
        "guce_referrer",
        "guce_referrer_sig",
        "ref_src",
        "ref_url",
        "__twitter_impression",
        "fb_action_ids",
        "fb_action_types",
        "fb_source",
        "ga_source",
        "ga_medium",
        "ga_campaign",
        "ga_term",
        "ga_content",
        "pk_campaign",
        "pk_content",
        "pk_keyword",
        "pk_kwd",
        "pk_medium",
        "pk_source",
        "sc_campaign",
        "sc_channel",
        "sc_cid",
        "sc_content",
        "sc_country",
    ]
)
"""Single parameters of the same sort. Common words such as `ref`, `source` and `id` select content on some sites."""

_WEB_ADDRESS = re.compile(
    r"""https?://
    (?:[^\s/?#@<>"\\\[\]]*@)?
    (?:\[(?=[^]]*:[^]]*:)[0-9a-f:.]+\]|[^\s/?#@:%<>"\\\[\].]+(?:\.[^\s/?#@:%<>"\\\[\].]+)*\.?)
    (?::(\d{0,5}))?
    (?:[/?#][^\s<>"]*)?""",
    re.IGNORECASE | re.VERBOSE,
)
"""Perhaps a user, then a host of non-empty labels or an address in brackets, perhaps a port, and the rest."""
_DEFAULT_PORTS = {"http": 80, "https": 443}
_HEX_PAIR = re.compile(r"%([0-9A-Fa-f]{2})")
_UNREADABLE = re.compile(r"[\x00-\x20\x7f-\x9f\ud800-\udfff]")
_LINE_BREAKS = re.compile(r"[\t\r\n]")
_HOST_END = re.compile(r"[a-z]+://[^/?#\s]*", re.IGNORECASE)
_ESCAPED_BY_BROWSERS = re.compile(r'[\s<>"]')
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def canonical_url(url: str, base: str | None = None) -> str:
    """Return the one spelling of a web address that serves as a key; raise BadInput for anything else.

    Scheme and host become lower case; default port, trailing dot, fragment, credentials and tracking parameters go;
    percent escapes are spelled one way. What may select content stays: `www.`, a trailing slash, the order of
    parameters, the case of the path.
    """
    try:
        parts = urlsplit(urljoin(base, url.strip()) if base else url.strip())
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError as error:
        raise BadInput(f"not a web address: '{shown_url(url)}'") from error
    if scheme not in _DEFAULT_PORTS or not host or len(url) > URL_CHARS_MAX:
        raise BadInput(f"not a web address: '{shown_url(url)}'")
    host = _canonical_host(host)
    if not host:
        raise BadInput(f"not a web address: '{shown_url(url)}'")
    authority = host if port is None or port == _DEFAULT_PORTS[scheme] else f"{host}:{port}"
    path = _without_dots(_one_spelling(parts.path)) if parts.path else "/"
    query = _without_tracking(parts.query) if parts.query else ""
    return f"{scheme}://{authority}{path}?{query}" if query else f"{scheme}://{authority}{path}"


def web_address(value: object, base: str | None = None) -> str | None:
    """Return the canonical address, or None for what is no web address."""
    if not isinstance(value, str) or not value.strip():
        return None
    try:
        return canonical_url(value, base)
    except BadInput:
        return None


def checked_address(url: str) -> str:
    """Return the canonical address that a setting gives, or raise ValueError saying how to write one."""
    try:
        return canonical_url(url)
    except BadInput as error:
        raise ValueError("write an absolute http or https address") from error


def is_web_address(url: str) -> bool:
    """Tell whether this is a complete http or https address as it stands."""
    found = _WEB_ADDRESS.fullmatch(url)
    return found is not None and int(found[1] or 0) <= PORT_MAX


def browser_address(url: str) -> str:
    """Spell an address as browsers send it: trimmed, without line breaks, and escaped where it holds blanks or quotes.

    Only behind the host: a host with such characters is none.
    """
    address = _LINE_BREAKS.sub("", url.strip())
    start = _HOST_END.match(address)
    if start is None:
        return address
    return address[: start.end()] + _ESCAPED_BY_BROWSERS.sub(lambda found: _escaped(found[0]), address[start.end() :])


def link_address(value: object) -> str | None:
    """Return an address as it stands if a reader may follow it, else None."""
    if not isinstance(value, str) or len(value) > LINK_CHARS_MAX:
        return None
    url = value.strip()
    return url if is_web_address(url) and not HIDDEN.search(url) else None


def shown_url(url: str) -> str:
    """Spell an address for messages: no query string, no credentials, no control characters, at most 200 characters."""
    bare = re.split(r"[?#]", url, maxsplit=1)[0]
    return ascii(re.sub(r"//[^/]*@", "//", bare)[:200])[1:-1]


def public_host(url: str) -> str:
    """Return the host a reader would recognize: lower case, without `www.`, port or trailing dot; "" for none."""
    try:
        host = urlsplit(url.strip()).hostname or ""
    except ValueError:
        return ""
    return host.rstrip(".").removeprefix("www.")


def _canonical_host(host: str) -> str:
    host = host.rstrip(".")
    if ":" in host:
        return f"[{host}]"
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return ""


def _without_tracking(query: str) -> str:
    """Drop what only says where the reader came from; keep the order of the rest, which some servers depend on."""
    return "&".join(_one_spelling(pair) for pair in query.split("&") if pair and not _is_tracking(pair))


def _is_tracking(pair: str) -> bool:
    name = pair.partition("=")[0].lower()
    return name in TRACKING_NAMES or name.startswith(TRACKING_PREFIXES)


def _one_spelling(text: str) -> str:
    """Spell percent escapes one way: unreserved characters bare, everything else in upper-case hex."""
    if not text.isascii() or _UNREADABLE.search(text):
        text = "".join(c if "\x21" <= c <= "\x7e" else _escaped(c) for c in text)
    return _HEX_PAIR.sub(_tidy_escape, text) if "%" in text else text


def _escaped(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "replace"))


def _tidy_escape(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else match[0].upper()


def _without_dots(path: str) -> str:
    """Resolve `.` and `..` the way browsers do."""
    if "/." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)
