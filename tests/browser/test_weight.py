"""What the page costs to load: little at first, nothing for the next card, 304s on a second visit."""

from playwright.sync_api import expect

MOST = 60_000


class Wire:
    """What came over the network: {url, status, size} each, sizes as they were transferred."""

    def __init__(self, visit):
        self.seen = {}
        session = visit.context.new_cdp_session(visit.page)
        session.on("Network.responseReceived", self._response)
        session.on("Network.responseReceivedExtraInfo", self._status)
        session.on("Network.loadingFinished", self._end)
        session.send("Network.enable")
        session.send("Network.clearBrowserCache")

    def _of(self, event):
        return self.seen.setdefault(event["requestId"], {"url": None, "status": None, "size": 0})

    def _response(self, event):
        entry = self._of(event)
        entry["url"] = event["response"]["url"]
        # The extra information has what the server said, this what the cache made of it.
        entry["status"] = entry["status"] or event["response"]["status"]

    def _status(self, event):
        self._of(event)["status"] = event["statusCode"]

    def _end(self, event):
        self._of(event)["size"] = event["encodedDataLength"]

    def files(self):
        """What is no answer of the API."""
        return [each for each in self.seen.values() if each["url"] and "/api/" not in each["url"]]


def test_the_first_view_is_light_and_nothing_is_loaded_twice(node, visit):
    first, second = node.propose("Alpha"), node.propose("Beta")
    rita = visit(node)
    page = rita.page
    page.goto("about:blank")
    wire = Wire(rita)
    rita.go()
    rita.sign_in("rita")
    expect(page.get_by_role("heading", name="Alpha")).to_be_visible()
    page.wait_for_load_state("networkidle")
    files = wire.files()
    code = [each for each in files if each["url"].endswith((".js", ".css"))]
    assert {each["status"] for each in code} == {200}
    assert len(code) > 10
    assert 10_000 < sum(each["size"] for each in code) < MOST
    assert all(each["url"].startswith(f"{node.url}/") for each in wire.seen.values())

    # The next card: only the API is asked.
    wire.seen.clear()
    page.get_by_role("button", name="Approve").click()
    page.get_by_role("button", name="Confirm: approve").click()
    expect(page.get_by_role("heading", name="Beta")).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert wire.files() == []
    assert set(node.finds(domains="terraform")) == {first["id"]}
    assert second["id"] not in node.finds(domains="terraform")

    # A second visit: nothing has changed, and little more than that is said.
    wire.seen.clear()
    page.reload()
    expect(page.get_by_role("heading", name="Beta")).to_be_visible()
    page.wait_for_load_state("networkidle")
    files = wire.files()
    code = [each for each in files if each["url"].endswith((".js", ".css"))]
    assert len(code) > 10
    assert {each["status"] for each in code} == {304}
    assert sum(each["size"] for each in files) < MOST / 4
