"""Who appears in the tests, and how they reach a server."""

import os
import subprocess
import sys
import time
from pathlib import Path

from sqlalchemy import text

from models import db
from models.base import write

ROOT = Path(__file__).parent.parent
PASSWORD = "correct horse battery staple"
PEOPLE = {"ada": "admin", "rita": "reviewer", "carl": "contributor", "cleo": "contributor"}
SECRETS = {
    "CQ_JWT_SECRET": "jwt-secret-of-the-tests-0123456789abcdef",
    "CQ_API_KEY_PEPPER": "pepper-of-the-tests",
}


# A unit's members on the wire, in their order.
UNIT = [
    "id",
    "version",
    "domains",
    "insight",
    "context",
    "evidence",
    "tier",
    "created_by",
    "superseded_by",
    "extensions",
    "flags",
]


def proposal(
    summary="Backend lock outlives a killed apply", domains=("terraform", "state"), **more
):
    """The body of a proposal; `more` replaces whole members."""
    return {
        "domains": list(domains),
        "insight": {
            "summary": summary,
            "detail": "The lock row stays until it is removed by hand.",
            "action": "Run force-unlock with the lock id before applying again.",
        },
        "context": {"languages": ["hcl"], "frameworks": [], "pattern": "infra"},
        **more,
    }


def alter(app, statement, **values):
    """Change rows behind the server's back, as time would."""
    with app.app_context():
        write()
        db.session.execute(text(statement), values)
        db.session.commit()


HASHED = {"CQ_EMBEDDER": "hashed", "CQ_DEVELOPMENT": "1"}


def eventually(claim, seconds=20):
    """Ask again until the claim holds; gives what it last was."""
    end = time.monotonic() + seconds
    while not (held := claim()) and time.monotonic() < end:
        time.sleep(0.02)
    return held


class Caller:
    """Calls below /api/v1 in process, as a person's session, by a person's API key, or as nobody."""

    def __init__(self, app, keys, tokens):
        self.app, self.keys, self.tokens = app, keys, tokens

    def __call__(self, method, path, body=None, *, user=None, key=None, headers=None, **kwargs):
        headers = dict(headers or {})
        if user or key:
            headers["Authorization"] = f"Bearer {self.tokens[user] if user else self.keys[key]}"
        if body is not None:
            kwargs["json"] = body
        # A client of its own each time: no cookie stays.
        client = self.app.test_client(use_cookies=False)
        return client.open(f"/api/v1{path}", method=method, headers=headers, **kwargs)

    def propose(self, *args, key="carl", headers=None, **kwargs):
        """A pending unit's JSON."""
        answer = self("POST", "/knowledge", proposal(*args, **kwargs), key=key, headers=headers)
        assert answer.status_code == 201, answer.text
        return answer.json

    def approve(self, *args, tier="private", key="carl", **kwargs):
        """An approved unit's JSON as it was proposed; rita decided."""
        unit = self.propose(*args, key=key, **kwargs)
        answer = self("POST", f"/review/{unit['id']}/approve", {"tier": tier}, user="rita")
        assert answer.status_code == 200, answer.text
        return unit

    def found(self, key="carl", **query):
        """The ids that a query answers."""
        answer = self("GET", "/knowledge", key=key, query_string=query)
        assert answer.status_code == 200, answer.text
        return [unit["id"] for unit in answer.json["data"]]

    def understands(self, units=None):
        """Wait until queries are answered by meaning, and so many approved units have vectors."""

        def told():
            ready = self.app.test_client().get("/ready").json
            having = ready["embedder"].get("vectors")
            return ready["search"] == "semantic" and units in (None, having)

        assert eventually(told), self.app.test_client().get("/ready").json


class Process:
    """`python app.py` with these variables and nothing else of ours; `url` once it listens."""

    def __init__(self, environ):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CQ_")}
        self.process = subprocess.Popen(
            [sys.executable, "app.py"],
            cwd=ROOT,
            env={**kept, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.said = []
        self.url = None
        for line in self.process.stdout:
            self.said.append(line.rstrip())
            if line.startswith("cq listens on "):
                self.url = line.split()[-1]
                break

    def stop(self):
        """End the server and wait for it."""
        self.process.terminate()
        self.process.wait(20)
        self.process.stdout.close()
