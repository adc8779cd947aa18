"""Fill a running cq server with a demo: four people, their agents' keys, units, decisions, votes.

Everything goes through the HTTP API, as an admin, a reviewer and agents would do it; the database
is never opened. `seed_units.json` holds the units: keys that begin with `_` are the plan for this
script, the rest is the proposal. A second run goes on where the first stopped and repeats nothing.
"""

import argparse
import http.client
import json
import os
import secrets
import shlex
import sys
import tempfile
import time
import urllib.request
import uuid
from collections import Counter
from functools import cache, partial
from pathlib import Path
from urllib.parse import quote

PEOPLE = {"maya": "reviewer", "jonas": "contributor", "lin": "contributor", "tariq": "contributor"}
UNITS = Path(__file__).with_name("seed_units.json")
TERMINAL = sys.stderr.isatty()
START_WAIT = 30  # seconds for the server to come up
PATIENCE = 180  # seconds one request may spend on the waits that Retry-After asks for
WHAT_NOW = dict.fromkeys((301, 302, 307, 308), "Give the final address as --url.") | {
    "no answer": "Is the server running, and --url its address? Run again: it goes on from here.",
    401: "Remove the state file and run again: it makes new passwords and keys.",
    403: "--admin must name an admin, and maya must be a reviewer who may decide by token.",
    404: "Check --url: it must be the root of a cq server.",
    500: "See the server's log, then run again: it goes on from here.",
}


class Failure(Exception):
    """Ends the run with one line for the person at the terminal."""


class EveryAnswer(urllib.request.HTTPErrorProcessor):
    """Refusals are answers too, and no redirect is followed: the token stays at its address."""

    def http_response(self, request, response):
        return response

    https_response = http_response


OPENER = urllib.request.build_opener(EveryAnswer)


@cache
def say(text):
    """A line that stays. Cached, so that a pipe hears of the first wait and not of fifty."""
    print(f"\r{text:<79}" if TERMINAL else text, file=sys.stderr)


def redraw(text):
    if TERMINAL:
        print(f"\r{text:<79.79}", end="", file=sys.stderr, flush=True)


def detail(answer):
    """The server's own words: a string, or the fields that a validation refuses."""
    found = answer.get("detail") if isinstance(answer, dict) else "without a JSON object"
    if isinstance(found, list):
        found = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in found)
    return " ".join(str(found).split()).rstrip(".")


def call(base, method, path, what, token=None, body=None, key=None, but=None, patience=PATIENCE):
    """The JSON object of a 2xx; None for the status `but`; else a Failure that names `what`.

    A 429 or 503 with Retry-After in seconds is waited out, `patience` seconds in all.
    """
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    headers |= {"Idempotency-Key": key} if key else {}
    headers |= {"Content-Type": "application/json"} if body else {}
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(f"{base}{path}", data, headers, method=method)
    deadline = time.monotonic() + patience
    while True:
        try:
            with OPENER.open(request, timeout=30) as reply:
                status, pause = reply.status, reply.headers.get("Retry-After", "")
                answer = json.loads(reply.read())
        except (OSError, http.client.HTTPException) as error:
            status, pause, answer = "no answer", "", {"detail": getattr(error, "reason", error)}
        except ValueError:
            answer = None
        if status == but:
            return None
        if status in range(200, 300) and isinstance(answer, dict):
            return answer
        wait = max(1, int(pause)) if pause.isdecimal() else PATIENCE + 1
        if status not in (429, 503) or time.monotonic() + wait > deadline:
            now = WHAT_NOW.get(status, "Once that is mended, run again: it goes on from here.")
            raise Failure(f"{what}: {status}, {detail(answer)}. {now}")
        (redraw if TERMINAL else say)(f"the server is busy ({status}): waiting as long as it asks")
        time.sleep(wait)


def wait_for_server(api):
    deadline = time.monotonic() + START_WAIT
    while True:
        try:
            answer = api("GET", "/health", "ask for the server's health", patience=0)
            if answer.get("status") == "ok":
                return
            raise Failure(f"the server's health is {answer}. See its log.")
        except Failure:
            if time.monotonic() > deadline:
                raise
            redraw("waiting for the server")
            time.sleep(0.5)


def load_state(path):
    """`people`: name -> password and key. `votes`: unit id -> votes of its plan yet to be cast."""
    try:
        return {"people": {}, "votes": {}} | json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"people": {}, "votes": {}}
    except (ValueError, TypeError) as error:
        raise Failure(f"{path} is no state file: {error}. Move it away and run again.") from None


