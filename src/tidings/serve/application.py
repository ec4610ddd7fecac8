"""The whole server: everything the API and the pages declare, in one application."""

from __future__ import annotations

from tidings.serve.api.card_search import CardSearch
from tidings.serve.api.changes import ChangeRoutes
from tidings.serve.api.collections import Collections
from tidings.serve.api.feeds import FeedRoutes
from tidings.serve.api.greader import GoogleReader
from tidings.serve.api.histories import Histories
from tidings.serve.api.marks import MarkRoutes
from tidings.serve.api.operator_reads import OperatorReads
from tidings.serve.api.operator_writes import OperatorWrites
from tidings.serve.api.rankings import RankedLists
from tidings.serve.api.reading import ReadingList
from tidings.serve.api.search import SearchRoutes
from tidings.serve.api.sources import SourceRoutes
from tidings.serve.api.stories import StoryRoutes
from tidings.serve.api.story_cards import StoryCards
from tidings.serve.api.uploads import Uploads
from tidings.serve.backend import Backend
from tidings.serve.http.access import Access
from tidings.serve.http.health import Health
from tidings.serve.http.openapi import OpenApi
from tidings.serve.http.server import Application
from tidings.serve.http.streams import Stream
from tidings.serve.pages.buttons import Buttons
from tidings.serve.pages.collection import CollectionPages
from tidings.serve.pages.docs import Docs
from tidings.serve.pages.frame import Frame
from tidings.serve.pages.item import ItemPage
from tidings.serve.pages.login import Login
from tidings.serve.pages.now import Now
from tidings.serve.pages.operator import OperatorPages
from tidings.serve.pages.ranking import RankingPages
from tidings.serve.pages.read import ReadPage
from tidings.serve.pages.search import SearchPage
from tidings.serve.pages.source_forms import SourceForms
from tidings.serve.pages.stories import StoryPages
from tidings.serve.pages.trials import TrialPage


def build(backend: Backend) -> Application:
    """Put the server together."""
    access = Access(backend)
    collections = Collections(backend)
    search = CardSearch(backend)
    lists, histories = RankedLists(backend, collections), Histories(backend, collections)
    stream, changes = Stream(backend), ChangeRoutes(backend)
    story_cards = StoryCards(backend, collections)
    stories = StoryRoutes(backend, story_cards)
    frame = Frame(backend, access)
    item_page = ItemPage(frame, collections, search, histories, story_cards)
    feeds, reading = FeedRoutes(backend, collections, search), ReadingList(backend, collections, search)
    marks = MarkRoutes(backend, access, reading, search, feeds)
    machines = [
        *Health(backend).operations(),
        *SearchRoutes(backend, collections, search).operations(),
        *Uploads(backend).operations(),
        *OperatorReads(backend).operations(),
        *OperatorWrites(backend).operations(),
        *SourceRoutes(backend).operations(),
        *stream.operations(),
        *changes.operations(),
        *stories.operations(),
        *marks.operations(),
        *feeds.operations(),
        *lists.operations(),
        *histories.operations(),
        *collections.operations(),
    ]
    openapi = OpenApi(backend, machines)
    people = [
        *frame.static.operations(),
        *Now(frame, collections).operations(),
        *OperatorPages(frame, collections, item_page).operations(),
        *SourceForms(frame).operations(),
        *Buttons(frame).operations(),
        *Login(frame).operations(),
        *Docs(frame, openapi.document).operations(),
        *ReadPage(frame, reading, search, marks, story_cards).operations(),
        *GoogleReader(backend, access, reading, collections).operations(),
        *SearchPage(frame, collections, search).operations(),
        *RankingPages(frame, lists).operations(),
        *StoryPages(frame, stories).operations(),
        *TrialPage(frame).operations(),
        *CollectionPages(frame, collections, item_page).operations(),
    ]
    operations = [*machines, *openapi.operations(), *people]
    return Application(backend, access, collections.hot, (stream, changes), operations, frame.show_problem)
