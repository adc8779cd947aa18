"""Every variable the server reads: its default, its check, and what to do when it is wrong."""

import json
import os
import re
import secrets
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import click
from limits import parse_many
from sqlalchemy import create_engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
NO_URL = (
    "is not a database URL; set one such as sqlite:////srv/cq/cq.db or "
    "postgresql://cq@db.example.org/cq"
)
# What an address may begin with, and what reaches it.
DRIVERS = {
    ("sqlite", ""): "sqlite",
    ("sqlite", "pysqlite"): "sqlite+pysqlite",
    ("postgres", ""): "postgresql+psycopg",
    ("postgresql", ""): "postgresql+psycopg",
    ("postgresql", "psycopg"): "postgresql+psycopg",
}
PLACEHOLDERS = {"secret", "password", "dev", "test", "example"}
PLACEHOLDER = (
    "change-?(me|this)|replace-?(me|this)|placeholder|your-.*(secret|pepper|key)|secret-here"
)


class ConfigError(click.ClickException):
    """A setting the server cannot start with: one line for the operator, exit code 2."""

    exit_code = 2


def _text(value):
    return value


def _port(value):
    if not re.fullmatch(r"[0-9]{1,5}", value) or int(value) > 65535:
        raise ValueError("is not a port; set a whole number from 0 (any free port) to 65535")
    return int(value)


def _threads(value):
    if not re.fullmatch(r"[0-9]{1,3}", value) or int(value) < 2:
        raise ValueError("is not a number of threads; set a whole number from 2 to 999")
    return int(value)


def _switch(value):
    if value.lower() in ("1", "true", "yes", "on"):
        return True
    if value.lower() in ("0", "false", "no", "off"):
        return False
    raise ValueError("is neither on nor off; set 1 or 0")


def _duration(value):
    if value == "0":
        return 0
    match = re.fullmatch(r"([0-9]{1,9})([smhd])", value.lower())
    if not match:
        raise ValueError("is not a duration; set a number and s, m, h or d, such as 24h, or 0")
    seconds = int(match[1]) * SECONDS[match[2]]
    if seconds > 3650 * SECONDS["d"]:
        raise ValueError("is longer than ten years; set a shorter one, or 0")
    return seconds


def _rate(value):
    if value.lower() == "off":
        return None
    try:
        (rate,) = parse_many(value)
        if rate.amount > 0:
            return rate
    except ValueError:
        pass
    raise ValueError("is not a rate; set one such as 3000/minute, or off")


def _secret(value):
    if not value.strip():
        raise ValueError("is blank; set a random value, or unset it to have one made")
    told = re.sub(r"[^a-z]+", "-", value.lower())
    if value.lower() in PLACEHOLDERS or re.search(PLACEHOLDER, told):
        raise ValueError("is a placeholder; set a random value, or unset it to have one made")
    return value


def _jwt_secret(value):
    if len(_secret(value).encode()) < 32:
        raise ValueError("is shorter than 32 bytes; set a longer one, or unset it to have one made")
    return value


def _peppers(value):
    return [part.strip() for part in value.split(",") if part.strip()]


def _one_of(*names):
    def check(value):
        found = [name for name in names if name.lower() == value.lower()]
        if not found:
            raise ValueError(f"is none of {', '.join(names)}; set one of them")
        return found[0]

    return check


def _proxies(value):
    if not re.fullmatch(r"[0-9]", value):
        raise ValueError("is not a number of proxies; set a whole number from 0 to 9")
    return int(value)


def _token(value):
    if not re.fullmatch(r"[!-~]{16,256}", _secret(value)):
        raise ValueError("is no token; set a random one of 16 to 256 characters without spaces")
    return value


def _public_url(value):
    try:
        parts = urlsplit(value)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        good = good and not (parts.query or parts.fragment or parts.username)
    except ValueError:
        good = False
    if not good:
        raise ValueError("is not an address; set one such as https://cq.example.org")
    return value.rstrip("/")


def _node_name(value):
    if len(value) > 200:
        raise ValueError("is longer than 200 characters; set a shorter one")
    return value


def _database_url(value):
    try:
        url = make_url(value)
    except ArgumentError:
        raise ValueError(NO_URL) from None
    backend = url.get_backend_name()
    driver = url.drivername.removeprefix(backend).removeprefix("+")
    if (backend, driver) not in DRIVERS:
        raise ValueError(
            f"names the database {url.drivername}; set one that begins with sqlite: or postgresql:"
        )
    if backend == "sqlite" and (url.database in (None, "", ":memory:") or "mode=memory" in value):
        raise ValueError("names no file; set one such as sqlite:////srv/cq/cq.db")
    if backend != "sqlite" and not url.database:
        raise ValueError("names no database; set one such as postgresql://cq@db.example.org/cq")
    try:
        # Options and parts that the driver does not take show here.
        create_engine(url.set(drivername=DRIVERS[backend, driver]))
    except ModuleNotFoundError:
        raise ValueError("needs psycopg; run make setup") from None
    except (ArgumentError, TypeError, ValueError):
        raise ValueError(NO_URL) from None
    return value


