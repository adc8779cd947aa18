"""What agents do to units: propose and its repeats, confirm, flag, read one; the rates they meet."""

import http.client
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from models.base import now
from tests.cast import UNIT, alter, proposal

FREE = "ku_0f3c9a51d2b84e6f9a7714c0be5d8812"
UNKNOWN = "ku_" + "0" * 32


def proposed(call, name="carl"):
    """How many units somebody has proposed."""
    return call("GET", "/users/me/proposals?limit=0", user=name).json["total"]


def confirm(call, unit, key="cleo"):
    return call("POST", f"/knowledge/{unit['id']}/confirmations", key=key)


def flag(call, unit, reason="stale", key="cleo", **more):
    return call("POST", f"/knowledge/{unit['id']}/flags", {"reason": reason, **more}, key=key)


def item(call, unit):
    return call("GET", f"/review/{unit['id']}", user="rita").json


# Propose


def test_a_proposal_answers_the_whole_unit(call):
    extensions = {"acme:team": "infra", "acme:nothing": None}
    body = proposal(extensions=extensions, created_by="somebody else")
    answer = call("POST", "/knowledge", body, key="carl")
    assert answer.status_code == 201
    unit = answer.json
    assert list(unit) == UNIT
    assert unit["domains"] == ["terraform", "state"]
    assert unit["insight"] == body["insight"]
    assert unit["context"] == body["context"]
    assert unit["extensions"] == extensions
    assert unit["created_by"] == "carl"
    assert (unit["version"], unit["tier"]) == (1, "private")
    assert (unit["superseded_by"], unit["flags"]) == (None, [])
    evidence = unit["evidence"]
    assert (evidence["confidence"], evidence["confirmations"]) == (0.5, 1)
    assert evidence["first_observed"] == evidence["last_confirmed"]
    assert evidence["first_observed"].endswith("Z")
    assert item(call, unit)["status"] == "pending"


def test_what_may_be_left_out_is_answered_empty(call):
    body = proposal()
    del body["context"]
    unit = call("POST", "/knowledge", body, key="carl").json
    assert unit["context"] == {"languages": [], "frameworks": [], "pattern": ""}
    assert unit["extensions"] is None


def test_what_the_server_decides_is_not_taken_from_the_client(call):
    body = proposal(
        id=FREE,
        version=7,
        tier="public",
        status="approved",
        superseded_by=UNKNOWN,
        flags=[{"reason": "stale"}],
        evidence={"confidence": 1.0, "confirmations": 99},
    )
    unit = call("POST", "/knowledge", body, key="carl").json
    assert unit["id"] != FREE
    assert (unit["version"], unit["tier"], unit["superseded_by"]) == (1, "private", None)
    assert unit["flags"] == []
    assert unit["evidence"]["confidence"] == 0.5
    assert unit["evidence"]["confirmations"] == 1
    assert item(call, unit)["status"] == "pending"


def test_agents_write_by_a_key_and_by_nothing_else(call):
    unit = call.approve()
    session = {"Authorization": f"Bearer {call.tokens['ada']}"}
    for path, body in (
        ("/knowledge", proposal()),
        (f"/knowledge/{unit['id']}/confirmations", None),
        (f"/knowledge/{unit['id']}/flags", {"reason": "stale"}),
    ):
        for headers in ({}, session):
            answer = call("POST", path, body, headers=headers)
            assert (answer.status_code, answer.json) == (401, {"detail": "Invalid API key"})
    assert item(call, unit)["knowledge_unit"]["evidence"] == unit["evidence"]


# Repeats


def test_a_repeat_under_the_same_key_answers_the_same_unit(call):
    """Row 30: the first words stay, whatever the repeat says."""
    headers = {"Idempotency-Key": "attempt 1"}
    first = call.propose(headers=headers)
    assert call.propose(headers=headers) == first
    assert call.propose("other words", ["other"], headers=headers) == first
    assert proposed(call) == 1


def test_a_key_that_is_a_unit_id_becomes_the_id(call):
    headers = {"Idempotency-Key": FREE}
    first = call.propose(headers=headers)
    assert first["id"] == FREE
    assert call.propose(headers=headers) == first
    assert proposed(call) == 1


def test_a_key_that_only_resembles_a_unit_id_does_not_become_the_id(call):
    for key in (FREE.upper(), FREE[:-1], f"{FREE}0", FREE.replace("ku_", "")):
        unit = call.propose(key, headers={"Idempotency-Key": key})
        assert unit["id"] != key
        assert call.propose(key, headers={"Idempotency-Key": key}) == unit


def test_the_id_of_somebody_elses_unit_is_a_conflict(call):
    """Whether that id came from a key or from the server, and whatever became of the unit."""
    named = call.propose("named by its author", headers={"Idempotency-Key": FREE})
    numbered = call.approve("numbered by the server")
    rejected = call.propose("rejected")
    call("POST", f"/review/{rejected['id']}/reject", user="rita")
    for unit in (named, numbered, rejected):
        answer = call(
            "POST",
            "/knowledge",
            proposal("of cleo"),
            key="cleo",
            headers={"Idempotency-Key": unit["id"]},
        )
        assert answer.status_code == 409
        assert isinstance(answer.json["detail"], str)
        assert item(call, unit)["knowledge_unit"] == unit
    assert proposed(call, "cleo") == 0


def test_the_id_of_ones_own_unit_answers_that_unit(call):
    first = call.propose("numbered by the server")
    again = call.propose("other words", headers={"Idempotency-Key": first["id"]})
    assert again == first
    assert proposed(call) == 1


def test_two_people_may_use_the_same_key(call):
    headers = {"Idempotency-Key": "attempt 1"}
    of_carl = call.propose(headers=headers)
    of_cleo = call.propose(headers=headers, key="cleo")
    assert of_carl["id"] != of_cleo["id"]
    assert of_cleo["created_by"] == "cleo"
    assert call.propose(headers=headers)["id"] == of_carl["id"]


def test_the_same_words_under_another_key_are_another_unit(call):
    ids = {call.propose(headers={"Idempotency-Key": f"attempt {n}"})["id"] for n in range(3)}
    assert len(ids) == 3


def test_a_key_is_remembered_longer_than_words_are(call, app):
    headers = {"Idempotency-Key": "attempt 1"}
    first = call.propose(headers=headers)
    alter(app, "UPDATE units SET created_at = :at", at=now(3 * 86400))
    assert call.propose(headers=headers)["id"] == first["id"]


def test_without_a_key_the_same_words_are_a_repeat_for_ten_minutes(call, app):
    first = call.propose()
    alter(app, "UPDATE units SET created_at = :at", at=now(590))
    assert call.propose()["id"] == first["id"]
    alter(app, "UPDATE units SET created_at = :at", at=now(601))
    later = call.propose()
    assert later["id"] != first["id"]
    assert call.propose()["id"] == later["id"]
    assert proposed(call) == 2


def test_words_are_the_same_in_any_spelling_of_tags_and_white_space(call):
    first = call.propose("Two  words\n", ["HTTP", "café"])
    insight = {**proposal("Two words")["insight"]}
    insight["action"] = f"  {insight['action']}\n"
    again = call.propose(domains=["cafe\u0301", " http ", "ＨＴＴＰ"], insight=insight)
    assert again["id"] == first["id"]


def test_words_that_differ_are_another_unit(call):
    """Row 29: two units that differ in one number are both kept."""
    words, context = "Port 8000 is taken", {"languages": ["hcl"], "pattern": "infra"}
    bodies = [
        proposal(words),
        proposal("Port 8001 is taken"),
        proposal("port 8000 is taken"),
        proposal(words, ["terraform"]),
        proposal(words, extensions={"acme:team": "infra"}),
        proposal(words, context={"pattern": "infra"}),
        proposal(words, context={**context, "frameworks": ["gin"]}),
        proposal(words, context={**context, "pattern": "other"}),
    ]
    ids = [call("POST", "/knowledge", body, key="carl").json["id"] for body in bodies]
    assert len(set(ids)) == len(bodies)
    again = [call("POST", "/knowledge", body, key="carl").json["id"] for body in bodies]
    assert again == ids


def test_the_same_words_of_somebody_else_are_another_unit(call):
    assert call.propose()["id"] != call.propose(key="cleo")["id"]


def test_a_repeat_answers_the_unit_as_it_is_by_now(call):
    headers = {"Idempotency-Key": "attempt 1"}
    first = call.propose(headers=headers)
    words = {"insight": {"summary": "Better words"}}
    assert call("PATCH", f"/review/{first['id']}", words, user="rita").status_code == 200
    assert call("POST", f"/review/{first['id']}/approve", user="rita").status_code == 200
    again = call.propose(headers=headers)
    assert again["id"] == first["id"]
    assert again["insight"]["summary"] == "Better words"
    assert item(call, first)["status"] == "approved"


def test_a_repeat_is_known_by_the_words_that_were_sent(call):
    """A reviewer who edits meanwhile does not make the retry a second unit."""
    first = call.propose("First words")
    words = {"insight": {"summary": "Better words"}}
    assert call("PATCH", f"/review/{first['id']}", words, user="rita").status_code == 200
    assert call.propose("First words")["id"] == first["id"]


def test_a_key_that_cannot_be_kept_is_refused(call):
    for key in ("", "k" * 256, "caf\xe9", "a\tb"):
        headers = {"Idempotency-Key": key}
        answer = call("POST", "/knowledge", proposal(), key="carl", headers=headers)
        assert answer.status_code == 422, key
        (problem,) = answer.json["detail"]
        assert problem["loc"] == ["header", "Idempotency-Key"]
    assert proposed(call) == 0
    headers = {"Idempotency-Key": "~" * 255}
    assert call.propose("one", headers=headers) == call.propose("two", headers=headers)


def test_repeats_at_the_same_time_make_one_unit(call):
    for number, headers in enumerate(
        ({}, {"Idempotency-Key": "attempt 1"}, {"Idempotency-Key": FREE}), 1
    ):
        with ThreadPoolExecutor(8) as pool:
            units = list(pool.map(lambda _, sent=headers: call.propose(headers=sent), range(12)))
        assert len({unit["id"] for unit in units}) == 1
        assert proposed(call) == number


@pytest.mark.slow
def test_a_repeat_after_a_cut_connection_makes_no_second_unit(serve, call):
    """Row 30: the first answer is never read."""
    address = urlsplit(serve().url)
    body = json.dumps(proposal()).encode()
    headers = {
        "Authorization": f"Bearer {call.keys['carl']}",
        "Content-Type": "application/json",
        "Idempotency-Key": FREE,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(
            f"POST /api/v1/knowledge HTTP/1.1\r\nHost: {address.netloc}\r\n{head}"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
    answers = []
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=10)
    for _ in range(2):
        connection.request("POST", "/api/v1/knowledge", body, headers)
        answer = connection.getresponse()
        answers.append((answer.status, json.loads(answer.read())["id"]))
    connection.close()
    assert answers == [(201, FREE)] * 2
    assert proposed(call) == 1


# Confirm and flag


def test_a_confirmation_raises_the_confidence(call):
    unit = call.approve()
    answer = confirm(call, unit)
    assert answer.status_code == 201
    assert list(answer.json) == [name for name in UNIT if name != "created_by"]
    evidence = answer.json["evidence"]
    assert (evidence["confidence"], evidence["confirmations"]) == (0.6, 2)
    assert evidence["last_confirmed"] > evidence["first_observed"]
    assert evidence["first_observed"] == unit["evidence"]["first_observed"]
    assert call("GET", f"/knowledge/{unit['id']}", key="cleo").json == answer.json


def test_the_body_of_a_confirmation_is_not_read(call):
    unit = call.approve()
    path = f"/knowledge/{unit['id']}/confirmations"
    answer = call("POST", path, key="cleo", data=b"{not json", content_type="application/json")
    assert answer.status_code == 201


def test_a_flag_lowers_the_confidence_and_is_listed(call):
    unit = call.approve()
    answer = flag(call, unit, "incorrect")
    assert answer.status_code == 201
    assert list(answer.json) == [name for name in UNIT if name != "created_by"]
    assert answer.json["evidence"] == {**unit["evidence"], "confidence": 0.35}
    (listed,) = answer.json["flags"]
    assert list(listed) == ["reason", "timestamp", "detail", "duplicate_of"]
    assert listed["reason"] == "incorrect"
    assert listed["timestamp"] > unit["evidence"]["first_observed"]
    assert listed["timestamp"].endswith("Z")
    assert listed["detail"] is listed["duplicate_of"] is None


def test_authors_may_confirm_and_flag_their_own(call):
    unit = call.approve(key="carl")
    assert confirm(call, unit, key="carl").json["evidence"]["confirmations"] == 2
    assert len(flag(call, unit, key="carl").json["flags"]) == 1


def test_a_repeated_vote_within_the_window_changes_nothing(call, app):
    """Each reason is a vote of its own, and so is each person's."""
    unit = call.approve()
    once = confirm(call, unit)
    again = confirm(call, unit)
    assert (again.status_code, again.json) == (201, once.json)
    flagged = flag(call, unit, "stale", detail="first")
    repeated = flag(call, unit, "stale", detail="second")
    assert (repeated.status_code, repeated.json) == (201, flagged.json)
    assert flag(call, unit, "incorrect").json["evidence"]["confidence"] == 0.3
    assert confirm(call, unit, key="carl").json["evidence"]["confirmations"] == 3
    assert len(flag(call, unit, "stale", key="carl").json["flags"]) == 3
    alter(app, "UPDATE votes SET at = :at", at=now(86400 - 60))
    assert confirm(call, unit).json["evidence"]["confirmations"] == 3
    alter(app, "UPDATE votes SET at = :at", at=now(86400 + 1))
    assert confirm(call, unit).json["evidence"]["confirmations"] == 4
    assert len(flag(call, unit, "stale").json["flags"]) == 4
    votes = call("GET", f"/review/{unit['id']}/history", user="rita").json["votes"]
    assert votes == {"confirm": 3, "stale": 3, "incorrect": 1}


def test_the_window_is_the_one_that_is_set(make_call):
    call = make_call(CQ_VOTE_WINDOW="1h")
    unit = call.approve()
    confirm(call, unit)
    alter(call.app, "UPDATE votes SET at = :at", at=now(3540))
    assert confirm(call, unit).json["evidence"]["confirmations"] == 2
    alter(call.app, "UPDATE votes SET at = :at", at=now(3601))
    assert confirm(call, unit).json["evidence"]["confirmations"] == 3


def test_with_a_window_of_zero_every_vote_counts_by_exact_steps(make_call):
    """Three confirmations give 0.8 and not 0.7999: the sums stay on the edges of the buckets."""
    call = make_call(CQ_VOTE_WINDOW="0")
    unit = call.approve()
    up = [confirm(call, unit).json["evidence"]["confidence"] for _ in range(6)]
    assert up == [0.6, 0.7, 0.8, 0.9, 1.0, 1.0]
    down = [flag(call, unit).json["evidence"]["confidence"] for _ in range(8)]
    assert down == [0.85, 0.7, 0.55, 0.4, 0.25, 0.1, 0.0, 0.0]
    shown = call("GET", f"/knowledge/{unit['id']}", key="cleo").json
    assert shown["evidence"]["confirmations"] == 7
    assert len(shown["flags"]) == 8


def test_votes_at_the_same_time_are_all_counted(make_call):
    """Row 14, within one process."""
    call = make_call(CQ_VOTE_WINDOW="0")
    unit = call.approve()
    with ThreadPoolExecutor(8) as pool:
        for answer in [pool.submit(confirm, call, unit) for _ in range(20)]:
            assert answer.result().status_code == 201
        for answer in [pool.submit(flag, call, unit) for _ in range(8)]:
            assert answer.result().status_code == 201
    shown = call("GET", f"/knowledge/{unit['id']}", key="cleo").json
    assert shown["evidence"]["confirmations"] == 21
    assert len(shown["flags"]) == 8


def test_repeated_votes_at_the_same_time_count_once(call):
    unit = call.approve()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: confirm(call, unit), range(16)))
    assert {answer.json["evidence"]["confirmations"] for answer in answers} == {2}


def test_only_approved_units_are_voted_on_and_read(call):
    pending = call.propose("pending")
    rejected = call.propose("rejected")
    call("POST", f"/review/{rejected['id']}/reject", user="rita")
    retired = call.approve("retired")
    call("POST", f"/review/{retired['id']}/retire", user="rita")
    for id in (pending["id"], rejected["id"], retired["id"], UNKNOWN, "ku_1", "x" * 300):
        for answer in (
            confirm(call, {"id": id}),
            flag(call, {"id": id}),
            flag(call, {"id": id}, "duplicate", duplicate_of=pending["id"]),
            call("GET", f"/knowledge/{id}", key="cleo"),
        ):
            assert answer.status_code == 404
            assert answer.json == {"detail": "Knowledge unit not found"}
    for unit in (pending, rejected, retired):
        assert item(call, unit)["knowledge_unit"] == unit


def test_a_flag_that_is_not_one_is_refused(call):
    unit = call.approve()
    for body, place, type in (
        ({}, "reason", "missing"),
        ({"reason": "wrong"}, "reason", "enum"),
        ({"reason": "Stale"}, "reason", "enum"),
        ({"reason": None}, "reason", "string_type"),
        ({"reason": "stale", "detail": "x" * 1001}, "detail", "value_error"),
        ({"reason": "stale", "detail": "a\0b"}, "detail", "value_error"),
        ({"reason": "stale", "detail": 1}, "detail", "string_type"),
    ):
        answer = call("POST", f"/knowledge/{unit['id']}/flags", body, key="cleo")
        assert answer.status_code == 422, body
        (problem,) = answer.json["detail"]
        assert (problem["loc"], problem["type"]) == (["body", place], type)
    assert item(call, unit)["knowledge_unit"] == unit


def test_a_duplicate_flag_names_the_other_unit(call):
    """D-01: the reference is kept and shown to agents and reviewers."""
    unit, other = call.approve("one"), call.propose("other")
    answer = flag(call, unit, "duplicate", duplicate_of=other["id"])
    assert answer.status_code == 201
    (listed,) = answer.json["flags"]
    assert (listed["reason"], listed["duplicate_of"]) == ("duplicate", other["id"])
    (seen,) = item(call, unit)["knowledge_unit"]["flags"]
    assert seen["duplicate_of"] == other["id"]


def test_a_duplicate_flag_without_a_true_reference_is_refused(call):
    """D-01: 422, so that no client takes it for an unreachable server."""
    unit = call.approve()
    for reference in (
        {},
        {"duplicate_of": None},
        {"duplicate_of": ""},
        {"duplicate_of": "ku_1"},
        {"duplicate_of": UNKNOWN},
        {"duplicate_of": unit["id"]},
        {"duplicate_of": unit["id"].upper()},
    ):
        answer = flag(call, unit, "duplicate", **reference)
        assert answer.status_code == 422, reference
        (problem,) = answer.json["detail"]
        assert problem["loc"] == ["body", "duplicate_of"]
    assert item(call, unit)["knowledge_unit"] == unit


def test_the_words_of_a_flag_are_for_reviewers_alone(call):
    unit = call.approve()
    words = "the flag's own words " + "x" * (1000 - 21)
    answers = [
        flag(call, unit, detail=words),
        flag(call, unit, detail=words),
        confirm(call, unit),
        call("GET", f"/knowledge/{unit['id']}", key="cleo"),
        call("GET", "/knowledge?domains=state", key="cleo"),
        call("POST", "/knowledge", proposal(), key="carl"),
        call("GET", "/users/me/proposals", user="carl"),
    ]
    for answer in answers:
        assert unit["id"] in answer.text
        assert '"reason":"stale"' in answer.text
        assert "own words" not in answer.text
    (seen,) = item(call, unit)["knowledge_unit"]["flags"]
    assert seen["detail"] == words


def test_a_flagged_unit_is_disputed_and_still_served(call):
    unit = call.approve("about state", ["state"])
    other = call.approve("about state too", ["state"])
    assert item(call, unit)["disputed"] is False
    flag(call, unit)
    shown = item(call, unit)
    assert (shown["status"], shown["disputed"]) == ("approved", True)
    assert call.found(domains="state") == [other["id"], unit["id"]]
    attention = call("GET", "/review/attention", user="rita").json
    assert [entry["knowledge_unit"]["id"] for entry in attention["items"]] == [unit["id"]]


def test_one_unit_is_read_as_a_query_shows_it(call):
    unit = call.approve(tier="public")
    flag(call, unit, detail="for reviewers")
    (found,) = call("GET", "/knowledge?domains=state", key="cleo").json["data"]
    for key in ("cleo", None):
        answer = call("GET", f"/knowledge/{unit['id']}", key=key)
        assert (answer.status_code, answer.json) == (200, found)
    assert "created_by" not in found
    assert found["tier"] == "public"


# Keys in use


def used(call, name="carl"):
    (key,) = call("GET", "/users/me/api-keys", user=name).json["data"]
    return key["last_used_at"]


def test_the_use_of_a_key_is_noted_whatever_the_answer(call):
    for name, method, path, status in (
        ("ada", "POST", "/knowledge", 422),
        ("rita", "POST", f"/knowledge/{UNKNOWN}/confirmations", 404),
        ("carl", "GET", "/knowledge?domains=x", 200),
        ("cleo", "GET", "/knowledge/stats", 200),
    ):
        assert used(call, name) is None
        body = {} if method == "POST" else None
        assert call(method, path, body, key=name).status_code == status
        first = used(call, name)
        assert first.endswith("+00:00")
        assert now(60)[:26] < first[:26] <= now()[:26]


def test_the_use_of_a_key_is_noted_once_a_minute(call):
    call.propose("one")
    first = used(call)
    call.propose("two")
    call("GET", "/knowledge?domains=x", key="carl")
    assert used(call) == first


def test_a_secret_that_is_wrong_is_no_use_of_the_key(call):
    wrong = call.keys["carl"][:-1] + ("a" if call.keys["carl"][-1] != "a" else "b")
    headers = {"Authorization": f"Bearer {wrong}"}
    assert call("POST", "/knowledge", proposal(), headers=headers).status_code == 401
    assert used(call) is None


# Rates


def test_too_many_writes_are_refused_so_that_clients_keep_the_unit(make_call):
    """503 and not 429, which would make clients drop the proposal."""
    call = make_call(CQ_WRITE_RATE="4/minute")
    unit = call.approve()
    assert confirm(call, unit, key="carl").status_code == 201
    assert flag(call, unit, key="carl").status_code == 201
    call.propose("the last one")
    for answer in (
        call("POST", "/knowledge", proposal("one too many"), key="carl"),
        confirm(call, unit, key="carl"),
        flag(call, unit, "incorrect", key="carl"),
    ):
        assert answer.status_code == 503
        assert 1 <= int(answer.headers["Retry-After"]) <= 61
        assert isinstance(answer.json["detail"], str)
    assert proposed(call) == 2
    assert call.found(domains="state") == [unit["id"]]
    call.propose("somebody else's", key="cleo")


def test_too_many_reads_are_refused(make_call):
    call = make_call(CQ_READ_RATE="3/minute")
    unit = call.approve(tier="public")
    paths = ("/knowledge?domains=state", "/knowledge/stats", f"/knowledge/{unit['id']}")
    for who in ({"key": "carl"}, {"user": "cleo"}, {}):
        for path in paths:
            assert call("GET", path, **who).status_code == 200
        for path in paths:
            answer = call("GET", path, **who)
            assert answer.status_code == 429
            assert 1 <= int(answer.headers["Retry-After"]) <= 61
            assert isinstance(answer.json["detail"], str)
    away = {"environ_overrides": {"REMOTE_ADDR": "192.0.2.7"}}
    assert call("GET", paths[0], **away).status_code == 200
    call.propose("writing goes on")


def test_keys_and_sessions_of_a_person_share_a_rate_whatever_the_address(make_call):
    call = make_call(CQ_READ_RATE="2/minute")
    away = {"environ_overrides": {"REMOTE_ADDR": "192.0.2.7"}}
    assert call("GET", "/knowledge/stats", key="carl").status_code == 200
    assert call("GET", "/knowledge/stats", user="carl").status_code == 200
    assert call("GET", "/knowledge/stats", key="carl", **away).status_code == 429


def test_discovery_and_health_have_no_rate(make_call):
    call = make_call(
        CQ_READ_RATE="1/minute", CQ_WRITE_RATE="1/minute", CQ_PUBLIC_URL="https://cq.example.org"
    )
    client = call.app.test_client()
    for path in ("/.well-known/cq-node.json", "/health", "/ready", "/api/v1/health"):
        for _ in range(3):
            assert client.get(path).status_code == 200


def test_rates_may_be_off(make_call):
    call = make_call(CQ_READ_RATE="off", CQ_WRITE_RATE="off")
    for number in range(5):
        call.propose(f"unit {number}")
        assert call.found(domains="none") == []
