"""`make screenshots`: every page of the review page, wide and narrow, light and dark.

A server of its own over a fresh database, filled by `scripts/seed.py` and with units that are hard
to lay out, is opened in Chromium; the pictures go to docs/screenshots. What stands wider than its
window is told, and the exit code is 1.
"""

import json
import math
import os
import secrets
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "screenshots"
ADMIN = "admin"
LOOKS = ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark"), (320, "light"))
# These are in the README: what a window shows, and kept small.
SHOWN = ("review-1280-light", "dashboard-1280-dark")
# name: (address, what is there once the page is whole, a button that opens a dialog)
PAGES = {
    "review": ("review", ".similar h3", None),
    "review-approve": ("review", ".similar h3", "Approve"),
    "review-reject": ("review", ".similar h3", "Reject"),
    "edit": ("review", "#unit-summary", "Edit"),
    "units": ("units", ".rows li", None),
    "units-pending": ("units?status=pending", ".rows li", None),
    "units-found": ("units?q=docker+build+cache", ".parts", None),
    "unit": ("units/{unit}", ".timeline li", None),
    "unit-long": ("units/{long}", ".timeline li", None),
    "unit-retire": ("units/{unit}", ".timeline li", "Retire"),
    "attention": ("attention", ".rows li", None),
    "gaps": ("gaps", "table tbody tr", None),
    "dashboard": ("dashboard", ".trend svg", None),
    "proposals": ("proposals", ".rows li", None),
    "keys": ("keys", ".rows li", None),
    "users": ("users", ".rows li", None),
    "users-password": ("users", ".rows li", "Set a password"),
    "account": ("account", "form.panel", None),
}
LONG = "Pneumonoultramicroscopicsilicovolcanoconiosis" * 4
HARD = {
    "long words": {
        "domains": ["a" * 64, "b" * 64, LONG[:64].lower()],
        "insight": {"summary": LONG[:180], "detail": LONG * 8, "action": LONG},
        "context": {"languages": [LONG[:64]], "frameworks": [LONG[64:128]], "pattern": LONG},
    },
    "right to left": {
        "domains": ["قاعدة-بيانات", "postgresql", "פריסה"],
        "insight": {
            "summary": "تنتظر عملية الترحيل قفلًا تمسكه معاملة مفتوحة في psql",
            "detail": "يبقى القفل حتى تُغلق الجلسة.\nالأمر ALTER TABLE ينتظر بلا مهلة افتراضيًا.",
            "action": "اضبط lock_timeout قبل الترحيل ثم أعد المحاولة.",
        },
    },
    "all it can hold": {
        "domains": [f"tag number {number} of sixteen" for number in range(16)],
        "insight": {
            "summary": ("The longest summary that a unit can have goes on and on. " * 9)[:500],
            "detail": "One line of many.\n\n    indented code\n\n" * 6 + "The last line.",
            "action": "Read it all.",
        },
        "context": {"languages": ["go", "rust", "c++"], "frameworks": ["axum"], "pattern": "api"},
    },
}


