"""Recognizes pages that stand in an article's place: bot checks, consent pages, login forms, paywalls, what is gone.

Nearly all of them are short. A long text is one only where it speaks of nothing but consent. So an article about
cookies, captchas or paywalls stays an article, and what a page shows around its article does not count.
"""

from __future__ import annotations

import html as entities
import re
from importlib.resources import files
from typing import Final
from urllib.parse import urlsplit

from tidings.process.enrich.local.language import length_in_words

HTML_CHARS_MAX: Final = 400_000
VISIBLE_CHARS_MAX: Final = 6_000
TITLE_CHARS_MAX: Final = 300
SEEN_CHARS_MIN: Final = 40
"""With less extracted text than this, everything the page shows is looked at."""
SLIP_WORDS_MAX: Final = 28
"""Fewer words than any report has."""
NOTE_WORDS_MAX: Final = 60
PAGE_WORDS_MAX: Final = 160
TEASER_WORDS_MAX: Final = 260
CUT_WORDS_MAX: Final = 130
"""A text marked as not free that is no longer than this is only its beginning."""
LOGIN_WORDS_MAX: Final = 90
CONSENT_WORDS_MAX: Final = 3_000
CONSENT_PHRASES_MIN: Final = 4
BOT_PHRASES_MIN: Final = 3

BOT_CHECK: Final = "a bot check"
JAVASCRIPT: Final = "a demand for JavaScript"
CONSENT: Final = "a consent page"
MISSING: Final = "a page that says it is gone"
LOGIN: Final = "a login form"
PAYWALL: Final = "the beginning of an article behind a paywall"
REPEATED: Final = "what other pages of its host show too"

_NAMES: Final = {
    BOT_CHECK: "bot check",
    JAVASCRIPT: "javascript",
    CONSENT: "consent",
    MISSING: "missing",
    LOGIN: "login",
    PAYWALL: "paywall",
}


def _patterns(kind: str, frame: str = "{}") -> dict[str, re.Pattern[str]]:
    """Read the expressions of one kind from the file beside this module, by what they tell."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in files(__package__).joinpath("barrier_words.txt").read_text("utf-8").splitlines():
        if line.startswith("== "):
            lines = sections.setdefault(line.removeprefix("== "), [])
        elif line:
            lines.append(line)
    whole = {cause: "|".join(sections[f"{name}: {kind}"]) for cause, name in _NAMES.items()}
    return {cause: re.compile(frame.format(words), re.IGNORECASE) for cause, words in whole.items()}


TITLES: Final = _patterns("titles", r"(?:^|\b|[|–-] ?)(?:{})")
SAYINGS: Final = _patterns("sayings")

_CHALLENGE = """
    cf-challenge cf_chl_ cf-browser-verification cf-turnstile _incapsula_resource px-captcha perimeterx
    captcha-delivery.com datadome ddos-guard sucuri distil_r_captcha awswafcaptcha aws-waf-token g-recaptcha h-captcha
    hcaptcha.com errors.edgesuite.net geetest sec-if-cpt-container kasada challenge-form
"""
CHALLENGE: Final = tuple(_CHALLENGE.split())
"""Names that challenge pages carry. Sound pages load some of them too, so they count on short pages only."""
PASSWORD: Final = re.compile(r"<input\b[^>]{0,300}type\s*=\s*[\"']?password", re.IGNORECASE)
NOT_FREE: Final = re.compile(r"[\"']isAccessibleForFree[\"']\s*:\s*[\"']?false", re.IGNORECASE)
PAYWALL_MARK: Final = re.compile(r"(?:class|id|data-[\w-]{1,30})\s*=\s*[\"'][^\"']{0,120}\bpay-?wall", re.IGNORECASE)
SPEAKS: Final = re.compile(
    r"\b(?:you|your|we|our|sie|ihre?|wir|unsere?|vous|votre|nous|nos|usted|su|tu|nosotros|tuo|noi)\b", re.IGNORECASE
)
SPEAKS_SHARE_MIN: Final = 0.05

_HEAD = re.compile(r"<title[^>]{0,200}>([^<]{0,400})", re.IGNORECASE)
_SILENT = re.compile(r"<(script|style|template|svg|head)\b.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG = re.compile(r"<[^<>]{0,2000}>")


def barrier_of(html: str, title: str | None, text: str) -> str | None:
    """Return what stands in the article's place, or None where the text is one for all we can tell."""
    page = html[:HTML_CHARS_MAX]
    head = _HEAD.search(page)
    heading = " ".join(entities.unescape(head[1] if head else title or "").split())[:TITLE_CHARS_MAX]
    seen = text if len(text) >= SEEN_CHARS_MIN else _visible(page) or text
    seen = " ".join(seen.replace("\u2019", "'").split())
    words = length_in_words(seen)
    if words > TEASER_WORDS_MAX:
        return CONSENT if _is_consent(heading, seen, words) else None
    return _short(page, heading, seen, words) or _teaser(page, seen, words)


