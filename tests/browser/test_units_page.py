"""The list of all units: its filters, its pages, searching as agents do, deciding many at once."""

import json
import re
from urllib.request import urlopen

import pytest
from playwright.sync_api import expect

from tests.cast import HASHED, alter, eventually

OLD = "2020-01-01T00:00:00.000000Z"


def titles(page):
    """The links of the rows; `to_have_text` with a list claims all of them in this order."""
    return page.locator(".rows .title a")


def note(page):
    return page.locator("main .slot[role=status] .note")


@pytest.fixture
def many(node):
    """`many(60)` proposes so many units and gives their summaries, newest first."""

    def propose(count, name="Unit"):
        units = [node.propose(f"{name} {place:03}") for place in range(count)]
        return [unit["insight"]["summary"] for unit in reversed(units)]

    return propose


def test_each_filter_stands_in_the_address_for_reload_back_button_and_deep_link(
    node, visit, make_app
):
    proven = node.propose("Proven")
    node.decide(proven)
    for key in ("ada", "cleo"):
        assert node.call("POST", f"/knowledge/{proven['id']}/confirmations", {}, key=key)[0] == 201
    stale = node.propose("Stale", domains=["c++"])
    node.decide(stale)
    alter(make_app(), "UPDATE units SET last_confirmed = :t WHERE id = :id", t=OLD, id=stale["id"])
    disputed = node.propose("Disputed")
    node.decide(disputed)
    flagged = {"reason": "incorrect"}
    assert node.call("POST", f"/knowledge/{disputed['id']}/flags", flagged, key="ada")[0] == 201
    rejected = node.propose("Rejected", domains=["c", "state"])
    node.decide(rejected, "reject")
    node.propose("Of Cleo & her agents", key="cleo")

    # What one sends to a colleague opens for whoever signs in first.
    page = visit(node, "rita", "units?status=approved&domain=State").page
    expect(titles(page)).to_have_text(["Disputed", "Proven"])
    expect(page.get_by_label("Status")).to_have_value("approved")
    expect(page.get_by_label("Tag", exact=True)).to_have_value("State")
    page.get_by_role("link", name="All units").click()
    everything = ["Of Cleo & her agents", "Rejected", "Disputed", "Stale", "Proven"]
    expect(titles(page)).to_have_text(everything)

    steps = [
        ("Status", "rejected", "status=rejected", ["Rejected"]),
        ("Tag", " C++ ", "domain=C%2B%2B", ["Stale"]),
        ("Author", "cleo", "author=cleo", ["Of Cleo & her agents"]),
        ("Confidence", "0.6-0.8", "confidence=0.6-0.8", ["Proven"]),
        ("Another look", "disputed", "look=disputed", ["Disputed"]),
        ("Another look", "stale", "look=stale", ["Stale"]),
        ("Tag", "no such tag", "domain=no+such+tag", []),
    ]
    for label, value, address, found in steps:
        page.get_by_role("link", name="All units").click()
        expect(titles(page)).to_have_text(everything)
        control = page.get_by_label(label, exact=True)
        if label in ("Tag", "Author"):
            control.fill(value)
            control.press("Enter")
        else:
            control.select_option(value)
            page.get_by_role("button", name="Show").click()
        expect(page).to_have_url(f"{node.url}/#/units?{address}")
        expect(titles(page)).to_have_text(found)
        page.reload()
        expect(titles(page)).to_have_text(found)
        expect(page.get_by_label(label, exact=True)).to_have_value(value.strip())
    expect(page.get_by_role("main")).to_contain_text("No unit passes these filters.")
    for _, _, address, found in reversed(steps[-3:-1]):
        page.go_back()
        expect(titles(page)).to_have_text(everything)
        page.go_back()
        expect(page).to_have_url(f"{node.url}/#/units?{address}")
        expect(titles(page)).to_have_text(found)

    # An address that nobody made by these controls is no reason to break.
    page.goto(f"{node.url}/#/units?confidence=constructor&look=never")
    expect(titles(page)).to_have_text(everything)


