"""What needs another look: flagged units and those that nobody confirmed for long."""

import re

from playwright.sync_api import expect

from tests.cast import alter

OLD = "2020-01-01T00:00:00.000000Z"


def rows(page):
    return page.locator(".rows > li")


def badges(row):
    return row.locator(".title .badge")


def press(page, row, name, reason=None):
    """Press a button of a row and the same in the dialog, all by keyboard."""
    row.get_by_role("button", name=name).press("Enter")
    dialog = page.get_by_role("dialog", name=f"{name} this unit?")
    if reason:
        dialog.get_by_label("Reason (optional)").fill(reason)
    dialog.get_by_role("button", name=name).press("Enter")


def test_disputed_and_stale_units_are_kept_and_retired_from_the_list(node, visit, make_app):
    units = [node.propose(f"{name} unit") for name in ("Flagged", "Stale", "Both", "Late", "Good")]
    token = node.token("rita")
    body = {"decision": "approve", "ids": [unit["id"] for unit in units]}
    assert node.call("POST", "/review/bulk", body, token=token)[0] == 200
    flagged, stale, both, late, good = (unit["id"] for unit in units)
    wrong = {"reason": "incorrect", "detail": "Not since version 2"}
    for id in (flagged, both, late):
        assert node.call("POST", f"/knowledge/{id}/flags", wrong, key="cleo")[0] == 201
    again = {"reason": "duplicate", "duplicate_of": good}
    assert node.call("POST", f"/knowledge/{flagged}/flags", again, key="ada")[0] == 201
    alter(
        make_app(),
        "UPDATE units SET last_confirmed = :t WHERE id IN (:stale, :both)",
        t=OLD,
        stale=stale,
        both=both,
    )
    assert set(node.finds(domains="state", limit=50)) == {flagged, stale, both, late, good}

    someone = visit(node, "rita", "attention")
    someone.expect_refusal(409)
    page = someone.page
    waiting = page.get_by_role("link", name="Another look").locator(".count")
    note = page.locator("main .slot[role=status] .note")
    titles = page.locator(".rows .title a")
    expect(titles).to_have_text(["Flagged unit", "Stale unit", "Both unit", "Late unit"])
    expect(waiting).to_have_text(re.compile("^4"))
    for place, told in enumerate((["disputed"], ["stale"], ["disputed", "stale"], ["disputed"])):
        expect(badges(rows(page).nth(place))).to_have_text(told)
    expect(rows(page).first.locator(".flags li")).to_contain_text(
        ["Not since version 2", f"duplicate by ada just now of {good}"]
    )
    expect(rows(page).nth(1)).to_contain_text("last confirmed 2")
    expect(rows(page).nth(1).get_by_role("button")).to_have_text(["Keep", "Retire"])

    press(page, rows(page).nth(1), "Retire")
    expect(note).to_have_text("Retired: Stale unit")
    expect(page.get_by_role("link", name="Both unit")).to_be_focused()
    expect(waiting).to_have_text(re.compile("^3"))
    press(page, rows(page).first, "Keep", "Still so")
    expect(note).to_have_text("Kept: Flagged unit")
    expect(page.get_by_role("link", name="Both unit")).to_be_focused()
    expect(waiting).to_have_text(re.compile("^2"))
    assert set(node.finds(domains="state", limit=50)) == {flagged, both, late, good}

    # Somebody else answers the next but one meanwhile: that is told, and it goes, too.
    assert node.call("POST", f"/review/{late}/keep", {}, token=node.token("ada"))[0] == 200
    press(page, rows(page).nth(1), "Keep")
    expect(note).to_contain_text("Knowledge unit has no unanswered flag: Late unit")
    expect(titles).to_have_text(["Both unit"])
    expect(page.get_by_role("link", name="Both unit")).to_be_focused()

    # What is kept has its flags answered, and is fresh.
    press(page, rows(page).first, "Keep")
    empty = page.get_by_role("main").get_by_text("Nothing needs another look.")
    expect(empty).to_be_focused()
    expect(waiting).to_be_hidden()
    assert set(node.finds(domains="state", limit=50)) == {flagged, both, late, good}
    events = node.call("GET", f"/review/{flagged}/history", token=token)[1]["events"]
    assert [(event["type"], event["reason"]) for event in events] == [
        ("proposed", None),
        ("approved", None),
        ("kept", "Still so"),
    ]
    page.reload()
    expect(empty).to_be_visible()


def test_emptying_the_page_that_is_shown_brings_the_next_one(make_node, visit, make_app):
    node = make_node(CQ_STALE_AFTER="1d")
    units = [node.propose(f"Unit {place:02}") for place in range(22)]
    token = node.token("rita")
    ids = [unit["id"] for unit in units]
    body = {"decision": "approve", "ids": ids}
    assert node.call("POST", "/review/bulk", body, token=token)[0] == 200
    alter(make_app(), "UPDATE units SET last_confirmed = :t", t=OLD)
    page = visit(node, "rita", "attention").page
    expect(rows(page)).to_have_count(20)
    # All but one of those shown go by other hands.
    for id in ids[1:20]:
        assert node.call("POST", f"/review/{id}/retire", {}, token=token)[0] == 200
    page.evaluate(
        "document.querySelectorAll('.rows > li:not(:first-child)').forEach((row) => row.remove())"
    )
    press(page, rows(page).first, "Retire")
    expect(page.locator(".rows .title a")).to_have_text(["Unit 20", "Unit 21"])
    expect(page.get_by_role("link", name="Unit 20")).to_be_focused()
    expect(page.get_by_role("link", name="Another look").locator(".count")).to_have_text(
        re.compile("^2")
    )
    expect(page.get_by_role("button", name="Show more")).to_have_count(0)
