"""Everything in the page is there for a keyboard and for a screen reader, in both themes, wide and
narrow."""

import re
import shutil

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

from tests.browser.conftest import DESK, PHONE, Node
from tests.cast import PASSWORD, SECRETS, Process

LOOKS = (("light", DESK), ("dark", PHONE))
# The element that has the focus, and how it is seen: null for none.
FOCUSED = """() => {
  const node = document.activeElement;
  if (!node || node === document.body) return null;
  const style = getComputedStyle(node);
  const {width, height, top, bottom} = node.getBoundingClientRect();
  return {
    name: node.outerHTML.slice(0, 120),
    seen: width > 0 && height > 0 && bottom > 0 && top < innerHeight,
    ringed: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    inside: Boolean(node.closest("dialog")),
  };
}"""
# What a keyboard has to reach: of radio buttons the chosen one.
CONTROLS = """() => [...document.querySelectorAll(
    "a[href], button, input:not([type=radio]:not(:checked)), select, textarea, summary, [tabindex='0']"
  )].filter((node) => !node.disabled && node.checkVisibility({visibilityProperty: true})).length"""


@pytest.fixture(scope="module")
def node_with_units(template, tmp_path_factory):
    """One server for the tests that decide nothing: (node, its flagged unit)."""
    path = tmp_path_factory.mktemp("accessibility") / "cq.db"
    shutil.copy(template[0]["CQ_DB_PATH"], path)
    variables = {"CQ_DB_PATH": str(path), "CQ_PORT": "0", "CQ_EMBEDDER": "off", **SECRETS}
    process = Process(variables)
    node = Node(process, template[1])
    yield node, stage(node)
    process.stop()


def stage(node):
    """A unit in each state, with flags; gives the flagged one."""
    token = node.token("rita")

    def decided(name, *steps):
        unit = node.propose(name)
        for verb in steps:
            assert node.call("POST", f"/review/{unit['id']}/{verb}", {}, token=token)[0] == 200
        return unit

    decided("Retired", "approve", "retire")
    decided("Rejected", "reject")
    flagged = decided("Flagged", "approve")
    flag = {"reason": "incorrect", "detail": "Not since 2.0."}
    assert node.call("POST", f"/knowledge/{flagged['id']}/flags", flag, key="cleo")[0] == 201
    node.propose("Waiting", key="cleo", extensions={"acme:severity": "high"})
    node.propose("Waiting, too", key="cleo")
    return flagged


class Axe:
    """axe-core in a page: `check()` collects what is wrong in each of LOOKS."""

    def __init__(self, page):
        self.page, self.wrong = page, []
        page.evaluate(AXE_SCRIPT)

    def check(self, state):
        for theme, size in LOOKS:
            self.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            self.page.set_viewport_size(size)
            found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
            self.wrong += [
                (state, theme, each["id"], each["impact"], each["nodes"][0]["html"])
                for each in found["violations"]
                if each["impact"] in ("serious", "critical")
            ]
        self.page.set_viewport_size(DESK)


def opened(visit, address, whole):
    """Go to a page and wait until it is there and this can be seen in it."""
    page = visit.go(address)
    name = address.partition("/")[0].partition("?")[0]
    # The account stands in no navigation: there, the page before it must have gone.
    if name == "account":
        expect(page.get_by_role("heading", name="Account", exact=True)).to_be_visible()
    else:
        expect(page.locator("nav [aria-current=page]")).to_have_attribute("data-page", name)
    expect(page.locator(whole).first).to_be_visible()
    return page


def button(page, name):
    return page.get_by_role("button", name=name, exact=True).first


def test_axe_finds_nothing_wrong_in_any_page_or_dialog(node_with_units, visit):
    node, flagged = node_with_units
    # axe-core makes markup of its own, which the policy refuses.
    ada = visit(node, bypass_csp=True)
    page = ada.page
    axe = Axe(page)
    ada.expect_refusal(401)
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password", exact=True).fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).not_to_be_empty()
    axe.check("login")
    ada.sign_in("ada")

    expect(page.locator(".similar h3")).to_be_visible()
    page.keyboard.press("ArrowRight")
    axe.check("review, to approve")
    page.keyboard.press("ArrowLeft")
    axe.check("review, to reject")
    page.keyboard.press("Escape")
    page.keyboard.press("s")
    page.keyboard.press("s")
    expect(page.get_by_role("heading", name="skipped")).to_be_visible()
    axe.check("review, at its end")

    for address, whole, opener in (
        ("units", ".rows li", None),
        ("units?q=lock", ".parts", None),
        ("units?q=nothing+like+it+at+all", "main .quiet", None),
        (f"units/{flagged['id']}", ".timeline li", "Edit"),
        (f"units/{flagged['id']}", ".timeline li", "Retire"),
        (f"units/{flagged['id']}", ".timeline li", "Supersede"),
        (f"units/ku_{'0' * 32}", ".note", None),
        ("attention", ".rows li", None),
        ("dashboard", ".trend", None),
        ("gaps", "main table:visible", None),
        ("proposals", "main h1 ~ *", None),
        ("keys", ".rows summary", None),
        ("users", ".rows li", "Set a password"),
        ("users", ".rows li", "Shut out"),
        ("account", "form.panel", None),
    ):
        if "0000" in address:
            ada.expect_refusal(404)
        opened(ada, address, whole)
        if opener is None or "Edit" in opener or "Set" in opener:
            axe.check(address)
        if opener:
            button(page, opener).click()
            axe.check(f"{address}, {opener}")
            page.keyboard.press("Escape")

    ada.go("keys")
    page.locator("main summary").first.click()
    button(page, re.compile("^ada")).click()
    axe.check("keys, an open row and the menu")
    page.keyboard.press("Escape")
    button(page, "Revoke").click()
    axe.check("keys, revoke")
    page.keyboard.press("Escape")
    page.get_by_label("Name", exact=True).fill("laptop")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    axe.check("keys, the token")
    assert axe.wrong == []


