"""Reviewing in the page: by keyboard, mouse and touch, and what agents see of it."""

from playwright.sync_api import expect


def test_a_unit_approved_by_keyboard_is_found_by_an_agent(node, visit):
    unit = node.propose()
    page = visit(node, "rita").page
    expect(page.get_by_role("heading", name="Backend lock outlives")).to_be_focused()
    assert node.finds(domains="terraform") == []
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("button", name="Confirm: approve")).to_have_attribute(
        "aria-pressed", "true"
    )
    assert node.finds(domains="terraform") == []
    page.keyboard.press("Space")
    expect(page.get_by_role("heading", name="All caught up")).to_be_visible()
    assert node.finds(domains="terraform") == [unit["id"]]
