"""Run the operator's commands, as processes of their own or within the test's."""

import os
import pty
import subprocess
import sys
from contextlib import suppress

from tests.cast import ROOT


def flask(environ, *command, typed=b""):
    """`flask --app app ...` with these variables and no others: (exit code, stdout, stderr)."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CQ_")}
    done = subprocess.run(
        [sys.executable, "-m", "flask", "--app", "app", *map(str, command)],
        cwd=ROOT,
        env={**kept, **environ},
        input=typed,
        capture_output=True,
        timeout=120,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def at_terminal(environ, *command):
    """What a command says on stderr where that is a terminal."""
    ours, theirs = pty.openpty()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CQ_")}
    with subprocess.Popen(
        [sys.executable, "-m", "flask", "--app", "app", *map(str, command)],
        cwd=ROOT,
        env={**kept, **environ, "TERM": "xterm"},
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        said = b""
        # Linux tells the end of a terminal by an error.
        with suppress(OSError):
            while part := os.read(ours, 4096):
                said += part
        os.close(ours)
        assert process.wait(60) == 0, said
    return said.decode()


def runner(app):
    """`run("user", "list", typed=...)` in this process: (exit code, all that it said)."""

    def run(*command, typed=None):
        done = app.test_cli_runner().invoke(args=[*map(str, command)], input=typed)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    return run
