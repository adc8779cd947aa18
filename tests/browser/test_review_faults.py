"""Reviewing when others decide meanwhile, when the server is in trouble, and after a slip."""

import re

from playwright.sync_api import expect

from tests.browser.deck import (
    agents_find,
    choice,
    chosen,
    finished,
    item,
    on_top,
    press,
    said,
    stage,
    status,
    token,
    trouble,
    unchosen,
    undisplaced,
    waiting,
)

QUEUE = re.compile(r"/review/queue\?limit=20")
DECISION = re.compile(r"/(approve|reject)$")


def cut(route):
    route.abort("connectionrefused")


def busy(route):
    route.fulfill(status=503, json={"detail": "The database is busy"})


def deaf(route):
    """The request arrives, its answer is lost."""
    route.fetch()
    route.abort("connectionrefused")


def test_the_second_reviewer_hears_who_decided_and_goes_on(node, visit):
    units = stage(node, "Frozen lock", "Noisy log", "Open port")
    second = visit(node, "rita")
    first = visit(node, "ada").page
    second.expect_refusal(409)
    page = second.page
    on_top(page, "Frozen lock")
    on_top(first, "Frozen lock")
    press(page, "ArrowLeft")
    press(first, "ArrowRight", "Space")
    on_top(first, "Noisy log")
    press(page, "Space")
    on_top(page, "Noisy log")
    said(page, "“Frozen lock”", "already approved by ada at")
    undisplaced(page)
    unchosen(page)
    assert status(node, units["Frozen lock"]) == "approved"
    press(page, "ArrowLeft", "Space")
    on_top(page, "Open port")

    # What somebody else has decided anew is not for undoing.
    node.decide({"id": units["Noisy log"]}, "reopen", by="ada")
    node.decide({"id": units["Noisy log"]}, "reject", by="ada", reason="Not so")
    press(page, "u")
    said(page, "could not be taken back", "rejected by ada")
    on_top(page, "Open port")
    press(page, "ArrowRight", "Space")
    finished(page, tally="2 decided, 1 rejected, 1 approved")
    assert item(node, units["Noisy log"])["reason"] == "Not so"


def test_words_that_were_changed_meanwhile_are_not_decided_unread(node, visit):
    unit = stage(node, "Frozen lock")["Frozen lock"]
    rita = visit(node, "rita")
    rita.expect_refusal(409)
    page = rita.page
    on_top(page, "Frozen lock")
    words = {"insight": {"summary": "Melted lock"}}
    assert node.call("PATCH", f"/review/{unit}", words, token=token(node, "ada"))[0] == 200
    press(page, "ArrowRight", "Space")
    on_top(page, "Melted lock")
    said(page, "edited meanwhile", "These are its words now")
    expect(page.locator(".changes ins")).to_have_text("Melted")
    unchosen(page)
    assert status(node, unit) == "pending"
    press(page, "ArrowLeft", "Space")
    finished(page)
    assert status(node, unit) == "rejected"


def test_a_decision_that_the_server_does_not_answer_stays_in_place(node, visit):
    stage(node, "Frozen lock", "Noisy log", "Open port")
    rita = visit(node, "rita")
    rita.expect_no_server()
    rita.expect_refusal(409, 503)
    page = rita.page
    on_top(page, "Frozen lock")
    page.route(DECISION, cut)
    choice(page, "Reject").click()
    page.get_by_label("Reason for the author").fill("Not so since 1.9")
    choice(page, "Confirm: reject").click()
    expect(trouble(page)).to_contain_text("The server does not answer. Whether it was decided")
    expect(page.get_by_role("heading", name="Frozen lock")).to_be_visible()
    expect(page.get_by_label("Reason for the author")).to_have_value("Not so since 1.9")
    chosen(page, "reject")
    page.unroute(DECISION)
    page.route(DECISION, busy)
    choice(page, "Confirm: reject").click()
    expect(trouble(page)).to_have_text("The database is busy. Nothing was decided.")
    page.unroute(DECISION)
    choice(page, "Confirm: reject").click()
    on_top(page, "Noisy log")
    expect(trouble(page)).to_be_empty()

    # The answer is lost, not the decision: trying again finds it done, and by whom.
    page.route(DECISION, deaf)
    press(page, "p", "Space")
    expect(trouble(page)).to_contain_text("trying again is safe")
    page.unroute(DECISION)
    press(page, "Space")
    on_top(page, "Open port")
    said(page, "Approved and published: Noisy log")
    assert agents_find(node, "Noisy log", key=None)

    # The decision is known, what comes next is not.
    page.route(QUEUE, cut)
    press(page, "ArrowRight", "Space")
    again = page.get_by_role("button", name="Try again")
    expect(again).to_be_focused()
    said(page, "Approved: Open port")
    expect(page.get_by_role("article")).to_have_count(0)
    page.unroute(QUEUE)
    finished(page, tally="3 decided, 1 rejected, 2 approved")
    expect(page.get_by_text("The server is not reached")).to_be_hidden()


