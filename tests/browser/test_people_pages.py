"""Keys, accounts and one's own proposals in the page, and what agents and other people get of it."""

import re
import sqlite3
from contextlib import closing

from playwright.sync_api import expect

from tests.cast import PASSWORD, proposal


def rows(page):
    return page.locator("main .rows > li")


def make_key(page, name, ttl="90d", labels=""):
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Valid for").fill(ttl)
    page.get_by_label("Labels").fill(labels)


def test_an_agent_works_with_a_key_made_in_the_page_until_it_is_revoked(node, visit, environ):
    carl = visit(node, "carl", "keys")
    page = carl.page
    carl.context.grant_permissions(["clipboard-read", "clipboard-write"])
    make = page.get_by_role("button", name="Make a key")
    expect(page.get_by_role("heading", name="Your keys")).to_have_text("Your keys: 1 of 20 active")
    for name, ttl, good in (("", "90d", False), ("  ", "1h", False), ("x", "90x", False)):
        make_key(page, name, ttl)
        expect(make).to_be_enabled() if good else expect(make).to_be_disabled()
    expect(page.get_by_label("Valid for")).to_have_attribute("aria-invalid", "true")
    make_key(page, "  laptop  ", "12h", "ci,  linux box , ")
    page.keyboard.press("Enter")

    # The token is shown once, and until it is said to be kept.
    dialog = page.get_by_role("dialog", name="The key “laptop”")
    token = dialog.get_by_label("The token").input_value()
    done = dialog.get_by_role("button", name="Done")
    expect(done).to_be_disabled()
    for _ in range(3):
        page.keyboard.press("Escape")
    page.mouse.click(5, 5)
    expect(dialog).to_be_visible()
    copy = dialog.get_by_role("button", name="Copy")
    expect(copy).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("status")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == token
    browser = carl.context.browser.new_browser_cdp_session()
    refused = {"permission": {"name": "clipboard-write"}, "setting": "denied", "origin": node.url}
    context = carl.context.new_cdp_session(page).send("Target.getTargetInfo")
    context = {"browserContextId": context["targetInfo"]["browserContextId"]}
    browser.send("Browser.setPermission", {**refused, **context})
    copy.click()
    expect(dialog.get_by_role("status")).to_have_text("Selected: copy it with your keyboard.")
    expect(dialog.get_by_label("The token")).to_be_focused()
    assert page.evaluate("String(getSelection())") == token
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(done).to_be_enabled()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    expect(page.get_by_label("Name", exact=True)).to_have_value("")
    expect(page.get_by_text(token)).to_have_count(0)

    # An agent has it.
    assert node.call("POST", "/knowledge", proposal(), token=token)[0] == 201
    page.reload()
    row = rows(page).filter(has_text="laptop")
    expect(row).to_contain_text("12h left")
    expect(row).to_contain_text(f"{token.split('.')[3][:8]}…")
    row.locator("summary").click()
    expect(row.locator("dl")).to_contain_text(re.compile(r"cilinux box.*12h.*just now.*just now$"))

    # Filters and search.
    def group(name):
        return page.get_by_role("group", name="Which keys").get_by_role("button", name=name)

    expect(group("All")).to_have_text("All 2")
    page.get_by_role("searchbox").fill("LINUX")
    expect(rows(page)).to_have_count(1)
    page.get_by_role("searchbox").fill("nothing like it")
    expect(page.get_by_text("No key matches.")).to_be_visible()
    page.get_by_role("searchbox").fill("")
    group("Revoked").click()
    expect(group("Revoked")).to_be_focused()
    expect(group("Revoked")).to_have_attribute("aria-pressed", "true")
    expect(rows(page)).to_have_count(0)
    group("All").click()

    # Revoked: for good, and told before.
    row.get_by_role("button", name="Revoke").click()
    asked = page.get_by_role("dialog", name="Revoke “laptop”?")
    asked.get_by_role("button", name="Cancel").click()
    expect(row.get_by_role("button", name="Revoke")).to_be_focused()
    assert node.call("POST", "/knowledge", proposal("Second"), token=token)[0] == 201
    page.keyboard.press("Enter")
    asked.get_by_role("button", name="Revoke").click()
    expect(asked).to_have_count(0)
    assert node.call("POST", "/knowledge", proposal("Third"), token=token)[0] == 401
    expect(row.locator("summary")).to_be_focused()
    expect(row.locator(".badge")).to_have_text("revoked")
    expect(row.get_by_role("button", name="Revoke")).to_have_count(0)
    expect(group("Revoked")).to_have_text("Revoked 1")

    # Over by itself: neither active nor revoked.
    with closing(sqlite3.connect(environ["CQ_DB_PATH"])) as database, database:
        past = ("2026-01-01T00:00:00.000000Z",)
        database.execute("UPDATE api_keys SET expires_at = ? WHERE name = 'first'", past)
    page.reload()
    expect(rows(page).filter(has_text="first").locator(".badge")).to_have_text("expired")
    expect(page.get_by_role("heading", name="Your keys")).to_have_text("Your keys: 0 of 20 active")
    for name, count in (("Active", 0), ("Revoked", 1), ("All", 2)):
        group(name).click()
        expect(rows(page)).to_have_count(count)


