"""An article: what one provider says of it, and what is remembered of it while it is worked on."""

from __future__ import annotations

from typing import Literal

import msgspec

from tidings.model.answers import SentimentLabel

PIPELINE = "bitcoin_news"
KIND = "article"

Provider = Literal["rss", "apitube", "newsdata"]
PROVIDERS: tuple[Provider, ...] = ("rss", "apitube", "newsdata")
"""Which provider wins where they differ: the outlet's own feed before the services that read it."""

SENTIMENTS: tuple[SentimentLabel, ...] = ("positive", "negative", "neutral")


class Sighting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One provider's word on one article, in our terms. Only that provider's source writes it."""

    provider: Provider
    provider_id: str
    link: str
    title: str
    seen_ms: int
    """When this provider first showed it to us."""
    listing: str = ""
    """Which list of the provider showed it: a feed's address."""
    description: str | None = None
    source: str | None = None
    author: str | None = None
    image: str | None = None
    language: str | None = None
    categories: tuple[str, ...] = ()
    published_ms: int | None = None
    sentiment: SentimentLabel | None = None
    sentiment_score: float | None = None


class Article(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of an item: what all providers together say, and what processing adds phase by phase."""

    id: str
    title: str
    link: str
    source: str
    published_ms: int
    found_ms: int
    date_is_guess: bool = False
    """No provider gave a date that can be true: the time we first saw it stands in."""
    description: str | None = None
    author: str | None = None
    image: str | None = None
    language: str | None = None
    categories: tuple[str, ...] = ()
    providers: dict[str, str] = {}
    """Every provider that lists it, with the id it uses."""
    provider_sentiment: SentimentLabel | None = None
    provider_sentiment_score: float | None = None
    provider_sentiment_by: str | None = None

    words_by: Provider | None = None
    """Whose title and description these are."""

    text: str | None = None
    page_description: str | None = None
    """What the page says of itself; providers' words are kept apart, since a change of those counts."""
    content_attempts: int = 0
    content_error: str | None = None
    """Why there is no text: the summary and the judgment are made of the providers' words."""
    fetched_ms: int | None = None
    summary: str | None = None
    summary_by: str | None = None
    summary_from: Literal["page", "words"] | None = None
    summary_error: str | None = None
    sentiment: SentimentLabel | None = None
    sentiment_score: float | None = None
    sentiment_by: str | None = None
    sentiment_reason: str | None = None
    """Why the sentiment is unknown."""
    processed_ms: int | None = None
    is_told: bool = False
    """It was published before, at this revision: nobody is told again."""
