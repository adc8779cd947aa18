"""A unit's own page: what its state allows, its history, and what agents see after each step."""

import random
import re
from itertools import pairwise

from playwright.sync_api import expect


def summary(page):
    return page.locator("#unit-summary")


def badges(page):
    return page.locator(".card > .row").first.locator(".badge")


def note(page):
    return page.locator("main .slot[role=status] .note")


def actions(page):
    """The names of the buttons under the unit."""
    return page.locator(".card > .row").last.get_by_role("button")


def press(page, name, reason=None):
    """Press a button of the card and the same one in the dialog that asks."""
    actions(page).filter(has_text=name).click()
    dialog = page.get_by_role("dialog", name=f"{name} this unit?")
    if reason:
        dialog.get_by_label("Reason (optional)").fill(reason)
    dialog.get_by_role("button", name=name).click()


def test_a_pending_unit_is_rejected_reopened_edited_and_approved_on_its_page(node, visit):
    unit = node.propose("The lock stays", key="rita")
    page = visit(node, "rita", f"units/{unit['id']}").page
    expect(summary(page)).to_have_text("The lock stays")
    expect(page).to_have_title("The lock stays · cq")
    expect(badges(page)).to_have_text(["pending"])
    expect(actions(page)).to_have_text(["Approve", "Publish", "Reject", "Edit"])
    waiting = page.get_by_role("link", name="Review").locator(".count")
    expect(waiting).to_have_text(re.compile("^1"))

    press(page, "Reject", "Which lock?")
    expect(note(page)).to_have_text("Rejected.")
    expect(summary(page)).to_be_focused()
    expect(badges(page)).to_have_text(["rejected"])
    expect(actions(page)).to_have_text(["Reopen"])
    expect(waiting).to_be_hidden()
    mine = node.call("GET", "/users/me/proposals", token=node.token("rita"))[1]["items"]
    assert [(item["status"], item["reason"]) for item in mine] == [("rejected", "Which lock?")]

    press(page, "Reopen")
    expect(note(page)).to_have_text("Reopened.")
    expect(badges(page)).to_have_text(["pending"])
    expect(page.locator(".facts")).not_to_contain_text("Which lock?")

    actions(page).filter(has_text="Edit").click()
    dialog = page.get_by_role("dialog", name="Edit this unit")
    dialog.get_by_label("Summary").fill("The state lock stays after a crash")
    dialog.get_by_label("Tags").fill("terraform, state, locking")
    dialog.get_by_role("button", name="Save").click()
    expect(note(page)).to_have_text("Saved.")
    expect(summary(page)).to_have_text("The state lock stays after a crash")
    expect(summary(page)).to_be_focused()
    changes = page.locator(".changes")
    expect(changes.locator("dt")).to_have_text(["Summary", "Tags"])
    expect(changes.locator("ins")).to_have_text(["state ", " after a crash", ", locking"])
    assert node.finds(domains="locking") == []

    actions(page).filter(has_text="Approve").click()
    expect(note(page)).to_have_text("Approved.")
    expect(badges(page)).to_have_text(["approved"])
    expect(actions(page)).to_have_text(["Retire", "Supersede", "Reopen"])
    assert node.finds(domains="locking") == [unit["id"]]
    assert node.finds(domains="locking", key=None) == []

    press(page, "Reopen", "For everybody, rather")
    expect(badges(page)).to_have_text(["pending"])
    assert node.finds(domains="locking") == []
    actions(page).filter(has_text="Publish").click()
    expect(note(page)).to_have_text("Approved and published.")
    assert node.finds(domains="locking", key=None) == [unit["id"]]

    steps = page.locator(".timeline li")
    expect(steps).to_have_text(
        [
            "proposed by rita, just now by an agent's key",
            "rejected by rita, just now in this page, their own proposalWhich lock?",
            "reopened by rita, just now in this page, their own proposal",
            "edited by rita, just now in this page, their own proposal",
            "approved by rita, just now in this page, their own proposal",
            "reopened by rita, just now in this page, their own proposalFor everybody, rather",
            "approved and published by rita, just now in this page, their own proposal",
        ]
    )


