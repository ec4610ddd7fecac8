"""Tells what surrounds an article (cookie notices, by-lines, share buttons, captions) from what it says."""

from __future__ import annotations

import re
from typing import Final


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(phrase.strip() for phrase in text.replace("\n", ",").split(",") if phrase.strip())


ANYWHERE: Final = _phrases(
    """
    agree to our, all rights reserved, we value your privacy, your privacy is important, your preferences at any time
    information on your device, partners store and, subscribe to our, subscribe to the newsletter, subscribe now
    subscribe today, subscribe for just, subscribe here, subscribe to read, subscribe to continue, sign up for our
    sign up for the newsletter, sign up for free, sign up to our, sign up here, sign up now, sign up today
    our newsletter, our weekly briefing, our daily briefing, your inbox, your email address, create an account
    create a free account, already a subscriber, already a member, already have an account, log in to continue
    sign in to continue, register or sign in, to continue reading, continue reading, free articles remaining
    free article remaining, start your free trial, for subscribers only, share this article, share this story
    share this page, share this post, share on facebook, share on twitter, share on x, share via, follow us on
    like us on, join us on, join our telegram, join our discord, join our community, join our channel
    follow on twitter, click here, tap here, read more:, read more at, read the full article, read the full story
    read full article, related articles, related stories, you may also like, you might also like, recommended for you
    trending now, scroll down for, your browser, whitelist our, whitelist this, earn a commission, getty images
    file photo, photo credit, image credit, image source, image via, photo by, photos by, picture:, image:, photo:
    illustration:, photograph:, (photo, (image, not financial advice, not investment advice
    constitute investment advice, constitute financial advice, do your own research, informational purposes only
    download our app, download the app, download our free app, available on the app store, leave a comment
    post a comment, comments are closed, join the conversation, back to top, skip to content, skip to main
    table of contents, estimated reading time, reporting by, editing by, additional reporting
    contributed to this report, this article was originally, this story was originally, originally published on
    appeared first on, support our journalism, supporting our journalism, support quality journalism, become a member
    breaking news alerts, get the latest news, for more information visit, our privacy, something went wrong
    thank you for reading, thanks for reading, save this story, save this article, listen to this article
    independently operated, is a staff writer, is a senior reporter, is a reporter covering, is a journalist covering
    the author holds, the views expressed
    """
)
"""Phrases no sentence of an article needs."""

TO_THE_READER: Final = _phrases(
    """
    use cookies, uses cookies, use of cookies, cookie policy, cookie settings, cookie preferences, cookie notice
    accept all cookies, accept cookies, privacy policy, terms of service, terms of use, terms and conditions
    manage consent, manage preferences, personalised ads, personalized ads, gdpr, opt out of, unsubscribe
    unlimited access, unlimited digital access, premium members, enable javascript, javascript is disabled, ad blocker
    adblock, advertisement, sponsored content, affiliate commission, affiliate links, push notifications
    desktop notifications, browser notifications, shutterstock, most read, daily newsletter, weekly newsletter
    """
)
"""Phrases an article may be about: furniture only where they speak to the reader, or in a line that is no sentence."""

_ABOUT: Final = frozenset(TO_THE_READER)
ADDRESS: Final = re.compile(r"\b(?:we|our|us|you|your|this (?:web)?site|this page|click|tap|accept all)\b")
LABELS_MAX: Final = 6
"""A row of so few words, each the name of a button, is a row of buttons even with a full stop."""

AT_THE_START: Final = _phrases(
    """
    please enable, please whitelist, please consider, please try again, please log in, please sign in
    please subscribe, enter your, by continuing to, by clicking, by signing up, by subscribing, disclosure:
    disclaimer:, editor's note:, editors' note:, editor’s note:, correction:, related:, see also:, read also:
    also read:, watch:, watch now:, pictured:, pictured above:, caption:, trending:, tags:, copyright, ©
    mandatory credit, tap to, play video, turn on desktop, follow the author
    """
)

IN_SHORT_LINES: Final = _phrases(
    """
    cookie, subscribe, newsletter, sign up, sign in, log in, login, register, share, tweet, facebook, twitter
    linkedin, whatsapp, telegram, reddit, email, e-mail, copy link, print, read more, see more, show more
    view more, load more, learn more, more:, related, see also, watch, video, gallery, photo, image, credit
    source:, copyright, ©, advert, sponsored, promoted, menu, home, search, comments, updated, published, posted
    min read, minute read, last modified, by staff, follow, privacy, contact us, about us, careers, next article
    previous article, next story, tags, topics, categories, accept, got it, close, dismiss, loading, download
    bookmark, most popular, trending, listen, unmute
    """
)
"""Phrases that mark a short line that does not end like a sentence: a button, a heading, a label."""

SHORT_LINE_WORDS_MAX: Final = 9
LINE_WORDS_MAX: Final = 15
BY_LINE: Final = re.compile(
    r"(?:(?:written|posted|published|reported|words|story|edited|authored) )?by:? [^.!?:;]{2,60}$"
)
BY_LINE_WORDS_MAX: Final = 9
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
DATE_LINE: Final = re.compile(
    rf"(?:(?:first |last )?(?:published|updated|posted|modified|created)[^\d]{{0,12}}|[a-z]{{0,9}},? ?)"
    rf"(?:{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}|\d{{1,2}}(?:st|nd|rd|th)? {_MONTH},? \d{{4}}|\d{{4}}-\d\d-\d\d"
    rf"|\d\d?[./]\d\d?[./]\d{{2,4}}|\d\d?:\d\d)"
)
SENTENCE_END: Final = re.compile(r"[.!?…。！？؟۔][\"'”’»)\]]*$")


def phrases_in(text: str) -> tuple[str, ...]:
    """Return the telling phrases that occur in a text at all; mostly few, so that each sentence is checked quickly."""
    plain = text.lower()
    return tuple(phrase for phrase in (*ANYWHERE, *TO_THE_READER) if phrase in plain)


def is_furniture(sentence: str, phrases: tuple[str, ...] = (*ANYWHERE, *TO_THE_READER)) -> bool:
    """Tell whether a sentence or line belongs to the page rather than to the article."""
    plain = sentence.lower().strip()
    if plain.startswith(AT_THE_START) or any(_tells(phrase, sentence, plain) for phrase in phrases if phrase in plain):
        return True
    words = plain.split(None, LINE_WORDS_MAX + 1)
    if len(words) > LINE_WORDS_MAX:
        return False
    if DATE_LINE.match(plain) or not any(character.isalpha() for character in plain):
        return True
    if len(words) <= BY_LINE_WORDS_MAX and BY_LINE.match(plain.rstrip(".")):
        return True
    if len(words) <= LABELS_MAX and all(word.rstrip(".,:") in IN_SHORT_LINES for word in words):
        return True
    if is_sentence(sentence) or len(words) > SHORT_LINE_WORDS_MAX:
        return False
    return any(phrase in plain for phrase in IN_SHORT_LINES)


def _tells(phrase: str, sentence: str, plain: str) -> bool:
    return phrase not in _ABOUT or not is_sentence(sentence) or ADDRESS.search(plain) is not None


def is_sentence(line: str) -> bool:
    """Tell a sentence from a heading or a label: it ends like one."""
    return SENTENCE_END.search(line[-8:]) is not None
