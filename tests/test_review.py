"""What reviewers do: queue, list, decide, edit, undo, answer flags, in bulk; and the history of it."""

import base64
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from models import now
from tests.cast import PASSWORD, alter

UNKNOWN = "ku_" + "0" * 32


def review(call, unit, verb, body=None, user="rita"):
    return call("POST", f"/review/{unit['id']}/{verb}", body, user=user)


def item(call, unit, user="rita"):
    answer = call("GET", f"/review/{unit['id']}", user=user)
    assert answer.status_code == 200, answer.text
    return answer.json


def history(call, unit):
    return call("GET", f"/review/{unit['id']}/history", user="rita").json


def events(call, unit):
    return [(event["type"], event["by"]) for event in history(call, unit)["events"]]


def vote(call, unit, key="cleo"):
    return call("POST", f"/knowledge/{unit['id']}/confirmations", key=key)


def flag(call, unit, reason="stale", key="cleo", **more):
    answer = call("POST", f"/knowledge/{unit['id']}/flags", {"reason": reason, **more}, key=key)
    assert answer.status_code == 201, answer.text
    return unit


def disputed(call, *args, **kwargs):
    return flag(call, call.approve(*args, **kwargs))


def ids(items):
    return [entry["knowledge_unit"]["id"] for entry in items]


def queue(call, path="queue", **query):
    answer = call("GET", f"/review/{path}", user="rita", query_string=query)
    assert answer.status_code == 200, answer.text
    return answer.json


class Page:
    """A person at the review page: the session is a cookie, and changes carry the CSRF token."""

    def __init__(self, call, name):
        self.client = call.app.test_client()
        who = {"username": name, "password": PASSWORD, "session": True}
        assert self.client.post("/api/v1/auth/login", json=who).status_code == 200
        self.csrf = self.client.get_cookie("csrf_access_token").value

    def __call__(self, method, path, body=None):
        headers = {"X-CSRF-TOKEN": self.csrf}
        return self.client.open(f"/api/v1{path}", method=method, json=body, headers=headers)


# The queue


def test_the_queue_holds_pending_units_oldest_first(call):
    assert queue(call) == {"items": [], "total": 0, "offset": 0, "limit": 20, "next_cursor": None}
    units = [call.propose(f"unit {number}") for number in range(3)]
    call.approve("approved")
    review(call, call.propose("rejected"), "reject")
    page = queue(call)
    assert ids(page["items"]) == [unit["id"] for unit in units]
    assert page["total"] == 3
    first = page["items"][0]
    assert list(first)[:4] == ["knowledge_unit", "status", "reviewed_by", "reviewed_at"]
    assert first["knowledge_unit"] == units[0]
    assert (first["status"], first["reviewed_by"], first["reviewed_at"]) == ("pending", None, None)


def test_offset_paging_takes_every_unit_once(call, app):
    """Ties in time are broken by the id."""
    units = sorted(call.propose(f"unit {number}")["id"] for number in range(5))
    alter(app, "UPDATE units SET created_at = :at", at=now())
    pages = [queue(call, limit=2, offset=offset) for offset in (0, 2, 4, 6)]
    assert [ids(page["items"]) for page in pages] == [units[:2], units[2:4], units[4:], []]
    assert {page["total"] for page in pages} == {5}
    assert [(page["limit"], page["offset"]) for page in pages] == [(2, 0), (2, 2), (2, 4), (2, 6)]


def test_a_cursor_neither_skips_nor_repeats_while_others_decide(call, app):
    """Units leave behind the cursor and ahead of it, and new ones join at the end."""
    for path, make, verb in (
        ("queue", call.propose, "approve"),
        ("attention", partial(disputed, call), "keep"),
    ):
        units = [make(f"{path} {number}") for number in range(7)]
        alter(app, "UPDATE units SET created_at = :at", at=now())
        units.sort(key=lambda unit: unit["id"])
        first = queue(call, path, limit=2)
        assert ids(first["items"]) == [unit["id"] for unit in units[:2]]
        assert review(call, units[0], verb).status_code == 200
        assert review(call, units[1], verb).status_code == 200
        second = queue(call, path, limit=2, cursor=first["next_cursor"])
        assert ids(second["items"]) == [unit["id"] for unit in units[2:4]]
        assert review(call, units[4], verb).status_code == 200
        late = make(f"{path} late")
        rest = queue(call, path, limit=3, cursor=second["next_cursor"])
        assert ids(rest["items"]) == [units[5]["id"], units[6]["id"], late["id"]]
        assert rest["next_cursor"] is None
        assert rest["total"] == 5


def test_the_last_page_has_no_cursor(call):
    for number in range(4):
        call.propose(f"unit {number}")
    assert queue(call, limit=4)["next_cursor"] is None
    assert queue(call, limit=3)["next_cursor"] is not None
    assert queue(call, limit=0) == {
        "items": [],
        "total": 4,
        "offset": 0,
        "limit": 0,
        "next_cursor": None,
    }


