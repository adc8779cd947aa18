"""What the commands have in common: the options of a connection, text made safe, warnings."""

import json
import os
import re
import unicodedata
from functools import wraps

import click

from cq.client import TIMEOUT, Client

_DURATION = re.compile(
    r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?"
)
_UNITS = (3600, 60, 1, 0.001)
CONNECTION = ("addr", "api_key", "db_path", "timeout", "refresh")
FORMAT = click.option(
    "--format",
    "shape",
    type=click.Choice(["text", "json"]),
    default="text",
    help="text for people, json for programs.",
)
JSON = click.option("--json", "whole", is_flag=True, help="All that is known of it, as JSON.")


def connected(command):
    """Give a command the options of a connection, and as its first argument a client by them.

    They may stand before the command's name, too.
    """

    @wraps(command)
    def run(**given):
        outer = click.get_current_context().find_root().obj or {}
        options = {name: given.pop(name) or outer.get(name) for name in CONNECTION}
        with client(**options) as made:
            return command(made, **given)

    for name in reversed(CONNECTION):
        flag = {"is_flag": True} if name == "refresh" else {}
        run = click.option(f"--{name.replace('_', '-')}", hidden=True, **flag)(run)
    return run


def client(addr=None, api_key=None, db_path=None, timeout=None, refresh=False):
    made = Client(addr, api_key, db_path, seconds(timeout))
    if refresh and made.addr:
        made.refresh()
    return made


def seconds(text):
    """The time-out of `--timeout`, else of CQ_TIMEOUT, else the usual one."""
    if text is not None:
        parts = _DURATION.fullmatch(text.strip())
        found = (
            sum(
                float(part) * unit
                for part, unit in zip(parts.groups(), _UNITS, strict=True)
                if part
            )
            if parts
            else 0
        )
        if not found:
            raise click.BadParameter(
                f"{text!r} is no time above 0, such as 30s, 1m30s, 500ms", param_hint="--timeout"
            )
        return found
    set_ = os.environ.get("CQ_TIMEOUT", "").strip()
    if not set_:
        return TIMEOUT
    if not (set_.isascii() and set_.isdigit() and int(set_)):
        raise click.UsageError(
            f"CQ_TIMEOUT is {set_!r}; it takes whole seconds above 0, such as 30"
        )
    return float(set_)


def safe(text):
    """Text for a terminal: what would steer it, or turn it around, is shown as escapes."""
    return "".join(
        f"\\u{ord(char):04x}"
        if unicodedata.category(char) in ("Cc", "Cf", "Cs") and char not in "\n\t\u200d\u200c"
        else char
        for char in text
    )


def line(text):
    """The same in one line."""
    return " ".join(safe(text).split())


def percent(unit):
    return f"{unit['evidence']['confidence'] * 100:.0f}%"


def show(value):
    """JSON for programs on stdout."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def warn(warnings):
    """Each in a line on stderr."""
    for warning in warnings:
        click.echo(f"warning: {line(warning)}", err=True)
