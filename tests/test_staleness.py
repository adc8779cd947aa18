"""Approved units that nobody confirmed for long need another look."""

from tests.cast import alter

OLD = "UPDATE units SET last_confirmed = '2020-01-01T00:00:00.000000Z', changed = changed + 1"


def looks(call):
    answer = call("GET", "/review/attention", user="rita").json
    return [item["knowledge_unit"]["id"] for item in answer["items"]]


def item(call, unit):
    return call("GET", f"/review/{unit['id']}", user="rita").json


def test_a_unit_that_nobody_confirmed_for_long_is_shown_to_reviewers(call):
    unit = call.approve("Old hat", ["old"])
    assert looks(call) == []
    assert item(call, unit)["stale"] is False
    alter(call.app, OLD)
    assert looks(call) == [unit["id"]]
    assert item(call, unit)["stale"] is True
    filtered = call("GET", "/review/units?stale=1", user="rita").json
    assert [each["knowledge_unit"]["id"] for each in filtered] == [unit["id"]]
    assert call.found(domains="old") == [unit["id"]]


def test_a_confirmation_or_a_reviewer_makes_it_fresh_again(call):
    confirmed, kept = call.approve("One", ["old"]), call.approve("Two", ["old"])
    alter(call.app, OLD)
    assert (
        call("POST", f"/knowledge/{confirmed['id']}/confirmations", key="cleo").status_code == 201
    )
    assert looks(call) == [kept["id"]]
    answer = call("POST", f"/review/{kept['id']}/keep", {"reason": "still so"}, user="rita")
    assert answer.status_code == 200
    assert looks(call) == []
    fresh = item(call, kept)
    assert fresh["stale"] is False
    assert fresh["knowledge_unit"]["evidence"]["confidence"] == 0.5
    assert call("POST", f"/review/{kept['id']}/keep", {}, user="rita").status_code == 409


def test_pending_and_rejected_units_are_never_stale(call):
    pending, rejected = call.propose("Waits"), call.propose("Refused", ["x"])
    call("POST", f"/review/{rejected['id']}/reject", {}, user="rita")
    alter(call.app, OLD)
    assert looks(call) == []
    assert not item(call, pending)["stale"]
    assert not item(call, rejected)["stale"]


def test_staleness_can_be_turned_off(make_call):
    call = make_call(CQ_STALE_AFTER="0")
    unit = call.approve("Old hat", ["old"])
    alter(call.app, OLD)
    assert looks(call) == []
    assert item(call, unit)["stale"] is False
    assert call("POST", f"/review/{unit['id']}/keep", {}, user="rita").status_code == 409


def test_units_are_filtered_by_author_and_by_flags(call):
    mine = call.approve("Mine", ["a"], key="carl")
    call.approve("Another one", ["a"], key="cleo")
    call("POST", f"/knowledge/{mine['id']}/flags", {"reason": "stale"}, key="cleo")

    def filtered(**query):
        answer = call("GET", "/review/units", user="rita", query_string=query)
        return [each["knowledge_unit"]["insight"]["summary"] for each in answer.json]

    assert filtered(author="carl") == ["Mine"]
    assert filtered(author="nobody") == []
    assert filtered(disputed=1) == ["Mine"]
    assert filtered(disputed=1, author="cleo") == []
    assert len(filtered(disputed=0)) == 2