def test_bounds_of_lists_are_told(call):
    for path in ("/review/queue", "/review/attention", "/review/units", "/users/me/proposals"):
        for query, place, type in (
            ("limit=-1", "limit", "greater_than_equal"),
            ("limit=101", "limit", "less_than_equal"),
            ("limit=", "limit", "int_parsing"),
            ("limit=1.5", "limit", "int_parsing"),
            ("offset=-1", "offset", "greater_than_equal"),
            (f"offset={2**63}", "offset", "less_than_equal"),
            ("cursor=x", "cursor", "value_error"),
            ("cursor=", "cursor", "value_error"),
            (f"cursor={base64.urlsafe_b64encode(b'[1,2]').decode()}", "cursor", "value_error"),
        ):
            answer = call("GET", f"{path}?{query}", user="rita")
            assert answer.status_code == 422, (path, query)
            (problem,) = answer.json["detail"]
            assert (problem["loc"], problem["type"]) == (["query", place], type)
        for query in (
            "limit=0",
            "limit=100",
            f"offset={2**63 - 1}",
            "limit=1.0",
            "limit=999&limit=1",
        ):
            assert call("GET", f"{path}?{query}", user="rita").status_code == 200, (path, query)


# The list of units


def listed(call, **query):
    return ids(queue(call, "units", **query))


def test_the_list_is_a_bare_array_of_every_state_newest_first(call):
    assert queue(call, "units") == []
    pending = call.propose("pending")
    rejected = call.propose("rejected")
    review(call, rejected, "reject")
    retired = call.approve("retired")
    review(call, retired, "retire")
    approved = call.approve("approved")
    old = call.approve("old")
    review(call, old, "supersede", {"replacement": approved["id"]})
    units = {
        "pending": pending,
        "rejected": rejected,
        "retired": retired,
        "approved": approved,
        "superseded": old,
    }
    assert listed(call) == [unit["id"] for unit in units.values()][::-1]
    assert listed(call, status="") == listed(call)
    for status, unit in units.items():
        assert listed(call, status=status) == [unit["id"]]
        (entry,) = queue(call, "units", status=status)
        assert entry == item(call, unit)
        assert entry["status"] == status
    for status in ("Approved", "unknown"):
        answer = call("GET", f"/review/units?status={status}", user="rita")
        assert answer.status_code == 422
        assert answer.json["detail"][0]["loc"] == ["query", "status"]


def test_the_list_is_filtered_by_one_exact_tag(call):
    """Rows 4, 5, 56: any spelling of the tag, and no pattern."""
    go = call.propose("go", ["go", "réseau"])["id"]
    mongo = call.propose("mongo", ["mongo", "100%"])["id"]
    assert listed(call, domain="go") == [go]
    assert listed(call, domain="  GO ") == [go]
    assert listed(call, domain="re\u0301seau") == [go]
    assert listed(call, domain="%") == listed(call, domain="m_ngo") == []
    assert listed(call, domain="100%") == [mongo]
    assert listed(call, domain=" ") == listed(call, domain="") == [mongo, go]
    assert listed(call, domain="go", status="approved") == []


def test_the_list_is_filtered_by_confidence(call, app):
    """The lower bound belongs to a range, the upper one does not unless it is 1."""
    units = {}
    for confidence in (0.0, 0.3, 0.6, 0.7, 0.8, 1.0):
        units[call.propose(f"at {confidence}")["id"]] = confidence
        alter(
            app,
            "UPDATE units SET confidence = :confidence WHERE summary = :summary",
            confidence=confidence,
            summary=f"at {confidence}",
        )

    def between(low=None, high=None):
        query = {"confidence_min": low, "confidence_max": high}
        found = listed(call, **{name: value for name, value in query.items() if value is not None})
        return sorted(units[id] for id in found)

    assert between(0, 0.3) == [0.0]
    assert between(0.3, 0.6) == [0.3]
    assert between(0.6, 0.8) == [0.6, 0.7]
    assert between(0.8, 1.0) == between(0.8, 1.5) == between(0.8) == [0.8, 1.0]
    assert between(0.7, 0.7) == between(0.8, 0.3) == []
    assert between(high=0.3) == between(high="3e-1") == [0.0]
    assert between("-1", ".7") == [0.0, 0.3, 0.6]
    for value in ("nan", "inf", "-inf", "", "x", "1e999"):
        for name in ("confidence_min", "confidence_max"):
            query = {name: value}
            answer = call("GET", "/review/units", user="rita", query_string=query)
            assert answer.status_code == 422, query
            assert answer.json["detail"][0]["loc"] == ["query", name]


def test_a_vote_leads_to_the_edge_of_a_range_exactly(call):
    """D-25: two confirmations make 0.7, which opens the upper range."""
    unit = call.approve()
    vote(call, unit, "carl")
    vote(call, unit, "cleo")
    assert listed(call, confidence_min=0.7) == [unit["id"]]
    assert listed(call, confidence_max=0.7) == []


def test_all_of_a_long_list_is_reached(call, app):
    units = [call.propose(f"unit {number}", ["long"])["id"] for number in range(5)]
    alter(app, "UPDATE units SET created_at = :at", at=now())
    newest = sorted(units, reverse=True)
    assert listed(call, limit=0) == []
    assert listed(call, limit=0, confidence_min=0) == []
    assert listed(call, limit=2, offset=3) == newest[3:]
    found, cursor = [], None
    for size in (2, 2, 1):
        query = {"limit": 2, "domain": "long", **({"cursor": cursor} if cursor else {})}
        answer = call("GET", "/review/units", user="rita", query_string=query)
        assert len(answer.json) == size
        found += ids(answer.json)
        cursor = answer.headers.get("CQ-Next-Cursor")
    assert found == newest
    assert cursor is None


