"""Reviewers' sessions: a JWT as a bearer token, or in the page's cookie."""

import time
from datetime import UTC, datetime

from flask import current_app, jsonify, request
from flask_jwt_extended import (
    JWTManager,
    create_access_token,
    current_user,
    get_csrf_token,
    get_jwt,
    verify_jwt_in_request,
)
from flask_jwt_extended.exceptions import CSRFError, JWTExtendedException
from jwt.exceptions import PyJWTError

from errors import Forbidden, Unauthorized
from models import Actor, EndedSession, User, db

jwt = JWTManager()
# The token in a cookie ends long before.
YEAR = 365 * 86400


def token_for(user, channel="token"):
    """A JWT (HS256) for 24 hours, or until the person's password, role or state changes.

    It says for which channel it was made: one that a program was given is no page's cookie.
    """
    claims = {"sv": user.session_version, "channel": channel}
    return create_access_token(user.username, additional_claims=claims)


def sign_in(user, page):
    """The answer to a login: with its token, or for the page a cookie that no script reads."""
    who = {"username": user.username, "role": user.role}
    if not page:
        return jsonify(token=token_for(user), **who)
    response = jsonify(who)
    token = token_for(user, "page")
    _set_cookies(response, token, get_csrf_token(token), YEAR)
    return response


def drop_cookies(response):
    """Take the page's cookies back."""
    _set_cookies(response, "", "", 0)


def _set_cookies(response, token, csrf, seconds):
    """The session, which no script reads, and the second token, which the page sends with a change.

    Both stay below the path that a proxy serves us under; other servers may stand beside it.
    """
    secure = current_app.config["JWT_COOKIE_SECURE"] or request.is_secure
    for setting, value, path, hidden in (
        ("JWT_ACCESS_COOKIE_NAME", token, "/api/", True),
        ("JWT_ACCESS_CSRF_COOKIE_NAME", csrf, "/", False),
    ):
        response.set_cookie(
            current_app.config[setting],
            value,
            max_age=seconds,
            secure=secure,
            httponly=hidden,
            path=f"{request.script_root}{path}",
            samesite="Strict",
        )


def sign_out(everywhere):
    """End the session of this request, or all of its person's; a cookie of none is just dropped.

    U's tokens have no id, so all end at once. Raises Unauthorized for a bearer token
    that is none.
    """
    try:
        actor = from_session()
    except (Unauthorized, Forbidden):
        if "Authorization" in request.headers:
            raise
        return
    claims = get_jwt()
    if everywhere or not claims.get("jti"):
        User.change(actor.name)
    else:
        EndedSession.end(claims["jti"], datetime.fromtimestamp(claims["exp"], UTC))


@jwt.user_lookup_loader
def _person(_, claims):
    """The token's user, if the token still stands for one; U's tokens carry no `sv` claim."""
    if "exp" not in claims or "iat" not in claims or int(claims["exp"]) <= time.time():
        return None
    # Ours carry none, so no clock that is set back makes one lie ahead.
    if int(claims.get("nbf", 0)) > time.time():
        return None
    return User.of_session(claims["sub"], claims.get("sv", 0), claims.get("jti"))


def from_session():
    """The Actor of a bearer token, or else of the page's cookie. Raises Unauthorized, Forbidden."""
    header = request.headers.get("Authorization")
    if header is not None and (not header.startswith("Bearer ") or " " in header[7:]):
        raise Unauthorized("Missing or invalid authorization header")
    if header is None and not request.cookies.get(current_app.config["JWT_ACCESS_COOKIE_NAME"]):
        raise Unauthorized("Missing or invalid authorization header")
    try:
        verify_jwt_in_request(locations=["cookies"] if header is None else ["headers"])
    except CSRFError:
        raise Forbidden("The CSRF token is missing or wrong") from None
    except (JWTExtendedException, PyJWTError):
        raise Unauthorized("Invalid or expired token") from None
    channel = "page" if header is None else "token"
    if get_jwt().get("channel", "token") != channel:
        raise Unauthorized("Invalid or expired token")
    actor = Actor(current_user.id, current_user.username, current_user.role, channel)
    # The view reads what is true now, not what was when its caller was looked up.
    db.session.rollback()
    return actor
