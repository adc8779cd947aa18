"""What many do at once, on the threads of one server and on two servers over one database."""

import threading
from collections import Counter
from functools import partial

import pytest

import auth
from cq import unit as rules
from models import ApiKey, User, db
from tests.cast import proposal
from tests.test_serve import API, send, soon

pytestmark = pytest.mark.slow
CROWD = 200
BOTH = pytest.mark.parametrize("servers", [1, 2], ids=["one server", "two servers"], indirect=True)


@pytest.fixture
def crowd(app):
    """The API keys of 200 people; they share a password."""
    keys = []
    with app.app_context():
        hashed = User.find("carl").password_hash
        for number in range(CROWD):
            user = User.add(f"person {number}", hashed, "contributor")
            db.session.flush()
            id, secret = auth.new_key()
            hash_ = auth.key_hash(secret)
            ApiKey.add(user.id, "only", [], "1d", 86400, id, secret[:8], hash_)
            keys.append(auth.key_token(id, secret))
        db.session.commit()
    return keys


@pytest.fixture
def servers(serve, request):
    """The addresses of so many servers over the test's database."""
    return [serve(CQ_WRITE_RATE="off", CQ_READ_RATE="off").url for _ in range(request.param)]


def at_once(calls):
    """The answers of all calls in order; no call begins before all are about to."""
    ready = threading.Barrier(len(calls))
    answers = [None] * len(calls)

    def run(place, call):
        ready.wait(60)
        answers[place] = call()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def spread(servers, requests):
    """Send (method, path, body, token) requests at once, to the servers in turn."""
    return at_once(
        [
            partial(
                send, servers[place % len(servers)], method, API + path, body, token, timeout=60
            )
            for place, (method, path, body, token) in enumerate(requests)
        ]
    )


def statuses(answers):
    return Counter(answer.status for answer in answers)


def look(url, path, token):
    """The JSON of a read that must succeed."""
    answer = send(url, "GET", API + path, token=token)
    assert answer.status == 200, answer.body
    return answer.json


@BOTH
def test_every_one_of_two_hundred_confirmations_counts(call, crowd, servers):
    """Row 14 of the troublesome inputs."""
    id, rita = call.approve()["id"], call.tokens["rita"]
    answers = spread(
        servers, [("POST", f"/knowledge/{id}/confirmations", None, key) for key in crowd]
    )
    assert statuses(answers) == {201: CROWD}
    counted = [answer.json["evidence"]["confirmations"] for answer in answers]
    assert sorted(counted) == list(range(2, CROWD + 2))
    for url in servers:
        unit = look(url, f"/review/{id}", rita)["knowledge_unit"]
        assert unit["evidence"]["confirmations"] == CROWD + 1
        assert unit["evidence"]["confidence"] == 1.0
        assert look(url, f"/review/{id}/history", rita)["votes"] == {"confirm": CROWD}


@BOTH
def test_every_one_of_twenty_flags_counts(call, crowd, servers):
    id, rita = call.approve()["id"], call.tokens["rita"]
    reasons = ["stale", "incorrect"] * 10
    answers = spread(
        servers,
        [
            ("POST", f"/knowledge/{id}/flags", {"reason": reason, "detail": key[-9:]}, key)
            for reason, key in zip(reasons, crowd, strict=False)
        ],
    )
    assert statuses(answers) == {201: 20}
    assert sorted(len(answer.json["flags"]) for answer in answers) == list(range(1, 21))
    history = look(servers[0], f"/review/{id}/history", rita)
    assert history["votes"] == {"stale": 10, "incorrect": 10}
    assert {flag["detail"] for flag in history["flags"]} == {key[-9:] for key in crowd[:20]}
    evidence = look(servers[-1], f"/review/{id}", rita)["knowledge_unit"]["evidence"]
    assert evidence["confidence"] == 0.0


@BOTH
def test_one_person_s_twenty_confirmations_at_once_count_once(call, servers):
    id = call.approve()["id"]
    vote = ("POST", f"/knowledge/{id}/confirmations", None, call.keys["cleo"])
    answers = spread(servers, [vote] * 20)
    assert statuses(answers) == {201: 20}
    assert {answer.json["evidence"]["confirmations"] for answer in answers} == {2}
    votes = look(servers[0], f"/review/{id}/history", call.tokens["rita"])["votes"]
    assert votes == {"confirm": 1}