# Deciding


DECISIONS = {"approve": "approved", "reject": "rejected"}


def test_a_decision_answers_who_and_when(call):
    for verb, status in DECISIONS.items():
        unit = call.propose(verb)
        before = now()[:26]
        answer = review(call, unit, verb)
        assert answer.status_code == 200
        told = answer.json
        assert list(told) == ["unit_id", "status", "reviewed_by", "reviewed_at"]
        assert (told["unit_id"], told["status"]) == (unit["id"], status)
        assert told["reviewed_by"] == "rita"
        assert before <= told["reviewed_at"][:26] <= now()[:26]
        assert told["reviewed_at"].endswith("+00:00")
        shown = item(call, unit)
        assert (shown["status"], shown["reviewed_by"]) == (status, "rita")
        assert shown["reviewed_at"] == told["reviewed_at"]
    assert queue(call)["total"] == 0


def test_the_second_reviewer_gets_a_conflict_that_names_the_first(call):
    for verb, status in DECISIONS.items():
        unit = call.propose(verb)
        at = review(call, unit, verb).json["reviewed_at"]
        before = item(call, unit)
        for again in DECISIONS:
            answer = review(call, unit, again, user="ada")
            assert answer.status_code == 409
            assert answer.json == {"detail": f"Knowledge unit already {status} by rita at {at}"}
        assert item(call, unit) == before
        assert events(call, unit) == [("proposed", "carl"), (status, "rita")]


def test_of_decisions_at_the_same_time_one_wins(call):
    """Row 15."""
    for number in range(4):
        unit = call.propose(f"unit {number}")
        tries = [("approve", "rita"), ("reject", "ada")] * 3
        with ThreadPoolExecutor(6) as pool:
            answers = list(
                pool.map(lambda one, unit=unit: review(call, unit, one[0], user=one[1]), tries)
            )
        (won,) = [answer.json for answer in answers if answer.status_code == 200]
        lost = [answer for answer in answers if answer.status_code != 200]
        assert {answer.status_code for answer in lost} == {409}
        for answer in lost:
            assert f"{won['status']} by {won['reviewed_by']} at" in answer.json["detail"]
        assert item(call, unit)["reviewed_by"] == won["reviewed_by"]
        assert events(call, unit)[1:] == [(won["status"], won["reviewed_by"])]


def test_what_is_not_there_is_not_decided(call):
    new = call.approve()
    for id in (UNKNOWN, "ku_1", "x"):
        for verb in ("approve", "reject", "reopen", "keep", "retire"):
            answer = review(call, {"id": id}, verb)
            assert (answer.status_code, answer.json) == (
                404,
                {"detail": "Knowledge unit not found"},
            )
        for answer in (
            call("GET", f"/review/{id}", user="rita"),
            call("GET", f"/review/{id}/history", user="rita"),
            call("PATCH", f"/review/{id}", {"domains": ["x"]}, user="rita"),
            review(call, {"id": id}, "supersede", {"replacement": new["id"]}),
        ):
            assert (answer.status_code, answer.json) == (
                404,
                {"detail": "Knowledge unit not found"},
            )


def test_an_approval_publishes_only_when_asked(call):
    private, public = call.propose("private", ["t"]), call.propose("public", ["t"])
    assert review(call, private, "approve").status_code == 200
    assert review(call, public, "approve", {"tier": "public"}).status_code == 200
    assert call.found(domains="t", key=None) == [public["id"]]
    assert item(call, private)["knowledge_unit"]["tier"] == "private"
    assert item(call, public)["knowledge_unit"]["tier"] == "public"
    steps = history(call, public)["events"]
    assert steps[-1]["tier"] == "public"


def test_an_approval_that_names_no_tier_is_private_again_after_an_undo(call):
    """D2: private is the default, whatever the unit was before it was reopened."""
    unit = call.approve("once public", ["t"], tier="public")
    review(call, unit, "reopen")
    assert review(call, unit, "approve").status_code == 200
    assert item(call, unit)["knowledge_unit"]["tier"] == "private"
    assert call.found(domains="t", key=None) == []


def test_a_decision_that_is_not_one_is_refused(call):
    unit = call.propose()
    for body, place, type in (
        ({"tier": "local"}, "tier", "enum"),
        ({"tier": 1}, "tier", "string_type"),
        ({"reason": "x" * 1001}, "reason", "string_too_long"),
        ({"reason": "a\0"}, "reason", "value_error"),
        ({"revision": 0}, "revision", "greater_than_equal"),
        ({"revision": "x"}, "revision", "int_parsing"),
    ):
        answer = review(call, unit, "approve", body)
        assert answer.status_code == 422, body
        (problem,) = answer.json["detail"]
        assert (problem["loc"], problem["type"]) == (["body", place], type)
    answer = call(
        "POST",
        f"/review/{unit['id']}/approve",
        user="rita",
        data='{"tier":"public"}',
        content_type="text/plain",
    )
    assert answer.status_code == 422
    assert item(call, unit)["status"] == "pending"
    longest = {"reason": "x" * 1000, "tier": None, "revision": None}
    assert review(call, unit, "approve", longest).status_code == 200


