"""Reviewing in the page by keyboard and mouse, and what agents see of it."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import Node
from tests.browser.deck import (
    agents_find,
    choice,
    chosen,
    finished,
    hold,
    item,
    on_top,
    press,
    said,
    stage,
    status,
    unchosen,
    undisplaced,
    waiting,
)
from tests.test_proxy import proxy as proxy


def test_keys_choose_and_only_space_or_enter_confirms(node, visit):
    units = stage(node, "Frozen lock", "Noisy log", "Open port", "Stale cache")
    page = visit(node, "rita").page
    announced = page.locator("#announcer")
    on_top(page, "Frozen lock")
    waiting(page, 4)
    press(page, "ArrowRight", "ArrowRight")
    chosen(page, "approve")
    expect(announced).to_contain_text("Approve selected. Space confirms.")
    press(page, "ArrowLeft", "ArrowLeft")
    chosen(page, "reject")
    press(page, "ArrowDown", "ArrowUp")
    chosen(page, "skip")
    press(page, "Escape")
    unchosen(page)
    press(page, "Space", "Enter")
    unchosen(page)
    on_top(page, "Frozen lock")
    press(page, "ArrowRight")
    assert not agents_find(node, "Frozen lock")
    press(page, "Enter")
    on_top(page, "Noisy log")
    said(page, "Approved: Frozen lock")
    waiting(page, 3)
    assert agents_find(node, "Frozen lock")
    press(page, "s")
    on_top(page, "Open port")
    said(page, "Skipped")
    waiting(page, 3)
    press(page, "p", "p")
    chosen(page, "approve")
    press(page, "P")
    chosen(page, "approve and publish")
    expect(announced).to_contain_text("Approve and publish selected. Space confirms.")
    expect(page.get_by_label("Public")).to_be_checked()
    press(page, "Space")
    on_top(page, "Stale cache")
    said(page, "Approved and published: Open port")
    assert agents_find(node, "Open port", key=None)
    assert not agents_find(node, "Frozen lock", key=None)
    press(page, "ArrowLeft", "Space")
    finished(page, "1 unit skipped and still pending", "3 decided, 1 rejected, 2 approved")
    waiting(page, 1)
    assert status(node, units["Stale cache"]) == "rejected"
    assert status(node, units["Noisy log"]) == "pending"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    on_top(page, "Noisy log")


def test_a_held_key_decides_nothing_that_its_first_press_did_not(node, visit):
    stage(node, "Frozen lock", "Noisy log", "Open port", "Stale cache")
    page = visit(node, "rita").page
    on_top(page, "Frozen lock")
    hold(page, "ArrowRight")
    choice(page, "Confirm: approve").focus()
    press(page, "Escape")
    choice(page, "Approve").focus()
    hold(page, "Enter")
    chosen(page, "approve")
    page.get_by_role("heading", name="Frozen lock").focus()
    page.keyboard.down("Space")
    on_top(page, "Noisy log")
    hold(page, "Space")
    unchosen(page)
    page.get_by_label("Quick mode").check()
    page.keyboard.down("ArrowRight")
    on_top(page, "Open port")
    hold(page, "ArrowRight")
    choice(page, "Approve").focus()
    page.keyboard.down("Enter")
    on_top(page, "Stale cache")
    hold(page, "Enter")
    page.keyboard.down("e")
    summary = page.get_by_role("dialog").get_by_label("Summary")
    expect(summary).to_be_focused()
    hold(page, "e")
    expect(summary).to_have_value("Stale cache")
    press(page, "Escape")
    hold(page, "p")
    chosen(page, "approve and publish")
    press(page, "s")
    finished(page, "1 unit skipped and still pending", "3 decided, 0 rejected, 3 approved")
    assert not agents_find(node, "Noisy log", key=None)


def test_shortcuts_rest_where_keys_mean_something_else(node, visit):
    units = stage(node, "Frozen lock", "Noisy log")
    page = visit(node, "rita").page
    on_top(page, "Frozen lock")
    page.evaluate(
        "addEventListener('keydown', (e) => e.key === 's' && (globalThis.left = !e.defaultPrevented))"
    )
    for key in ("Control+s", "Meta+s"):
        press(page, key)
        assert page.evaluate("globalThis.left"), key
    press(page, "ArrowRight")
    edit = page.get_by_role("button", name="Edit")
    edit.focus()
    press(page, "Space")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Summary")).to_be_focused()
    dialog.get_by_role("button", name="Cancel").focus()
    press(page, "s", "ArrowLeft", "p", "Escape")
    expect(edit).to_be_focused()
    chosen(page, "approve")
    page.get_by_role("button", name="rita").click()
    expect(page.get_by_role("link", name="Account")).to_be_visible()
    press(page, "s", "ArrowLeft", "p", "Escape")
    expect(page.get_by_role("link", name="Account")).to_be_hidden()
    chosen(page, "approve")
    page.get_by_label("Private").focus()
    press(page, "ArrowDown")
    chosen(page, "approve and publish")
    history = page.get_by_role("link", name="Whole history")
    history.focus()
    press(page, "Enter")
    expect(page.get_by_role("heading", name="History")).to_be_visible()
    press(page, "s", "ArrowRight", "Space")
    page.go_back()
    on_top(page, "Frozen lock")
    unchosen(page)
    press(page, "ArrowLeft")
    page.get_by_label("Reason for the author").focus()
    page.keyboard.type("Use plan -lock; see\nsupport page 5")
    press(page, "ArrowRight", "ArrowDown")
    expect(page.get_by_label("Reason for the author")).to_have_value(
        "Use plan -lock; see\nsupport page 5"
    )
    press(page, "Escape")
    on_top(page, "Frozen lock")
    press(page, "ArrowLeft")
    page.get_by_label("Reason for the author").focus()
    assert status(node, units["Frozen lock"]) == "pending"
    press(page, "Control+Enter")
    on_top(page, "Noisy log")
    told = item(node, units["Frozen lock"])
    assert (told["status"], told["reason"]) == ("rejected", "Use plan -lock; see\nsupport page 5")


def test_two_clicks_in_one_place_decide_and_the_tier_says_who_finds_it(node, visit):
    units = stage(node, "Frozen lock", "Noisy log", "Open port")
    page = visit(node, "rita").page
    on_top(page, "Frozen lock")
    choice(page, "Approve").dblclick()
    on_top(page, "Noisy log")
    choice(page, "Approve").click()
    public = page.get_by_label("Public")
    public.check()
    press(page, "Escape")
    choice(page, "Approve").click()
    expect(page.get_by_label("Private")).to_be_checked()
    public.check()
    choice(page, "Confirm: approve and publish").click()
    on_top(page, "Open port")
    assert agents_find(node, "Frozen lock")
    assert not agents_find(node, "Frozen lock", key=None)
    assert agents_find(node, "Noisy log", key=None)

    box = page.locator(".card .prose").first.bounding_box()
    page.mouse.move(box["x"] + 2, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + 320, box["y"] + 8, steps=5)
    page.mouse.up()
    assert page.evaluate("getSelection().toString()").startswith("The lock row")
    undisplaced(page)
    unchosen(page)
    choice(page, "Reject").click()
    choice(page, "Skip").click()
    choice(page, "Confirm: skip").click()
    finished(page, "1 unit skipped and still pending", "2 decided, 0 rejected, 2 approved")
    assert status(node, units["Open port"]) == "pending"


def test_the_card_shows_all_that_a_decision_needs(node, visit):
    known = node.propose("Terraform state lock survives a killed apply", key="cleo")
    node.decide(known)
    unit = node.propose(
        "Terraform state lock survives a killed pipeline",
        domains=["terraform", "state"],
        context={"languages": ["hcl", "go"], "frameworks": ["terragrunt"], "pattern": "infra"},
        extensions={"vendor:seen": 3},
    )
    node.decide(unit)
    flag = {"reason": "stale", "detail": "Fixed in 1.9"}
    assert node.call("POST", f"/knowledge/{unit['id']}/flags", flag, key="cleo")[0] == 201
    node.decide(unit, "reopen")
    page = visit(node, "rita").page
    on_top(page, "Terraform state lock survives a killed pipeline")
    card = page.get_by_role("article")
    for text in (
        "The lock row stays until it is removed by hand.",
        "Run force-unlock with the lock id before applying again.",
        "proposed just now by carl",
        "Languages hcl, go",
        "Frameworks terragrunt",
        "Pattern infra",
        "Fixed in 1.9",
    ):
        expect(card).to_contain_text(re.compile(text.replace(" ", r"\s*")))
    expect(card.get_by_role("list", name="Tags").get_by_role("listitem")).to_have_text(
        ["state", "terraform"]
    )
    expect(card.locator(".evidence")).to_have_text(re.compile(r"^0\.\d\d confidence · 1 conf"))
    expect(card.locator(".flags li")).to_contain_text("stale")
    card.get_by_text("Extensions").click()
    expect(card.get_by_text('"vendor:seen": 3')).to_be_visible()
    alike = page.get_by_role("complementary", name="Similar units").get_by_role("listitem")
    expect(alike).to_have_count(1)
    expect(alike).to_contain_text(re.compile(r"\d+ %\s*approved\s*Terraform state lock"))
    alike.get_by_role("link").click()
    expect(page).to_have_url(f"{node.url}/#/units/{known['id']}")


def test_a_unit_edited_and_approved_is_found_by_its_new_words_only(node, visit):
    unit = node.propose("Zebra caches outlive a deploy", domains=["zebra"])
    page = visit(node, "rita").page
    on_top(page, "Zebra caches outlive a deploy")
    press(page, "e")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Summary").fill("Quagga caches outlive a deploy")
    dialog.get_by_label("Tags").fill("Quagga, cache")
    press(page, "Escape")
    expect(dialog).to_be_hidden()
    on_top(page, "Zebra caches outlive a deploy")
    page.get_by_role("button", name="Edit").click()
    expect(dialog.get_by_label("Summary")).to_have_value("Quagga caches outlive a deploy")
    dialog.get_by_role("button", name="Save").click()
    on_top(page, "Quagga caches outlive a deploy")
    said(page, "Saved")
    changes = page.get_by_role("article").locator(".changes")
    expect(changes.locator("del").first).to_have_text("Zebra")
    expect(changes.locator("ins").first).to_have_text("Quagga")
    expect(page.get_by_role("article")).to_contain_text("Edit 1 by rita")
    waiting(page, 1)
    assert node.finds(q="quagga") == []
    press(page, "ArrowRight", "Space")
    finished(page)
    assert node.finds(q="quagga") == node.finds(domains="quagga") == [unit["id"]]
    assert node.finds(q="zebra") == node.finds(domains="zebra") == []


def test_a_reason_reaches_the_author_and_is_at_hand_for_the_next_one(node, visit):
    stage(node, "Frozen lock", "Noisy log")
    page = visit(node, "rita").page
    reason = "Not so since 1.9"
    choice(page, "Reject").click()
    page.get_by_label("Reason for the author").fill(reason)
    choice(page, "Skip").click()
    choice(page, "Reject").click()
    expect(page.get_by_label("Reason for the author")).to_have_value(reason)
    choice(page, "Confirm: reject").click()
    on_top(page, "Noisy log")
    press(page, "ArrowLeft")
    page.get_by_role("group", name="Recent reasons").get_by_role("button", name=reason).click()
    expect(page.get_by_label("Reason for the author")).to_be_focused()
    page.keyboard.type(", see the notes")
    choice(page, "Confirm: reject").click()
    finished(page, tally="2 decided, 2 rejected, 0 approved")
    assert not agents_find(node, "Frozen lock")

    mine = visit(node, "carl", "proposals").page.get_by_role("main").locator("ul.rows > li")
    expect(mine).to_have_count(2)
    expect(mine.first).to_contain_text(re.compile(r"rejected\s*Noisy log"))
    expect(mine.first).to_contain_text("rejected by rita")
    expect(mine.first).to_contain_text(f"{reason}, see the notes")
    expect(mine.last.locator("blockquote")).to_have_text(reason)


def test_the_page_works_below_a_prefix_of_a_reverse_proxy(make_node, visit, proxy):
    node = make_node(CQ_TRUSTED_PROXIES="1")
    stage(node, "Frozen lock", "Noisy log")
    below = proxy(node.url, prefix="/cq")
    behind = Node(node.process, node.keys)
    behind.url = f"{below.url}/cq"
    rita = visit(behind, "rita")
    page = rita.page
    on_top(page, "Frozen lock")
    press(page, "ArrowRight", "Enter")
    on_top(page, "Noisy log")
    assert agents_find(node, "Frozen lock")
    page.get_by_role("button", name=re.compile("^rita")).click()
    page.get_by_role("link", name="API document").click()
    expect(page.locator(".swagger-ui .info .title")).to_contain_text("cq")
    page.go_back()
    on_top(page, "Noisy log")
    assert page.url.startswith(f"{below.url}/cq/")
