"""Signing in and out."""

from flask import jsonify
from flask_jwt_extended import unset_jwt_cookies

import auth
import routes
import schemas

bp = routes.Blueprint("auth", "/auth")


@bp.post("/login")
@auth.anybody
@bp.body(schemas.Login)
@bp.answers(200, schemas.Token)
@bp.refuses(400, 401)
def login(username, password, session):
    """A token for 24 hours; with `session` it is set as a cookie and not shown."""
    return auth.sign_in(auth.log_in(username, password), page=session)


@bp.post("/logout")
@auth.anybody
@bp.answers(200, schemas.Message)
def logout():
    """Forget the page's cookie. A bearer token lives until its end: who holds it drops it."""
    response = jsonify(message="Signed out.")
    unset_jwt_cookies(response)
    return response