def test_every_control_is_reached_by_tab_and_shows_that_it_has_the_focus(node_with_units, visit):
    node, flagged = node_with_units
    ada = visit(node, "ada")
    page = ada.page
    for address, whole in (
        ("review", ".similar h3"),
        ("units", ".rows li"),
        (f"units/{flagged['id']}", ".timeline li"),
        ("attention", ".rows li"),
        ("dashboard", ".trend"),
        ("gaps", "main table:visible"),
        ("keys", ".rows li"),
        ("users", ".rows li"),
        ("account", "form.panel"),
    ):
        opened(ada, address, whole)
        page.locator("a.jump").focus()
        page.keyboard.press("Tab")
        page.keyboard.press("Shift+Tab")
        stops = []
        while (at := page.evaluate(FOCUSED)) and at["name"] not in stops[:1]:
            assert at["seen"], (address, at)
            assert at["ringed"], (address, at)
            stops.append(at["name"])
            page.keyboard.press("Tab")
        assert len(stops) == page.evaluate(CONTROLS), (address, stops)


def test_a_dialog_keeps_the_focus_and_gives_it_back(node_with_units, visit):
    node, flagged = node_with_units
    ada = visit(node, "ada")
    page = ada.page
    for address, name in (
        ("review", "Edit"),
        (f"units/{flagged['id']}", "Keep"),
        (f"units/{flagged['id']}", "Supersede"),
        ("attention", "Retire"),
        ("keys", "Revoke"),
        ("users", "Set a password"),
        ("users", "Shut out"),
    ):
        opened(ada, address, "main button, main summary")
        if address == "keys":
            page.locator("main summary").first.press("Enter")
        opener = button(page, name)
        opener.press("Enter")
        dialog = page.get_by_role("dialog")
        expect(dialog).to_be_visible()
        for key in ("Tab", "Shift+Tab"):
            inside = 0
            for _ in range(dialog.locator("button, input, textarea, select").count() + 2):
                page.keyboard.press(key)
                # Behind the last control is the browser's own bar, which this browser has none of.
                at = page.evaluate(FOCUSED)
                assert at is None or at["inside"], (name, at)
                inside += at is not None
            assert inside
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        expect(opener).to_be_focused()
        opener.press("Enter")
        dialog.get_by_role("button", name="Cancel").press("Enter")
        expect(opener).to_be_focused()
        # A click beside it closes it, one on its edge does not.
        opener.press("Enter")
        box = dialog.bounding_box()
        page.mouse.click(box["x"] + 4, box["y"] + 4)
        expect(dialog).to_be_visible()
        page.mouse.click(box["x"] - 20, box["y"] + 4)
        expect(dialog).to_have_count(0)
        expect(opener).to_be_focused()

    # What was typed is not thrown away by a slip, and another page closes what is open.
    ada.go("keys")
    ada.go("users")
    page.get_by_role("button", name="Set a password").first.click()
    page.keyboard.type("half a pass")
    page.mouse.click(5, 5)
    expect(page.get_by_label("New password")).to_have_value("half a pass")
    page.go_back()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_work_is_done_with_the_keyboard_alone(node, visit):
    waiting, other = node.propose("Alpha"), node.propose("Beta")
    ada = visit(node)
    page = ada.page

    def tab_to(target):
        for _ in range(60):
            if target.evaluate_all("nodes => nodes.includes(document.activeElement)"):
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"not reached: {target}")

    def press(target, key="Enter"):
        expect(target).to_have_count(1)
        tab_to(target)
        page.keyboard.press(key)

    expect(page.get_by_label("Username")).to_be_focused()
    page.keyboard.type("ada")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Alpha")).to_be_focused()
    press(page.get_by_role("button", name="Reject"))
    press(page.get_by_label("Reason for the author"), "x")
    press(page.get_by_role("button", name="Confirm: reject"), "Space")
    expect(page.get_by_role("heading", name="Beta")).to_be_focused()
    assert node.call("GET", f"/review/{waiting['id']}", token=node.token("ada"))[1]["reason"] == "x"

    page.keyboard.press("Shift+Tab")
    page.locator("a.jump").focus()
    press(page.get_by_role("link", name="Units", exact=True))
    tab_to(page.get_by_label("Status"))
    page.keyboard.type("pend")
    press(page.get_by_role("button", name="Show", exact=True))
    press(page.get_by_role("checkbox", name="Choose “Beta”"), "Space")
    # The bar with what can be done stands above.
    bar = page.get_by_role("group", name="Decide together")
    for _ in range(8):
        page.keyboard.press("Shift+Tab")
    press(bar.get_by_role("button", name="Approve"))
    press(page.get_by_role("dialog").get_by_role("button", name="Approve"))
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(":focus")).to_have_count(1)
    assert node.finds(domains="terraform") == [other["id"]]

    page.locator("a.jump").focus()
    press(page.get_by_role("link", name="Users"))
    tab_to(page.get_by_label("Name", exact=True))
    page.keyboard.type("dora")
    page.keyboard.press("Tab")
    page.keyboard.type("a password")
    page.keyboard.press("Enter")
    row = page.locator("main .rows > li").filter(has_text="dora")
    press(row.get_by_role("button", name="Shut out"))
    press(page.get_by_role("dialog").get_by_role("button", name="Shut out"))
    expect(row.get_by_role("button", name="Let in")).to_be_focused()
