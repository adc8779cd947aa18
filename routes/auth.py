"""Signing in and out."""

from flask import jsonify

import auth
import routes
import schemas
from models import db

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
@bp.query(schemas.SignOut)
@bp.answers(200, schemas.Message)
@bp.refuses(401)
def logout(all_devices):
    """End the session, whether a cookie or a bearer token holds it; `all_devices` ends them all."""
    auth.sign_out(all_devices)
    db.session.commit()
    response = jsonify(message="Signed out.")
    auth.drop_cookies(response)
    return response