def test_twenty_active_keys_are_the_most_and_one_more_is_told(node, visit):
    token = node.token("carl")
    mine = "/users/me/api-keys"
    for number in range(18):
        body = {"name": f"key {number}", "ttl": "2d"}
        assert node.call("POST", mine, body, token=token)[0] == 201
    carl = visit(node, "carl", "keys")
    page = carl.page
    make = page.get_by_role("button", name="Make a key")
    expect(rows(page)).to_have_count(19)
    make_key(page, "one too many")
    # Somewhere else the last one is made.
    assert node.call("POST", mine, {"name": "last", "ttl": "2d"}, token=token)[0] == 201
    carl.expect_refusal(409)
    make.click()
    expect(page.locator("form").get_by_role("alert")).not_to_be_empty()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.reload()
    expect(page.get_by_role("heading", name="Your keys")).to_have_text("Your keys: 20 of 20 active")
    make_key(page, "one too many")
    expect(make).to_be_disabled()
    expect(page.get_by_text("There are 20 active keys")).to_be_visible()
    page.get_by_role("button", name="Active 20").click()
    rows(page).first.locator("summary").click()
    rows(page).first.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(make).to_be_enabled()
    expect(page.get_by_text("There are 20 active keys")).to_have_count(0)
    # Its row is gone with what had the focus.
    expect(page.get_by_role("button", name="Active 19")).to_be_focused()

    # The token stays when another page comes below it.
    make.click()
    dialog = page.get_by_role("dialog", name="The key “one too many”")
    expect(dialog).to_be_visible()
    carl.go("proposals")
    expect(page).to_have_title("My proposals · cq")
    dialog.get_by_role("checkbox").check()
    dialog.get_by_role("button", name="Done").press("Enter")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("heading", name="My proposals")).to_be_focused()


def test_an_admin_makes_accounts_and_says_what_each_may(node, visit):
    ada = visit(node, "ada", "users")
    page = ada.page
    row = rows(page).filter(has_text="dora")
    page.get_by_label("Name", exact=True).fill("dora")
    page.get_by_label("Role", exact=True).select_option("contributor")
    page.get_by_label("Password", exact=True).fill("a first password")
    page.keyboard.press("Enter")
    expect(row).to_have_count(1)
    dora = visit(node)
    dora.sign_in("dora", "a first password")
    expect(dora.page).to_have_title("My proposals · cq")

    ada.expect_refusal(409, 422)
    for name, password in (("dora", "another"), ("dora", " "), ("a/b", "another")):
        page.get_by_label("Name", exact=True).fill(name)
        page.get_by_label("Password", exact=True).fill(password)
        page.get_by_role("button", name="Make the account").click()
        expect(page.locator("form").get_by_role("alert")).to_have_text(
            {"a/b": "username: must not be me, . or .. or have a slash"}.get(name)
            or {" ": "password: A password must not be blank"}.get(password)
            or "This username is taken"
        )

    # By arrow keys one passes other roles: nothing is done before it is said.
    role = row.get_by_label("Role of dora")
    role.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(role).to_have_value("admin")
    page.keyboard.press("ArrowUp")
    assert (
        node.call("GET", "/users/me", token=token_of(node, "dora", "a first password"))[1]["role"]
        == "contributor"
    )
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(role).to_be_focused()
    expect(row.get_by_role("button", name="Set the role")).to_be_hidden()
    dora.expect_refusal(401)
    dora.page.get_by_role("link", name="API keys").click()
    expect(dora.page.get_by_text("Your session has ended")).to_be_visible()
    dora.sign_in("dora", "a first password")
    expect(dora.page.get_by_role("link", name="Units")).to_be_visible()

    # Shut out: the person and the agents, until let in.
    first = token_of(node, "dora", "a first password")
    wish = {"name": "dora's", "ttl": "1h"}
    key = node.call("POST", "/users/me/api-keys", wish, token=first)[1]["token"]
    row.get_by_role("button", name="Shut out").click()
    page.get_by_role("dialog", name="Shut dora out?").get_by_role("button", name="Shut out").click()
    expect(row.locator(".badge")).to_have_text("disabled")
    expect(row.get_by_role("button", name="Let in")).to_be_focused()
    assert node.call("POST", "/knowledge", proposal(), token=key)[0] == 401
    assert token_of(node, "dora", "a first password") is None
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Let in").click()
    expect(row.locator(".badge")).to_have_count(0)
    assert node.call("POST", "/knowledge", proposal(), token=key)[0] == 201

    row.get_by_role("button", name="Set a password").click()
    dialog = page.get_by_role("dialog", name="A password for dora")
    expect(dialog.get_by_label("New password")).to_be_focused()
    page.keyboard.type("a second password")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(row.get_by_role("button", name="Set a password")).to_be_focused()
    assert token_of(node, "dora", "a first password") is None
    assert token_of(node, "dora", "a second password")

    # The last admin stays one.
    own = rows(page).filter(has_text="(you)")
    own.get_by_label("Role of ada").select_option("reviewer")
    own.get_by_role("button", name="Set the role").click()
    expect(own.get_by_role("alert")).to_contain_text("The last admin stays an admin")
    expect(own.get_by_label("Role of ada")).to_have_value("admin")
    own.get_by_role("button", name="Shut out").click()
    asked = page.get_by_role("dialog", name="Shut ada out?")
    asked.get_by_role("button", name="Shut out").click()
    expect(asked.get_by_role("alert")).to_contain_text("The last admin stays an admin")
    page.keyboard.press("Escape")
    expect(own.get_by_role("button", name="Shut out")).to_be_focused()
    assert node.call("GET", "/users", token=node.token("ada"))[0] == 200


