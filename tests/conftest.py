"""The fixed cast and the surfaces to drive the server by; the database is migrated once and copied."""

import pytest

import auth
import config
import embeddings
import search
import tally
from app import create_app
from models import Actor, ApiKey, User, db
from tests import homes
from tests.cast import PASSWORD, PEOPLE, SECRETS, Caller, Process

assert homes.NAME in homes.NAMES, f"CQ_TEST_DATABASE is one of {homes.NAMES}"


def pytest_runtest_setup(item):
    only = item.get_closest_marker("only")
    if only and homes.NAME not in only.args:
        pytest.skip(f"about {only.kwargs['why']}: CQ_TEST_DATABASE={' or '.join(only.args)}")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """A PostgreSQL server of the tests' own."""
    server = homes.begin(tmp_path_factory.mktemp("runtime"))
    yield server
    server.cleanup()


@pytest.fixture(scope="session")
def home(request, tmp_path_factory):
    """Where the server's databases are in this run; see `homes`."""
    if homes.NAME == "sqlite":
        return homes.Files(tmp_path_factory.mktemp("databases"))
    return homes.Databases(request.getfixturevalue("postgres"), homes.NAME == "vector")


@pytest.fixture(scope="session")
def template(home):
    """(variables that name the database, {name: API key}) with the cast in it; nobody writes to it."""
    variables = home.new()
    app = create_app(config.from_env({**variables, **SECRETS}))
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
        db.session.remove()
        db.engine.dispose()
    return variables, keys


@pytest.fixture
def database(template, home, tmp_path):
    """The variables that name a fresh copy of the cast's database."""
    variables = home.copy(template[0], tmp_path)
    yield variables
    home.drop(variables)


@pytest.fixture
def twin(template, home, tmp_path):
    """The variables that name another copy of the cast's database."""
    (tmp_path / "twin").mkdir()
    variables = home.copy(template[0], tmp_path / "twin")
    yield variables
    home.drop(variables)


@pytest.fixture
def stored(home, database):
    """All that is in the test's database, or in another, to be compared."""
    return lambda variables=database: home.content(variables)


@pytest.fixture
def new_database(home):
    """Make variables that name a database without anything in it."""
    made = []

    def new():
        made.append(home.new())
        return made[-1]

    yield new
    for variables in made:
        home.drop(variables)


@pytest.fixture
def environ(database):
    """The variables of a server over a fresh copy of the cast's database."""
    return {**database, "CQ_PORT": "0", "CQ_EMBEDDER": "off", **SECRETS}


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
        tally.stop(app)
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
