"""The dashboard: its figures agree with the server's, lead to the units, and follow what happens."""

import re
from datetime import UTC, datetime, timedelta

from playwright.sync_api import expect

from tests.cast import alter

HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
DRAWN = """() => [...document.querySelectorAll(".trend polyline")].map((line) =>
  line.getAttribute("points").split(" ").map((point) => point.split(",").map(Number)))"""
GRID = """() => [...document.querySelectorAll(".trend svg")].flatMap((svg) =>
  [...svg.querySelectorAll("line")].map((line, place) =>
    [Number(line.getAttribute("y1")), Number(svg.querySelectorAll("text")[place].textContent)]))"""
KINDS = ("proposed", "approved", "rejected")


def stats(node, token):
    status, told = node.call("GET", "/review/stats", token=token)
    assert status == 200
    return told


def tile(page, name):
    return page.locator(f".tiles .{name}")


def bars(page, heading):
    section = page.locator("section").filter(has=page.get_by_role("heading", name=heading))
    return section.locator(".bars li")


def test_the_figures_agree_with_the_server_and_lead_to_the_units_they_count(node, visit, make_app):
    tags = [["404"], ["terraform", "state"], ["terraform"], ["terraform", "x" * 60], ["state"]]
    units = [node.propose(f"Unit {place}", domains=each) for place, each in enumerate(tags)]
    node.propose("Waits")
    token = node.token("rita")
    ids = [unit["id"] for unit in units]
    for decision, some in (("approve", ids[:4]), ("reject", ids[4:])):
        body = {"decision": decision, "ids": some}
        assert node.call("POST", "/review/bulk", body, token=token)[0] == 200
    for key in ("ada", "cleo"):
        assert node.call("POST", f"/knowledge/{ids[1]}/confirmations", {}, key=key)[0] == 201
    for days, id in ((9, ids[0]), (4, ids[1]), (4, ids[2])):
        then = (datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        alter(make_app(), "UPDATE units SET created_at = :t WHERE id = :id", t=then, id=id)
    told = stats(node, token)
    days = told["trends"]["daily"]
    assert len(days) == 10
    assert [sum(day[kind] for day in days) for kind in KINDS] == [6, 4, 1]

    page = visit(node, "rita", "dashboard").page
    for name, count in (("pending", 1), ("approved", 4), ("rejected", 1)):
        assert told["counts"][name] == count
        expect(tile(page, name)).to_have_text(f"{count}{name}")

    # The trend: what a screen reader reads, what a mouse is told, and where the lines are drawn.
    table = page.get_by_role("table", name="Submissions and decisions a day")
    figures = [[day["date"], *(str(day[kind]) for kind in KINDS)] for day in days]
    lines = table.locator("tbody tr").all()
    assert [line.locator("th, td").all_text_contents() for line in lines] == figures
    expect(page.locator(".trend svg title")).to_have_text(
        [f"{day}: {new} submitted, {yes} approved, {no} rejected" for day, new, yes, no in figures]
    )
    (foot, zero), *_, (top, most) = page.evaluate(GRID)
    assert zero == 0
    for kind, points in zip(KINDS, page.evaluate(DRAWN), strict=True):
        drawn = [round((foot - y) / (foot - top) * most, 3) for _, y in points]
        assert drawn == [day[kind] for day in days]
        assert [x for x, _ in points] == sorted(x for x, _ in points)

    # Tags by how many have them, also those that a browser takes for numbers.
    assert told["domains"] == {"404": 1, "terraform": 3, "state": 1, "x" * 60: 1}
    shown = ["terraform3", "4041", "state1", "x" * 60 + "1"]
    expect(bars(page, "Tags of approved units")).to_have_text(shown)
    spread = told["confidence_distribution"]
    assert spread == {"0.0-0.3": 0, "0.3-0.6": 3, "0.6-0.8": 1, "0.8-1.0": 0}
    expect(bars(page, "Confidence")).to_have_text([f"{name}{n}" for name, n in spread.items()])
    for heading, counts in (("Tags", [3, 1, 1, 1]), ("Confidence", list(spread.values()))):
        meters = bars(page, heading).locator("meter")
        expect(meters).to_have_count(4)
        assert meters.evaluate_all("all => all.map((each) => [each.value, each.max])") == [
            [count, 3] for count in counts
        ]
        for place, count in enumerate(counts):
            link = bars(page, heading).nth(place).get_by_role("link")
            if count == 0:
                expect(link).to_have_count(0)
                continue
            link.click()
            expect(page.get_by_role("heading", name="Units")).to_be_visible()
            expect(page.locator(".rows > li")).to_have_count(count)
            expect(page.locator(".rows .badge")).to_have_text(["approved"] * count)
            page.go_back()
    for name in ("approved", "rejected"):
        tile(page, name).get_by_role("link").click()
        expect(page.locator(".rows .badge")).to_have_text([name] * told["counts"][name])
        page.go_back()

    steps = told["recent_activity"]
    lines = page.locator(".activity tbody tr")
    expect(lines).to_have_text(
        [f"{each['type']}{each['summary']}{each.get('reviewed_by', '–')}just now" for each in steps]
    )
    lines.first.get_by_role("link").click()
    expect(page.locator("#unit-summary")).to_have_text(steps[0]["summary"])
    page.go_back()
    tile(page, "pending").get_by_role("link").click()
    expect(page.get_by_role("heading", name="Waits")).to_be_focused()


def test_the_figures_begin_empty_and_follow_what_happens_while_the_page_is_seen(node, visit):
    someone = visit(node, "rita", "dashboard")
    someone.expect_refusal(502)
    someone.expect_no_server()
    page = someone.page
    main = page.get_by_role("main")
    for name in KINDS[1:]:
        expect(tile(page, name)).to_have_text(f"0{name}")
    expect(main).to_contain_text("Nothing was proposed in the last thirty days.")
    expect(main).to_contain_text("No unit is approved yet.")
    expect(main).to_contain_text("Nothing happened yet.")
    expect(bars(page, "Confidence").get_by_role("link")).to_have_count(0)

    unit = node.propose("First", domains=[f"tag{place:02}" for place in range(14)])
    token = node.token("ada")
    assert node.call("POST", f"/review/{unit['id']}/approve", {}, token=token)[0] == 200
    page.clock.install()
    asked = []
    page.on("request", lambda request: asked.append(request.url))

    def polls():
        return sum("/review/stats" in url for url in asked)

    # A first answer that fails is told as such, and can be asked for again.
    page.route("**/review/stats", lambda route: route.fulfill(status=502, body="Bad gateway"))
    page.reload()
    again = page.get_by_role("button", name="Try again")
    expect(page.get_by_role("alert")).to_contain_text("The server answered 502.")
    expect(page.locator(".tiles")).to_have_count(0)
    page.unroute("**/review/stats")
    again.press("Enter")
    expect(tile(page, "approved")).to_have_text("1approved")
    expect(page.get_by_role("heading", name="Dashboard")).to_be_focused()

    # Who stands on a tag in the part that was unfolded stays there when the figures change.
    page.get_by_text("2 more").click()
    tag = page.get_by_role("link", name="tag13")
    tag.focus()
    second = node.propose("Second", domains=["tag13", "tag12"])
    assert node.call("POST", f"/review/{second['id']}/approve", {}, token=token)[0] == 200
    third = node.propose("Third", domains=["other"])
    page.clock.fast_forward(15_000)
    expect(tile(page, "approved")).to_have_text("2approved")
    expect(tile(page, "pending")).to_have_text("1pending")
    expect(bars(page, "Tags").first).to_have_text("tag122")
    expect(tag).to_be_focused()
    expect(page.locator("details")).to_have_attribute("open", "")
    expect(page.get_by_role("link", name="Review").locator(".count")).to_have_text(re.compile("^1"))
    expect(page.locator(".activity tbody tr").first).to_contain_text("proposedThird–just now")

    # In a page that nobody sees nothing is asked for; once it is seen, at once.
    page.evaluate(HIDE, True)
    assert node.call("POST", f"/review/{third['id']}/reject", {}, token=token)[0] == 200
    before = len(asked)
    page.clock.fast_forward(60_000)
    page.clock.run_for(31_000)
    assert [url for url in asked[before:] if "/review/" in url] == []
    expect(tile(page, "rejected")).to_have_text("0rejected")
    page.evaluate(HIDE, False)
    expect(tile(page, "rejected")).to_have_text("1rejected")
    # What did not change grows older all the same.
    first = page.locator(".activity tbody tr").last
    expect(first).to_contain_text(re.compile("approvedFirstada[1-9]m ago"))
    page.clock.fast_forward(600_000)
    expect(first).to_contain_text(re.compile("approvedFirstada1[0-9]m ago"))

    # A poll that fails leaves the figures and says so, until one succeeds.
    page.route("**/review/stats", lambda route: route.abort("internetdisconnected"))
    page.clock.fast_forward(15_000)
    note = page.locator("main .slot[role=status] .note")
    expect(note).to_contain_text("Trying again; these figures are older.")
    expect(tile(page, "rejected")).to_have_text("1rejected")
    page.unroute("**/review/stats")
    page.clock.fast_forward(15_000)
    expect(note).to_have_count(0)

    # Who has left the page asks for nothing any more.
    page.get_by_role("link", name="API keys").click()
    expect(page.get_by_role("heading", name="API keys")).to_be_visible()
    before = polls()
    page.clock.fast_forward(60_000)
    assert polls() == before