def test_a_long_list_goes_on_while_somebody_else_decides_and_200_are_the_most_at_once(
    node, visit, many
):
    summaries = many(204)
    someone = visit(node, "rita", "units?status=pending")
    someone.expect_no_server()
    page = someone.page
    expect(titles(page)).to_have_text(summaries[:50])
    token = node.token("ada")
    listed = node.call("GET", "/review/units", token=token, status="pending")[1]
    ids = [item["knowledge_unit"]["id"] for item in listed]
    # Of those shown the first and the last, the next one and one that comes later are decided.
    gone = [0, 49, 50, 70]
    body = {"decision": "approve", "ids": [ids[place] for place in gone]}
    assert node.call("POST", "/review/bulk", body, token=token)[0] == 200
    node.propose("Newer than all that is shown")

    page.route("**/review/units?*", lambda route: route.abort("internetdisconnected"))
    more = page.get_by_role("button", name="Show more")
    more.focus()
    more.press("Enter")
    expect(page.get_by_role("button", name="Try again")).to_be_focused()
    page.unroute("**/review/units?*")
    page.keyboard.press("Enter")
    rest = [summary for place, summary in enumerate(summaries) if place not in gone]
    shown = summaries[:50] + rest[48:]
    for count in (100, 150, 200):
        expect(titles(page)).to_have_text(shown[:count])
        # The first of the new ones has the focus.
        expect(page.get_by_label(f"Choose “{shown[count - 50]}”")).to_be_focused()
        more.press("Enter")
    expect(titles(page)).to_have_text(shown)
    expect(more).to_have_count(0)

    page.get_by_label("All shown").check()
    approve = page.get_by_role("button", name="Approve")
    expect(page.get_by_text("202 chosen; 200 are the most at once")).to_be_visible()
    expect(approve).to_be_disabled()
    for summary in shown[-2:]:
        page.get_by_label(f"Choose “{summary}”").uncheck()
    expect(page.get_by_text("200 chosen", exact=True)).to_be_visible()
    approve.click()
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    expect(note(page)).to_contain_text("Approved: 198 units.")
    expect(note(page).get_by_role("listitem")).to_contain_text([shown[0], shown[49]])
    expect(titles(page)).to_have_text(["Newer than all that is shown", *shown[-2:]])


def test_sixty_are_rejected_at_once_and_all_come_back_with_one_entry_each(node, visit, many):
    """Inputs 60."""
    summaries = many(60)
    page = visit(node, "rita", "units?status=pending").page
    waiting = page.get_by_role("link", name="Review").locator(".count")
    expect(waiting).to_have_text(re.compile("^60"))
    everyone = page.get_by_label("All shown")
    everyone.check()
    expect(page.get_by_text("50 chosen")).to_be_visible()
    page.get_by_role("button", name="Show more").click()
    expect(titles(page)).to_have_text(summaries)
    # What came later was not chosen by that.
    expect(everyone).not_to_be_checked()
    expect(page.get_by_text("50 chosen")).to_be_visible()
    everyone.check()
    page.get_by_role("button", name="Reject").click()
    dialog = page.get_by_role("dialog", name="Reject 60 units?")
    dialog.get_by_label("Reason (optional)").fill("All made from one wrong log")
    dialog.get_by_role("button", name="Reject").click()
    expect(note(page)).to_contain_text("Rejected: 60 units.")
    expect(page.get_by_role("main")).to_contain_text("No unit passes these filters.")
    expect(waiting).to_be_hidden()
    mine = node.call("GET", "/users/me/proposals", token=node.token("carl"), limit=100)[1]["items"]
    assert [(item["status"], item["reason"]) for item in mine] == [
        ("rejected", "All made from one wrong log")
    ] * 60

    page.get_by_role("button", name="Undo").click()
    expect(note(page)).to_have_text("Taken back: 60 units.")
    expect(titles(page)).to_have_text(summaries[:50])
    expect(waiting).to_have_text(re.compile("^60"))
    token = node.token("rita")
    for item in mine:
        id = item["knowledge_unit"]["id"]
        history = node.call("GET", f"/review/{id}/history", token=token)[1]
        told = [(event["type"], event["by"], event["channel"]) for event in history["events"]]
        assert told == [
            ("proposed", "carl", "key"),
            ("rejected", "rita", "page"),
            ("reopened", "rita", "page"),
        ]


