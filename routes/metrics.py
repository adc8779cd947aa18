"""/metrics: what this process counted since its start, and what stands waiting now."""

import hmac
import time
from datetime import UTC, datetime

from flask import Response, current_app, g, request
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.process_collector import ProcessCollector
from sqlalchemy import event, func, literal, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

import auth
import logs
import proxies
import search
from errors import Forbidden, Unavailable
from models import LIVE, UNITS, VECTORS, Change, Event, Unit, Vector, Vote, db

disable_created_metrics()
METHODS = {"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"}
DECISIONS = ("approved", "rejected", "reopened", "kept", "retired", "superseded", "edited")
VOTES = ("confirm", "stale", "incorrect", "duplicate")
LOGINS = {401: "wrong", 429: "throttled", 503: "busy"}
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
# Rows that are counted at most: a scrape stays short whatever waits.
MOST = 100_000


class Metrics:
    """One for each app, with a registry of its own."""

    def __init__(self, app):
        self.app = app
        self.started = time.monotonic()
        self.registry = CollectorRegistry()
        self.backlog = None, None
        self.known = {}

        def counter(name, told, *labels):
            return Counter(name, told, labels, registry=self.registry)

        self.requests = counter(
            "cq_requests_total", "Requests answered", "method", "route", "class"
        )
        self.refusals = counter("cq_refusals_total", "Answers of 400 and above", "class", "status")
        self.queries = counter("cq_queries_total", "Queries answered by", "mode")
        self.proposals = counter("cq_proposals_total", "New units proposed")
        self.votes = counter("cq_votes_total", "Confirmations and flags that counted", "kind")
        self.decisions = counter("cq_decisions_total", "Steps of reviewers", "decision")
        self.logins = counter("cq_login_failures_total", "Logins that were refused", "reason")
        self.seconds = Histogram(
            "cq_request_seconds",
            "Time to an answer",
            ("method", "route"),
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.flying = Gauge(
            "cq_requests_in_flight", "Requests being answered now", registry=self.registry
        )
        # What did not happen yet is 0 and not absent, so that the first time is seen as a rise.
        for counted, names in (
            (self.queries, ("semantic", "domain")),
            (self.votes, VOTES),
            (self.decisions, DECISIONS),
            (self.logins, LOGINS.values()),
        ):
            for name in names:
                counted.labels(name)
        ProcessCollector(registry=self.registry)
        self.registry.register(self)

    def of(self, method, route, status):
        """The histogram and the counters of answers like this one."""
        kind = f"{status // 100}xx"
        refusals = [self.refusals.labels(kind, status)] if status >= 400 else []
        requests = self.requests.labels(method, route, kind)
        return self.seconds.labels(method, route), requests, *refusals

    def collect(self):
        """What is asked for only when somebody looks: a few statements, each of them bounded."""
        up = time.monotonic() - self.started
        yield _gauge("cq_uptime_seconds", "Since this process began to serve", up)
        meaning = self.app.extensions["cq_meaning"]
        fallbacks = CounterMetricFamily(
            "cq_fallbacks", "Queries answered without meaning by cause", labels=["cause"]
        )
        for cause, count in dict(meaning.embedder.fallbacks).items():
            fallbacks.add_metric([cause], count)
        yield fallbacks
        try:
            length, age = _queue()
            waiting = self._waiting(meaning.embedder.encoder)
            semantic = meaning.hindrance(search.index()) is None
        except (SQLAlchemyError, Unavailable):
            # The counts are told all the same.
            yield _gauge("cq_database_up", "Whether the database answered this scrape", 0)
            return
        yield _gauge("cq_database_up", "Whether the database answered this scrape", 1)
        yield _gauge("cq_queue_units", "Units that wait for a reviewer", length)
        yield _gauge("cq_queue_age_seconds", "Since the oldest of them was proposed", age)
        yield _gauge("cq_semantic", "Whether queries are answered by meaning now", semantic)
        if waiting is not None:
            yield _gauge("cq_units_without_vector", "Live units without a vector", waiting)

    def describe(self):
        """Nothing is asked of the database to learn the names."""
        return []

    def _waiting(self, encoder):
        """Live units that have no vector of the model at hand; None without one.

        Counted anew only once units or vectors changed.
        """
        if encoder is None:
            return None
        state = (encoder.model, Change.last(UNITS), Change.last(VECTORS))
        kept, count = self.backlog
        if kept != state:
            count = _counted(
                select(literal(1))
                .select_from(Unit)
                .where(
                    Unit.status.in_(LIVE),
                    ~select(literal(1))
                    .where(
                        Vector.unit_pk == Unit.pk,
                        Vector.model == encoder.model,
                        Vector.part == 0,
                    )
                    .exists(),
                )
            )
            self.backlog = state, count
        return count


def _gauge(name, told, value):
    return GaugeMetricFamily(name, told, value=float(value))


def _counted(rows):
    return db.session.scalar(select(func.count()).select_from(rows.limit(MOST).subquery()))


def _queue():
    """(how many units are pending, seconds since the oldest was proposed, 0 without one)."""
    pending = Unit.status == "pending"
    oldest = db.session.scalar(
        select(Unit.created_at).where(pending).order_by(Unit.created_at, Unit.id).limit(1)
    )
    length = _counted(select(literal(1)).select_from(Unit).where(pending))
    return length, _seconds_since(oldest) if oldest else 0.0


def _seconds_since(moment):
    return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds())


@event.listens_for(Session, "after_flush")
def _note(session, _):
    """Keep in mind what is written, until it is committed."""
    for row in session.new:
        if isinstance(row, Event):
            session.info.setdefault("counted", []).append(("step", row.type))
        elif isinstance(row, Vote):
            session.info.setdefault("counted", []).append(("vote", row.kind))


@event.listens_for(Session, "after_commit")
def _count(session):
    metrics = current_app.extensions.get("cq_metrics") if current_app else None
    for kind, name in session.info.pop("counted", ()):
        if metrics is None:
            continue
        if kind == "vote":
            metrics.votes.labels(name).inc()
        elif name == "proposed":
            metrics.proposals.inc()
        else:
            metrics.decisions.labels(name).inc()


@event.listens_for(Session, "after_rollback")
def _forget(session):
    session.info.pop("counted", None)


def init_app(app):
    app.extensions["cq_metrics"] = Metrics(app)
    app.before_request(_begin)
    app.after_request(_answered)
    app.teardown_request(_end)
    app.add_url_rule("/metrics", view_func=auth.anybody(metrics))


def _begin():
    current_app.extensions["cq_metrics"].flying.inc()
    g.flying = True


def _end(_):
    if g.pop("flying", False):
        current_app.extensions["cq_metrics"].flying.dec()


def _answered(response):
    """Count an answer under what there are only so many of: never a path, a name or a text."""
    counts, status = current_app.extensions["cq_metrics"], response.status_code
    method = request.method if request.method in METHODS else "other"
    key = method, logs.route() or "none", status
    # To find them by their labels each time would take as long as all the rest.
    each = counts.known.get(key) or counts.known.setdefault(key, counts.of(*key))
    for counter in each[1:]:
        counter.inc()
    each[0].observe(time.perf_counter() - g.started)
    if status >= 400:
        if request.endpoint == "auth.login" and status in LOGINS:
            counts.logins.labels(LOGINS[status]).inc()
    elif mode := response.headers.get("CQ-Search"):
        counts.queries.labels(mode).inc()
    return response


def metrics():
    """For callers on this machine, and for whoever has the token."""
    if not _may():
        raise Forbidden(
            "Metrics are for callers on the server's own machine, and for those who send "
            "CQ_METRICS_TOKEN as `Authorization: Bearer TOKEN`"
        )
    body = generate_latest(current_app.extensions["cq_metrics"].registry)
    return Response(body, content_type=CONTENT_TYPE_LATEST)


def _may():
    token = current_app.config["CQ_METRICS_TOKEN"]
    sent = request.headers.get("Authorization")
    if sent is not None:
        expected = f"Bearer {token}".encode()
        return bool(token) and hmac.compare_digest(sent.encode(), expected)
    # A proxy on this machine calls from here whoever called it.
    return logs.loopback(request.remote_addr) and not proxies.passed(request)
