"""The fixed cast and the surfaces to drive the server by; the database is migrated once and copied."""

import shutil

import pytest

import auth
import config
import embeddings
import search
from app import create_app
from models import Actor, ApiKey, User, db
from tests.cast import PASSWORD, PEOPLE, SECRETS, Caller, Process


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """(database file, {name: API key}) with the cast in it; nobody writes to it."""
    path = tmp_path_factory.mktemp("template") / "cq.db"
    app = create_app(config.from_env({"CQ_DB_PATH": str(path), **SECRETS}))
    keys = {}
    with app.app_context():
        hashed = auth.hash_password(PASSWORD)
        for name, role in PEOPLE.items():
            user = User.add(name, hashed, role)
            db.session.commit()
            id, secret = auth.new_key()
            hash_ = auth.key_hash(secret)
            ApiKey.add(user.id, "first", [], "90d", 90 * 86400, id, secret[:8], hash_)
            db.session.commit()
            keys[name] = auth.key_token(id, secret)
        db.engine.dispose()
    return path, keys


@pytest.fixture
def environ(template, tmp_path):
    """The variables of a server over a fresh copy of the cast's database."""
    shutil.copy(template[0], tmp_path / "cq.db")
    return {"CQ_DB_PATH": str(tmp_path / "cq.db"), "CQ_PORT": "0", "CQ_EMBEDDER": "off", **SECRETS}


@pytest.fixture
def make_app(environ):
    """Apps over the test's database; `make_app(CQ_VOTE_WINDOW="0")` sets variables, and
    `make_app(encoder=...)` takes what makes the encoder out of its name.
    """
    apps = []

    def make(encoder=embeddings.load, **more):
        if encoder is not embeddings.load:
            more = {"CQ_EMBEDDER": "minilm", **more}
        app = create_app(config.from_env({**environ, **more}), encoder)
        apps.append(app)
        return app

    yield make
    for app in apps:
        search.stop(app)
        with app.app_context():
            db.engine.dispose()


@pytest.fixture
def app(make_app):
    return make_app()


@pytest.fixture
def call(app, template):
    """Drive the app: `call("GET", "/knowledge", key="carl", query={...})`; see `Caller`."""
    return caller(app, template)


@pytest.fixture
def make_call(make_app, template):
    """A `call` over an app with other variables."""
    return lambda **more: caller(make_app(**more), template)


def caller(app, template):
    with app.app_context():
        tokens = {name: auth.token_for(User.find(name)) for name in PEOPLE}
    return Caller(app, template[1], tokens)


@pytest.fixture
def actor(app):
    """Actors of the cast for tests of models, inside an app context."""
    with app.app_context():
        people = {user.username: user for user in User.page(100, 0)}
        yield lambda name: Actor(people[name].id, name, people[name].role, "token")


@pytest.fixture
def serve(environ):
    """Start real servers over the test's database: `serve(CQ_VOTE_WINDOW="0")` gives a `Process`."""
    processes = []

    def start(**more):
        process = Process({**environ, **more})
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.stop()