def test_a_disputed_unit_is_kept_edited_retired_and_superseded_on_its_page(node, visit):
    unit = node.propose("Lock outlives a killed apply")
    heir = node.propose("Lock outlives a killed apply, and how to be rid of it")
    other = node.propose("Lock outlives a killed apply, not decided")
    for each in (unit, heir):
        node.decide(each)
    votes = f"/knowledge/{unit['id']}"
    assert node.call("POST", f"{votes}/confirmations", {}, key="ada")[0] == 201
    wrong = {"reason": "incorrect", "detail": "Not since version 2"}
    assert node.call("POST", f"{votes}/flags", wrong, key="cleo")[0] == 201
    again = {"reason": "duplicate", "duplicate_of": heir["id"]}
    assert node.call("POST", f"{votes}/flags", again, key="ada")[0] == 201

    page = visit(node, "rita", f"units/{unit['id']}").page
    expect(badges(page)).to_have_text(["approved", "disputed"])
    expect(actions(page)).to_have_text(["Keep", "Edit", "Retire", "Supersede", "Reopen"])
    flags = page.locator(".flags li")
    expect(flags).to_have_text(
        [
            "incorrect by cleo just nowNot since version 2",
            f"duplicate by ada just now of {heir['id']}",
        ]
    )
    press(page, "Keep", "Still so in version 3")
    expect(note(page)).to_have_text("Kept.")
    expect(badges(page)).to_have_text(["approved"])
    expect(flags.locator(".quiet")).to_have_text(["answered by rita just now"] * 2)
    assert node.finds(domains="state") == [heir["id"], unit["id"]]

    # Flagged anew it is disputed anew; an edit answers it, too, and agents read the new words.
    stale = {"reason": "stale", "detail": "Version 4 is out"}
    assert node.call("POST", f"{votes}/flags", stale, key="cleo")[0] == 201
    page.reload()
    expect(badges(page)).to_have_text(["approved", "disputed"])
    expect(flags.locator(".quiet")).to_have_count(2)
    actions(page).filter(has_text="Edit").click()
    dialog = page.get_by_role("dialog", name="Edit this unit")
    dialog.get_by_label("Action").fill("Run force-unlock, before version 4.")
    dialog.get_by_role("button", name="Save").click()
    expect(badges(page)).to_have_text(["approved"])
    expect(flags.locator(".quiet")).to_have_count(3)
    served = node.call("GET", votes, key="carl")[1]
    assert served["insight"]["action"] == "Run force-unlock, before version 4."

    press(page, "Retire")
    expect(badges(page)).to_have_text(["retired"])
    expect(actions(page)).to_have_text(["Reopen"])
    assert node.finds(domains="state") == [heir["id"]]
    press(page, "Reopen")
    actions(page).filter(has_text="Approve").click()
    expect(badges(page)).to_have_text(["approved"])
    assert set(node.finds(domains="state")) == {heir["id"], unit["id"]}

    # Only what is approved may take its place. All of it by keyboard.
    actions(page).filter(has_text="Supersede").press("Enter")
    dialog = page.get_by_role("dialog", name="Supersede this unit")
    field = dialog.get_by_label("Id of the approved unit that replaces it")
    expect(field).to_be_focused()
    suggested = dialog.get_by_role("button", name="Lock outlives")
    expect(suggested).to_have_text(["Lock outlives a killed apply, and how to be rid of it"])
    page.keyboard.press("Escape")
    expect(actions(page).filter(has_text="Supersede")).to_be_focused()
    page.keyboard.press("Enter")
    suggested.press("Enter")
    expect(field).to_be_focused()
    expect(field).to_have_value(heir["id"])
    page.keyboard.press("Enter")
    expect(note(page)).to_have_text("Superseded.")
    expect(summary(page)).to_be_focused()
    expect(badges(page)).to_have_text(["superseded"])
    expect(actions(page)).to_have_count(0)
    assert node.finds(domains="state") == [heir["id"]]
    assert node.call("GET", votes, key="carl")[0] == 404

    events = page.locator(".timeline li strong")
    steps = ["proposed", "approved", "kept", "edited", "retired", "reopened", "approved"]
    expect(events).to_have_text([*steps, "superseded"])
    expect(page.locator(".timeline li").nth(1)).to_have_text(
        "approved by rita, just now by a program"
    )
    expect(page.locator(".timeline li").nth(2)).to_contain_text("Still so in version 3")
    expect(page.get_by_role("main")).to_contain_text("duplicate 1, incorrect 1, stale 1.")
    page.get_by_role("article").get_by_role("link", name=heir["id"]).first.click()
    expect(summary(page)).to_have_text("Lock outlives a killed apply, and how to be rid of it")
    expect(page.locator(".evidence").first).to_contain_text("2 confirmations")
    assert node.call("GET", f"/review/{other['id']}", token=node.token("rita"))[1]["status"] == (
        "pending"
    )


