"""Text that would be markup, a link or a trick elsewhere is text in every field of every page."""

import re
import sqlite3
from contextlib import closing

from playwright.sync_api import expect

from tests.cast import PASSWORD

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    '"><b onmouseover=alert(1)>b</b>',
    "'-alert(1)-'",
    "</title></textarea><script>alert(1)</script>",
    "[a](java&#115;cript:alert(1))",
    "javascript:alert(1)",
    "data:text/html;base64,PHNjcmlwdD4",
    "![i](https://pixel.invalid/i.png)",
    "<iframe src=https://frame.invalid>",
    "{{7*7}}${7*7}",
    "W" * 90,
]
TEXT = " ".join(HOSTILE)
# A name takes no slash and 64 characters; a tag 64.
NAMES = {"contributor": HOSTILE[0], "reviewer": HOSTILE[1], "admin": "'-alert(1)-'\"><b>"}
TAGS = [text for text in HOSTILE if len(text) <= 64]
BIDI, HIDDEN = "invoice\u202efdp.exe\u202c\u2066x", "pay\u200bpal\u2060\ufeff"
# What stands in a page beside our own nodes, or would do something.
INTRUDERS = """() => [...document.body.querySelectorAll("*")].filter((node) =>
    node.matches("img, iframe, script, style, object, embed, form[action], base, meta, link, b")
    || [...node.attributes].some(({name}) => name.startsWith("on"))
    || (node.matches("a") && !/^(#\\/|#main$|api\\/docs$)/.test(node.getAttribute("href")))
  ).map((node) => node.outerHTML)"""
# Text that turns the direction of what follows has to stand in a node that keeps it to itself.
LEAKS = """() => {
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    const style = getComputedStyle(node);
    const kept = /isolate|plaintext/.test(style.unicodeBidi) || !/inline/.test(style.display);
    if (/[\\u202e\\u2066]/.test(walk.currentNode.data) && !kept) found.push(node.outerHTML);
  }
  return found;
}"""


def proposed(node, token, name):
    body = {
        "domains": TAGS,
        "insight": {"summary": f"{name} {TEXT}"[:500], "detail": TEXT, "action": TEXT},
        "context": {"languages": TAGS, "frameworks": TAGS[::-1], "pattern": TEXT[:200]},
        "extensions": {"x:y": {TAGS[0]: TEXT}},
    }
    status, unit = node.call("POST", "/knowledge", body, token=token)
    assert status == 201, unit
    return unit


def stage(node, environ):
    """Hostile people, keys, units in all states, flags, reasons; gives what pages are opened for."""
    admin, tokens, keys = node.token("ada"), {}, {}
    for role, name in NAMES.items():
        body = {"username": name, "password": PASSWORD, "role": role}
        assert node.call("POST", "/users", body, token=admin)[0] == 201
        tokens[role] = node.token(name)
        wish = {"name": HOSTILE[0], "ttl": "9d", "labels": TAGS}
        status, key = node.call("POST", "/users/me/api-keys", wish, token=tokens[role])
        assert status == 201, key
        keys[role] = key["token"]
    units = {
        name: proposed(node, keys["admin"], name)
        for name in ("pending", "edited", "flagged", "rejected", "strange")
    }

    def do(name, verb, **body):
        path = f"/review/{units[name]['id']}{verb}"
        status, answer = node.call(
            "POST" if verb else "PATCH", path, body, token=tokens["reviewer"]
        )
        assert status == 200, answer

    do("edited", "", insight={"detail": f"{TEXT} edited"})
    do("rejected", "/reject", reason=TEXT)
    do("flagged", "/approve")
    for role in ("contributor", "admin"):
        flag = {"reason": "incorrect", "detail": f"flag of {role} {TEXT}"}
        path = f"/knowledge/{units['flagged']['id']}/flags"
        assert node.call("POST", path, flag, token=keys[role])[0] == 201
    # As an older version or an import may have left them.
    with closing(sqlite3.connect(environ["CQ_DB_PATH"])) as database, database:
        database.execute(
            "UPDATE units SET summary = ?, detail = ?, action = ?, pattern = ?, created_at = ?"
            " WHERE id = ?",
            (f"strange {BIDI} {HIDDEN}", BIDI, HIDDEN, BIDI, "2020-01-01", units["strange"]["id"]),
        )
    return {name: unit["id"] for name, unit in units.items()}