# name: (default, check). A blank value counts as unset. Values with a secret are never repeated.
VARIABLES = {
    "CQ_HOST": ("127.0.0.1", _text),
    "CQ_PORT": ("3000", _port),
    "CQ_THREADS": ("8", _threads),
    "CQ_DB_PATH": ("instance/cq.db", _text),
    "CQ_DATABASE_URL": ("", _database_url),
    "CQ_JWT_SECRET": ("", _jwt_secret),
    "CQ_API_KEY_PEPPER": ("", _secret),
    "CQ_API_KEY_PEPPERS_OLD": ("", _peppers),
    "CQ_OPEN_READS": ("0", _switch),
    "CQ_SELF_REVIEW": ("1", _switch),
    "CQ_HUMAN_REVIEW": ("0", _switch),
    "CQ_VOTE_WINDOW": ("24h", _duration),
    "CQ_STALE_AFTER": ("180d", _duration),
    "CQ_SAFETY": ("refuse", _one_of("refuse", "warn")),
    "CQ_QUERY_LOG": ("1", _switch),
    "CQ_READ_RATE": ("3000/minute", _rate),
    "CQ_WRITE_RATE": ("3000/minute", _rate),
    "CQ_PUBLIC_URL": ("", _public_url),
    "CQ_NODE_NAME": ("", _node_name),
    "CQ_TRUSTED_PROXIES": ("0", _proxies),
    "CQ_METRICS_TOKEN": ("", _token),
    "CQ_LOG": ("json", _one_of("json", "text")),
    "CQ_LOG_LEVEL": ("INFO", _one_of("DEBUG", "INFO", "WARNING", "ERROR")),
    "CQ_EMBEDDER": ("minilm", _text),
    "CQ_DEVELOPMENT": ("0", _switch),
}
SECRET = {
    *("CQ_JWT_SECRET", "CQ_API_KEY_PEPPER", "CQ_API_KEY_PEPPERS_OLD"),
    *("CQ_DATABASE_URL", "CQ_METRICS_TOKEN"),
}


def from_env(environ=os.environ):
    """The settings by variable name, checked; unset secrets come from a file beside the database,
    or where one would be.

    `CQ_DATABASE` is added: the URL to connect to, and `CQ_MADE`: what this start created where.
    Raises ConfigError.
    """
    settings = {}
    for name, (default, check) in VARIABLES.items():
        value = environ.get(name, "").strip() or default
        try:
            settings[name] = check(value) if value else ([] if check is _peppers else None)
        except ValueError as fault:
            shown = "its value" if name in SECRET else repr(value)
            raise ConfigError(f"{name}: {shown} {fault}.") from None
    if settings["CQ_NODE_NAME"] and not settings["CQ_PUBLIC_URL"]:
        raise ConfigError("CQ_NODE_NAME: has no effect without CQ_PUBLIC_URL; set that too.")
    if settings["CQ_EMBEDDER"] == "hashed" and not settings["CQ_DEVELOPMENT"]:
        raise ConfigError(
            "CQ_EMBEDDER: 'hashed' knows no meaning and is for tests; set minilm, onnx or off, or "
            "CQ_DEVELOPMENT=1."
        )
    settings["CQ_DATABASE"] = _database(settings)
    settings["CQ_MADE"] = []
    here = settings["CQ_DATABASE"].get_backend_name() == "sqlite"
    _secrets(settings, _beside(settings) if here else Path(settings["CQ_DB_PATH"]).parent)
    return settings


def _database(settings):
    if settings["CQ_DATABASE_URL"]:
        url = make_url(settings["CQ_DATABASE_URL"])
        if url.get_backend_name() == "sqlite":
            return url
        return url.set(drivername="postgresql+psycopg")
    try:
        path = Path(settings["CQ_DB_PATH"]).expanduser().resolve()
    except (RuntimeError, OSError, ValueError):
        raise ConfigError(
            f"CQ_DB_PATH: {settings['CQ_DB_PATH']!r} leads nowhere; name a file."
        ) from None
    return URL.create("sqlite", database=str(path))


def _file(url):
    """The path of an SQLite URL, which may be the `file:` form with `uri=true`."""
    name = url.database.removeprefix("file:") if "uri" in url.query else url.database
    return Path(name).resolve()


def _beside(settings):
    """Make the database's folder; a folder that cannot be written is named with its variable."""
    url = settings["CQ_DATABASE"]
    variable = "CQ_DATABASE_URL" if settings["CQ_DATABASE_URL"] else "CQ_DB_PATH"
    path = _file(url)
    prefix = "file:" if "uri" in url.query else ""
    settings["CQ_DATABASE"] = url.set(database=f"{prefix}{path}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
        if path.is_dir():
            raise IsADirectoryError(21, "is a folder, not a file")
        if not path.exists():
            settings["CQ_MADE"].append(f"the database {path}")
        # It will hold hashes of passwords and keys: a new one is its owner's alone.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as fault:
        raise ConfigError(
            f"{variable}: {path} cannot be written ({fault.strerror}); "
            "name a file in a folder that this user may write."
        ) from None
    return path.parent


def _secrets(settings, folder):
    """Fill in the secrets that no variable set, making them once. The file is 0600 from the start.

    Two first starts at once agree: the file appears whole by a link, and the loser reads it.
    """
    names = [name for name in ("CQ_JWT_SECRET", "CQ_API_KEY_PEPPER") if not settings[name]]
    if not names:
        return
    path = folder.resolve() / "secrets.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            handle, draft = tempfile.mkstemp(dir=folder)
            with os.fdopen(handle, "w") as file:
                json.dump(
                    {
                        "CQ_JWT_SECRET": secrets.token_hex(32),
                        "CQ_API_KEY_PEPPER": secrets.token_hex(32),
                    },
                    file,
                )
            try:
                os.link(draft, path)
                settings["CQ_MADE"].append(f"random secrets in {path}")
            except FileExistsError:
                pass
            finally:
                os.unlink(draft)
        kept = json.loads(path.read_text())
        settings.update({name: VARIABLES[name][1](kept[name]) for name in names})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as fault:
        raise ConfigError(
            f"{names[0]}: is unset and {path} cannot be used ({type(fault).__name__}); "
            "set the variable, or mend or remove the file."
        ) from None