def test_a_queue_that_cannot_be_read_is_no_empty_queue(node, visit):
    stage(node, "Frozen lock")
    rita = visit(node)
    rita.expect_refusal(503)
    rita.page.route(QUEUE, busy)
    page = rita.sign_in("rita")
    expect(page.get_by_role("alert").filter(has_text="The database is busy")).to_be_visible()
    expect(page.get_by_text("All caught up")).to_have_count(0)
    press(page, "ArrowRight", "s", "e", "u")
    page.unroute(QUEUE)
    page.get_by_role("button", name="Try again").click()
    on_top(page, "Frozen lock")
    waiting(page, 1)


def test_the_last_decision_is_taken_back_by_key_and_by_button(node, visit):
    units = stage(node, "Frozen lock", "Noisy log")
    page = visit(node, "rita").page
    undo = page.get_by_role("button", name=re.compile("^Undo"))
    on_top(page, "Frozen lock")
    expect(undo).to_have_count(0)
    press(page, "ArrowRight", "Space")
    on_top(page, "Noisy log")
    assert agents_find(node, "Frozen lock")
    waiting(page, 1)
    press(page, "u")
    on_top(page, "Frozen lock")
    said(page, "No longer approved")
    expect(undo).to_have_count(0)
    assert not agents_find(node, "Frozen lock")
    waiting(page, 2)
    press(page, "ArrowLeft", "Space")
    on_top(page, "Noisy log")
    press(page, "s")
    finished(page, "1 unit skipped and still pending", "1 decided, 1 rejected, 0 approved")
    undo.click()
    on_top(page, "Frozen lock")
    assert status(node, units["Frozen lock"]) == "pending"
    press(page, "ArrowRight", "Space")
    finished(page, "1 unit skipped and still pending", "1 decided, 0 rejected, 1 approved")

    # Elsewhere and back, it is still there.
    page.get_by_role("main").get_by_role("link", name="Dashboard").click()
    expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
    page.go_back()
    finished(page, "1 unit skipped and still pending", "1 decided, 0 rejected, 1 approved")
    press(page, "u")
    on_top(page, "Frozen lock")
    press(page, "ArrowRight", "Space")

    # While what comes next is still on its way: when that comes, it takes no one's place.
    finished(page, "1 unit skipped and still pending")
    page.get_by_role("button", name="Go through them again").click()
    on_top(page, "Noisy log")
    held, asked = [], []
    page.on("request", lambda request: QUEUE.search(request.url) and asked.append(request))
    page.route(QUEUE, lambda route: held.append(route))
    press(page, "ArrowRight", "Space")
    said(page, "Approved: Noisy log")
    expect(page.get_by_text("Loading…")).to_be_visible()
    press(page, "U")
    on_top(page, "Noisy log")
    assert not agents_find(node, "Noisy log")
    with page.expect_response(QUEUE):
        held.pop().continue_()
    page.unroute(QUEUE)
    page.evaluate("fetch('/api/v1/health').then((answer) => answer.text())")
    on_top(page, "Noisy log")
    press(page, "ArrowRight")
    chosen(page, "approve")
    assert len(asked) == 1
    press(page, "Space")
    finished(page, tally="2 decided, 0 rejected, 2 approved")
    waiting(page, 0)


def test_of_45_pending_units_25_skipped_hide_none_of_the_others(node, visit):
    names = [f"Unit number {number:02}" for number in range(45)]
    stage(node, *names)
    page = visit(node, "rita").page
    waiting(page, 45)
    for name in names[:25]:
        on_top(page, name)
        press(page, "s")
    on_top(page, names[25])
    page.get_by_label("Quick mode").check()
    for name in names[26:]:
        press(page, "ArrowRight")
        on_top(page, name)
    # It comes while the last one is looked at.
    stage(node, "Late comer")
    press(page, "ArrowRight")
    on_top(page, "Late comer")
    press(page, "ArrowLeft")
    finished(page, "25 units skipped and still pending", "21 decided, 1 rejected, 20 approved")
    waiting(page, 25)
    assert all(agents_find(node, name) for name in names[25:])
    page.get_by_role("button", name="Go through them again").click()
    on_top(page, names[0])


def test_who_may_not_decide_is_told_and_loses_nothing(make_node, visit):
    node = make_node(CQ_SELF_REVIEW="0", CQ_HUMAN_REVIEW="1")
    own = stage(node, "Frozen lock", key="rita")["Frozen lock"]
    other = stage(node, "Noisy log")["Noisy log"]
    rita = visit(node, "rita")
    rita.expect_refusal(403)
    page = rita.page
    on_top(page, "Frozen lock")
    choice(page, "Reject").click()
    page.get_by_label("Reason for the author").fill("Not so since 1.9")
    choice(page, "Confirm: reject").click()
    expect(trouble(page)).to_contain_text("review their own proposals. Nothing was decided.")
    expect(page.get_by_label("Reason for the author")).to_have_value("Not so since 1.9")
    chosen(page, "reject")
    press(page, "Escape", "s")
    on_top(page, "Noisy log")
    path = f"/review/{other}/approve"
    assert node.call("POST", path, {}, token=node.token("ada"))[0] == 403
    press(page, "ArrowRight", "Space")
    finished(page, "1 unit skipped and still pending", "1 decided, 0 rejected, 1 approved")
    assert agents_find(node, "Noisy log")
    assert status(node, own) == "pending"