def test_units_are_chosen_and_decided_by_keyboard_and_each_refusal_is_named(node, visit):
    first, second, third = (
        node.propose(f"{name} of three") for name in ("First", "Second", "Third")
    )
    page = visit(node, "rita", "units").page
    expect(titles(page)).to_have_text(["Third of three", "Second of three", "First of three"])
    approve = page.get_by_role("button", name="Approve")
    expect(approve).to_be_disabled()
    everyone = page.get_by_label("All shown")
    everyone.focus()
    page.keyboard.press("Space")
    expect(everyone).to_be_focused()
    page.keyboard.press("Tab")
    expect(approve).to_be_focused()
    node.decide(second, "reject", by="ada")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Approve 3 units?")).to_be_focused()
    page.keyboard.press("Escape")
    expect(approve).to_be_focused()
    assert node.finds(domains="state") == []
    page.keyboard.press("Enter")
    # To the reason, to Cancel, to the button that does it.
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(note(page)).to_be_focused()
    expect(note(page)).to_contain_text("Approved: 2 units.")
    expect(note(page)).to_contain_text("1 refused")
    refusal = note(page).get_by_role("listitem")
    expect(refusal).to_contain_text("Second of three")
    expect(refusal).to_contain_text("already rejected by ada")
    expect(refusal.get_by_role("link")).to_have_attribute("href", f"#/units/{second['id']}")
    assert set(node.finds(domains="state")) == {first["id"], third["id"]}
    assert node.finds(domains="state", key=None) == []

    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Undo")).to_be_focused()
    page.keyboard.press("Enter")
    expect(note(page)).to_be_focused()
    expect(note(page)).to_have_text("Taken back: 2 units.")
    assert node.finds(domains="state") == []

    # The rows tell the new states; what was chosen is chosen no more.
    expect(page.locator(".rows .badge")).to_have_text(["pending", "rejected", "pending"])
    expect(page.get_by_text("0 chosen")).to_be_visible()
    page.get_by_label("Choose “First of three”").press("Space")
    page.get_by_role("button", name="Publish").press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Publish").press("Enter")
    expect(note(page)).to_contain_text("Published: 1 unit.")
    assert node.finds(domains="state", key=None) == [first["id"]]
    expect(page.locator(".rows .badge")).to_have_text(["pending", "rejected", "approved"])
    for name in ("First", "Second"):
        page.get_by_label(f"Choose “{name} of three”").check()
    page.get_by_role("button", name="Reopen").click()
    page.get_by_role("dialog").get_by_role("button", name="Reopen").click()
    expect(note(page)).to_have_text("Reopened: 2 units.")
    expect(page.locator(".rows .badge")).to_have_text(["pending"] * 3)
    assert node.finds(domains="state") == []


@pytest.mark.parametrize("mode", ["semantic", "domain"])
def test_searching_shows_what_agents_find_why_and_by_what(make_node, visit, mode):
    node = make_node(**(HASHED if mode == "semantic" else {}))
    lock = node.propose("Terraform keeps the state lock after a killed apply")
    cache = node.propose("A pip cache of root hides new wheels", domains=["python"])
    hidden = node.propose("The state lock again, not decided yet")
    for unit in (lock, cache):
        node.decide(unit)

    def ready():
        with urlopen(f"{node.url}/ready") as answer:
            told = json.load(answer)
        return told["search"] == mode and told["embedder"].get("vectors", 2) == 2

    assert eventually(ready)
    page = visit(node, "rita", "units").page
    page.get_by_label("Ask as an agent would").fill("state lock after apply")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{node.url}/#/units?q=state+lock+after+apply")
    expect(titles(page)).to_have_text(["Terraform keeps the state lock after a killed apply"])
    by = "meaning, words and tags." if mode == "semantic" else "words and tags: meaning is off"
    told = page.get_by_role("main").locator(".quiet")
    expect(told.first).to_contain_text(f"1 approved unit, the best first. Searched by {by}")
    answer = node.call("GET", "/knowledge", key="carl", q="state lock after apply", explain=1)[1]
    assert [unit["id"] for unit in answer["data"]] == [lock["id"]]
    names = {
        "meaning": "meaning",
        "text": "words",
        "domain": "tags",
        "confidence": "confidence",
        "score": "score",
    }
    (parts,) = answer["explain"]
    assert ("meaning" in parts) == (mode == "semantic")
    why = [f"{label}{parts[name]:.2f}" for name, label in names.items() if name in parts]
    expect(page.locator(".parts > div")).to_have_text(why)

    # A tag that is asked for besides brings its units, and survives a reload.
    page.get_by_label("Tag", exact=True).fill("python")
    page.keyboard.press("Enter")
    expect(titles(page)).to_have_count(2)
    page.reload()
    expect(titles(page)).to_have_count(2)
    assert node.finds(q="state lock after apply", domains="python", limit=50) == [
        row.get_attribute("href").split("/")[-1] for row in titles(page).all()
    ]

    page.goto(f"{node.url}/#/units?q=zebra+crossing")
    expect(told.first).to_contain_text(f"Nothing is near enough to be an answer. Searched by {by}")
    expect(titles(page)).to_have_count(0)
    assert hidden["id"] not in node.finds(q="state lock again")
    page.go_back()
    expect(page).to_have_url(re.compile("domain=python"))
    expect(titles(page)).to_have_count(2)