def test_whoever_is_second_is_told_and_sees_what_the_unit_is_now(node, visit):
    unit = node.propose("Two reviewers look at this")
    someone = visit(node, "rita", f"units/{unit['id']}")
    someone.expect_refusal(409)
    page = someone.page
    expect(badges(page)).to_have_text(["pending"])
    node.decide(unit, "reject", by="ada", reason="Unclear")
    actions(page).filter(has_text="Approve").click()
    expect(note(page)).to_contain_text("already rejected by ada")
    expect(summary(page)).to_be_focused()
    expect(badges(page)).to_have_text(["rejected"])
    expect(actions(page)).to_have_text(["Reopen"])
    assert node.finds(domains="state") == []

    # In a dialog as well: it closes over what is known now.
    node.decide(unit, "reopen", by="ada")
    press(page, "Reopen")
    expect(note(page)).to_contain_text("Knowledge unit is pending")
    expect(badges(page)).to_have_text(["pending"])

    # What the other one wrote is not overwritten.
    words = {"insight": {"summary": "Ada wrote this meanwhile"}}
    path = f"/review/{unit['id']}"
    assert node.call("PATCH", path, words, token=node.token("ada"))[0] == 200
    actions(page).filter(has_text="Edit").click()
    dialog = page.get_by_role("dialog", name="Edit this unit")
    dialog.get_by_label("Summary").fill("Rita writes over it")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_contain_text("edited meanwhile")
    dialog.get_by_role("button", name="Cancel").click()
    expect(note(page)).to_have_text("It was changed meanwhile.")
    expect(summary(page)).to_have_text("Ada wrote this meanwhile")


def test_an_unknown_id_is_told_and_leads_to_the_list(node, visit):
    someone = visit(node, "rita", "units/ku_" + "0" * 32)
    someone.expect_refusal(404)
    page = someone.page
    expect(page.get_by_text("There is no unit of this id.")).to_be_visible()
    page.goto(f"{node.url}/#/units/%2e%2e%2fqueue")
    expect(page.get_by_text("There is no unit of this id.")).to_be_visible()
    page.get_by_role("main").get_by_role("link", name="All units").click()
    expect(page.get_by_role("heading", name="Units")).to_be_visible()


COMPARED = """async (pairs) => {
  const { compared } = await import("/parts/diff.js");
  return pairs.map(([before, after]) => compared(before, after));
}"""


def without(steps, kind):
    return "".join(text for step, text in steps if step != kind)


def test_a_difference_holds_both_texts_whole_and_keeps_what_did_not_change(node, visit):
    chance = random.Random(60)
    pieces = ["lock", "state", "terraform", "ab", "قفل", "\u00a0", " ", "  ", "\n\n", "\t", "."]

    def some():
        return "".join(chance.choices(pieces, k=chance.randrange(16)))

    pairs = [[some(), some()] for _ in range(500)]
    long = [f"word{place}" for place in range(1300)]
    mended = [*long[:10], "mended", *long[11:]]
    pairs += [
        ["run the first one now", "run a second try now"],
        ["one keeps this two", "uno keeps this dos"],
        [" ".join(long), " ".join(mended)],
        ["x " * 4000, "y " * 4000],
    ]
    page = visit(node).page
    found = page.evaluate(COMPARED, pairs)
    for (before, after), steps in zip(pairs, found, strict=True):
        assert without(steps, "new") == before
        assert without(steps, "gone") == after
        assert all(text for _, text in steps)
        assert all(one[0] != next[0] for one, next in pairwise(steps))
    # Words that were changed one after the other read on.
    assert found[500] == [
        ["same", "run "],
        ["gone", "the first one"],
        ["new", "a second try"],
        ["same", " now"],
    ]
    assert [kind for kind, _ in found[501]] == ["gone", "new", "same", "gone", "new"]
    assert found[501][2] == ["same", " keeps this "]
    assert [step for step in found[502] if step[0] != "same"] == [
        ["gone", "word10"],
        ["new", "mended"],
    ]