def test_the_author_reads_why_a_proposal_was_rejected(call):
    unit = call.propose("mine")
    call.propose("of cleo", key="cleo")
    review(call, unit, "reject", {"reason": "Only true for version 1.2"})
    page = call("GET", "/users/me/proposals", user="carl").json
    (mine,) = page["items"]
    assert page["total"] == 1
    assert mine["knowledge_unit"] == unit
    assert (mine["status"], mine["reason"]) == ("rejected", "Only true for version 1.2")
    assert mine["reviewed_by"] == "rita"
    assert history(call, unit)["events"][-1]["reason"] == "Only true for version 1.2"


def test_proposals_are_ones_own_newest_first_in_every_state(call):
    first, second, third = (call.propose(f"unit {number}") for number in range(3))
    review(call, first, "approve")
    review(call, second, "reject")
    page = call("GET", "/users/me/proposals?limit=2", user="carl").json
    assert ids(page["items"]) == [third["id"], second["id"]]
    call.propose("later")
    rest = call("GET", f"/users/me/proposals?cursor={page['next_cursor']}", user="carl").json
    assert ids(rest["items"]) == [first["id"]]
    assert rest["next_cursor"] is None
    assert call("GET", "/users/me/proposals", user="cleo").json["items"] == []


# Undoing


def test_a_decision_is_undone(call):
    for before in ("approve", "reject", "retire"):
        unit = call.propose(f"undone {before}", [before])
        if before == "retire":
            review(call, unit, "approve")
        assert review(call, unit, before, {"reason": "first thought"}).status_code == 200
        answer = review(call, unit, "reopen", {"reason": "second thought"}, user="ada")
        assert answer.json == {
            "unit_id": unit["id"],
            "status": "pending",
            "reviewed_by": None,
            "reviewed_at": None,
        }
        assert call.found(domains=before) == []
        assert ids(queue(call)["items"]) == [unit["id"]]
        shown = item(call, unit)
        assert (shown["status"], shown["reviewed_by"], shown["reason"]) == ("pending", None, None)
        last = history(call, unit)["events"][-1]
        assert (last["type"], last["by"], last["reason"]) == ("reopened", "ada", "second thought")
        assert review(call, unit, "approve").status_code == 200
        assert call.found(domains=before) == [unit["id"]]


def test_what_is_pending_or_superseded_is_not_reopened(call):
    pending = call.propose("pending")
    answer = review(call, pending, "reopen")
    assert (answer.status_code, answer.json) == (409, {"detail": "Knowledge unit is pending"})
    old, new = call.approve("old"), call.approve("new")
    at = review(call, old, "supersede", {"replacement": new["id"]}).json["reviewed_at"]
    answer = review(call, old, "reopen")
    assert answer.status_code == 409
    assert answer.json == {"detail": f"Knowledge unit already superseded by rita at {at}"}


def test_votes_and_flags_outlive_an_undo(call):
    unit = call.approve("voted on", ["v"])
    vote(call, unit)
    flag(call, unit)
    evidence = item(call, unit)["knowledge_unit"]["evidence"]
    review(call, unit, "reopen")
    assert queue(call, "attention")["total"] == 0
    review(call, unit, "approve")
    assert item(call, unit)["knowledge_unit"]["evidence"] == evidence
    assert ids(queue(call, "attention")["items"]) == [unit["id"]]


# Editing


def test_an_edit_of_a_pending_unit_keeps_the_original_and_each_revision(call):
    unit = call.propose("First words", ["one"])
    assert history(call, unit)["revisions"] == []
    body = {"domains": ["TWO", "two", "three"], "insight": {"summary": "Second words"}}
    answer = call("PATCH", f"/review/{unit['id']}", body, user="rita")
    assert answer.status_code == 200
    edited = answer.json
    assert (edited["revision"], edited["status"]) == (2, "pending")
    assert edited["knowledge_unit"] == {
        **unit,
        "domains": ["two", "three"],
        "insight": {**unit["insight"], "summary": "Second words"},
    }
    body = {"context": {"pattern": "api"}, "insight": {"action": "Do it."}}
    call("PATCH", f"/review/{unit['id']}", body, user="ada")
    told = history(call, unit)
    original, second, third = told["revisions"]
    assert original == {
        "revision": 1,
        "by": "carl",
        "at": item(call, unit)["created_at"],
        "domains": unit["domains"],
        "insight": unit["insight"],
        "context": unit["context"],
    }
    assert (second["revision"], second["by"]) == (2, "rita")
    assert second["insight"]["summary"] == "Second words"
    assert second["context"] == unit["context"]
    assert (third["revision"], third["by"]) == (3, "ada")
    assert third["insight"] == {**second["insight"], "action": "Do it."}
    assert third["context"] == {**unit["context"], "pattern": "api"}
    assert third["domains"] == ["two", "three"]
    assert events(call, unit) == [("proposed", "carl"), ("edited", "rita"), ("edited", "ada")]
    assert [event.get("revision") for event in told["events"]] == [None, 2, 3]
    review(call, unit, "approve")
    assert call.found(domains="one") == []
    assert call.found(domains="three") == call.found(q="second") == [unit["id"]]


