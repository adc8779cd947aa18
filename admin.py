"""What an operator does on the machine itself: `flask user`, `flask key`, `flask reindex`."""

import sys

import click
from flask import current_app
from flask.cli import AppGroup
from marshmallow import ValidationError
from sqlalchemy.exc import OperationalError

import auth
import schemas
from cq import wire
from errors import Failure
from models import LIVE, ApiKey, Unit, User, Vector, db
from search import worker

users = AppGroup("user", help="Accounts: add, passwd, role, disable, enable, list, delete.")
keys = AppGroup("key", help="API keys: list, revoke.")


def init_app(app):
    app.cli.add_command(users)
    app.cli.add_command(keys)
    app.cli.add_command(reindex)


class Refused(click.ClickException):
    """Exit code 1 and one line."""


def _done(verb, *args, **kwargs):
    """Carry out a verb and commit; a refusal becomes one line."""
    try:
        result = verb(*args, **kwargs)
        db.session.commit()
        return result
    except Failure as refusal:
        raise Refused(refusal.detail) from None
    except OperationalError as fault:
        raise Refused(f"The database cannot be written ({fault.orig}); try again.") from None


def progress(length, label):
    """A bar on stderr, for a person at a terminal only."""
    return click.progressbar(
        length=length, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()
    )


def _password(from_stdin):
    if from_stdin:
        try:
            password = sys.stdin.readline().rstrip("\r\n")
        except UnicodeDecodeError:
            raise Refused("The password is not UTF-8 text.") from None
    else:
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    try:
        return auth.hash_password(password)
    except ValueError as fault:
        raise Refused(f"{fault}.") from None


def _name(name):
    try:
        return schemas.Username().deserialize(name)
    except ValidationError as fault:
        problem = wire.problems(fault.messages)[0]["msg"].removeprefix("Value error, ")
        raise click.BadParameter(problem, param_hint="NAME") from None


stdin = click.option(
    "--password-stdin", is_flag=True, help="Read the password from the first line."
)
role = click.Choice(["admin", "reviewer", "contributor"])


@users.command("add")
@click.argument("name")
@click.option("--role", type=role, default="contributor", show_default=True)
@stdin
def add(name, role, password_stdin):
    """Make an account. The first one is an admin, so that somebody can make the others."""
    for made in current_app.config["CQ_MADE"]:
        click.echo(f"cq made {made}")
    user = _done(User.add, _name(name), _password(password_stdin), role)
    note = "" if user.role == role else " (the first account is an admin)"
    click.echo(f"Made {user.role} {user.username}{note}.")


@users.command("passwd")
@click.argument("name")
@stdin
def passwd(name, password_stdin):
    """Set a new password; the person's sessions end."""
    _done(User.change, name, password_hash=_password(password_stdin))
    click.echo(f"The password of {name} is changed.")


@users.command("role")
@click.argument("name")
@click.argument("role", type=role)
def set_role(name, role):
    """Give another role; the person's sessions end."""
    _done(User.change, name, role=role)
    click.echo(f"{name} is {role} now.")


@users.command("disable")
@click.argument("name")
def disable(name):
    """Shut an account and its keys out without deleting anything."""
    _done(User.change, name, disabled=True)
    click.echo(f"{name} can no longer sign in, and the keys of {name} no longer work.")


@users.command("enable")
@click.argument("name")
def enable(name):
    """Let a disabled account in again."""
    _done(User.change, name, disabled=False)
    click.echo(f"{name} can sign in again.")


@users.command("list")
def list_users():
    """Show all accounts."""
    for user in _all(User.page):
        state = "disabled" if user.disabled_at else ""
        click.echo(f"{user.username:<24} {user.role:<12} {user.created_at} {state}".rstrip())


def _all(page, size=500):
    """Every row of a paged list."""
    start = 0
    while rows := page(size, start):
        yield from rows
        start += size


@users.command("delete")
@click.argument("name")
@click.confirmation_option(prompt="Delete the account and its keys?")
def remove(name):
    """Delete an account and its keys; what it proposed, decided and voted stays."""
    _done(User.remove, name)
    click.echo(f"{name} is deleted.")


@keys.command("list")
@click.argument("name")
def list_keys(name):
    """Show the API keys of an account; tokens are never shown."""
    for key in ApiKey.of(_done(User.find, name).id):
        wired = key.wire()
        state = "revoked" if key.revoked_at else "expired" if wired["is_expired"] else "active"
        used = key.last_used_at or "never"
        click.echo(f"{key.id} {key.key_prefix}… {state:<8} {key.name}  last used {used}")


@keys.command("revoke")
@click.argument("name")
@click.argument("key_id")
def revoke(name, key_id):
    """End an API key for good."""
    _done(ApiKey.revoke, _done(User.find, name).id, key_id)
    click.echo("The key is revoked.")


@click.command("reindex")
def reindex():
    """Make the vectors that the model of CQ_EMBEDDER has not made yet.

    Ended before its time, it goes on from there when it is run again. Vectors of earlier models are
    kept until all are made.
    """
    embedder = current_app.extensions["cq_meaning"].embedder
    if embedder.state == "off":
        raise Refused("CQ_EMBEDDER is off: there is no model to make vectors with.")
    try:
        embedder.load()
    # Native code raises what is no Exception, and the operator is told in a line of that, too.
    except BaseException as fault:
        _interrupted(fault)
        raise Refused(f"The embedder cannot be used: {embedder.reason}.") from None
    units = Unit.count(Unit.status.in_(LIVE))
    done = 0
    try:
        with click.progressbar(length=units, label="units", file=sys.stderr) as bar:
            for step in worker.reindex(embedder):
                done += step
                bar.update(step)
    except BaseException as fault:
        _interrupted(fault)
        db.session.rollback()
        told = " ".join(str(fault).split())
        raise Refused(
            f"Ended at {done} of {units} units ({type(fault).__name__}: {told}). "
            "Earlier vectors are kept; run it again to go on."
        ) from None
    model = embedder.encoder.model
    dropped = _done(Vector.drop_others, model)
    click.echo(f"All {done} units have vectors of {model}.")
    if dropped:
        click.echo(f"{dropped} vectors of other models are dropped.")


def _interrupted(fault):
    """Ctrl-C is no failure of the model."""
    if isinstance(fault, KeyboardInterrupt | click.Abort):
        raise fault
