"""The path of the command `cq` that hosts are told to run, and how shells quote it."""

import ntpath
import os
import posixpath
import re
import shutil
import sys

from cq.failures import CqError

# Folders whose contents a tool makes for one run and clears later.
_PASSING = re.compile(
    r"[/\\](?:archive|builds|environments)-v\d+[/\\]"
    r"|[/\\]\.?caches?[/\\](?:uv|pipx)[/\\]|[/\\]pipx[/\\]\.?cache[/\\]",
    re.I,
)


def find(environ=os.environ, called=None, python=sys.executable, platform=sys.platform):
    """(path, warning or ""). CQ_INSTALL_BINARY, else the console script: as it was called, beside
    this Python, or on PATH; never resolved, so that an upgrade keeps it. Raises CqError.
    """
    flavour = ntpath if platform == "win32" else posixpath
    given = environ.get("CQ_INSTALL_BINARY", "").strip()
    if given:
        if not flavour.isabs(given):
            raise CqError(f"CQ_INSTALL_BINARY is {given!r}; it takes an absolute path")
        return given, ""
    name = "cq.exe" if platform == "win32" else "cq"
    called = sys.argv[0] if called is None else called
    on_path = shutil.which("cq", path=environ.get("PATH", ""))
    found = [
        os.path.abspath(path)
        for path in (
            called if os.path.basename(called).lower() in ("cq", "cq.exe") else "",
            on_path,
            os.path.join(os.path.dirname(python), name),
        )
        if path and os.path.isfile(path)
    ]
    lasting = [path for path in found if not _PASSING.search(path)]
    if lasting:
        return lasting[0], ""
    if found:
        return found[0], (
            f"{found[0]} lies in a cache and may vanish; install cq to stay (`pipx install`, "
            "`uv tool install`), or set CQ_INSTALL_BINARY"
        )
    raise CqError("the command cq is not found; set CQ_INSTALL_BINARY to its absolute path")


def quoted(words, platform=sys.platform):
    """Words as one line for the platform's shell."""
    return " ".join(_windows(word) if platform == "win32" else _posix(word) for word in words)


def _posix(word):
    if re.fullmatch(r"[A-Za-z0-9_./:=,-]+", word):
        return word
    return "'" + word.replace("'", "'\\''") + "'"


def _windows(word):
    """By the rules of CommandLineToArgvW."""
    if word and not re.search(r'[ \t\n\v"]', word):
        return word
    return '"' + re.sub(r'(\\*)("|$)', lambda m: m[1] * 2 + ("\\" + m[2]) * bool(m[2]), word) + '"'