def test_an_edit_that_agents_could_not_read_is_refused(call):
    unit = call.propose()
    for body, place in (
        ({"domains": []}, ["domains"]),
        ({"domains": [" "]}, ["domains"]),
        ({"domains": [f"t{number}" for number in range(17)]}, ["domains"]),
        ({"domains": ["x" * 65]}, ["domains", 0]),
        ({"insight": {"summary": "\u00a0\n"}}, ["insight", "summary"]),
        ({"insight": {"summary": "x" * 501}}, ["insight", "summary"]),
        ({"insight": {"detail": "x" * 8001}}, ["insight", "detail"]),
        ({"insight": {"action": "x" * 2001}}, ["insight", "action"]),
        ({"insight": {"action": None}}, ["insight", "action"]),
        ({"insight": None}, ["insight"]),
        ({"context": {"pattern": "x" * 201}}, ["context", "pattern"]),
        ({"context": {"languages": ["a\0"]}}, ["context", "languages", 0]),
        ({"revision": 0, "domains": ["x"]}, ["revision"]),
    ):
        answer = call("PATCH", f"/review/{unit['id']}", body, user="rita")
        assert answer.status_code == 422, body
        assert [problem["loc"] for problem in answer.json["detail"]] == [["body", *place]]
    assert item(call, unit)["knowledge_unit"] == unit
    assert item(call, unit)["revision"] == 1


def test_only_pending_and_disputed_units_are_edited(call):
    words = {"insight": {"summary": "Better"}}
    approved = call.approve("approved")
    answer = call("PATCH", f"/review/{approved['id']}", words, user="rita")
    assert answer.status_code == 409
    assert answer.json == {"detail": "Knowledge unit has no unanswered flag"}
    rejected = call.propose("rejected")
    at = review(call, rejected, "reject").json["reviewed_at"]
    answer = call("PATCH", f"/review/{rejected['id']}", words, user="rita")
    assert answer.status_code == 409
    assert answer.json == {"detail": f"Knowledge unit already rejected by rita at {at}"}
    for unit in (approved, rejected):
        assert item(call, unit)["knowledge_unit"] == unit
        assert history(call, unit)["revisions"] == []


def test_an_edit_answers_the_flags_of_a_disputed_unit(call):
    unit = disputed(call, "disputed", ["d"])
    words = {"insight": {"summary": "Mended"}}
    answer = call("PATCH", f"/review/{unit['id']}", words, user="rita")
    assert answer.status_code == 200
    assert (answer.json["status"], answer.json["disputed"]) == ("approved", False)
    assert call.found(domains="d") == [unit["id"]]
    assert queue(call, "attention")["total"] == 0
    (told,) = history(call, unit)["flags"]
    assert told["answered_by"] == "rita"


def test_a_decision_about_older_words_is_refused(call):
    """Whoever names the revision that was read neither decides on nor overwrites another."""
    unit = call.propose()
    path = f"/review/{unit['id']}"
    mine = {"insight": {"summary": "Words of rita"}, "revision": 1}
    assert call("PATCH", path, mine, user="rita").status_code == 200
    theirs = {"insight": {"summary": "Words of ada"}, "revision": 1}
    answers = [
        call("PATCH", path, theirs, user="ada"),
        review(call, unit, "approve", {"revision": 1}, user="ada"),
        review(call, unit, "reject", {"revision": 1}, user="ada"),
        review(call, unit, "approve", {"revision": 3}, user="ada"),
    ]
    for answer in answers:
        assert answer.status_code == 409
        assert "edited meanwhile" in answer.json["detail"]
        assert "revision 2" in answer.json["detail"]
    shown = item(call, unit)
    assert (shown["status"], shown["revision"]) == ("pending", 2)
    assert shown["knowledge_unit"]["insight"]["summary"] == "Words of rita"
    assert review(call, unit, "approve", {"revision": 2}).status_code == 200


def test_an_edit_of_older_words_of_a_disputed_unit_is_told_so(call):
    unit = call.propose()
    path = f"/review/{unit['id']}"
    assert call("PATCH", path, {"domains": ["two"]}, user="rita").status_code == 200
    review(call, unit, "approve")
    flag(call, unit)
    answer = call("PATCH", path, {"domains": ["three"], "revision": 1}, user="ada")
    assert answer.status_code == 409
    assert "edited meanwhile" in answer.json["detail"]
    assert "revision 2" in answer.json["detail"]
    assert item(call, unit)["disputed"] is True


# Another look


def test_the_attention_queue_holds_units_with_an_unanswered_flag(call):
    assert queue(call, "attention") == {
        "items": [],
        "total": 0,
        "offset": 0,
        "limit": 20,
        "next_cursor": None,
    }
    first, second = call.approve("first"), call.approve("second")
    call.approve("third")
    flag(call, second, "incorrect", detail="wrong since 2.0")
    flag(call, first)
    page = queue(call, "attention")
    assert ids(page["items"]) == [first["id"], second["id"]]
    assert page["total"] == 2
    assert page["items"][1] == item(call, second)
    assert page["items"][1]["disputed"] is True
    assert page["items"][1]["knowledge_unit"]["flags"][0]["detail"] == "wrong since 2.0"
    assert ids(queue(call, "attention", limit=1, offset=1)["items"]) == [second["id"]]


