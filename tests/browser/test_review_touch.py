"""Reviewing by touch: fingers on a phone's screen, as Chromium itself receives them."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import PHONE
from tests.browser.deck import (
    agents_find,
    choice,
    chosen,
    finished,
    on_top,
    said,
    stage,
    status,
    trouble,
    unchosen,
    undisplaced,
)

LONG = "A line of a long story that has to be read before anybody decides.\n" * 60


class Finger:
    """One finger: down at a place, along to others, up or called off."""

    def __init__(self, page):
        self.session = page.context.new_cdp_session(page)

    def send(self, kind, *points):
        points = [{"x": x, "y": y} for x, y in points]
        self.session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def down(self, x, y):
        self.at = x, y
        self.send("touchStart", self.at)

    def along(self, x, y, steps=6):
        """By so much to the side and down."""
        left, top = self.at
        for step in range(1, steps + 1):
            self.at = left + x * step / steps, top + y * step / steps
            self.send("touchMove", self.at)

    def up(self):
        self.send("touchEnd")

    def off(self):
        self.send("touchCancel")

    def swipe(self, x, y=0, start=(195, 420)):
        self.down(*start)
        self.along(x, y)
        self.up()


def test_swipes_decide_and_short_ones_and_scrolling_do_not(node, visit):
    units = stage(node, "Open port", "Frozen lock", "Noisy log")
    node.propose("Stale cache", insight={"summary": "Stale cache", "detail": LONG, "action": "Go."})
    rita = visit(node, "rita", viewport=PHONE, has_touch=True, is_mobile=True)
    rita.expect_no_server()
    page = rita.page
    card, finger = page.locator(".card"), Finger(page)
    on_top(page, "Open port")
    # Assistive technology presses buttons.
    choice(page, "Approve").tap()
    chosen(page, "approve")
    choice(page, "Confirm: approve").tap()
    on_top(page, "Frozen lock")
    assert agents_find(node, "Open port")

    finger.down(195, 420)
    finger.along(90, 4)
    expect(card).to_have_css("transform", re.compile("^matrix"))
    expect(card).to_have_attribute("data-swipe", "approve")
    finger.up()
    undisplaced(page)
    finger.down(195, 420)
    finger.along(-190, 0)
    expect(card).to_have_attribute("data-swipe", "reject ready")
    finger.along(150, 0)
    finger.up()
    undisplaced(page)
    finger.down(195, 420)
    finger.along(180, 0)
    finger.off()
    undisplaced(page)
    unchosen(page)
    on_top(page, "Frozen lock")

    refused = re.compile("/approve$")
    page.route(refused, lambda route: route.abort("connectionrefused"))
    finger.swipe(190)
    expect(trouble(page)).to_contain_text("trying again is safe")
    undisplaced(page)
    chosen(page, "approve")
    page.unroute(refused)
    finger.swipe(190)
    on_top(page, "Noisy log")
    said(page, "Approved: Frozen lock")
    undisplaced(page)
    assert agents_find(node, "Frozen lock")

    page.emulate_media(reduced_motion="reduce")
    finger.down(195, 420)
    finger.along(-190, 5)
    expect(card).to_have_attribute("data-swipe", "reject ready")
    expect(card).to_have_css("transform", "none")
    finger.up()
    on_top(page, "Stale cache")
    assert status(node, units["Noisy log"]) == "rejected"

    finger.swipe(10, -300, start=(195, 700))
    page.wait_for_function("scrollY > 100")
    undisplaced(page)
    unchosen(page)
    finger.swipe(190)
    finished(page, tally="4 decided, 1 rejected, 3 approved")
