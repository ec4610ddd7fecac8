"""What Prometheus sees; the names are those of the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import CounterMetricFamily
from prometheus_client.registry import Collector

from tidings.model.views import PipelineView, StatusView

GAUGES = (
    ("due_items", "Items due now", ["pipeline"]),
    ("parked_items", "Parked items", ["pipeline"]),
    ("waiting_items", "Items that wait for a phase, parked or not", ["pipeline", "phase"]),
    ("log_findings", "Findings the intake log holds", ["pipeline"]),
    ("log_unmerged", "Findings that are not merged yet", ["pipeline"]),
    ("index_divergence", "Keys in which id index and shelf have differed for minutes", ["pipeline"]),
    ("shelf_writes_today", "Shelf writes of today, where they have a limit", ["pipeline"]),
    ("shelf_writes_limit", "The limit of shelf writes in a day", ["pipeline"]),
    ("source_health", "1 for the word that tells how a source is", ["source", "health"]),
    ("last_seen_timestamp_seconds", "When a process of a part was last seen; 0 for never", ["part"]),
)
COUNTERS = {
    "shelf_writes": ("tidings_shelf_writes", "Everything written to the shelf", "pipeline"),
    "credits": ("tidings_source_credits", "Credits used", "source"),
    "new": ("tidings_findings_new", "Findings that were new", "source"),
    "changed": ("tidings_findings_changed", "Findings that had changed", "source"),
    "unchanged": ("tidings_findings_unchanged", "Findings that were known", "source"),
    "rejected": ("tidings_findings_rejected", "Findings that could not be read", "source"),
    "trimmed": ("tidings_log_trimmed", "Findings trimmed from the intake log", "source"),
}
"""What the store counts for all processes; any of them tells it."""
_SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60)


class StoredCounter(Collector):
    """A counter that lives in the store: the same in every process, and never reset."""

    def __init__(self, kind: str, name: str, text: str, label: str) -> None:
        self._kind, self._name, self._text, self._labelnames = kind, name, text, (label,)
        self.values: Mapping[str, int] = {}

    def describe(self) -> list[CounterMetricFamily]:
        """Say what it is, without its values."""
        return [CounterMetricFamily(self._name, self._text, labels=self._labelnames)]

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Tell its value for each subject."""
        (family,) = self.describe()
        for counted, value in self.values.items():
            kind, _, subject = counted.partition(":")
            if kind == self._kind:
                family.add_metric([subject], value)
        yield family


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
        self._counts = [StoredCounter(kind, *described) for kind, described in COUNTERS.items()]
        for counter in self._counts:
            r.register(counter)
        self.caches = Counter(
            "tidings_cache_requests_total", "Answers looked for in a cache", ["cache", "result"], registry=r
        )
        self._answers = {is_hit: self.caches.labels("answers", "hit" if is_hit else "miss") for is_hit in (True, False)}
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
        self._gauges = {name: Gauge(f"tidings_{name}", text, labels, registry=r) for name, text, labels in GAUGES}
        self._routes: dict[tuple[str, int], Histogram] = {}
        Gauge("tidings_build_info", "Version", ["version"], registry=r).labels(version).set(1)

    def observe_request(self, route: str, status: int, seconds: float) -> None:
        """Note one API request; looking a label up costs more than counting, so each is looked up once."""
        child = self._routes.get((route, status))
        if child is None:
            child = self._routes[route, status] = self.requests.labels(route, str(status))
        child.observe(seconds)

    def observe_answer(self, is_hit: bool) -> None:
        """Note whether an answer was there already, or had to be read from the shelf."""
        self._answers[is_hit].inc()

    def observe_status(self, status: StatusView) -> None:
        """Set the gauges that the store knows."""
        for gauge in (self.states, self.behind, self.behind_seconds, self.lag, self.dead, *self._gauges.values()):
            gauge.clear()
        for counter in self._counts:
            counter.values = status.counts
        for role, part in (("work", "worker"), ("discover", "poller"), ("serve", "server")):
            seen = [each.seen_at for each in status.processes if each.role in ("all", role)]
            self._gauges["last_seen_timestamp_seconds"].labels(part).set(max(seen, default=0) / 1000)
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
            for transition, count in view.dead.items():
                self.dead.labels(name, transition).set(count)
            self._observe_pipeline(name, view)
            self.leases.labels(name).set(view.leased)
            for source in view.sources:
                self._gauges["source_health"].labels(source.name, source.health).set(1)
                if source.last_success_at is not None:
                    self.source_success.labels(source.name).set(source.last_success_at / 1000)

    def _observe_pipeline(self, name: str, view: PipelineView) -> None:
        gauges = self._gauges
        gauges["due_items"].labels(name).set(view.due)
        gauges["parked_items"].labels(name).set(view.parked)
        gauges["log_findings"].labels(name).set(view.intake.total)
        gauges["log_unmerged"].labels(name).set(view.intake.unmerged)
        gauges["index_divergence"].labels(name).set(view.index_gap)
        for phase, count in view.phases.items():
            gauges["waiting_items"].labels(name, phase).set(count)
        if view.shelf_writes_limit:
            gauges["shelf_writes_today"].labels(name).set(view.shelf_writes_today)
            gauges["shelf_writes_limit"].labels(name).set(view.shelf_writes_limit)

    def render(self) -> tuple[bytes, str]:
        """Return the exposition and its content type."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST
