"""Counts: what agents may see, and the reviewers' dashboard."""

from flask import g

import auth
import routes
import schemas
import search
from cq import unit as rules
from models import dashboard, db, now

bp = routes.Blueprint("stats", "")


@bp.get("/knowledge/stats")
@auth.reader
@bp.answers(200, schemas.AgentStats)
def agents():
    """Approved units that the caller may see, counted. `total_count` counts just these."""
    return search.index().stats(g.private)


@bp.get("/review/stats")
@auth.session_required("reviewer")
@bp.answers(200, schemas.ReviewStats)
def reviewers():
    """The dashboard: units by status, domain and confidence, the latest steps, a month of days."""
    index = search.index()
    return index.remember(("dashboard", now()[:10]), lambda: _dashboard(index))


def _dashboard(index):
    """All of it from one snapshot, which begins here."""
    db.session.rollback()
    approved = index.stats(edges=rules.REVIEW_BUCKETS)
    return {
        "counts": dashboard.counts(),
        "domains": approved["domain_counts"],
        "confidence_distribution": approved["confidence_distribution"],
        "recent_activity": dashboard.activity(),
        "trends": {"daily": dashboard.daily()},
    }
