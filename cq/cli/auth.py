"""`cq auth`: sign in to a node, and the API keys of one's agents."""

import sys

import click

from cq import account, credentials
from cq.cli.shared import JSON, connected, line, show
from cq.failures import NoNode


@click.group()
def auth():
    """Your account at a node: sign in, make keys for agents."""


@auth.command()
@click.option("--user", help="Your name there; asked for if it is missing.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@connected
def login(client, user, password_stdin):
    """Sign in with a name and a password."""
    if not client.addr:
        raise NoNode("no node to sign in to: set CQ_ADDR or give --addr")
    user = user or click.prompt("User", err=True)
    if password_stdin:
        password = sys.stdin.readline().rstrip("\n")
    else:
        password = click.prompt("Password", hide_input=True, err=True)
    session = account.sign_in(client.addr, user.strip(), password, client.timeout)
    click.echo(f"Signed in as {line(session.username)}")


@auth.command()
def logout():
    """Forget the session on this machine. At the node it ends by itself within a day."""
    gone = credentials.delete()
    click.echo("Signed out." if gone else "Signed out already.")


@auth.command()
@connected
def status(client):
    """Who is signed in, and where."""
    session = account.session_of(client.addr)
    click.echo(f"Server: {line(session.addr or client.addr)}")
    click.echo(f"Signed in: {line(session.username)}")
    if session.expires:
        click.echo(f"Expires: {session.expires}")


@auth.group()
def key():
    """The API keys of your agents."""


@key.command()
@click.option("--name", required=True, help="What it is for.")
@click.option(
    "--ttl", "lifetime", required=True, help="How long it lives, such as 90d; 365d at most."
)
@click.option("--labels", multiple=True, help="Comma separated; may be repeated.")
@connected
def create(client, name, lifetime, labels):
    """Make a key. It stands alone on stdout, this once: `CQ_API_KEY=$(cq auth key create …)`."""
    split = [label.strip() for each in labels for label in each.split(",") if label.strip()]
    made = account.Keys(client.addr, client.timeout).create(name, lifetime, split)
    told = f"{line(made['name'])} ({made['id']}, begins with {made['prefix']}), labels "
    told += f"{line(','.join(made['labels'])) or '-'}, until {made['expires_at']}"
    click.echo(told, err=True)
    click.echo("This is the only time that it is shown.", err=True)
    click.echo(made["key"])


@key.command("list")
@JSON
@connected
def list_(client, whole):
    """Your keys, without their secrets."""
    found = account.Keys(client.addr, client.timeout).all()
    if whole:
        return show({"data": found, "count": len(found)})
    for each in found:
        facts = (each[name] for name in ("id", "prefix", "status", "expires_at", "name"))
        click.echo("\t".join([*map(line, facts), line(",".join(each["labels"]))]))
    if not found:
        click.echo("You have no API keys.", err=True)
    return None


@key.command()
@click.argument("key_id")
@connected
def revoke(client, key_id):
    """End a key."""
    account.Keys(client.addr, client.timeout).revoke(key_id.strip())
    click.echo(f"Revoked {line(key_id)}", err=True)