def token_of(node, name, password):
    """A bearer token for this password, or None."""
    return node.call("POST", "/auth/login", {"username": name, "password": password})[1].get(
        "token"
    )


def test_a_new_password_of_ones_own_ends_the_other_sessions(node, visit):
    here, there = visit(node, "rita", "account"), visit(node, address="keys")
    # The last that the page asks for by itself.
    with there.page.expect_response("**/review/attention?limit=0"):
        there.sign_in("rita")
    page = here.page
    expect(page.get_by_text("You are rita, reviewer.")).to_be_visible()

    def change(now, new, again):
        page.get_by_label("Password now").fill(now)
        page.get_by_label("New password", exact=True).fill(new)
        page.get_by_label("New password again").fill(again)
        page.keyboard.press("Enter")

    told = page.locator("form").get_by_role("alert")
    here.expect_refusal(422)
    change(PASSWORD, "new words", "other words")
    expect(told).to_have_text("The two new passwords differ.")
    change("wrong", "new words", "new words")
    expect(told).to_have_text("password: this is not your password")
    change(PASSWORD, "w" * 73, "w" * 73)
    expect(told).to_have_text("new_password: A password takes at most 72 bytes")
    change(PASSWORD, "new words", "new words")
    expect(page.get_by_text("Changed. Your other sessions have ended.")).to_be_visible()
    expect(told).to_be_empty()
    expect(page.get_by_label("Password now")).to_have_value("")
    assert token_of(node, "rita", PASSWORD) is None

    page.get_by_role("link", name="API keys").click()
    expect(rows(page)).to_have_count(1)
    there.expect_refusal(401)
    there.page.get_by_role("link", name="Units").click()
    expect(there.page.get_by_text("Your session has ended")).to_be_visible()
    there.sign_in("rita", "new words")
    expect(there.page).to_have_title("Units · cq")


def test_a_contributor_sees_what_became_of_their_proposals_and_why(node, visit):
    for number in range(20):
        node.propose(f"Older {number}")
    approved, rejected, _ = (node.propose(name) for name in ("Approve me", "Reject me", "Wait"))
    node.decide(approved)
    node.decide(rejected, "reject", reason="Said better elsewhere.\nSee the docs.")
    newer = node.propose("In its place")
    node.decide(newer)
    node.decide(approved, "supersede", replacement=newer["id"])

    page = visit(node, "carl").page
    expect(page).to_have_title("My proposals · cq")
    expect(rows(page)).to_have_count(20)
    expect(rows(page).locator("summary").first).to_have_text("approvedIn its place")
    row = rows(page).filter(has_text="Approve me")
    expect(row).to_contain_text("superseded")
    expect(row).to_contain_text(newer["id"])
    expect(rows(page).filter(has_text="Wait").locator(".badge")).to_have_text("pending")
    row = rows(page).filter(has_text="Reject me")
    expect(row).to_contain_text("rejected by rita")
    expect(row.get_by_role("blockquote")).to_have_text("Said better elsewhere.\nSee the docs.")
    expect(row.get_by_text("The lock row stays")).to_be_hidden()
    row.locator("summary").press("Enter")
    expect(row.get_by_text("The lock row stays")).to_be_visible()
    expect(row.get_by_text("Run force-unlock")).to_be_visible()
    expect(page.get_by_role("link", name="Its page")).to_have_count(0)
    page.get_by_role("button", name="Show more").click()
    expect(rows(page)).to_have_count(24)

    page = visit(node, "cleo").page
    expect(page.locator("main")).to_contain_text("Nothing was proposed with your keys yet.")
    page.get_by_role("link", name="Make a key").click()
    expect(page).to_have_title("API keys · cq")
