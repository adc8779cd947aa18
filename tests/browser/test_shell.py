"""What holds the pages together: signing in and out, sessions, the network, roles, the theme."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import expect

from tests.cast import PASSWORD

# address: what its title begins with
PAGES = {
    "review": "Review",
    "units": "Units",
    "attention": "Another look",
    "dashboard": "Dashboard",
    "proposals": "My proposals",
    "keys": "API keys",
    "users": "Users",
    "account": "Account",
}
AWAY = "The server is not reached"


@pytest.fixture
def restart(serve):
    """Start the server of a node that was stopped once more, at its old address."""
    return lambda node: serve(CQ_PORT=node.url.rpartition(":")[2])


def login_form(page):
    return page.get_by_role("button", name="Sign in")


def test_a_wrong_password_too_many_tries_and_an_absent_server_are_told_apart(node, visit, restart):
    rita = visit(node)
    page = rita.page
    expect(page).to_have_title("Sign in · cq")
    expect(page.get_by_label("Username")).to_be_focused()
    page.keyboard.type("rita")
    page.keyboard.press("Tab")
    page.keyboard.type("wrong")
    secret = page.get_by_label("Password", exact=True)
    page.get_by_role("button", name="Show password").click()
    expect(secret).to_have_attribute("type", "text")
    rita.expect_refusal(401, 429)
    secret.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("Invalid username or password")
    # The password is hidden again, and the next one takes its place.
    expect(secret).to_have_attribute("type", "password")
    expect(secret).to_be_focused()
    page.keyboard.type(PASSWORD)

    wrong = {"username": "rita", "password": "wrong"}
    with ThreadPoolExecutor(3) as pool:
        for _ in range(9):
            pool.submit(node.call, "POST", "/auth/login", wrong)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text(
        re.compile(r"Too many failed tries\. Try again in \d+ s\.")
    )

    rita.expect_no_server()
    node.process.stop()
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("The server does not answer.")
    expect(page.get_by_text(AWAY)).to_be_visible()
    restart(node)
    expect(page.get_by_text(AWAY)).to_be_hidden()
    page.keyboard.press("Enter")
    expect(page).to_have_title("Review · cq")


def test_every_page_has_an_address_that_survives_sign_in_reload_and_the_back_button(node, visit):
    unit = node.propose()
    ada = visit(node, address="units?status=pending")
    page = ada.page
    expect(login_form(page)).to_be_visible()
    ada.sign_in("ada")
    expect(page).to_have_url(f"{node.url}/#/units?status=pending")
    expect(page.get_by_label("Status")).to_have_value("pending")

    walked = {**PAGES, f"units/{unit['id']}": unit["insight"]["summary"]}
    for address, title in walked.items():
        ada.go(address)
        expect(page).to_have_title(f"{title} · cq")
        expect(page.locator("main :focus:is(h1, h2)")).to_have_count(1)
        current = page.locator("nav [aria-current=page]")
        expect(current).to_have_count(0 if address == "account" else 1)
    for address, title in list(walked.items())[-2::-1]:
        page.go_back()
        expect(page).to_have_url(f"{node.url}/#/{address}")
        expect(page).to_have_title(f"{title} · cq")
    for address, title in walked.items():
        ada.go(address)
        page.reload()
        expect(page).to_have_title(f"{title} · cq")

    for address in ("", "nowhere/at/all", "constructor", "%E0%A4%A", "login", "login?next=//x.org"):
        ada.go(address)
        expect(page).to_have_url(f"{node.url}/#/review")


def test_an_ended_session_leads_to_sign_in_and_back(node, visit):
    admin = node.token("ada")
    rita = visit(node, address="keys")
    page = rita.page
    rita.expect_refusal(401)

    def sign_in():
        # The last that the page asks for by itself: what is asked next is asked by the test.
        with page.expect_response("**/review/attention?limit=0"):
            rita.sign_in("rita")

    def ended_at(address):
        expect(page.get_by_text("Your session has ended")).to_be_visible()
        expect(page.get_by_role("dialog")).to_have_count(0)
        sign_in()
        expect(page).to_have_url(f"{node.url}/#/{address}")

    sign_in()

    # Somebody else set the password; an open dialog does not stand in the way.
    page.get_by_text("first", exact=True).click()
    page.get_by_role("button", name="Revoke", exact=True).click()
    node.call("PATCH", "/users/rita", {"password": PASSWORD}, token=admin)
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_label("Username")).to_be_focused()
    ended_at("keys")
    expect(page.get_by_text("first", exact=True)).to_be_visible()
    assert node.call("GET", "/users/me/api-keys", token=node.token("rita"))[1]["data"][0][
        "is_active"
    ]

    # Shut out, and let in again.
    node.call("PATCH", "/users/rita", {"disabled": True}, token=admin)
    page.get_by_role("link", name="Units").click()
    expect(page.get_by_text("Your session has ended")).to_be_visible()
    page.get_by_label("Username").fill("rita")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("Invalid username or password")
    node.call("PATCH", "/users/rita", {"disabled": False}, token=admin)
    ended_at("units")

    # The cookie is gone; nobody is told so who was not here before.
    rita.context.clear_cookies()
    page.get_by_role("link", name="Dashboard").click()
    ended_at("dashboard")
    rita.context.clear_cookies()
    page.reload()
    expect(page).to_have_url(f"{node.url}/#/login?next=%23%2Fdashboard")

    # Noticed at the start.
    sign_in()
    node.call("PATCH", "/users/rita", {"password": PASSWORD}, token=admin)
    page.reload()
    ended_at("dashboard")


def test_a_server_that_was_away_or_slow_is_told_and_nobody_is_signed_out(node, visit, restart):
    unit = node.propose()
    rita = visit(node, "rita", f"units/{unit['id']}")
    page = rita.page
    rita.expect_no_server()
    expect(page.get_by_role("heading", name="Backend lock")).to_be_visible()

    # In the middle: the process is gone and comes back.
    node.process.stop()
    page.get_by_role("link", name="API keys").click()
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer.")
    expect(page.get_by_text(AWAY)).to_be_visible()
    page.get_by_role("button", name=re.compile("^rita")).click()
    page.get_by_role("button", name="Sign out").click()
    restart(node)
    expect(page.get_by_text("first", exact=True)).to_be_visible()
    expect(page.get_by_text(AWAY)).to_be_hidden()
    expect(page).to_have_url(f"{node.url}/#/keys")

    # At the start: nothing but the network failed.
    page.route("**/users/me", lambda route: route.abort("connectionrefused"))
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer.")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer.")
    page.unroute("**/users/me")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("first", exact=True)).to_be_visible()

    # Slow: told until the last answer is here.
    held = []
    page.route("**/api/v1/review/ku_**", lambda route: held.append(route))
    slow = page.get_by_text("The server is slow to answer")
    page.go_back()
    expect(slow).to_be_visible()
    assert len(held) > 1
    with page.expect_response("**/api/v1/review/ku_**"):
        held.pop().continue_()
    expect(slow).to_be_visible()
    page.unroute_all()
    expect(page.get_by_role("heading", name="Backend lock")).to_be_visible()
    expect(slow).to_be_hidden()


def test_signing_out_and_in_holds_for_all_tabs(node, visit):
    rita = visit(node, "rita", "keys")
    here, there = rita.page, rita.context.new_page()
    there.on("console", rita._said)
    there.goto(f"{node.url}/#/units")
    expect(there.get_by_role("heading", name="Units")).to_be_visible()
    here.get_by_role("button", name=re.compile("^rita")).click()
    here.get_by_role("button", name="Sign out").click()
    for page in (here, there):
        expect(login_form(page)).to_be_visible()
        expect(page.get_by_role("navigation")).to_have_count(0)
    assert rita.context.cookies() == []
    here.go_back()
    expect(login_form(here)).to_be_visible()
    rita.sign_in("cleo")
    expect(here.get_by_role("heading", name="API keys")).to_be_visible()
    expect(there.get_by_role("heading", name="My proposals")).to_be_visible()


def test_each_role_sees_its_pages_and_is_told_of_the_others_without_a_request(node, visit):
    def links(page):
        return page.get_by_role("navigation").get_by_role("link")

    carl, rita, ada = (visit(node, name) for name in ("carl", "rita", "ada"))
    expect(links(carl.page)).to_have_text(["My proposals", "API keys"])
    expect(carl.page).to_have_title("My proposals · cq")
    everything = [
        "Review",
        "Units",
        "Another look",
        "Dashboard",
        "Gaps",
        "My proposals",
        "API keys",
    ]
    expect(links(rita.page)).to_have_text(everything)
    expect(rita.page).to_have_title("Review · cq")
    expect(links(ada.page)).to_have_text([*everything, "Users"])

    higher = ("review", "units", "units/ku_x", "attention", "dashboard", "users")
    for person, addresses in ((carl, higher), (rita, ["users"])):
        asked = []
        person.page.on("request", lambda request, asked=asked: asked.append(request.url))
        for address in addresses:
            person.go(address)
            heading = person.page.get_by_role("heading", name="Not yours to open")
            expect(heading).to_be_visible()
            needed = "admin" if address == "users" else "reviewer"
            expect(person.page.get_by_text(f"needs the role {needed}")).to_be_visible()
            person.page.get_by_role("link", name="Go to your page").click()
            expect(heading).to_be_hidden()
        paths = {url.removeprefix(node.url).partition("?")[0] for url in asked}
        mine = {"/api/v1/users/me/proposals"} if person is carl else {"/api/v1/review/queue"}
        assert {path for path in paths if path.startswith("/api/")} <= mine


def test_the_theme_follows_the_system_until_one_is_chosen_and_is_there_before_the_first_paint(
    node, visit
):
    page = visit(node, color_scheme="dark").page
    root = page.locator("html")
    # Nothing is painted before there is a body.
    page.add_init_script(
        """new MutationObserver((_, watch) => {
          if (!document.body) return;
          globalThis.first = document.documentElement.dataset.theme;
          watch.disconnect();
        }).observe(document, {childList: true, subtree: true});"""
    )
    expect(root).to_have_attribute("data-theme", "dark")
    page.emulate_media(color_scheme="light")
    expect(root).to_have_attribute("data-theme", "light")
    page.emulate_media(color_scheme="dark")

    page.get_by_role("button", name="Switch to light").click()
    expect(root).to_have_attribute("data-theme", "light")
    page.reload()
    assert page.evaluate("first") == "light"
    for system in ("light", "dark"):
        page.emulate_media(color_scheme=system)
        expect(root).to_have_attribute("data-theme", "light")

    # What the system says was chosen: it is followed again.
    page.get_by_role("button", name="Switch to dark").click()
    page.reload()
    assert page.evaluate("first") == "dark"
    page.emulate_media(color_scheme="light")
    expect(root).to_have_attribute("data-theme", "light")


def test_the_menu_and_the_skip_link_work_by_keyboard(node, visit):
    page = visit(node, "rita", "keys").page
    page.reload()
    expect(page.get_by_role("heading", name="API keys")).to_be_focused()
    page.locator("body").evaluate("body => { body.tabIndex = -1; body.focus(); }")
    page.keyboard.press("Tab")
    jump = page.get_by_role("link", name="Skip to content")
    expect(jump).to_be_focused()
    expect(jump).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()

    person = page.get_by_role("button", name=re.compile("^rita"))
    person.focus()
    page.keyboard.press("Enter")
    expect(person).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Account")).to_be_focused()
    page.keyboard.press("Escape")
    expect(person).to_be_focused()
    expect(person).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page).to_have_title("Account · cq")
    expect(page.get_by_role("link", name="Account")).to_be_hidden()
    person.focus()
    for key in ("Enter", "Tab", "Tab", "Tab", "Enter"):
        page.keyboard.press(key)
    expect(login_form(page)).to_be_visible()
    expect(page.get_by_label("Username")).to_be_focused()


def test_what_waits_is_counted_anew_while_somebody_looks(node, visit):
    node.propose("Alpha")
    rita = visit(node, "rita", "keys")
    page = rita.page
    page.clock.install()
    page.reload()
    review = page.get_by_role("link", name=re.compile("^Review"))
    expect(review).to_have_text("Review1 waiting")
    node.propose("Beta")
    # The last answer is waited for: the clock of what still waits would run out, too.
    with page.expect_response("**/review/attention?limit=0"):
        page.clock.run_for(16_000)
    expect(review).to_have_text("Review2 waiting")

    hide = """hidden => {
      Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(hide, True)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    flagged = node.propose("Gamma")
    page.clock.run_for(120_000)
    assert asked == []
    expect(review).to_have_text("Review2 waiting")
    page.evaluate(hide, False)
    expect(review).to_have_text("Review3 waiting")

    node.decide(flagged)
    node.call("POST", f"/knowledge/{flagged['id']}/flags", {"reason": "stale"}, key="cleo")
    page.clock.run_for(16_000)
    expect(review).to_have_text("Review2 waiting")
    expect(page.get_by_role("link", name=re.compile("^Another look"))).to_have_text(
        "Another look1 waiting"
    )
