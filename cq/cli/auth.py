"""`cq auth`: sign in to a node, and the API keys of one's agents."""

import sys
import webbrowser

import click

from cq import account, credentials
from cq.cli.shared import JSON, connected, line, show
from cq.failures import CqError, NoNode, RemoteFailure


@click.group()
def auth():
    """Your account at a node: sign in, make keys for agents."""


@auth.command()
@connected
def providers(client):
    """By whom the node signs people in, beside a name and a password; a name a line."""
    found = account.providers(_node(client), client.timeout)
    for name in found:
        click.echo(line(name))
    if not found:
        click.echo("It takes a name and a password: `cq auth login`.", err=True)


@auth.command()
@click.argument("provider", required=False)
@click.option("--user", help="Your name there; asked for if it is missing.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@connected
def login(client, provider, user, password_stdin):
    """Sign in with a name and a password, or on the page of a PROVIDER that the node offers."""
    addr = _node(client)
    if provider is not None:
        if user or password_stdin:
            raise click.UsageError("a provider's page asks for name and password itself")
        if not provider.strip():
            raise click.UsageError("the provider has no name; `cq auth providers` lists them")
        session = account.sign_in_by(addr, provider, client.timeout, _open, _choose)
    else:
        user = user or click.prompt("User", err=True)
        if password_stdin:
            password = sys.stdin.readline().rstrip("\n")
        else:
            password = click.prompt("Password", hide_input=True, err=True)
        session = account.sign_in(addr, user.strip(), password, client.timeout)
    click.echo(f"Signed in as {line(session.username)}")


def _node(client):
    if not client.addr:
        raise NoNode("no node to sign in to: set CQ_ADDR or give --addr")
    return client.addr


def _open(url):
    click.echo(f"Sign in on this page:\n\n  {url}\n")
    _entered("Press Enter to open it in the browser")
    if not webbrowser.open(url):
        click.echo("Couldn't open browser; open the page yourself, on this machine.")


def _choose(why, suggestions):
    if why:
        click.echo(line(why))
    if suggestions:
        click.echo(f"Free: {line(', '.join(suggestions))}")
    return _entered("Choose a username")


def _entered(what):
    """A line of the terminal. Raises SignInFailed at its end."""
    try:
        return click.prompt(what, default="", show_default=False)
    except click.Abort:
        raise account.SignInFailed("cancelled: nobody is signed in") from None


@auth.command()
@click.option("--revoke", is_flag=True, help="End the session at the node, too.")
@click.option("--all-devices", is_flag=True, help="With --revoke: end those on all your devices.")
@connected
def logout(client, revoke, all_devices):
    """Forget the session on this machine. At the node it ends by itself within a day."""
    if all_devices and not revoke:
        raise click.UsageError("--all-devices goes with --revoke")
    if not revoke:
        return click.echo("Signed out." if credentials.delete() else "Signed out already.")
    try:
        outcome = account.sign_out(client.addr, client.timeout, all_devices)
    except RemoteFailure as failure:
        raise CqError(
            f"{failure}; you are still signed in. Without --revoke this machine alone forgets it"
        ) from failure
    return click.echo(_OUTCOMES[outcome])


_OUTCOMES = {
    "revoked": "Signed out, here and at the node.",
    "absent": "Signed out already.",
    "ended": "Signed out. The node knew the session no more, so that could not be confirmed.",
    "unsupported": "Signed out here. This node ends no sessions: there it ends when it expires.",
}


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
