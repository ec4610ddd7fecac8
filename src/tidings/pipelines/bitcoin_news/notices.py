"""What is announced of an article: one notice, when it is published for the first time."""

from __future__ import annotations

from tidings.model.clock import rfc3339
from tidings.model.publication import Notice, NoticeField
from tidings.model.workflow import Work
from tidings.pipelines.bitcoin_news.body import KIND, Article
from tidings.pipelines.bitcoin_news.cards import search_attributes

COLORS = {"positive": 0x2E7D32, "negative": 0xC62828, "neutral": 0x607D8B}


def announce(work: Work) -> tuple[Notice, ...]:
    """Tell of an article once, when it is published for the first time."""
    return () if work.accepted is not None or work.body.is_told else (notice_of(work.body),)


def renew(article: Article, _queued: Notice, _now_ms: int) -> Notice:
    """Tell of the article as it is now."""
    return notice_of(article)


def notice_of(article: Article) -> Notice:
    """Write the notice of an article."""
    sentiment = article.sentiment or "unknown"
    return Notice(
        title=article.title,
        url=article.link,
        text=article.summary or article.description or "",
        color=COLORS.get(sentiment),
        fields=(NoticeField("Source", article.source), NoticeField("Sentiment", sentiment)),
        time=rfc3339(article.published_ms),
        attributes={**search_attributes(article), "type": KIND, "by": article.author},
        language=article.language,
    )
