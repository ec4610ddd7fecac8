"""Checks what a route says before anything is opened: its query and its texts."""

from __future__ import annotations

from tidings.model.clock import SystemClock
from tidings.model.errors import BadInput, Misconfigured
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Route
from tidings.model.query import parse, point_at
from tidings.model.query_tree import InThread, parts_of
from tidings.model.texts import check
from tidings.model.vocabulary import Vocabulary, no_field


def parse_route(route: Route, vocabulary: Vocabulary) -> None:
    """Refuse a route whose query cannot be read, or asks for what no notice of its pipeline has."""
    place = f"routes: the query of {route.channel}"
    try:
        query = parse(route.query, vocabulary, now_ms=SystemClock().now_ms())
    except BadInput as error:
        raise Misconfigured(f"{place} cannot be read: {point_at(route.query, error)}") from error
    for warning in query.warnings:
        raise Misconfigured(f"{place} ({route.query}): {warning}")
    for name in query.unknown_names:
        raise Misconfigured(f"{place} ({route.query}): {no_field(name, route.pipeline, vocabulary)}")
    if any(isinstance(part, InThread) for part in parts_of(query.root)):
        raise Misconfigured(f"{place} ({route.query}): story: and thread: are for searches; a notice stands alone")


def check_texts(route: Route, pipeline: Pipeline, vocabulary: Vocabulary) -> None:
    """Refuse texts with a name, a filter, a color or a field that its notices do not have."""
    sample = pipeline.sample_notice
    names = {*vocabulary.attributes, *(sample.attributes if sample is not None else ())} - vocabulary.absent
    labels = [field.name for field in sample.fields] if sample is not None else []
    for problem in check(route.texts, names, labels, f"routes: {route.pipeline} to {route.channel}: texts"):
        raise Misconfigured(problem)
