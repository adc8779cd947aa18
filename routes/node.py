"""What a node says of itself: is it alive, is it ready, where is its API."""

from flask import current_app

import auth
import routes
import schemas
import search
from errors import NotFound
from models import db

bp = routes.Blueprint("node", "")


def health():
    """Alive. Touches nothing."""
    return {"status": "ok"}


def ready():
    """Able to answer: the database was asked just now. Tells how queries are searched, and why."""
    db.session.execute(db.text("SELECT number FROM changes"))
    mode, embedder = search.meaning().status(search.index())
    return {"status": "ok", "search": mode, "embedder": embedder}


def discovery():
    """The document that leads clients here, where CQ_PUBLIC_URL names the address."""
    address = current_app.config["CQ_PUBLIC_URL"]
    if not address:
        raise NotFound("Not Found")
    name = current_app.config["CQ_NODE_NAME"]
    return {
        "version": 1,
        "api_base_url": f"{address}/api/v1",
        "api_version": "v1",
        **({"node_name": name} if name else {}),
    }


@bp.get("/health")
@auth.anybody
@bp.answers(200, schemas.Health)
def api_health():
    """Alive. Touches nothing."""
    return health()


def init_app(app):
    """The paths outside /api/v1, which no rate limit holds."""
    for path, view in (
        ("/health", health),
        ("/ready", ready),
        ("/.well-known/cq-node.json", discovery),
    ):
        app.add_url_rule(path, view_func=auth.anybody(view))
