"""Is the database what the ledger says? Read by SQL that any database understands, and by the API.

Each check gives the violations it found, as texts.
"""

import http.client
import json
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from itertools import groupby

from sqlalchemy import text

from bench.load import HOST, Unanswered
from cq import unit as rules

DECISIONS = ("approved", "rejected", "superseded", "edited")
# So many violations of one kind are told one by one.
TOLD = 5


class Rows:
    """All of a database that the clients could change, as they spell it."""

    def __init__(self, engine):
        def read(statement):
            return connection.execute(text(statement)).mappings().all()

        with engine.connect() as connection:
            self.units = {row["id"]: row for row in read("SELECT * FROM units")}
            self.events = read(
                "SELECT units.id AS unit, events.type, events.by, events.details FROM events "
                "JOIN units ON units.pk = events.unit_pk ORDER BY events.id"
            )
            self.votes = read(
                "SELECT units.id AS unit, users.username AS who, votes.kind FROM votes "
                "JOIN units ON units.pk = votes.unit_pk "
                "LEFT JOIN users ON users.id = votes.user_id ORDER BY votes.id"
            )
            self.flags = read(
                "SELECT units.id AS unit, flags.by AS who, flags.reason AS kind, "
                "flags.answered_at FROM flags "
                "JOIN units ON units.pk = flags.unit_pk"
            )
            self.revisions = read(
                "SELECT units.id AS unit, revisions.number, revisions.content FROM revisions "
                "JOIN units ON units.pk = revisions.unit_pk ORDER BY revisions.number"
            )
            self.tags = Counter(
                row["unit"]
                for row in read(
                    "SELECT units.id AS unit FROM unit_domains "
                    "JOIN units ON units.pk = unit_domains.unit_pk"
                )
            )


def check(rows, entries, must):
    """{what was looked at: violations}. The first `must` of the ledger's entries have to be there,
    and nothing that no entry tells.
    """
    sure = [entry for entry in entries[:must] if entry["sure"]]
    return {
        "proposals": _proposals(rows, sure, entries),
        "decisions": _decisions(rows, sure, entries),
        "edits": list(_edits(rows)),
        "votes": _votes(rows, sure, entries),
        "evidence": list(_evidence(rows)),
    }


def _between(what, must, found, may):
    """Counters: all that must be there is there, and what is there may be."""
    lost, more = must - found, found - may
    return [
        *(f"lost {what}: {key} x {number}" for key, number in lost.items()),
        *(f"{what} that nobody made, or twice: {key} x {number}" for key, number in more.items()),
    ]


def _proposals(rows, sure, entries):
    def made(entries):
        return Counter(
            (entry["unit"], entry["who"], entry["key"])
            for entry in entries
            if entry["did"] == "propose"
        )

    found = Counter(
        (unit["id"], unit["created_by"], unit["idempotency_key"]) for unit in rows.units.values()
    )
    proposed = Counter(event["unit"] for event in rows.events if event["type"] == "proposed")
    once = Counter(rows.units.keys())
    return [
        *_between("proposal", made(sure), found, made(entries)),
        *_between("proposed event", once, proposed, once),
        *(
            f"{id} has {rows.tags[id]} tags to be found by"
            for id, unit in rows.units.items()
            if rows.tags[id] != len(json.loads(unit["domains"]))
        ),
    ]


def _decisions(rows, sure, entries):
    def made(entries):
        return Counter(
            (entry["unit"], entry["type"], entry["who"], entry.get("heir"))
            for entry in entries
            if entry.get("type") in DECISIONS
        )

    found, last = Counter(), {}
    for event in rows.events:
        heir = json.loads(event["details"] or "{}").get("superseded_by")
        if event["type"] != "proposed":
            found[event["unit"], event["type"], event["by"], heir] += 1
        if event["type"] != "edited":
            last[event["unit"]] = event["type"].replace("proposed", "pending")
    first = Counter(
        event["unit"] for event in rows.events if event["type"] in ("approved", "rejected")
    )
    return [
        *_between("decision", made(sure), found, made(entries)),
        *(f"{id} was decided {number} times" for id, number in first.items() if number > 1),
        *(
            f"{id} is {unit['status']}, and was last {last.get(id)}"
            for id, unit in rows.units.items()
            if unit["status"] != last.get(id)
        ),
    ]


def _edits(rows):
    edits = Counter(event["unit"] for event in rows.events if event["type"] == "edited")
    kept = defaultdict(list)
    for revision in rows.revisions:
        words = json.loads(revision["content"])["insight"]["summary"]
        kept[revision["unit"]].append((revision["number"], words))
    for id, unit in rows.units.items():
        numbers = [number for number, _ in kept[id]]
        due = list(range(1, edits[id] + 2)) if edits[id] else []
        if unit["revision"] != edits[id] + 1 or numbers != due:
            yield f"{id} was edited {edits[id]} times, is at {unit['revision']}, keeps {numbers}"
        elif numbers and kept[id][-1][1] != unit["summary"]:
            yield f"{id} does not say what its last edit said"


