"""What can be said of a call by its facts alone, where nobody describes it in words worth reading."""

from __future__ import annotations

import re

from tidings.pipelines.eu_funding.body import Opportunity, Status, next_deadline, spoken_amount, spoken_date
from tidings.pipelines.eu_funding.programmes import TYPE_NAMES

MODEL = "facts"
"""Stands where otherwise the name of the model stands that summarized a call."""
WORDS_WORTH_SAYING = 4
WORDS_WORTH_SUMMARIZING = 25
POINTER = re.compile(
    r"^\W*((link to|click|refer to|please (see|refer|consult|visit|check|find)|"
    r"(see|visit|details) (the|our|also|at|on|here|below|above|are|can|https?|www)|"
    r"(for )?(more|further) (info|information|details)|available (at|on|here))\b|"
    r"https?:|www\.|n/?a\b|tbd\b|to be (announced|published|confirmed))",
    re.IGNORECASE,
)
"""How descriptions begin that hold no word of the call itself."""
BOILERPLATE = re.compile(
    r"[^.\n]*(contributing to (one or )?(several|all|some|most) (of the )?(following )?expected impacts of destination|"
    r"\bis NOT an EU action|is launched solely by|in its own name and under its own responsibility|"
    r"own responsibility includes|"
    r"expected to contribute to (all|some|one or several|several) of the following expected outcomes)[^.\n]*(\.|$)",
    re.IGNORECASE | re.MULTILINE,
)
"""Sentences that stand in the descriptions of many calls and tell nothing of this one."""

_APPLICANTS = (
    ("EIC Accelerator", "for single start-ups and small companies"),
    ("Coordination and Support Actions", "usually for one organization or more"),
    ("Research and Innovation Actions", "usually for three organizations or more from different countries"),
    ("Innovation Actions", "usually for three organizations or more from different countries"),
)
"""Who may apply, by the type of action (Regulation (EU) 2021/695, article 22); a call may ask for something else."""
_WHEN: dict[Status, str] = {"forthcoming": "opens on", "open": "open since", "closed": "was open from"}


def text_of(body: Opportunity, now_ms: int) -> str:
    """Return what a reader is told of a call: its summary or, where there was nothing to summarize, its facts."""
    if body.summarized_by != MODEL and body.summary and not POINTER.search(body.summary):
        return body.summary
    return told_by_facts(body, now_ms)


def told_by_facts(body: Opportunity, now_ms: int) -> str:
    """Say what a short description says, if anything, and then the facts."""
    words = without_boilerplate(body.description)
    is_short = len(words.split()) < WORDS_WORTH_SUMMARIZING
    return " ".join(filter(None, (words if is_short and not says_nothing(words) else "", facts(body, now_ms))))


def facts(body: Opportunity, now_ms: int) -> str:
    """Say in one sentence what is known: the programme, the money, who may apply, and when."""
    parts = [_origin(body)]
    if budget := spoken_amount(body.budget_eur):
        parts.append(f"with a budget of {budget}")
    first = " ".join(parts)
    return "; ".join(filter(None, (first, _applicants(body), _dates(body, now_ms)))) + "."


def says_nothing(text: str) -> bool:
    """Tell whether a short description only points elsewhere, as `Link to the published call.` does."""
    is_short = len(text.split()) < WORDS_WORTH_SUMMARIZING
    return is_short and (
        bool(POINTER.search(text)) or sum(word.isalpha() for word in text.split()) < WORDS_WORTH_SAYING
    )


def without_boilerplate(description: str) -> str:
    """Return a description without the sentences that stand in many."""
    return "\n".join(line for line in BOILERPLATE.sub("", description).splitlines() if line.strip()).strip()


def _origin(body: Opportunity) -> str:
    """Name type, project, programme and type of action: `Grant of Horizon Europe (HORIZON Innovation Actions)`."""
    by = f" by the project {body.project}" if body.project else ""
    programme = body.programme_name or body.programme
    of = f"{' under' if by else ' of'} {programme}" if programme else ""
    action = f" ({body.action_type})" if body.action_type else ""
    return f"{TYPE_NAMES[body.type]}{by}{of}{action}"


def _applicants(body: Opportunity) -> str:
    if body.programme != "HORIZON" or not body.action_type:
        return ""
    return next((who for action, who in _APPLICANTS if action in (body.action_type or "")), "")


def _dates(body: Opportunity, now_ms: int) -> str:
    opening, deadline = spoken_date(body.opening), spoken_date(next_deadline(body, now_ms))
    until = f"{'closed' if body.status == 'closed' else 'closes'} on {deadline}" if deadline else ""
    if body.status != "closed" and not deadline:
        until = "no deadline is stated"
    since = f"{_WHEN[body.status]} {opening}" if opening and body.status != "closed" else ""
    return ", ".join(filter(None, (since, until)))
