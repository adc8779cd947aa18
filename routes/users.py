"""People: oneself, one's API keys and proposals; and for admins everybody."""

from flask import g, jsonify

import auth
import routes
import schemas
from errors import Invalid, Unauthorized
from models import ApiKey, Unit, User, db

bp = routes.Blueprint("users", "/users")


def _hashed(password, field="password"):
    try:
        return auth.hash_password(password)
    except ValueError as fault:
        raise Invalid.at("body", field, because=str(fault)) from None


@bp.get("/me")
@auth.session_required()
@bp.answers(200, schemas.Account)
@bp.refuses(404)
def me():
    """Who is signed in."""
    return User.find(g.actor.name).wire()


@bp.patch("/me")
@auth.session_required()
@bp.body(schemas.ChangePassword)
@bp.answers(200, schemas.Token)
@bp.refuses(400, 404, 429)
def change_password(password, new_password):
    """A new password. All sessions end; the answer holds a token for a new one."""
    try:
        auth.log_in(g.actor.name, password)
    except Unauthorized:
        raise Invalid.at("body", "password", because="this is not your password") from None
    user = User.change(g.actor.name, password_hash=_hashed(new_password, "new_password"))
    db.session.commit()
    return auth.sign_in(user, page=g.actor.channel == "page")


@bp.get("/me/proposals")
@auth.session_required()
@bp.query(schemas.Listing)
@bp.answers(200, schemas.Page)
def proposals(limit, offset, cursor):
    """One's own proposals, newest first, and what became of them."""
    mine = Unit.author_id == g.actor.id
    rows, place = Unit.page(mine, limit=limit, offset=offset, after=cursor, newest=True)
    return jsonify(
        items=[unit.proposal() for unit in rows],
        total=Unit.count(mine),
        offset=offset,
        limit=limit,
        next_cursor=schemas.cursor(place),
    )


@bp.post("/me/api-keys")
@auth.session_required()
@bp.body(schemas.NewKey)
@bp.answers(201, schemas.MadeKey)
@bp.refuses(400, 409)
def make_key(name, ttl, labels):
    """An API key for an agent. Its token is in this answer and nowhere else."""
    ttl, duration = auth.parse_ttl(ttl)
    labels = list(dict.fromkeys(label.strip() for label in labels if label.strip()))
    id, secret = auth.new_key()
    key = ApiKey.add(g.actor.id, name, labels, ttl, duration, id, secret[:8], auth.key_hash(secret))
    db.session.commit()
    token = auth.key_token(id, secret)
    return {**key.wire(), "token": token, "api_key": token}


@bp.get("/me/api-keys")
@auth.session_required()
@bp.answers(200, schemas.Keys)
def my_keys():
    """One's API keys, newest first."""
    return {"data": [key.wire() for key in ApiKey.of(g.actor.id)]}


@bp.post("/me/api-keys/<key_id>/revoke")
@auth.session_required()
@bp.answers(200, schemas.Message)
@bp.refuses(404)
def revoke_my_key(key_id):
    """End an API key for good."""
    ApiKey.revoke(g.actor.id, key_id)
    db.session.commit()
    return {"message": "API key revoked."}


@bp.get("")
@auth.session_required("admin")
@bp.query(schemas.People)
@bp.answers(200, schemas.Accounts)
def everybody(limit, offset):
    """All accounts by name."""
    return {"data": [user.wire() for user in User.page(limit, offset)]}


@bp.post("")
@auth.session_required("admin")
@bp.body(schemas.NewUser)
@bp.answers(201, schemas.Account)
@bp.refuses(400, 409)
def make_user(username, password, role):
    """A new account."""
    user = User.add(username, _hashed(password), role)
    db.session.commit()
    return user.wire()


@bp.patch("/<username>")
@auth.session_required("admin")
@bp.body(schemas.ChangeUser)
@bp.answers(200, schemas.Account)
@bp.refuses(400, 404, 409)
def change_user(username, role=None, disabled=None, password=None):
    """Another role or password, or no access; each ends the person's sessions."""
    hashed = None if password is None else _hashed(password)
    user = User.change(username, role, disabled, hashed)
    db.session.commit()
    return user.wire()


@bp.get("/<username>/api-keys")
@auth.session_required("admin")
@bp.answers(200, schemas.Keys)
@bp.refuses(404)
def their_keys(username):
    """The API keys of an account, newest first."""
    return {"data": [key.wire() for key in ApiKey.of(User.find(username).id)]}


@bp.post("/<username>/api-keys/<key_id>/revoke")
@auth.session_required("admin")
@bp.answers(200, schemas.Message)
@bp.refuses(404)
def revoke_their_key(username, key_id):
    """End an API key of somebody else for good."""
    ApiKey.revoke(User.find(username).id, key_id)
    db.session.commit()
    return {"message": "API key revoked."}
