"""What the stages know of each other: seams only, one file for each side, wired in `app.py`."""

from tidings.model.contracts.executor import Executor
from tidings.model.contracts.items import Items
from tidings.model.contracts.kit import Enricher, Extractor, Fetcher, Kit, Ledger, Probe
from tidings.model.contracts.log import Intake, Log
from tidings.model.contracts.notifier import Notifier, Permit, Receipt, Starts
from tidings.model.contracts.operator import Burials, ItemActions, ItemViews, StatusViews, Switches, Tokens
from tidings.model.contracts.search import Found, Hit, Search, SearchOrder
from tidings.model.contracts.shelf import Links, Shelf, ShelfEntry, ThreadNode, Tracks
from tidings.model.contracts.sources import Previews, SourceChanges

__all__ = [
    "Burials",
    "Enricher",
    "Executor",
    "Extractor",
    "Fetcher",
    "Found",
    "Hit",
    "Intake",
    "ItemActions",
    "ItemViews",
    "Items",
    "Kit",
    "Ledger",
    "Links",
    "Log",
    "Notifier",
    "Permit",
    "Previews",
    "Probe",
    "Receipt",
    "Search",
    "SearchOrder",
    "Shelf",
    "ShelfEntry",
    "SourceChanges",
    "Starts",
    "StatusViews",
    "Switches",
    "ThreadNode",
    "Tokens",
    "Tracks",
]
