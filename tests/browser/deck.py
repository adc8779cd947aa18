"""What the tests of reviewing look at and press: the card on top, its choices, what is said."""

import re
from functools import cache

from playwright.sync_api import expect


def on_top(page, summary):
    """This unit is looked at, and the focus is on its heading."""
    expect(page.get_by_role("heading", name=summary, exact=True)).to_be_focused()


def choice(page, name):
    """The button of this name as it reads now, such as `Approve` or `Confirm: approve`."""
    group = page.get_by_role("group", name="Decide")
    return group.get_by_role("button", name=re.compile(f"^{re.escape(name)}$"))


def chosen(page, label):
    expect(choice(page, f"Confirm: {label}")).to_have_attribute("aria-pressed", "true")


def unchosen(page):
    expect(page.locator(".choice[aria-pressed=true]")).to_have_count(0)


def said(page, *texts):
    """The line above the card has these words; a screen reader is told."""
    for text in texts:
        expect(page.locator("main [role=status]").first).to_contain_text(text)


def trouble(page):
    """The line below the card that says what went wrong."""
    return page.locator(".stage > .problem[role=alert]")


def undisplaced(page):
    """The card stands where it was laid."""
    expect(page.locator(".card")).to_have_css("transform", "none")
    expect(page.locator(".card")).not_to_have_attribute("data-swipe", re.compile("."))


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def hold(page, key, times=4):
    """A key that is held down until it repeats."""
    for _ in range(times):
        page.keyboard.down(key)
    page.keyboard.up(key)


def finished(page, heading="All caught up", tally=None):
    expect(page.get_by_role("heading", name=heading)).to_be_focused()
    if tally:
        expect(page.locator(".rest")).to_contain_text(f"In this visit: {tally}.")


def waiting(page, count):
    """The number beside Review in the bar."""
    badge = page.get_by_role("navigation").get_by_role("link", name="Review").locator(".count")
    if count:
        expect(badge).to_have_text(re.compile(rf"^{count}\b"))
    else:
        expect(badge).to_be_hidden()


def stage(node, *names, key="carl"):
    """Pending units of these summaries, in this order, each found by its own tag: {name: id}."""
    return {name: node.propose(name, key, domains=[tag(name)])["id"] for name in names}


def tag(name):
    return name.lower().replace(" ", "-")


def agents_find(node, name, key="carl"):
    """Whether an agent that asks for the tag of this unit finds it; nobody's for key=None."""
    return bool(node.finds(key=key, domains=tag(name)))


@cache
def token(node, name="rita"):
    return node.token(name)


def item(node, id):
    """A unit as reviewers see it."""
    return node.call("GET", f"/review/{id}", token=token(node))[1]


def status(node, id):
    return item(node, id)["status"]