def save_state(path, state):
    """By a 0600 temporary file and a rename: a crash leaves the old state or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with open(handle, "w", encoding="utf-8") as file:
        json.dump(state, file, indent=2)
    os.replace(draft, path)


def login(api, name, password):
    """A bearer token, or None if the server refuses the pair."""
    pair = {"username": name, "password": password}
    answer = api("POST", "/auth/login", f"log in as {name}", body=pair, but=401)
    return answer and answer["token"]


def admit(api, admin, name, person, save):
    """Log in as one of the four: made if missing, given a new password if no known one works."""
    token = "password" in person and login(api, name, person["password"])
    if token:
        return token
    reset = {"password": secrets.token_urlsafe(18)}
    person.update(reset)
    save()
    new = {"username": name, "role": PEOPLE[name], **reset}
    if not api("POST", "/users", f"make the user {name}", token=admin, body=new, but=409):
        api("PATCH", f"/users/{name}", f"reset {name}'s password", token=admin, body=reset)
    token = login(api, name, person["password"])
    if not token:
        raise Failure(f"log in as {name}: 401 with the password just set. Is the account disabled?")
    return token


def provide_key(api, token, name, person, save):
    """Keep the saved key while the server lists it as active; make one otherwise."""
    path, known = "/users/me/api-keys", person.get("key", "").split(".")
    keys = api("GET", path, f"list {name}'s keys", token=token)["data"]
    if not any(key["id"] in known and key["is_active"] for key in keys):
        wish = {"name": "demo", "ttl": "30d"}
        person["key"] = api("POST", path, f"make {name}'s key", token=token, body=wish)["token"]
        save()


def propose(api, unit, token):
    """The unit's id. It comes from the summary, so a later run names the same unit again."""
    what = unit["insight"]["summary"]
    key = f"ku_{uuid.uuid5(uuid.NAMESPACE_OID, f'cq demo: {what}').hex}"
    body = {field: value for field, value in unit.items() if not field.startswith("_")}
    return api("POST", "/knowledge", f'propose "{what}"', token=token, body=body, key=key)["id"]


def votes(unit):
    """(who, resource, body) of each vote in the plan."""
    cast = [(name, "confirmations", None) for name in unit["_confirmations"]]
    for flag in unit["_flags"]:
        cast.append((flag["by"], "flags", {"reason": flag["reason"], "detail": flag["detail"]}))
    return cast


def play(api, unit, people, reviewer, due, save):
    """One unit's life; counts what was new.

    A vote repeated on a later day would count again, so a unit decided before this run gets only
    those still `due` from a run that was stopped. They are noted before the decision, as its answer
    may be lost. By then the unit may no longer be approved (404): such a vote is dropped.
    """
    unit_id = propose(api, unit, people[unit["_author"]]["key"])
    if unit["_fate"] == "pending":
        return Counter()
    if unit["_fate"] == "approved":
        verb, body, plan = "approve", {"tier": unit["_tier"]}, votes(unit)
    else:
        verb, body, plan = "reject", {"reason": unit["_reason"]}, []
    known, path = unit_id in due, f"/review/{unit_id}/{verb}"
    if not known:
        due[unit_id] = plan
        save()
    decided = api("POST", path, f"{verb} {unit_id}", token=reviewer, body=body, but=409)
    if decided or not known:
        due[unit_id] = plan if decided else []
        save()
    cast = 0
    while due[unit_id]:
        name, resource, body = due[unit_id][0]
        what, path = f"{resource} of {unit_id} by {name}", f"/knowledge/{unit_id}/{resource}"
        cast += bool(api("POST", path, what, token=people[name]["key"], body=body, but=404))
        del due[unit_id][0]
        save()
    return Counter(decisions=bool(decided), votes=cast)


def report(api, url, people, units):
    """What a visitor needs, on stdout; the query is tried first."""
    tags = Counter(tag for unit in units if unit["_fate"] == "approved" for tag in unit["domains"])
    path, key = f"/knowledge?domains={quote(tags.most_common(1)[0][0])}", people["lin"]["key"]
    if not api("GET", path, "query the units", token=key)["data"]:
        raise Failure(f"query the units: {path} finds none. Were they retired?")
    print(f"address    {url}\nreviewer   maya  {people['maya']['password']}\nagent key  {key}")
    print(f"query      curl -H 'Authorization: Bearer {key}' {shlex.quote(f'{url}/api/v1{path}')}")


def seed(url, admin_name, password, state_path):
    api, units = partial(call, f"{url}/api/v1"), json.loads(UNITS.read_text(encoding="utf-8"))
    state, sessions, done = load_state(state_path), {}, Counter()
    people, save = state["people"], partial(save_state, state_path, state)
    wait_for_server(api)
    admin = login(api, admin_name, password)
    if not admin:
        raise Failure(f"log in as {admin_name}: 401. Check --admin and the password on stdin.")
    for name in PEOPLE:
        person = people.setdefault(name, {})
        sessions[name] = admit(api, admin, name, person, save)
        provide_key(api, sessions[name], name, person, save)
    say(f"people: {', '.join(PEOPLE)}")
    for number, unit in enumerate(units, 1):
        done += play(api, unit, people, sessions["maya"], state["votes"], save)
        redraw(f"[{'#' * (30 * number // len(units)):.<30}] {number}/{len(units)} units")
    say(f"units: {len(units)}; new: {done['decisions']} decisions, {done['votes']} votes")
    report(api, url, people, units)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", default="http://127.0.0.1:3000", help="the server's root")
    parser.add_argument("--admin", required=True, metavar="NAME", help="an admin's user name")
    parser.add_argument(
        "--password-stdin",
        required=True,
        action="store_true",
        help="read the admin's password from the first line of stdin",
    )
    parser.add_argument(
        "--state",
        type=Path,
        default=Path("instance/demo.json"),
        metavar="FILE",
        help="where passwords and keys are kept (0600)",
    )
    args = parser.parse_args()
    if not args.url.startswith(("http://", "https://")):
        parser.error("--url must begin with http:// or https://")
    if args.admin in PEOPLE:
        parser.error(f"{args.admin} is one of the demo's own people: name another admin")
    password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        parser.error("no password on the first line of stdin")
    try:
        seed(args.url.rstrip("/"), args.admin, password, args.state)
    except Failure as failure:
        say(f"seed: {failure}")
        return 1
    except OSError as error:
        say(f"seed: {error}. Mend that, or name another file with --state.")
        return 1
    except KeyboardInterrupt:
        say("seed: stopped. Run again: it goes on from here.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
