"""Tells what an issue template left behind from what the reporter wrote."""

from __future__ import annotations

import re
from typing import Final

_PHRASES = """
    a clear and concise description
    clear and concise description of
    if applicable, add screenshots
    add any other context
    ex. i'm always frustrated when
    i'm always frustrated when [
    is your feature request related to a problem
    describe the solution you'd like
    describe alternatives you've considered
    describe the bug
    describe the feature
    steps to reproduce the behavior:
    please complete the following
    please describe
    please provide
    please fill
    please include
    please answer these questions
    please read
    please check
    please make sure
    please search
    please tick
    please add
    please use the
    please do not
    please delete
    please remove
    tell us what
    tell us how
    tell us about
    what did you expect to happen
    what actually happened
    what were you trying to
    provide a general summary
    provide a link to a live example
    provide an unambiguous set of steps
    not obligatory, but suggest
    how has this issue affected you
    thanks for taking the time to fill
    thank you for taking the time
    thank you for contributing
    thank you for reporting
    thank you for your interest
    thanks for your interest
    thanks for opening
    thanks for your contribution
    i have searched
    i've searched
    i have read
    i have checked
    i confirm that
    i agree to follow
    code of conduct
    search before asking
    _no response_
    no response
    [e.g.
    (e.g. ios
    go to '...'
    click on '...
    scroll down to '...
    see error
    replace this text
    delete this section
    leave this section
    insert your
    write here
    issues without
    this issue tracker is
    use this template
    for general questions
    feature requests should
    before submitting
    before opening
    before you submit
    before creating
    by submitting this issue
    this issue is reserved for
    first timers only
    if you've never contributed
    if you have never contributed
    never contributed to open source before
    new to open source
    looking for their first contribution
    hacktoberfest
    if you'd like to work on this
    if you would like to work on this
    if you want to work on this
    want to work on this issue
    would like to work on this, please
    leave a comment below
    comment below
    feel free to ask
    happy to help
    contributing guide
    contributing.md
    upvote & fund
    we're using polar.sh
    sentry issue:
"""
PHRASES: Final = tuple(phrase for line in _PHRASES.splitlines() if (phrase := line.strip()))
"""How the instructions begin or read that projects put into their templates, and that many reporters leave."""
LABELLED: Final = re.compile(
    r"(?:os|operating system|browser|device|version|platform|environment|node|python|ruby|rails|java|package manager|"
    r"[\w. -]{1,20} version)s?\s{0,3}[:=]",
    re.IGNORECASE,
)
"""A line of a form: `OS: Linux`."""
LABELLED_WORDS_MAX: Final = 12

_SIDE_SECTIONS = """
    environment env version versions system specs logs log checklist prerequisites preflight screenshots screenshot
    platform conduct duplicates os browser device info checks checkboxes contributing setup agreement
"""
SIDE_SECTIONS: Final = frozenset(_SIDE_SECTIONS.split())
"""Words in the headings of the sections that say nothing of what is wanted."""


def is_template(sentence: str) -> bool:
    """Tell whether a sentence stood there before the reporter came."""
    said = " ".join(sentence.lower().replace("’", "'").split())
    if any(phrase in said for phrase in PHRASES):
        return True
    return LABELLED.match(said) is not None and len(said.split()) <= LABELLED_WORDS_MAX
