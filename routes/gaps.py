"""What reviewers see of what agents ask for and are served."""

from flask import current_app

import auth
import routes
import schemas
import search
from models import Query, Use

bp = routes.Blueprint("gaps", "/review")


def _page(rows, total, limit, offset):
    counting = current_app.config["CQ_QUERY_LOG"]
    return {"items": rows, "total": total, "offset": offset, "limit": limit, "counting": counting}


@bp.get("/gaps")
@auth.session_required("reviewer")
@bp.query(schemas.Rows)
@bp.answers(200, schemas.Gaps)
def gaps(limit, offset):
    """Tags for which agents found nothing within 90 days, most often first."""
    rows, total = Query.gaps(limit, offset)
    index = search.index()
    for row in rows:
        row["known"] = any(index.has(tag) for tag in row["tags"])
    return _page(rows, total, limit, offset)


@bp.get("/use")
@auth.session_required("reviewer")
@bp.query(schemas.Uses)
@bp.answers(200, schemas.UsePage)
def use(limit, offset, never):
    """How often units were served, confirmed and flagged, most served first; with `never` the
    approved ones that nobody was served.
    """
    return _page(*(Use.never if never else Use.page)(limit, offset), limit, offset)