def test_hostile_text_is_text_on_every_page(node, visit, environ):
    """Row 43 of the troublesome inputs and its kin."""
    ids = stage(node, environ)
    me = visit(node, viewport={"width": 320, "height": 700})
    page = me.page
    dialogs, foreign = [], []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.on(
        "request",
        lambda request: request.url.startswith(node.url) or foreign.append(request.url),
    )
    main = page.locator("main")

    def whole(place=main, *texts):
        for text in texts:
            expect(place).to_contain_text(text)
        assert page.evaluate(INTRUDERS) == []
        assert page.evaluate(LEAKS) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    page.get_by_label("Username").fill(NAMES["admin"])
    page.get_by_label("Password", exact=True).fill("wrong")
    me.expect_refusal(401)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).not_to_be_empty()
    whole()
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.keyboard.press("Enter")

    # The queue's first: bidi and zero-width characters.
    whole(main, f"strange {BIDI} {HIDDEN}")
    expect(page.locator("header")).to_contain_text(NAMES["admin"])
    for address, texts in {
        f"units/{ids['pending']}": (TEXT, *TAGS[:3], f"by {NAMES['admin']}"),
        f"units/{ids['strange']}": (BIDI, HIDDEN),
        f"units/{ids['edited']}": (f"{TEXT} edited", NAMES["reviewer"]),
        f"units/{ids['flagged']}": (f"flag of contributor {TEXT}", NAMES["contributor"]),
        f"units/{ids['rejected']}": (f"Reason{TEXT}", f"by {NAMES['reviewer']}"),
        "units": (f"pending {TEXT}"[:500], BIDI, TAGS[0]),
        "units?domain=%3Cimg+src%3Dx+onerror%3Dalert%281%29%3E": (TAGS[0],),
        "units?q=alert": ("1 approved unit", f"flagged {TEXT}"[:500]),
        "attention": (f"flagged {TEXT}"[:500], f"flag of admin {TEXT}"),
        "dashboard": (f"rejected {TEXT}"[:500], NAMES["reviewer"], TAGS[0]),
        "proposals": (f"rejected {TEXT}"[:500], TEXT, f"by {NAMES['reviewer']}"),
        "keys": (HOSTILE[0], *TAGS),
        "users": (*NAMES.values(),),
        "account": (f"You are {NAMES['admin']}",),
    }.items():
        me.go(address)
        whole(main, *texts)
        for summary in page.locator("main summary").all():
            summary.click()
        whole(main, *texts)

    # Dialogs, too.
    dialog = page.get_by_role("dialog")
    me.go(f"units/{ids['edited']}")
    page.get_by_role("button", name="Edit", exact=True).click()
    expect(dialog.get_by_label("Detail")).to_have_value(f"{TEXT} edited")
    whole(dialog)
    me.go("keys")
    page.get_by_label("Name", exact=True).fill(HOSTILE[1])
    page.get_by_label("Labels").fill(HOSTILE[0])
    page.keyboard.press("Enter")
    whole(dialog, f"The key “{HOSTILE[1]}”")
    dialog.get_by_role("checkbox").check()
    dialog.get_by_role("button", name="Done").click()
    page.locator("main summary").first.click()
    page.get_by_role("button", name="Revoke", exact=True).first.click()
    whole(dialog, f"Revoke “{HOSTILE[1]}”?")
    me.go("users")
    row = page.locator("main .rows > li").filter(has_text=NAMES["contributor"])
    row.get_by_role("button", name="Shut out").click()
    whole(dialog, f"Shut {NAMES['contributor']} out?")
    dialog.get_by_role("button", name="Shut out").click()
    expect(row.locator(".badge")).to_have_text("disabled")

    # An address is text, too.
    me.go("%3Cimg%20src=x%20onerror=alert(1)%3E?next=javascript:alert(1)")
    expect(page).to_have_url(re.compile("#/review$"))
    whole()
    assert dialogs == []
    assert foreign == []


def test_a_string_cannot_become_markup_or_script_in_the_page(node, visit):
    rita = visit(node, "rita", "keys")
    page = rita.page
    for attempt in (
        "document.body.innerHTML = 'x'",
        "document.body.insertAdjacentHTML('beforeend', 'x')",
        "document.write('x')",
        "document.createElement('script').text = 'x'",
        "document.createElement('iframe').srcdoc = 'x'",
        "document.createElement('script').src = '/app.js'",
        "setTimeout('x')",
        "document.body.setAttribute('onclick', 'x')",
        "new DOMParser().parseFromString('x', 'text/html')",
    ):
        told = page.evaluate(
            f"() => {{ try {{ {attempt}; }} catch (error) {{ return error.name; }} }}"
        )
        assert told == "TypeError", attempt
    # No inline script or style, nothing from elsewhere.
    blocked = page.evaluate(
        """() => new Promise((done) => {
          const heard = [];
          document.addEventListener("securitypolicyviolation", ({effectiveDirective}) => {
            heard.push(effectiveDirective);
            if (heard.length === 5) done(heard.sort());
          });
          const add = (tag, set) => {
            const node = document.createElement(tag);
            set(node);
            document.head.append(node);
          };
          add("script", (node) => node.append("globalThis.ran = 1"));
          add("style", (node) => node.append("body { display: none }"));
          add("img", (node) => { node.src = "https://pixel.invalid/i.png"; });
          add("iframe", (node) => { node.src = "https://frame.invalid/"; });
          fetch("https://api.invalid/").catch(() => {});
        })"""
    )
    trusted = "require-trusted-types-for"
    assert blocked == ["connect-src", "frame-src", "img-src", trusted, "style-src-elem"]
    assert page.evaluate("globalThis.ran") is None
    rita.expected += ["Content Security Policy", "Trusted"]
