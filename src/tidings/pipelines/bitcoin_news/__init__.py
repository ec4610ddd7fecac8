"""Bitcoin news: found hourly at two news services and the outlets' own feeds, then summarized and judged."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from tidings.model.contracts import Kit, Probe
from tidings.model.durations import duration_seconds
from tidings.model.pipeline import Page, Pipeline, Run, Source
from tidings.model.publication import IdIndex, Retention
from tidings.model.urls import checked_address
from tidings.pipelines.bitcoin_news.body import KIND, PIPELINE
from tidings.pipelines.bitcoin_news.cards import COLLECTION, articles, first_card, full_text, present
from tidings.pipelines.bitcoin_news.notices import announce, renew
from tidings.pipelines.bitcoin_news.source_apitube import ApiTube
from tidings.pipelines.bitcoin_news.source_newsdata import NewsData
from tidings.pipelines.bitcoin_news.source_rss import OutletFeed, source_names
from tidings.pipelines.bitcoin_news.workflow import article_workflow

DEFAULT_FEEDS = (
    "https://www.coindesk.com/arc/outboundfeeds/rss/",
    "https://cointelegraph.com/rss/tag/bitcoin",
    "https://decrypt.co/feed",
    "https://www.theblock.co/rss.xml",
    "https://bitcoinmagazine.com/feed",
    "https://cryptopotato.com/feed/",
)
REMEMBERED_DAYS = 30
"""How much longer than the article its sightings are kept, so that a provider listing old news does not make it new."""


WebAddress = Annotated[str, AfterValidator(checked_address)]


class Settings(BaseModel):
    """What can be set under `[pipelines.bitcoin_news]`."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    every: Annotated[float, BeforeValidator(duration_seconds)] = Field(default=3600, ge=60)
    """The time between two looks at each source."""
    max_stored_articles: int = Field(default=500, ge=1, le=10_000)
    """How many articles are kept and listed, the newest ones."""
    max_pages: int = Field(default=15, ge=1, le=100)
    """The most pages read of a news service in one look."""
    id_index_days: int = Field(default=30, ge=1, le=365)
    """How long an article is listed."""
    max_content_chars: int = Field(default=10_240, ge=500, le=100_000)
    """How much of an article's text is read."""
    max_content_fetch_attempts: int = Field(default=5, ge=1, le=50)
    """How often the page of an article is tried."""
    content_retry_seconds: float = Field(default=20, gt=0, le=600)
    """The wait after a page's first failure; it doubles with each further one."""
    shelf_writes_per_day: int = Field(default=1000, ge=1)
    """How many writes to what readers see are planned for a day; an alert fires at 90 %."""
    republish: bool = True
    """Whether the API, feeds and exports carry full texts. Off: only summaries; operators still read them."""
    feeds: tuple[WebAddress, ...] = DEFAULT_FEEDS
    """The outlets' own feeds; they need no key."""
    language: str = Field(default="en", pattern=r"^[a-z]{2}$")
    """The language asked of the news services, as two letters."""
    newsdata_key: SecretStr | None = None
    """A key of NewsData.io, only by environment or file; adds it as a source."""
    newsdata_url: WebAddress = "https://newsdata.io/api/1"
    """The address of its API."""
    newsdata_page_size: int = Field(default=10, ge=1, le=50)
    """The free plan allows 10, the others 50."""
    newsdata_credits_per_day: int = Field(default=200, ge=1)
    """The credits your plan has; no more are used in a day."""
    apitube_key: SecretStr | None = None
    """A key of APITube, only by environment or file; adds it as a source."""
    apitube_url: WebAddress = "https://api.apitube.io/v1"
    """The address of its API."""
    apitube_page_size: int = Field(default=10, ge=1, le=250)
    """The free plan allows 10, the others 50 or 250."""
    apitube_credits_per_day: int = Field(default=100, ge=1)
    """The credits your plan has; no more are used in a day."""


def build(settings: Settings) -> Pipeline:
    """Declare the pipeline. The keyed providers are asked only where there is a key."""
    return Pipeline(
        name=PIPELINE,
        title="Bitcoin news",
        about="News on Bitcoin from news services and outlets' feeds, each with a summary and a sentiment.",
        workflows={
            KIND: article_workflow(
                max_content_chars=settings.max_content_chars,
                max_content_fetch_attempts=settings.max_content_fetch_attempts,
                content_retry_seconds=settings.content_retry_seconds,
            )
        },
        sources=tuple(_sources(settings)),
        collections=(articles(),),
        presenters={KIND: present},
        full_texts={KIND: full_text},
        republishes=settings.republish,
        first_cards={KIND: first_card},
        id_index=IdIndex(COLLECTION, newest=settings.max_stored_articles, days=settings.id_index_days),
        announce={KIND: announce},
        renew={KIND: renew},
        retention=(Retention(KIND, by_id_index=True),),
        shelf_writes_per_day=settings.shelf_writes_per_day,
    )


def endpoints(settings: Settings) -> tuple[str, ...]:
    """Return the services we call with a key. Feeds and article pages are strangers'."""
    keyed = ((settings.newsdata_key, settings.newsdata_url), (settings.apitube_key, settings.apitube_url))
    return tuple(url for key, url in keyed if key is not None)


def probes(settings: Settings) -> dict[str, Probe]:
    """Return the cheapest real call to each keyed provider: one page, with the key and the page size configured."""
    keyed = [each for each in _sources(settings) if isinstance(each, NewsData | ApiTube)]
    return {each.name: partial(_first_page, replace(each, max_pages=1)) for each in keyed}


async def _first_page(source: NewsData | ApiTube, kit: Kit) -> str:
    pages = source.pages(Run(source.name, kit.clock.now_ms(), None, None, True, {}), kit)
    page = await anext(aiter(pages), Page(()))
    return f"it takes the key: {len(page.findings)} articles on a page; this used {page.credits} credits"


def advice(settings: Settings) -> list[str]:
    """Say what an operator could improve."""
    keyed = (
        (settings.newsdata_key, "NEWSDATA_KEY", "NewsData.io: many more outlets, free plan with 200 credits a day"),
        (
            settings.apitube_key,
            "APITUBE_KEY",
            "APITube: more outlets, and sentiments, free plan with 100 credits a day",
        ),
    )
    return [
        f"TIDINGS_PIPELINES__BITCOIN_NEWS__{name} would add {service}" for key, name, service in keyed if key is None
    ]


def _sources(settings: Settings) -> list[Source]:
    keep_days = settings.id_index_days + REMEMBERED_DAYS
    found: list[Source] = []
    if settings.newsdata_key is not None:
        found.append(
            NewsData(
                key=settings.newsdata_key,
                base_url=settings.newsdata_url,
                every_seconds=settings.every,
                max_pages=settings.max_pages,
                page_size=settings.newsdata_page_size,
                credits_per_day=settings.newsdata_credits_per_day,
                language=settings.language,
                keep_days=keep_days,
            )
        )
    if settings.apitube_key is not None:
        found.append(
            ApiTube(
                key=settings.apitube_key,
                base_url=settings.apitube_url,
                every_seconds=settings.every,
                max_pages=settings.max_pages,
                page_size=settings.apitube_page_size,
                credits_per_day=settings.apitube_credits_per_day,
                language=settings.language,
                keep_days=keep_days,
            )
        )
    feeds = tuple(dict.fromkeys(settings.feeds))
    for name, url in zip(source_names(feeds), feeds, strict=True):
        found.append(OutletFeed(name=name, url=url, every_seconds=settings.every, keep_days=keep_days))
    return found
