"""What readers see of an article: its first card at the merge, its full card once processed."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from tidings.discover.feed.markup import paragraphs
from tidings.model.answers import SentimentLabel
from tidings.model.clock import rfc3339
from tidings.model.publication import Chart, Collection, Document, Filter, FullText, Presentation
from tidings.pipelines.bitcoin_news.body import KIND, SENTIMENTS, Article, Provider


class ArticleCard(msgspec.Struct, frozen=True, kw_only=True):
    """An article as the API shows it."""

    id: str
    title: str
    link: str
    source: str
    published_at: str
    sentiment: SentimentLabel | None
    summary: str | None
    needs_sentiment: bool
    needs_summary: bool
    summary_error: str | None
    """Why there is no summary: `error: ... (attempt x/y)`."""
    content_attempts: int
    """How many tries it took to get the page, or were made in vain so far."""
    content_error: str | None
    """Why the page could not be read; it is tried again later."""
    summary_from: Literal["page", "words"] | None
    """What the summary and the judgment were made of: the page, or only what providers say."""
    processed_at: str | None
    sentiment_score: float | None
    sentiment_by: str | None
    """The provider or the model that judged."""
    sentiment_reason: str | None
    """Why the sentiment is unknown although it was looked for."""
    summary_by: str | None
    description: str | None
    author: str | None
    image: str | None
    language: str | None
    categories: tuple[str, ...]
    providers: dict[str, str]
    date_is_guess: bool
    found_at: str


COLLECTION = "articles"
_JUDGED = (*SENTIMENTS, "unknown")
MOODS = Chart(
    "sentiment",
    "Sentiment over time",
    {"positive": "▲ positive", "neutral": "■ neutral", "negative": "▼ negative", "unknown": "◌ unknown"},
)


def articles() -> Collection:
    """Declare the collection: newest first through the id index, with counts by sentiment."""
    return Collection(
        name=COLLECTION,
        singular="article",
        kind=KIND,
        stories="always",
        card=ArticleCard,
        title="Bitcoin news",
        filters=(
            Filter("sentiment", "sentiment", values=_JUDGED, help="whether it is good or bad news for Bitcoin"),
            Filter("source", "source", help="the outlet's name"),
            Filter("category", "categories", "has", help="a word the outlet files it under"),
            Filter("needs_summary", "needs_summary", type="boolean", help="still waiting for its summary"),
        ),
        facets=("sentiment",),
        facet_values={"sentiment": SENTIMENTS},
        attributes={
            "type": (KIND,),
            "sentiment": _JUDGED,
            "source": (),
            "provider": get_args(Provider),
            "category": (),
        },
        id_index=True,
        templates=__package__,
        chart=MOODS,
        link_field="link",
        gathers="providers",
        example=EXAMPLE,
    )


def first_card(key: str, article: Article) -> Presentation:
    """Show what the providers say, at once, with the flags of what is still to come.

    It looks only at what discovery knew, so that it can be rebuilt at any time while the article is being processed.
    """
    return Presentation(
        collection=COLLECTION,
        id=key,
        card=_card(
            article,
            sentiment=article.provider_sentiment,
            sentiment_score=article.provider_sentiment_score,
            sentiment_by=article.provider_sentiment_by,
            needs_summary=True,
            needs_sentiment=article.provider_sentiment is None,
        ),
        sort=article.published_ms,
    )


def present(key: str, article: Article) -> Presentation:
    """Show the processed article, and let the search know it."""
    card = _card(
        article,
        sentiment=article.sentiment,
        sentiment_score=article.sentiment_score,
        sentiment_by=article.sentiment_by,
        sentiment_reason=article.sentiment_reason,
        needs_summary=False,
        needs_sentiment=False,
        summary=article.summary,
        summary_by=article.summary_by,
        summary_error=article.summary_error,
        content_attempts=article.content_attempts,
        content_error=article.content_error,
        summary_from=article.summary_from,
        processed_at=rfc3339(article.processed_ms),
    )
    return Presentation(COLLECTION, key, card, article.published_ms, lambda: _document(article))


def _card(
    article: Article,
    *,
    needs_summary: bool,
    needs_sentiment: bool,
    sentiment: str | None,
    sentiment_score: float | None,
    sentiment_by: str | None,
    sentiment_reason: str | None = None,
    summary: str | None = None,
    summary_by: str | None = None,
    summary_error: str | None = None,
    content_attempts: int = 0,
    content_error: str | None = None,
    summary_from: Literal["page", "words"] | None = None,
    processed_at: str | None = None,
) -> ArticleCard:
    return ArticleCard(
        id=article.id,
        title=article.title,
        link=article.link,
        source=article.source,
        published_at=rfc3339(article.published_ms) or "",
        sentiment=next((label for label in SENTIMENTS if label == sentiment), None),
        summary=summary,
        needs_sentiment=needs_sentiment,
        needs_summary=needs_summary,
        summary_error=summary_error,
        content_attempts=content_attempts,
        content_error=content_error,
        summary_from=summary_from,
        processed_at=processed_at,
        sentiment_score=sentiment_score,
        sentiment_by=sentiment_by,
        sentiment_reason=sentiment_reason,
        summary_by=summary_by,
        description=article.description or article.page_description,
        author=article.author,
        image=article.image,
        language=article.language,
        categories=article.categories,
        providers=article.providers,
        date_is_guess=article.date_is_guess,
        found_at=rfc3339(article.found_ms) or "",
    )


def _document(article: Article) -> Document:
    words = (article.summary or article.description, article.text)
    return Document(
        title=article.title,
        text="\n\n".join(part for part in words if part),
        author=article.author,
        type=KIND,
        time_ms=article.published_ms,
        url=article.link,
        attributes=search_attributes(article),
        language=article.language,
    )


def search_attributes(article: Article) -> dict[str, str | int | float | list[str] | None]:
    """Return what a search or a route may ask of an article."""
    return {
        "sentiment": article.sentiment or "unknown",
        "source": article.source,
        "provider": sorted(article.providers),
        "category": list(article.categories),
    }


EXAMPLE = ArticleCard(
    id="3f9c1d2b7a60e845",
    title="Miners move to the fjords for the second winter running",
    link="https://harbourhash.example/energy/second-winter",
    source="Harbour & Hash",
    published_at="2026-01-14T08:30:00.000Z",
    sentiment="positive",
    summary="Cheap hydropower has drawn three more mining companies to the coast, the grid operator reports.",
    needs_sentiment=False,
    needs_summary=False,
    summary_error=None,
    content_attempts=1,
    content_error=None,
    summary_from="page",
    processed_at="2026-01-14T08:31:12.000Z",
    sentiment_score=0.4,
    sentiment_by="local",
    sentiment_reason=None,
    summary_by="local",
    description="Cheap hydropower draws miners to the coast.",
    author="Solveig Brandt",
    image=None,
    language="en",
    categories=("energy", "mining"),
    providers={"rss": "https://harbourhash.example/energy/second-winter"},
    date_is_guess=False,
    found_at="2026-01-14T08:30:41.000Z",
)


def full_text(article: Article) -> FullText | None:
    """Return all there is to read of an article: what its page says."""
    return FullText(article.text, paragraphs(article.text)) if article.text else None