def test_keeping_a_disputed_unit_answers_its_flags(call):
    unit = disputed(call, "kept", ["k"])
    flag(call, unit, "incorrect", key="carl", detail="wrong")
    before = item(call, unit)
    answer = review(call, unit, "keep", {"reason": "still right"}, user="ada")
    assert answer.status_code == 200
    assert (answer.json["status"], answer.json["reviewed_by"]) == ("approved", "rita")
    after = item(call, unit)
    assert after == {**before, "disputed": False, "flags": after["flags"]}
    assert [flag["answered_by"] for flag in after["flags"]] == ["ada", "ada"]
    assert queue(call, "attention")["total"] == 0
    assert call.found(domains="k") == [unit["id"]]
    told = history(call, unit)
    last = told["events"][-1]
    assert (last["type"], last["by"], last["reason"]) == ("kept", "ada", "still right")
    assert [(flag["by"], flag["reason"], flag["detail"]) for flag in told["flags"]] == [
        ("cleo", "stale", None),
        ("carl", "incorrect", "wrong"),
    ]
    for answered in told["flags"]:
        assert answered["answered_by"] == "ada"
        assert answered["answered_at"].endswith("+00:00")
    answer = review(call, unit, "keep")
    assert answer.status_code == 409
    assert answer.json == {"detail": "Knowledge unit has no unanswered flag"}
    flag(call, unit, "incorrect")
    assert item(call, unit)["disputed"] is True
    assert [flag["answered_by"] for flag in history(call, unit)["flags"]] == ["ada", "ada", None]


def test_a_retired_unit_is_in_no_answer_of_agents(call):
    """Row 57."""
    unit = disputed(call, "retired", ["r"], tier="public")
    answer = review(call, unit, "retire", {"reason": "gone since 3.0"})
    assert answer.status_code == 200
    assert (answer.json["status"], answer.json["reviewed_by"]) == ("retired", "rita")
    assert call.found(domains="r") == call.found(q="retired") == []
    assert call("GET", f"/knowledge/{unit['id']}", key="carl").status_code == 404
    assert call("GET", "/knowledge/stats", key="carl").json["total_count"] == 0
    assert queue(call, "attention")["total"] == queue(call)["total"] == 0
    shown = item(call, unit)
    assert (shown["status"], shown["reason"]) == ("retired", "gone since 3.0")
    assert shown["disputed"] is False
    (told,) = history(call, unit)["flags"]
    assert told["answered_by"] == "rita"
    again = review(call, unit, "retire", user="ada")
    assert again.status_code == 409
    assert "already retired by rita at" in again.json["detail"]


def test_only_approved_units_are_kept_retired_or_superseded(call):
    new = call.approve("new")
    pending, rejected = call.propose("pending"), call.propose("rejected")
    review(call, rejected, "reject")
    for unit, why in ((pending, "is pending"), (rejected, "already rejected by rita at")):
        before = item(call, unit)
        for verb, body in (
            ("keep", None),
            ("retire", None),
            ("supersede", {"replacement": new["id"]}),
        ):
            answer = review(call, unit, verb, body, user="ada")
            assert answer.status_code == 409
            assert f"Knowledge unit {why}" in answer.json["detail"]
        assert item(call, unit) == before


def test_a_superseded_unit_leads_reviewers_to_the_new_one_and_agents_nowhere(call):
    """D11."""
    old = disputed(call, "old", ["s"], tier="public")
    new = call.approve("new", ["s"])
    answer = review(call, old, "supersede", {"replacement": new["id"], "reason": "same thing"})
    assert answer.status_code == 200
    assert (answer.json["unit_id"], answer.json["status"]) == (old["id"], "superseded")
    shown = item(call, old)
    assert shown["knowledge_unit"]["superseded_by"] == new["id"]
    assert (shown["status"], shown["reviewed_by"]) == ("superseded", "rita")
    assert shown["disputed"] is False
    assert call("GET", f"/knowledge/{old['id']}", key="carl").status_code == 404
    assert vote(call, old).status_code == 404
    assert call.found(domains="s") == call.found(q="old new") == [new["id"]]
    assert call("GET", "/knowledge/stats", key="carl").json["total_count"] == 1
    assert queue(call, "attention")["total"] == 0
    last = history(call, old)["events"][-1]
    assert (last["type"], last["reason"]) == ("superseded", "same thing")
    assert last["superseded_by"] == new["id"]
    (told,) = history(call, old)["flags"]
    assert told["answered_by"] == "rita"