def _votes(rows, sure, entries):
    """Flags stay with their unit. Confirmations go to the heirs of a superseded one, where a
    person's own counts once: so those of a whole line of units are looked at together.
    """
    line = {}
    for id in rows.units:
        end = id
        while (heir := rows.units[end]["superseded_by"]) in rows.units:
            end = heir
        line[id] = end

    def given(entries):
        votes = {
            (e["unit"], e["who"], e["kind"]) for e in entries if e["did"] in ("confirm", "flag")
        }
        # Of units that a backup does not have yet, there are no votes either.
        return [vote for vote in votes if vote[0] in line]

    def lined(votes):
        return Counter(
            (line[unit] if kind == "confirm" else unit, who, kind) for unit, who, kind in votes
        )

    found = [(vote["unit"], vote["who"], vote["kind"]) for vote in rows.votes]
    single = dict.fromkeys(lined(given(sure)), 1)
    flags = Counter((flag["unit"], flag["who"], flag["kind"]) for flag in rows.flags)
    votes = Counter(vote for vote in found if vote[2] != "confirm")
    return [
        *_between("vote", Counter(single), lined(found), lined(given(entries))),
        *(f"{vote} counts {number} times" for vote, number in Counter(found).items() if number > 1),
        *_between("flag", votes, flags, votes),
    ]


def _evidence(rows):
    """The counts of a unit are those of its votes, and its confidence what they make of it."""
    kinds = {
        id: [vote["kind"] for vote in votes]
        for id, votes in groupby(
            sorted(rows.votes, key=lambda vote: vote["unit"]), key=lambda vote: vote["unit"]
        )
    }
    heirs = {unit["superseded_by"] for unit in rows.units.values()}
    unanswered = Counter(flag["unit"] for flag in rows.flags if flag["answered_at"] is None)
    for id, unit in rows.units.items():
        if unit["status"] == "superseded":
            continue
        given = kinds.get(id, [])
        confirmed = given.count("confirm")
        if unit["confirmations"] != 1 + confirmed:
            yield f"{id} counts {unit['confirmations']} confirmations; {1 + confirmed} were given"
        if unit["open_flags"] != unanswered[id]:
            yield f"{id} counts {unit['open_flags']} unanswered flags and has {unanswered[id]}"
        confidence = rules.START
        for kind in given:
            confidence = rules.shift(confidence, rules.CONFIRM if kind == "confirm" else rules.FLAG)
        # What an heir took over came at one time, which no vote tells.
        if id not in heirs and float(unit["confidence"]) != confidence:
            yield f"{id} has confidence {unit['confidence']}; its votes make {confidence}"


def by_api(rows, port, token):
    """What the API tells of every unit is what stands in the database."""
    told = {}
    for item in _listed(port, token):
        unit = item["knowledge_unit"]
        if unit["id"] in told:
            yield f"{unit['id']} is listed twice"
        told[unit["id"]] = (
            item["status"],
            item["reviewed_by"],
            item["revision"],
            unit["insight"]["summary"],
            unit["evidence"]["confirmations"],
            unit["evidence"]["confidence"],
            unit["superseded_by"],
            len(item["flags"]),
        )
    flags = Counter(flag["unit"] for flag in rows.flags)
    names = ("status", "reviewed_by", "revision", "summary", "confirmations", "confidence")
    stored = {
        id: (*(unit[name] for name in names), unit["superseded_by"], flags[id])
        for id, unit in rows.units.items()
    }
    for id in stored.keys() | told.keys():
        if stored.get(id) != told.get(id):
            yield f"{id}: the API tells {told.get(id)}, the database {stored.get(id)}"


def _listed(port, token):
    """All units as reviewers see them, page by page."""
    path = "/api/v1/review/units?limit=100"
    with closing(http.client.HTTPConnection(HOST, port, timeout=60)) as line:
        cursor = ""
        while cursor is not None:
            line.request("GET", f"{path}{cursor}", headers={"Authorization": f"Bearer {token}"})
            answer = line.getresponse()
            body = answer.read()
            if answer.status != 200:
                raise Unanswered(f"{path}: {answer.status} {body[:300]}")
            yield from json.loads(body)
            following = answer.headers.get("CQ-Next-Cursor")
            cursor = following and f"&cursor={following}"


def intact(url):
    """SQLite's own checks, once no server runs: of the file, the rows' relations, the words."""
    if url.get_backend_name() != "sqlite":
        return
    with closing(sqlite3.connect(url.database)) as database:
        found = database.execute("PRAGMA integrity_check").fetchall()
        if found != [("ok",)]:
            yield f"integrity_check: {found[:TOLD]}"
        loose = database.execute("PRAGMA foreign_key_check").fetchall()
        if loose:
            yield f"foreign_key_check: {loose[:TOLD]}"
        units, words = database.execute(
            "SELECT (SELECT count(*) FROM units), (SELECT count(*) FROM units_fts)"
        ).fetchone()
        if units != words:
            yield f"{units} units, {words} in the full text"
        try:
            database.execute(
                "INSERT INTO units_fts (units_fts, rank) VALUES ('integrity-check', 1)"
            )
        except sqlite3.DatabaseError as fault:
            yield f"full text: {fault}"