def is_elsewhere(asked: str, answered: str) -> bool:
    """Tell whether a site answered with its front page: how some of them say that an article is gone."""
    wanted, got = urlsplit(asked), urlsplit(answered)
    return len(wanted.path.strip("/")) > 3 and not got.path.strip("/") and not got.query


def _short(page: str, heading: str, seen: str, words: int) -> str | None:
    """Judge a page with few words by its title, by what it says, and by what it is made of."""
    said = {cause: len({each.lower() for each in pattern.findall(seen)}) for cause, pattern in SAYINGS.items()}
    titled = {cause for cause, pattern in TITLES.items() if pattern.search(heading)}
    is_note, is_page = words <= NOTE_WORDS_MAX, words <= PAGE_WORDS_MAX
    if MISSING in titled and BOT_CHECK not in titled and (is_note or said[MISSING]) and not said[PAYWALL]:
        return MISSING
    if not _addresses(seen, words):
        return MISSING if is_note and said[MISSING] else None
    is_challenge = is_page and any(name in page.lower() for name in CHALLENGE)
    if (said[BOT_CHECK] or is_challenge) and (BOT_CHECK in titled or (is_challenge and said[BOT_CHECK])):
        return BOT_CHECK
    consent_min = 1 if CONSENT in titled else 2 if is_note else 3 if is_page else CONSENT_PHRASES_MIN
    if said[CONSENT] >= consent_min:
        return CONSENT
    has_form = words <= LOGIN_WORDS_MAX and PASSWORD.search(page) is not None and not said[PAYWALL]
    if (has_form and (said[LOGIN] or LOGIN in titled)) or (is_note and LOGIN in titled and said[LOGIN]):
        return LOGIN
    if is_page and said[BOT_CHECK] >= BOT_PHRASES_MIN:
        return BOT_CHECK
    causes = (BOT_CHECK, JAVASCRIPT, MISSING) if is_note else ()
    return next((cause for cause in causes if said[cause] or (cause in titled and cause != MISSING)), None)


def _addresses(seen: str, words: int) -> bool:
    """Tell a notice from a short report: it speaks to its reader, or is shorter than any report."""
    return words <= SLIP_WORDS_MAX or len(SPEAKS.findall(seen)) >= SPEAKS_SHARE_MIN * words


def _teaser(page: str, seen: str, words: int) -> str | None:
    """Tell the beginning of an article from a short one: the page says that there is more for those who pay."""
    said = len({each.lower() for each in SAYINGS[PAYWALL].findall(seen)})
    if said >= 2 or (said and words <= PAGE_WORDS_MAX):
        return PAYWALL
    if words > CUT_WORDS_MAX:
        return None
    is_marked = PAYWALL_MARK.search(page) is not None and SAYINGS[PAYWALL].search(_visible(page)) is not None
    return PAYWALL if is_marked or NOT_FREE.search(page) else None


def _is_consent(heading: str, seen: str, words: int) -> bool:
    """Tell a long consent text from an article about cookies: it speaks to its reader all the time."""
    if words > CONSENT_WORDS_MAX or len(SPEAKS.findall(seen)) < SPEAKS_SHARE_MIN * words:
        return False
    said = len({each.lower() for each in SAYINGS[CONSENT].findall(seen)})
    return said >= CONSENT_PHRASES_MIN * (1 if TITLES[CONSENT].search(heading) else 2)


def _visible(page: str) -> str:
    """Return what a page shows, roughly, `noscript` included."""
    text = _TAG.sub(" ", _SILENT.sub(" ", _COMMENT.sub(" ", page)))
    return " ".join(entities.unescape(text).split())[:VISIBLE_CHARS_MAX]