def test_confirmations_are_carried_over_once_a_person(call):
    """The flags stay behind: they were about the old words."""
    old, new = call.approve("old", ["s"]), call.approve("new", ["s"])
    for name in ("carl", "cleo", "ada"):
        vote(call, old, name)
    vote(call, new, "ada")
    flag(call, old, "incorrect", key="rita")
    review(call, old, "supersede", {"replacement": new["id"]})
    (found,) = call("GET", "/knowledge?domains=s", key="carl").json["data"]
    assert found["id"] == new["id"]
    assert found["evidence"]["confirmations"] == 4
    assert found["evidence"]["confidence"] == 0.8
    assert found["flags"] == []
    assert history(call, new)["votes"] == {"confirm": 3}
    assert vote(call, new, "cleo").json["evidence"]["confirmations"] == 4
    assert vote(call, new, "rita").json["evidence"]["confirmations"] == 5


def test_confirmations_of_people_who_left_are_carried_over_too(call, app):
    """What a deleted account voted stays."""
    old, new = call.approve("old"), call.approve("new")
    vote(call, old, "cleo")
    vote(call, new, "ada")
    done = app.test_cli_runner().invoke(args=["user", "delete", "cleo", "--yes"])
    assert done.exit_code == 0, done.output
    review(call, old, "supersede", {"replacement": new["id"]})
    assert item(call, new)["knowledge_unit"]["evidence"]["confirmations"] == 3
    assert item(call, new)["knowledge_unit"]["evidence"]["confidence"] == 0.7


def test_a_replacement_is_another_approved_unit(call):
    old = call.approve("old")
    retired = call.approve("retired")
    review(call, retired, "retire")
    for body, status in (
        ({}, 422),
        ({"replacement": None}, 422),
        ({"replacement": "ku_1"}, 422),
        ({"replacement": UNKNOWN}, 422),
        ({"replacement": call.propose("pending")["id"]}, 422),
        ({"replacement": retired["id"]}, 422),
        ({"replacement": old["id"]}, 422),
    ):
        assert review(call, old, "supersede", body).status_code == status, body
    assert item(call, old)["status"] == "approved"
    assert item(call, old)["knowledge_unit"]["superseded_by"] is None
    assert call.found(domains="state") == [old["id"]]


# In bulk


def bulk(call, decision, ids, user="rita", **more):
    body = {"decision": decision, "ids": ids, **more}
    return call("POST", "/review/bulk", body, user=user)


def test_bulk_decisions_are_answered_per_id(call):
    one, two = call.propose("one"), call.propose("two")
    done = call.propose("done")
    at = review(call, done, "reject", user="ada").json["reviewed_at"]
    asked = [one["id"], done["id"], UNKNOWN, two["id"], one["id"]]
    answer = bulk(call, "approve", asked, tier="public", reason="good")
    assert answer.status_code == 200
    first, conflict, missing, last = answer.json["data"]
    for told, unit in ((first, one), (last, two)):
        assert list(told) == ["unit_id", "status", "reviewed_by", "reviewed_at"]
        assert (told["unit_id"], told["status"]) == (unit["id"], "approved")
        assert told["reviewed_by"] == "rita"
        shown = item(call, unit)
        assert (shown["status"], shown["reason"]) == ("approved", "good")
        assert shown["knowledge_unit"]["tier"] == "public"
        assert events(call, unit) == [("proposed", "carl"), ("approved", "rita")]
    assert conflict == {
        "unit_id": done["id"],
        "error": 409,
        "detail": f"Knowledge unit already rejected by ada at {at}",
    }
    assert missing == {"unit_id": UNKNOWN, "error": 404, "detail": "Knowledge unit not found"}
    assert item(call, done)["reviewed_by"] == "ada"


def test_a_bulk_decision_is_undone_in_bulk_with_one_event_a_unit(call):
    """Row 60."""
    units = [call.propose(f"unit {number}") for number in range(30)]
    asked = [unit["id"] for unit in units]
    answer = bulk(call, "reject", asked, reason="a mistake")
    assert [told["status"] for told in answer.json["data"]] == ["rejected"] * 30
    assert queue(call)["total"] == 0
    answer = bulk(call, "reopen", asked, user="ada", reason="undone")
    assert [told["status"] for told in answer.json["data"]] == ["pending"] * 30
    assert queue(call)["total"] == 30
    for unit in units[::10]:
        assert events(call, unit) == [
            ("proposed", "carl"),
            ("rejected", "rita"),
            ("reopened", "ada"),
        ]
        assert item(call, unit)["knowledge_unit"] == unit


def test_a_bulk_decision_that_is_not_one_changes_nothing(call):
    unit = call.propose()
    for body, place in (
        ({"ids": [unit["id"]]}, ["decision"]),
        ({"decision": "retire", "ids": [unit["id"]]}, ["decision"]),
        ({"decision": "approve"}, ["ids"]),
        ({"decision": "approve", "ids": []}, ["ids"]),
        ({"decision": "approve", "ids": unit["id"]}, ["ids"]),
        ({"decision": "approve", "ids": [unit["id"], "x"]}, ["ids", 1]),
        ({"decision": "approve", "ids": [unit["id"]] * 201}, ["ids"]),
        ({"decision": "approve", "ids": [unit["id"]], "tier": "local"}, ["tier"]),
    ):
        answer = call("POST", "/review/bulk", body, user="rita")
        assert answer.status_code == 422, body
        assert answer.json["detail"][0]["loc"] == ["body", *place]
    assert item(call, unit)["status"] == "pending"
    assert bulk(call, "approve", [unit["id"]] * 200).status_code == 200


# Who may review what, and through what

STEPS = ["approve", "reject", "edit", "reopen", "keep", "retire", "supersede", "bulk"]


def due(call, decide, step, author):
    """(unit, call to make) of a step that is due on a unit of `author`; `decide` prepares it."""
    unit = call.propose(f"{step} of {author}", key=author)
    path, body = f"/review/{unit['id']}", None
    if step in ("reopen", "keep", "retire", "supersede"):
        assert decide("POST", f"{path}/approve").status_code == 200
    if step == "edit":
        return unit, ("PATCH", path, {"domains": ["x"]})
    if step == "bulk":
        return unit, ("POST", "/review/bulk", {"decision": "approve", "ids": [unit["id"]]})
    if step == "keep":
        flag(call, unit)
    if step == "supersede":
        new = call.propose(f"instead of {author}'s", key="cleo")
        assert decide("POST", f"/review/{new['id']}/approve").status_code == 200
        body = {"replacement": new["id"]}
    return unit, ("POST", f"{path}/{step}", body)


def test_ones_own_proposal_is_not_reviewed_where_that_is_forbidden(make_call):
    """In any verb; what others proposed is."""
    call = make_call(CQ_SELF_REVIEW="0")
    ada, rita = partial(call, user="ada"), partial(call, user="rita")
    for step in STEPS:
        unit, step_due = due(call, ada, step, "rita")
        before = item(call, unit)
        told = rita(*step_due)
        if step == "bulk":
            (refused,) = told.json["data"]
            assert refused["error"] == 403
        else:
            refused = told.json
            assert told.status_code == 403, step
        assert "own proposals" in refused["detail"]
        assert item(call, unit) == before
        unit, step_due = due(call, ada, step, "carl")
        before = item(call, unit)
        assert rita(*step_due).status_code == 200, step
        assert item(call, unit) != before


def test_by_default_ones_own_proposal_is_reviewed_and_the_event_says_so(call):
    unit = call.propose(key="rita")
    call("PATCH", f"/review/{unit['id']}", {"domains": ["x"]}, user="rita")
    review(call, unit, "reject", user="ada")
    review(call, unit, "reopen", user="rita")
    review(call, unit, "approve", user="rita")
    told = [(event["type"], event["self_reviewed"]) for event in history(call, unit)["events"]]
    assert told == [
        ("proposed", False),
        ("edited", True),
        ("rejected", False),
        ("reopened", True),
        ("approved", True),
    ]


def test_where_people_must_decide_only_the_page_may(make_call):
    """In any verb; reading stays open to tokens."""
    call = make_call(CQ_HUMAN_REVIEW="1")
    page, token = Page(call, "rita"), partial(call, user="rita")
    for step in STEPS:
        unit, step_due = due(call, page, step, "carl")
        before = item(call, unit)
        refused = token(*step_due)
        assert refused.status_code == 403, step
        assert "review page" in refused.json["detail"]
        assert item(call, unit) == before
        assert page(*step_due).status_code == 200, step
        assert item(call, unit) != before
        assert history(call, unit)["events"][-1]["channel"] == "page"


def test_a_token_sent_as_a_cookie_is_not_the_page(make_call):
    """Else whoever holds a bearer token could pass for a person at the page."""
    call = make_call(CQ_HUMAN_REVIEW="1")
    unit = call.propose()
    token = call.tokens["rita"]
    claims = base64.urlsafe_b64decode(token.split(".")[1] + "==")
    csrf = call.app.json.loads(claims).get("csrf", "")
    client = call.app.test_client()
    client.set_cookie("access_token_cookie", token, path="/api/")
    answer = client.post(f"/api/v1/review/{unit['id']}/approve", headers={"X-CSRF-TOKEN": csrf})
    assert answer.status_code in (401, 403)
    assert item(call, unit)["status"] == "pending"


def test_every_event_tells_its_channel(call):
    unit = call.propose(key="carl")
    page = Page(call, "rita")
    assert page("POST", f"/review/{unit['id']}/reject", {"reason": "no"}).status_code == 200
    assert review(call, unit, "reopen").status_code == 200
    body = {"decision": "approve", "ids": [unit["id"]]}
    assert page("POST", "/review/bulk", body).status_code == 200
    told = history(call, unit)["events"]
    assert [(event["type"], event["by"], event["channel"]) for event in told] == [
        ("proposed", "carl", "key"),
        ("rejected", "rita", "page"),
        ("reopened", "rita", "token"),
        ("approved", "rita", "page"),
    ]
    assert [event["reason"] for event in told] == [None, "no", None, None]
    times = [event["at"] for event in told]
    assert times == sorted(times)
    assert all(time.endswith("+00:00") for time in times)


def test_a_refused_step_leaves_no_event(call):
    unit = call.approve()
    before = history(call, unit)
    for verb, body in (
        ("approve", None),
        ("keep", None),
        ("supersede", {"replacement": unit["id"]}),
        ("supersede", {"replacement": UNKNOWN}),
    ):
        assert review(call, unit, verb, body).status_code in (409, 422)
    assert history(call, unit) == before