@BOTH
def test_of_two_decisions_at_once_one_wins_and_the_other_hears_of_it(call, servers):
    """Row 15 of the troublesome inputs."""
    ids = [call.propose(f"contested {number}")["id"] for number in range(50)]
    people = {"approve": "rita", "reject": "ada"}
    answers = spread(
        servers,
        [
            ("POST", f"/review/{id}/{verb}", None, call.tokens[name])
            for id in ids
            for verb, name in people.items()
        ],
    )
    names = {"approved": "rita", "rejected": "ada"}
    for id, approval, rejection in zip(ids, answers[::2], answers[1::2], strict=True):
        winner, loser = sorted((approval, rejection), key=lambda answer: answer.status)
        assert (winner.status, loser.status) == (200, 409)
        status = "approved" if winner is approval else "rejected"
        assert winner.json["status"] == status
        assert winner.json["reviewed_by"] == names[status]
        assert f"{status} by {names[status]}" in loser.json["detail"]
        item = look(servers[0], f"/review/{id}", call.tokens["rita"])
        assert (item["status"], item["reviewed_by"]) == (status, names[status])
        events = look(servers[-1], f"/review/{id}/history", call.tokens["rita"])["events"]
        assert [event["type"] for event in events] == ["proposed", status]


@BOTH
def test_a_bulk_decision_and_single_ones_at_once_decide_each_unit_once(call, servers):
    ids = [call.propose(f"contested {number}")["id"] for number in range(30)]
    rita, ada = call.tokens["rita"], call.tokens["ada"]
    approval = ("POST", "/review/bulk", {"decision": "approve", "ids": ids}, rita)
    rejections = [("POST", f"/review/{id}/reject", None, ada) for id in ids]
    bulk, *single = spread(servers, [approval, *rejections])
    assert bulk.status == 200, bulk.body
    for one, rejection in zip(bulk.json["data"], single, strict=True):
        item = look(servers[0], f"/review/{one['unit_id']}", rita)
        if rejection.status == 200:
            assert one["error"] == 409
            assert "rejected by ada" in one["detail"]
            assert item["status"] == "rejected"
        else:
            assert rejection.status == 409
            assert "approved by rita" in rejection.json["detail"]
            assert one["status"] == item["status"] == "approved"


@BOTH
def test_no_twenty_first_key_is_made_however_many_ask_at_once(call, servers):
    carl = call.tokens["carl"]
    wish = ("POST", "/users/me/api-keys", {"name": "more", "ttl": "1d"}, carl)
    # The cast has one key each.
    answers = spread(servers, [wish] * 40)
    assert statuses(answers) == {201: 19, 409: 21}
    assert statuses(spread(servers, [wish] * 10)) == {409: 10}
    keys = look(servers[0], "/users/me/api-keys", carl)["data"]
    assert sum(key["is_active"] for key in keys) == 20
    made = {answer.json["id"] for answer in answers if answer.status == 201}
    assert {key["id"] for key in keys} >= made


@BOTH
@pytest.mark.parametrize("key", [rules.new_id(), "attempt 7", None], ids=["id", "words", "none"])
def test_the_same_proposal_twenty_times_at_once_is_one_unit(call, servers, key):
    """Row 30: with the same Idempotency-Key, and without one by its content."""
    headers = {"Idempotency-Key": key} if key else {}
    answers = at_once(
        [
            partial(
                send,
                servers[place % len(servers)],
                "POST",
                f"{API}/knowledge",
                proposal(),
                call.keys["carl"],
                headers,
            )
            for place in range(20)
        ]
    )
    assert statuses(answers) == {201: 20}
    (id,) = {answer.json["id"] for answer in answers}
    assert id == key or not rules.is_id(key)
    rita = call.tokens["rita"]
    queue = look(servers[0], "/review/queue", rita)
    assert [item["knowledge_unit"]["id"] for item in queue["items"]] == [id]
    events = look(servers[-1], f"/review/{id}/history", rita)["events"]
    assert [event["type"] for event in events] == ["proposed"]


@BOTH
def test_an_id_that_two_people_claim_at_once_goes_to_one(call, servers):
    for _ in range(10):
        id = rules.new_id()
        answers = at_once(
            [
                partial(
                    send,
                    servers[place % len(servers)],
                    "POST",
                    f"{API}/knowledge",
                    proposal(f"by {name}"),
                    call.keys[name],
                    {"Idempotency-Key": id},
                )
                for place, name in enumerate(("carl", "cleo"))
            ]
        )
        assert statuses(answers) == {201: 1, 409: 1}
        (author,) = (answer.json["created_by"] for answer in answers if answer.status == 201)
        item = look(servers[0], f"/review/{id}", call.tokens["rita"])
        assert item["knowledge_unit"]["created_by"] == author


@BOTH
def test_two_admins_who_shut_each_other_out_leave_one(call, servers):
    call("PATCH", "/users/rita", {"role": "admin"}, user="ada")
    for _ in range(5):
        with call.app.app_context():
            tokens = {name: auth.token_for(User.find(name)) for name in ("ada", "rita")}
        answers = spread(
            servers,
            [
                ("PATCH", "/users/rita", {"disabled": True}, tokens["ada"]),
                ("PATCH", "/users/ada", {"disabled": True}, tokens["rita"]),
            ],
        )
        won = [answer for answer in answers if answer.status == 200]
        assert len(won) == 1, answers
        # The other one was no longer signed in, or would have been the last to go.
        assert {answer.status for answer in answers} <= {200, 401, 409}
        loser = won[0].json["username"]
        winner = "ada" if loser == "rita" else "rita"
        assert send(servers[0], "GET", f"{API}/users", token=tokens[loser]).status == 401
        enabled = send(
            servers[0], "PATCH", f"{API}/users/{loser}", {"disabled": False}, tokens[winner]
        )
        assert enabled.status == 200


TWO = pytest.mark.parametrize("servers", [2], indirect=True)


@TWO
def test_a_decision_made_through_one_server_is_seen_through_the_other(call, servers):
    one, other = servers
    cleo, rita = call.keys["cleo"], call.tokens["rita"]
    id = call.propose(domains=["seen"])["id"]

    def found(url):
        units = look(url, "/knowledge?domains=seen", cleo)["data"]
        text = look(url, "/knowledge?q=force-unlock", cleo)["data"]
        assert [unit["id"] for unit in text] in ([], [id])
        return units

    def decide(url, verb):
        answer = send(url, "POST", f"{API}/review/{id}/{verb}", {}, rita)
        assert answer.status == 200, answer.body

    for _ in range(3):
        assert found(one) == found(other) == []
        decide(one, "approve")
        assert len(found(one)) == 1
        assert soon(lambda: len(found(other)) == 1)
        assert soon(lambda: look(other, "/knowledge/stats", cleo)["total_count"] == 1)
        decide(other, "retire")
        assert found(other) == []
        assert soon(lambda: found(one) == [])
        assert soon(lambda: look(one, "/knowledge/stats", cleo)["total_count"] == 0)
        decide(one, "reopen")


@TWO
def test_a_vote_and_an_edit_through_one_server_are_seen_through_the_other(call, servers):
    one, other = servers
    carl, cleo, rita = call.keys["carl"], call.keys["cleo"], call.tokens["rita"]
    id = call.approve(domains=["seen"])["id"]

    def first(url, domain="seen"):
        units = look(url, f"/knowledge?domains={domain}", cleo)["data"]
        return units[0] if units else None

    assert soon(lambda: first(one) and first(one) == first(other))
    assert send(one, "POST", f"{API}/knowledge/{id}/flags", {"reason": "stale"}, carl).status == 201
    assert soon(lambda: first(other)["evidence"]["confidence"] == 0.35)
    assert soon(lambda: [flag["reason"] for flag in first(other)["flags"]] == ["stale"])
    edit = {"domains": ["moved"], "insight": {"summary": "Better words"}}
    assert send(other, "PATCH", f"{API}/review/{id}", edit, rita).status == 200
    assert soon(lambda: first(one) is None)
    assert soon(lambda: first(one, "moved") is not None)
    assert first(one, "moved")["insight"]["summary"] == "Better words"


def allowed(url, key):
    """Whether an API key is taken; the unit that it asks for does not exist."""
    answer = send(url, "POST", f"{API}/knowledge/{rules.new_id()}/confirmations", token=key)
    assert answer.status in (401, 404)
    return answer.status == 404


@TWO
def test_a_key_revoked_through_one_server_ends_in_the_other(call, servers):
    one, other = servers
    made = send(
        one, "POST", f"{API}/users/me/api-keys", {"name": "x", "ttl": "1d"}, call.tokens["carl"]
    ).json
    assert soon(lambda: allowed(other, made["token"]))
    assert allowed(one, made["token"])
    revoke = f"{API}/users/me/api-keys/{made['id']}/revoke"
    assert send(one, "POST", revoke, token=call.tokens["carl"]).status == 200
    assert not allowed(one, made["token"])
    assert soon(lambda: not allowed(other, made["token"]))
    assert allowed(one, call.keys["carl"])
    assert allowed(other, call.keys["carl"])


@TWO
def test_a_person_disabled_through_one_server_is_shut_out_of_the_other(call, servers):
    one, other = servers
    key, token, ada = call.keys["carl"], call.tokens["carl"], call.tokens["ada"]
    private = call.approve(domains=["private"])["id"]

    def reads(url):
        return bool(look(url, "/knowledge?domains=private", key)["data"])

    def signed_in(url):
        answer = send(url, "GET", f"{API}/users/me", token=token)
        assert answer.status in (200, 401)
        return answer.status == 200

    for url in servers:
        assert soon(lambda url=url: reads(url))
        assert allowed(url, key)
        assert signed_in(url)
    assert send(one, "PATCH", f"{API}/users/carl", {"disabled": True}, ada).status == 200
    assert not allowed(one, key)
    assert soon(lambda: not allowed(other, key))
    assert soon(lambda: not reads(other))
    assert not signed_in(other)
    assert send(other, "GET", f"{API}/knowledge/{private}", token=key).status == 404
    assert send(one, "PATCH", f"{API}/users/carl", {"disabled": False}, ada).status == 200
    assert soon(lambda: allowed(other, key))