class Server:
    """`python app.py` over a database in `folder`; `call` reaches it as its admin."""

    def __init__(self, folder):
        self.folder, self.password, self.token = folder, secrets.token_urlsafe(12), None
        self.ids = {}
        self.environ = {
            **os.environ,
            "CQ_DB_PATH": str(folder / "cq.db"),
            "CQ_DATABASE_URL": "",
            "CQ_HOST": "127.0.0.1",
            "CQ_PORT": "0",
            "CQ_PUBLIC_URL": "",
        }
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, "app.py"],
            cwd=ROOT,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for line in self.process.stdout:
            if line.startswith("cq listens on "):
                self.url = line.split()[-1]
                return
        sys.exit("The server did not start; see what `python app.py` says.")

    def stop(self):
        self.process.terminate()
        self.process.wait(20)
        self.process.stdout.close()

    def seed(self):
        user = [sys.executable, "-m", "flask", "--app", "app", "user", "add", ADMIN]
        self._run([*user, "--role", "admin", "--password-stdin"])
        script = [sys.executable, "scripts/seed.py", "--url", self.url, "--admin", ADMIN]
        self._run([*script, "--password-stdin", "--state", str(self.folder / "people.json")])
        self.stop()
        self.age()
        self.start()
        self.understands()
        body = {"username": ADMIN, "password": self.password}
        self.token = self.call("POST", "/auth/login", body)["token"]

    def _run(self, command):
        subprocess.run(
            command,
            cwd=ROOT,
            env=self.environ,
            input=self.password + "\n",
            text=True,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def age(self):
        """Spread what the seed did over the last month, as if it had been going on all the time."""
        with closing(sqlite3.connect(self.folder / "cq.db")) as database, database:
            (count,) = database.execute("SELECT count(*) FROM units").fetchone()

            def earlier(time, pk, step):
                # The first unit is a month old, the pace uneven; a decision takes up to two days.
                days = 29 * (1 - pk / count) + 1.7 * math.sin(pk) + 1.5
                days -= pk * 7 % 5 / 2 if step != "proposed" else 0
                past = datetime.fromisoformat(time) - timedelta(days=max(days, 0.1))
                return past.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

            database.create_function("earlier", 3, earlier)
            database.execute("UPDATE events SET at = earlier(at, unit_pk, type)")
            database.execute(
                "UPDATE units SET created_at = earlier(created_at, pk, 'proposed'),"
                " first_observed = earlier(first_observed, pk, 'proposed'),"
                " last_confirmed = earlier(last_confirmed, pk, 'confirmed'),"
                " reviewed_at = CASE WHEN reviewed_at IS NOT NULL"
                " THEN earlier(reviewed_at, pk, 'decided') END"
            )

    def understands(self):
        """Wait until units are found by meaning, unless CQ_EMBEDDER is off or fails."""
        while True:
            with urllib.request.urlopen(f"{self.url}/ready", timeout=30) as answer:
                ready = json.load(answer)
            if ready["search"] == "semantic" or ready["embedder"]["state"] in ("off", "failed"):
                return
            time.sleep(0.2)

    def call(self, method, path, body=None, token=None):
        headers = {"Content-Type": "application/json"}
        if token or self.token:
            headers["Authorization"] = f"Bearer {token or self.token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def harden(self):
        """Add what is hard to lay out, and note the ids that PAGES names."""
        keys = [("laptop", ["linux"]), ("build server", ["ci", "nightly"]), (LONG[:64], ["x" * 64])]
        made = [
            self.call("POST", "/users/me/api-keys", {"name": name, "ttl": "90d", "labels": labels})
            for name, labels in keys
        ]
        self.call("POST", f"/users/me/api-keys/{made[1]['id']}/revoke")
        password = secrets.token_urlsafe(12)
        self.call("POST", "/users", {"username": LONG[:64], "password": password})
        units = {
            name: self.call("POST", "/knowledge", unit, made[0]["token"])["id"]
            for name, unit in HARD.items()
        }
        for tags in ("zig", "bazel&domains=monorepo", "zig", LONG[:63].lower() + "x"):
            self.call("GET", f"/knowledge?domains={tags}")
        for name in ("long words", "right to left"):
            reason = {"reason": f"Somebody else said this better: {LONG}"}
            self.call("POST", f"/review/{units[name]}/reject", reason)
        approved = self.call("GET", "/review/units?status=approved")
        flagged = next(each for each in approved if each["knowledge_unit"]["flags"])
        self.ids = {"unit": flagged["knowledge_unit"]["id"], "long": units["long words"]}


class Camera:
    """Takes pages in a browser that is signed in, in one width and theme."""

    def __init__(self, browser, server, width, theme, height=900):
        self.server, self.width, self.theme = server, width, theme
        self.wide = []
        size = {"width": width, "height": height}
        context = browser.new_context(viewport=size, color_scheme=theme, reduced_motion="reduce")
        self.page = context.new_page()
        self.page.goto(server.url)
        self.page.wait_for_selector("form.login")
        self.take("login")
        self.page.fill("[name=username]", ADMIN)
        self.page.fill("[name=password]", server.password)
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector("nav")

    def take(self, name, whole=True):
        name = f"{name}-{self.width}-{self.theme}"
        if self.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            self.wide.append(name)
        path = FOLDER / f"{name}.png"
        if not (name in SHOWN and whole):
            self.page.screenshot(path=path, full_page=whole)

    def show(self, name):
        """Go to a page of PAGES and wait until it is whole."""
        address, whole, button = PAGES[name]
        # Away first: a dialog or a choice of the page before does not stay.
        self.page.goto("about:blank")
        self.page.goto(f"{self.server.url}/#/{address.format(**self.server.ids)}")
        self.page.locator(whole).first.wait_for(state="attached")
        if button:
            self.page.get_by_role("button", name=button, exact=True).first.click()

    def walk(self):
        for name in PAGES:
            self.show(name)
            self.take(name, whole=not self.page.locator("dialog").count())
        self.keys()

    def keys(self):
        """The menu, and the dialog that shows a new key's token; the key does not stay."""
        self.show("keys")
        self.page.get_by_role("button", name=ADMIN).click()
        self.take("menu", whole=False)
        self.page.keyboard.press("Escape")
        self.page.get_by_label("Name", exact=True).fill("a key for a picture")
        self.page.get_by_role("button", name="Make a key").click()
        self.page.locator("dialog .token").wait_for()
        self.take("key", whole=False)
        newest = self.server.call("GET", "/users/me/api-keys")["data"][0]
        self.server.call("POST", f"/users/me/api-keys/{newest['id']}/revoke")


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    wide = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = Server(Path(folder))
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--headless", "--no-sandbox"]
        )
        try:
            server.seed()
            # Those that are shown to others come first, before the units that no one would write.
            for name, width, theme in (each.split("-") for each in SHOWN):
                camera = Camera(browser, server, int(width), theme, height=720)
                camera.show(name)
                camera.take(name, whole=False)
            server.harden()
            for width, theme in LOOKS:
                camera = Camera(browser, server, width, theme)
                camera.walk()
                wide += camera.wide
        finally:
            browser.close()
            server.stop()
    print(f"{len(list(FOLDER.glob('*.png')))} pictures are in {FOLDER.relative_to(ROOT)}")
    if wide:
        sys.exit(f"Wider than the window: {', '.join(wide)}")


if __name__ == "__main__":
    main()
