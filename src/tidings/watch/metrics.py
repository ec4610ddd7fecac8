"""What Prometheus sees; the names are those of the documentation."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from tidings.model.views import StatusView

_SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60)


class Metrics:
    """One registry for one process."""

    def __init__(self, version: str) -> None:
        r = self.registry = CollectorRegistry()
        self.items = Counter("tidings_items_total", "Attempts by how they ended", ["pipeline", "outcome"], registry=r)
        self.states = Gauge("tidings_item_state", "Items by state", ["pipeline", "kind", "state"], registry=r)
        self.attempts = Histogram(
            "tidings_attempt_duration_seconds",
            "How long attempts take",
            ["pipeline", "transition", "outcome"],
            registry=r,
            buckets=_SECONDS,
        )
        self.oldest = Gauge(
            "tidings_queue_oldest_age_seconds", "Age of the oldest due item", ["pipeline", "transition"], registry=r
        )
        self.lag = Gauge(
            "tidings_processing_lag_seconds",
            "How long the oldest unfinished finding or item has waited for a phase",
            ["pipeline", "phase"],
            registry=r,
        )
        self.dead = Gauge("tidings_dead_letters", "Dead letters", ["pipeline", "transition"], registry=r)
        self.leases = Gauge("tidings_leases", "Live leases", ["pipeline"], registry=r)
        self.expired = Counter("tidings_leases_expired_total", "Leases that expired", registry=r)
        self.source_success = Gauge(
            "tidings_source_last_success_timestamp_seconds", "Last completed run", ["source"], registry=r
        )
        self.credits = Counter("tidings_source_credits_total", "Credits used", ["source"], registry=r)
        self.shelf_writes = Counter("tidings_shelf_writes_total", "Cards written", registry=r)
        self.tokens = Counter("tidings_ai_tokens_total", "Tokens", ["model", "direction"], registry=r)
        self.deliveries = Counter("tidings_deliveries_total", "Deliveries", ["channel", "outcome"], registry=r)
        self.requests = Histogram(
            "tidings_api_request_duration_seconds", "API requests", ["route", "status"], registry=r, buckets=_SECONDS
        )
        self.behind = Gauge("tidings_follower_behind", "Changes not yet followed", ["follower", "process"], registry=r)
        self.behind_seconds = Gauge(
            "tidings_follower_behind_seconds",
            "Age of the first change not followed",
            ["follower", "process"],
            registry=r,
        )
        self._routes: dict[tuple[str, int], Histogram] = {}
        Gauge("tidings_build_info", "Version", ["version"], registry=r).labels(version).set(1)

    def observe_request(self, route: str, status: int, seconds: float) -> None:
        """Note one API request; looking a label up costs more than counting, so each is looked up once."""
        child = self._routes.get((route, status))
        if child is None:
            child = self._routes[route, status] = self.requests.labels(route, str(status))
        child.observe(seconds)

    def observe_status(self, status: StatusView) -> None:
        """Set the gauges that the store knows."""
        for gauge in (self.states, self.behind, self.behind_seconds, self.lag):
            gauge.clear()
        for each in status.followers:
            self.behind.labels(each.name, each.process).set(each.behind)
            self.behind_seconds.labels(each.name, each.process).set(each.behind_seconds)
        for name, view in status.pipelines.items():
            for kind, states in view.kinds.items():
                for state, count in states.items():
                    self.states.labels(name, kind, state).set(count)
            self.oldest.labels(name, "any").set(view.oldest_due_seconds or 0)
            for phase, seconds in (view.lags or {"process": 0.0}).items():
                self.lag.labels(name, phase).set(seconds)
            self.dead.labels(name, "any").set(view.dead_letters)
            self.leases.labels(name).set(view.leased)
            for source in view.sources:
                if source.last_success_at is not None:
                    self.source_success.labels(source.name).set(source.last_success_at / 1000)

    def render(self) -> tuple[bytes, str]:
        """Return the exposition and its content type."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST
