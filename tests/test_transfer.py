"""Units out and in again: nothing is lost between two servers, and nothing bad comes in unnoticed."""

import json
import os
import stat
import threading

import pytest

from models import db
from tests.cast import alter, proposal
from tests.commands import flask, runner

TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7xY9zA1cD3eF5"


@pytest.fixture
def run(app):
    return runner(app)


def unit(number=1, **more):
    return {"id": f"ku_{number:032x}", **proposal(f"Number {number}"), **more}


def lines(*units):
    return "".join(f"{json.dumps(unit)}\n" for unit in units)


def exported(run, *options):
    code, said = run("export", "--status", "all", *options)
    assert code == 0, said
    return said


def parsed(said):
    return [json.loads(line) for line in said.splitlines()]


def seen(call, id, user="rita"):
    answer = call("GET", f"/review/{id}", user=user)
    return answer.json if answer.status_code == 200 else None


def eventful(call):
    """Units in every state, with all that can happen to one."""
    kept = call.approve(
        "Kept", extensions={"acme:team": {"name": "infra", "size": 3, "of": [1.5, None]}}
    )
    call.propose("Pending")
    # Two people's keys may be the same.
    same = {"Idempotency-Key": "a key"}
    call.approve("Public", tier="public", key="cleo", headers=same)
    rejected = call.propose("Rejected", headers=same)
    retired, old = call.approve("Retired"), call.approve("Old")
    edited, reopened = call.propose("Edited"), call.approve("Reopened", ("日本語", "straße"))
    call("POST", f"/knowledge/{kept['id']}/confirmations", key="cleo")
    for key, flag in (
        ("cleo", {"reason": "stale", "detail": "Since 1.2 it is not so.\n\u2603 \U0001f600"}),
        ("rita", {"reason": "duplicate", "duplicate_of": old["id"]}),
    ):
        assert call("POST", f"/knowledge/{kept['id']}/flags", flag, key=key).status_code == 201
    call("POST", f"/knowledge/{old['id']}/confirmations", key="rita")
    for id, verb, body in (
        (rejected["id"], "reject", {"reason": "Not here."}),
        (retired["id"], "retire", {"reason": "Gone."}),
        (old["id"], "supersede", {"replacement": kept["id"]}),
        (reopened["id"], "reopen", {"reason": "Once more."}),
    ):
        answer = call("POST", f"/review/{id}/{verb}", body, user="rita")
        assert answer.status_code == 200, answer.text
    change = {"insight": {"summary": "Edited twice", "detail": "d", "action": "a"}, "revision": 1}
    assert call("PATCH", f"/review/{edited['id']}", change, user="rita").status_code == 200
    return kept["id"], edited["id"]


# There and back


def test_what_is_exported_and_imported_is_exported_as_it_was(
    call, run, make_app, new_database, twin, stored, tmp_path
):
    """Into a server that has none of the people, and into one that has them; again and again."""
    eventful(call)
    alter(
        call.app,
        "UPDATE units SET created_by = 'nobody', author_id = NULL WHERE summary = 'Pending'",
    )
    said = exported(run)
    assert len(parsed(said)) == 8
    assert {line["status"] for line in parsed(said)} == {
        "pending", "approved", "rejected", "retired", "superseded",
    }  # fmt: skip
    (tmp_path / "units.jsonl").write_text(said)
    for there in (new_database(), twin):
        again = runner(make_app(**there))
        assert again("import", "--trust", tmp_path / "units.jsonl") == (
            0, "Imported 8 units; 0 were here already.\n",
        )  # fmt: skip
        assert exported(again) == said
        before = stored(there)
        assert again("import", "--trust", tmp_path / "units.jsonl") == (
            0, "Imported 0 units; 8 were here already.\n",
        )  # fmt: skip
        assert stored(there) == before


def test_reviewers_and_authors_see_imported_units_as_before(call, run, make_call, twin, tmp_path):
    kept, edited = eventful(call)
    (tmp_path / "units.jsonl").write_text(exported(run))
    there = make_call(**twin)
    assert runner(there.app)("import", "--trust", tmp_path / "units.jsonl")[0] == 0
    for path, who in (
        ("/review/units", {"user": "rita"}),
        ("/review/queue", {"user": "rita"}),
        ("/review/attention", {"user": "rita"}),
        ("/users/me/proposals", {"user": "carl"}),
        (f"/review/{kept}/history", {"user": "rita"}),
        (f"/review/{edited}/history", {"user": "rita"}),
        ("/knowledge?domains=terraform", {"key": "carl"}),
        ("/knowledge?q=kept", {}),
        ("/knowledge/stats", {}),
    ):
        assert there("GET", path, **who).json == call("GET", path, **who).json, path
    was, now = (each("GET", "/review/stats", user="rita").json for each in (call, there))
    # Events are imported unit by unit, so the feed is in another order.
    for stats in (was, now):
        stats["recent_activity"].sort(key=lambda entry: entry["unit_id"])
    assert now == was
    # A key that was used for a proposal still makes its repeat harmless.
    repeat = there.propose("Rejected", headers={"Idempotency-Key": "a key"})
    assert seen(there, repeat["id"])["status"] == "rejected"


def test_plain_export_has_approved_units_only(call, run):
    """Row 57: what was rejected, retired or superseded is in no answer, and in no export."""
    eventful(call)
    told = parsed(run("export")[1])
    assert {line["insight"]["summary"] for line in told} == {"Kept", "Public"}
    assert {line["status"] for line in told} == {"approved"}
    told = parsed(run("export", "--status", "rejected", "--status", "retired", "-")[1])
    assert {line["status"] for line in told} == {"rejected", "retired"}
    assert run("export", "--status", "gone")[0] == 2


def test_an_export_to_a_file_is_its_owners_and_replaces_none(call, run, tmp_path):
    call.approve()
    file = tmp_path / "units.jsonl"
    assert run("export", file) == (0, f"{file} holds 1 units.\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    whole = file.read_text()
    call.approve("Another")
    code, said = run("export", file)
    assert code == 1
    assert "there already" in said
    assert file.read_text() == whole
    assert run("export", "--force", file)[0] == 0
    assert len(parsed(file.read_text())) == 2
    code, said = run("export", tmp_path / "none" / "units.jsonl")
    assert code == 1
    assert "cannot be written" in said


def test_more_units_than_one_batch_come_through_in_order(run, make_app, tmp_path):
    units = [
        unit(number, created_at=f"2026-01-01T00:00:{number % 60:02}Z") for number in range(350)
    ]
    assert run("import", "--trust", "-", typed=lines(*units))[1].startswith("Imported 350 units")
    told = parsed(exported(run))
    assert [(line["created_at"], line["id"]) for line in told] == sorted(
        (line["created_at"], line["id"]) for line in told
    )
    assert len(told) == 350


# What comes in how


def test_imported_units_are_pending_whatever_they_were(call, run):
    code, said = run("import", "-", typed=lines(unit(
        status="approved", tier="public", reviewed_by="mallory", created_by="carl",
        evidence={"confidence": 0.9, "confirmations": 4},
    )))  # fmt: skip
    assert (code, said) == (0, "Imported 1 units; 0 were here already.\n")
    item = seen(call, unit()["id"])
    told = item["knowledge_unit"]
    assert (item["status"], item["reviewed_by"], told["tier"]) == ("pending", None, "private")
    assert (told["evidence"]["confidence"], told["evidence"]["confirmations"]) == (0.9, 4)
    assert told["created_by"] == "carl"
    assert call("GET", "/users/me/proposals", user="carl").json["items"] == []
    assert call.found(domains="terraform") == []
    (event,) = call("GET", f"/review/{told['id']}/history", user="rita").json["events"]
    assert (event["type"], event["by"], event["channel"]) == ("proposed", "carl", "command")
    assert call("POST", f"/review/{told['id']}/approve", user="rita").status_code == 200
    assert call.found(q="Number 1") == [told["id"]]


def test_approve_serves_them_at_once_and_says_who_it_was(call, run):
    assert run("import", "--approve", "-", typed=lines(unit()))[0] == 0
    item = seen(call, unit()["id"])
    assert (item["status"], item["reviewed_by"]) == ("approved", "import")
    assert call.found(domains="terraform") == [unit()["id"]]
    assert call.found(key=None, domains="terraform") == []
    events = call("GET", f"/review/{unit()['id']}/history", user="rita").json["events"]
    assert [(event["type"], event["channel"]) for event in events] == [
        ("proposed", "command"),
        ("approved", "command"),
    ]


def test_where_people_review_the_command_line_approves_nothing(make_app):
    run = runner(make_app(CQ_HUMAN_REVIEW="1"))
    code, said = run("import", "--approve", "-", typed=lines(unit()))
    assert code == 1
    assert "CQ_HUMAN_REVIEW" in said
    assert exported(run) == ""
    assert run("import", "--approve", "--trust", "-", typed=lines(unit()))[0] == 2


def test_a_list_of_proposals_is_read_too_and_twice_is_once(call, run):
    """Upstream's seed: one JSON list, no ids, members of its own that begin with `_`."""
    listed = [
        proposal(f"Seed {number}", _comment="x", _target_confidence=0.9) for number in range(3)
    ]
    for spaced in (json.dumps(listed), "\ufeff\r\n " + json.dumps(listed, indent=2)):
        code, said = run("import", "-", typed=spaced)
        assert code == 0, said
    assert said == "Imported 0 units; 3 were here already.\n"
    told = parsed(exported(run))
    assert [line["insight"]["summary"] for line in told] == ["Seed 0", "Seed 1", "Seed 2"]
    assert {line["created_by"] for line in told} == {"import"}
    code, said = run("import", "-", typed=json.dumps([proposal("New"), 5, {}]))
    assert code == 1
    assert "unit 2: " in said
    assert "unit 3: domains: " in said
    assert len(parsed(exported(run))) == 4


def test_units_as_agents_are_served_them_are_read(call, run, make_app, new_database):
    call.approve(tier="public")
    served = call("GET", "/knowledge?domains=terraform").json["data"]
    again = runner(make_app(**new_database()))
    assert again("import", "--approve", "-", typed=lines(*served))[0] == 0
    (told,) = parsed(exported(again))
    assert {name: told[name] for name in served[0] if name != "tier"} == {
        name: served[0][name] for name in served[0] if name != "tier"
    }


def test_what_was_edited_here_stays_edited(call, run):
    before = call.propose("As proposed")
    change = {"insight": {"summary": "As edited", "detail": "d", "action": "a"}, "revision": 1}
    assert call("PATCH", f"/review/{before['id']}", change, user="rita").status_code == 200
    assert run("import", "-", typed=lines(before)) == (
        0,
        "Imported 0 units; 1 were here already.\n",
    )
    assert seen(call, before["id"])["knowledge_unit"]["insight"]["summary"] == "As edited"


def test_an_id_that_is_another_units_is_refused(call, run):
    mine = call.propose("Mine")
    code, said = run(
        "import", "-", typed=lines({**mine, "insight": unit()["insight"]}, unit(2), unit(2))
    )
    assert code == 1
    assert f"line 1 ({mine['id']}): {mine['id']} is here already, with other words" in said
    assert "Imported 1 units; 1 were here already." in said
    assert seen(call, mine["id"])["knowledge_unit"]["insight"]["summary"] == "Mine"


# What stands in the file


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("begin", ["", "\ufeff", "\ufeff\r\n", "\n \t\n"])
def test_a_byte_order_mark_crlf_and_blank_lines_are_read(run, begin, end):
    """Row 47, and without a final line end."""
    typed = begin + f"{end}{end}  {end}".join(json.dumps(unit(number)) for number in range(3))
    assert run("import", "-", typed=typed) == (0, "Imported 3 units; 0 were here already.\n")
    assert len(parsed(exported(run))) == 3


def test_times_are_utc_whatever_they_were_and_wherever_the_server_is(environ, tmp_path):
    """Row 21: one without an offset is UTC by rule."""
    times = [
        "2026-03-01T10:00:00",
        "2026-03-01T15:30:00+05:30",
        "2026-03-01t10:00:00z",
        "2026-03-01 10:00:00.000",
    ]
    units = [
        unit(number, evidence={"first_observed": time, "last_confirmed": time}, created_at=time)
        for number, time in enumerate(times)
    ]
    there = {**environ, "TZ": "Asia/Kathmandu"}
    code, _, faults = flask(there, "import", "--trust", "-", typed=lines(*units).encode())
    assert code == 0, faults
    for line in parsed(flask(there, "export", "--status", "all")[1]):
        told = {line["created_at"], *line["evidence"].values()} - {0.5, 1}
        assert told == {"2026-03-01T10:00:00.000000Z"}


BAD = {
    "no JSON": (b"{", "not JSON"),
    "not UTF-8": (b'{"domains": ["caf\xe9"]}', "not UTF-8"),
    "UTF-16": (json.dumps(unit()).encode("utf-16"), "not UTF-8"),
    "NaN (row 49)": (lines(unit(evidence={"confidence": float("nan")})), "not JSON"),
    "infinite": (lines(unit(evidence={"confidence": float("inf")})), "not JSON"),
    "bottomless": ('{"a":' + "[" * 100_000, "not JSON"),
    "no object": ("5", "valid dictionary"),
    "null": ("null", "valid dictionary"),
    "nothing in it": ("{}", "domains: Field required; insight: Field required"),
    "no domain": (lines(unit(domains=[" "])), "domains: at least one"),
    "17 domains": (lines(unit(domains=[f"d{number}" for number in range(17)])), "at most 16 items"),
    "no id": (lines(unit(id="ku_1")), "id: not a knowledge unit id"),
    "too long (row 10)": (
        lines(unit(insight={"summary": "s", "detail": "d" * 8001, "action": "a"})),
        "insight.detail: detail must be at most 8000 characters, got 8001",
    ),
    "blank (row 11)": (
        lines(unit(insight={"summary": "\u00a0\n", "detail": "d", "action": "a"})),
        "insight.summary: must not be blank",
    ),
    "NUL (row 9)": (
        lines(unit(insight={"summary": "a\0b", "detail": "d", "action": "a"})),
        "insight.summary: must not contain NUL",
    ),
    "half a pair (row 8)": (lines(unit(domains=["\ud83d"])), "surrogates"),
    "confidence above 1": (lines(unit(evidence={"confidence": 1.5})), "evidence.confidence: "),
    "confidence no number": (lines(unit(evidence={"confidence": True})), "evidence.confidence: "),
    "confirmations below 0": (lines(unit(evidence={"confirmations": -1})), "evidence.confirmations"),
    "no time": (lines(unit(evidence={"first_observed": "yesterday"})), "first_observed: not a time"),
    "no year": (lines(unit(created_at="0001-01-01T00:00:00+05:00")), "created_at: not a time"),
    "no status": (lines(unit(status="deleted")), "status: Input should be"),
    "no reason": (lines(unit(flags=[{"reason": "ugly"}])), "flags.0.reason: Input should be"),
    "two revisions 1": (
        lines(
            unit(
                revisions=[
                    {"number": 1, "by": "x", "at": "2026-01-01", "content": proposal()}
                    for _ in range(2)
                ]
            )
        ),
        "revisions: has two of one number",
    ),
    "NUL in an event": (
        lines(
            unit(
                events=[
                    {"type": "kept", "by": "x", "channel": "page", "at": "2026-01-01", "details": {"a": ["\0"]}}
                ]
            )
        ),
        "NUL",
    ),
    "a key": (lines(unit(extensions={"nokey": 1})), "namespace:key"),
    "a secret": (
        lines(unit(insight={"summary": "s", "detail": f"Use {TOKEN} here", "action": "a"})),
        "detail: secret, ",
    ),
    "hidden": (lines(unit(context={"pattern": "a\u202eb"})), "pattern: hidden, "),
}  # fmt: skip


@pytest.mark.parametrize("how", [[], ["--trust"], ["--strict"]])
@pytest.mark.parametrize("case", BAD)
def test_a_bad_line_is_told_with_its_number_and_the_reason(run, case, how):
    """The others go in, or with --strict none; nothing of what was wrong is repeated."""
    bad, reason = BAD[case]
    bad = bad if isinstance(bad, bytes) else bad.rstrip("\n").encode(errors="surrogatepass")
    typed = lines(unit(7)).encode() + bad.replace(b"\n", b"") + b"\n\n" + lines(unit(8)).encode()
    code, said = run("import", *how, "-", typed=typed)
    assert code == 1
    assert "line 2" in said
    assert reason in said
    assert TOKEN not in said
    assert "d" * 100 not in said
    names = {line["insight"]["summary"] for line in parsed(exported(run))}
    assert names == (set() if how == ["--strict"] else {"Number 7", "Number 8"})


def test_strict_takes_in_nothing_where_an_id_is_anothers_too(call, run, stored):
    mine = call.propose("Mine")
    before = stored()
    typed = lines(*map(unit, range(250)), {**mine, "insight": unit()["insight"]})
    code, said = run("import", "--strict", "-", typed=typed)
    assert code == 1
    assert "line 251" in said
    assert "nothing was" in said
    assert stored() == before
    assert run("import", "--strict", "-", typed=lines(*map(unit, range(250))))[0] == 0
    assert len(parsed(exported(run))) == 251


def test_a_damaged_list_or_a_line_without_end_is_told_once(run):
    code, said = run("import", "-", typed=json.dumps([unit(1)])[:-5])
    assert code == 1
    assert said.startswith("the list: not JSON")
    code, said = run("import", "-", typed=b"x" * (33 << 20) + b"\n" + lines(unit(1)).encode())
    assert code == 1
    assert said.splitlines()[0] == "line 1: longer than 32 MiB"
    assert len(parsed(exported(run))) == 1


def test_a_truncated_export_gives_what_is_whole(run):
    typed = lines(unit(1), unit(2), unit(3))[:-40]
    code, said = run("import", "-", typed=typed)
    assert code == 1
    assert "line 3: not JSON" in said
    assert "Imported 2 units" in said


def test_a_file_that_is_not_there_is_a_misuse(run, tmp_path):
    assert run("import", tmp_path / "none.jsonl")[0] == 2
    assert run("import", tmp_path)[0] == 2
    assert run("import", "-", typed="") == (0, "Imported 0 units; 0 were here already.\n")


# Beside a running server


def test_what_is_read_slowly_keeps_nobody_from_writing(call, app, tmp_path):
    """The writer of a pipe rests between two units; a proposal goes in meanwhile."""
    os.mkfifo(tmp_path / "pipe")
    said = []

    def importing():
        said.append(runner(app)("import", tmp_path / "pipe"))

    thread = threading.Thread(target=importing)
    thread.start()
    with open(tmp_path / "pipe", "w") as pipe:
        pipe.write(lines(*map(unit, range(150))))
        pipe.flush()
        call.propose("Meanwhile")
        pipe.write(lines(unit(150)))
    thread.join(60)
    assert said == [(0, "Imported 151 units; 0 were here already.\n")]


def test_a_locked_database_is_one_line_and_another_run_goes_on(run, app, home, database):
    with home.held(database):
        code, said = run("import", "-", typed=lines(unit(1)))
        assert code == 1
        assert said.startswith("Error: The database cannot be written")
        assert said.count("\n") == 1
    assert run("import", "-", typed=lines(unit(1)))[0] == 0
    with app.app_context():
        assert db.session.execute(db.text("SELECT count(*) FROM units")).scalar() == 1
