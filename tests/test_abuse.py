"""What somebody tries who means harm: guessing, forging, flooding, and keys where they end in logs."""

import base64
import hashlib
import hmac
import http.client
import json
import re
import time
from contextlib import closing
from urllib.parse import quote, urlsplit

import pytest
from limits.storage import Storage

import rates
from app import BODY
from tests.cast import PASSWORD, proposal
from tests.test_auth import WRONG, claims_of, csrf, login, me, quick, signed
from tests.test_serve import API, send

IN_URL = "A key in a URL ends in logs and histories."


def every_route(app):
    """(method, path) of all that is served, parts filled in."""
    for rule in app.url_map.iter_rules():
        path = re.sub(r"<(?:path:)?\w+>", "x", rule.rule)
        for method in sorted(rule.methods - {"HEAD", "OPTIONS"}):
            yield method, path


# Guessing passwords


@pytest.fixture
def clock(monkeypatch):
    """The clock of the rates; `clock(61)` moves it on by so many seconds."""
    moved = [0.0]
    true = time.monotonic

    class Clock:
        time = staticmethod(time.time)

        @staticmethod
        def monotonic():
            return true() + moved[0]

    monkeypatch.setattr(rates, "time", Clock)

    def move(seconds):
        moved[0] += seconds

    return move


def test_a_throttle_lasts_a_minute_whatever_is_tried_meanwhile(call, app, clock):
    """What is refused by it does not count, or an attacker could keep it shut by knocking."""
    quick(app, "rita", PASSWORD)
    for number in range(10):
        assert login(call, "rita", "wrong", address=f"192.0.2.{number}").status_code == 401
    for _ in range(5):
        clock(10)
        assert login(call, "rita", "wrong", address="192.0.2.77").status_code == 429
    assert login(call, "rita", PASSWORD, address="198.51.100.1").status_code == 429
    clock(11)
    assert login(call, "rita", PASSWORD, address="198.51.100.1").status_code == 200


def test_who_signed_in_from_here_before_is_not_kept_out_by_failures_from_elsewhere(
    call, app, clock
):
    """However long the attack goes on."""
    quick(app, "rita", PASSWORD)
    assert login(call, "rita", PASSWORD, address="198.51.100.1").status_code == 200
    for _ in range(3):
        for number in range(10):
            assert login(call, "rita", "wrong", address=f"192.0.2.{number}").status_code == 401
        assert login(call, "rita", "wrong", address="192.0.2.99").status_code == 429
        assert login(call, "rita", PASSWORD, address="198.51.100.1").status_code == 200
        clock(61)


def test_an_address_that_an_account_signed_in_from_has_a_throttle_of_its_own(call, app):
    """Or whoever shares it could guess without end."""
    quick(app, "rita", PASSWORD)
    where = {"address": "198.51.100.1"}
    assert login(call, "rita", PASSWORD, **where).status_code == 200
    told = [login(call, "rita", "wrong", **where).status_code for _ in range(11)]
    assert told == [401] * 10 + [429]


def test_a_throttle_names_nobody(call, app):
    """A known, a disabled and an unknown name: the same answers, down to the headers' names."""
    quick(app, "rita", PASSWORD)
    quick(app, "cleo", PASSWORD)
    call("PATCH", "/users/cleo", {"disabled": True}, user="ada")
    told = {}
    for place, name in enumerate(("rita", "cleo", "nobody")):
        told[name] = []
        for number in range(12):
            answer = login(call, name, "wrong", address=f"192.0.{place}.{number}")
            told[name].append((answer.status_code, answer.json, set(answer.headers.keys())))
    assert told["rita"] == told["cleo"] == told["nobody"]
    assert told["rita"][0][:2] == (401, WRONG)
    assert told["rita"][-1][0] == 429


# Limits


def forged(number):
    one = f"198.51.100.{number}"
    return {
        "X-Forwarded-For": one,
        "X-Real-IP": one,
        "Forwarded": f"for={one}",
        "True-Client-IP": one,
        "CF-Connecting-IP": one,
        "X-Request-ID": f"r{number}",
        "User-Agent": f"agent {number}",
        "Authorization": f"Bearer {number}",
        "Cookie": f"visitor={number}",
    }


def test_no_header_dodges_the_rate_of_reads(make_call):
    call = make_call(CQ_READ_RATE="3/hour")
    path = "/knowledge?domains=x"
    told = [call("GET", path, headers=forged(number)).status_code for number in range(5)]
    assert told == [200] * 3 + [429] * 2


def test_more_keys_are_no_higher_rate(make_call):
    call = make_call(CQ_WRITE_RATE="3/hour", CQ_READ_RATE="3/hour")
    body = {"name": "another", "ttl": "1d"}
    another = call("POST", "/users/me/api-keys", body, user="carl").json["token"]
    tokens = [call.keys["carl"], another] * 3

    def statuses(method, path, body=None):
        return [
            call(
                method, path, body, headers={"Authorization": f"Bearer {token}", **each}
            ).status_code
            for token, each in zip(
                tokens, ({"X-Forwarded-For": f"192.0.2.{n}"} for n in range(6)), strict=True
            )
        ]

    assert statuses("GET", "/knowledge?domains=x") == [200] * 3 + [429] * 3
    assert statuses("POST", "/knowledge", {}) == [422] * 3 + [503] * 3


def test_rates_are_counted_by_a_storage_that_forgets(app):
    """Callers that never come again are no way to fill the memory; see `rates`."""
    counters = app.extensions["cq_rates"].limiter.storage
    assert isinstance(counters, Storage)
    for number in range(rates.KEPT + 10):
        counters.incr(f"{number}", 60)
    assert len(counters.windows) <= rates.KEPT


def test_a_body_that_is_too_large_is_refused_on_every_route(call):
    """Those that read none and those outside of /api/v1 included, before who asks is looked at."""
    client = call.app.test_client(use_cookies=False)
    for method, path in every_route(call.app):
        answer = client.open(
            path, method=method, data=b" " * (BODY + 1), content_type="application/json"
        )
        assert answer.status_code == 413, (method, path)


@pytest.mark.slow
@pytest.mark.parametrize("size", [BODY + 1, 9 * 1024 * 1024])
def test_a_large_body_without_its_length_is_refused_too(call, serve, size):
    place = urlsplit(serve().url)
    headers = {"Authorization": f"Bearer {call.keys['carl']}", "Content-Type": "application/json"}
    chunk = b'{"x":"' + b" " * 65_530
    with closing(http.client.HTTPConnection(place.hostname, place.port, timeout=30)) as line:
        try:
            line.request(
                "POST",
                f"{API}/knowledge",
                (chunk for _ in range(size // len(chunk) + 1)),
                headers,
                encode_chunked=True,
            )
            status = line.getresponse().status
        except ConnectionError:
            # The server hung up while more was being sent.
            status = 413
    assert status == 413
    assert send(f"http://{place.netloc}", "GET", "/health").status == 200


# Sessions


@pytest.fixture
def page(call, app):
    """A browser in which rita has signed in."""
    quick(app, "rita", PASSWORD)
    client = app.test_client()
    body = {"username": "rita", "password": PASSWORD, "session": True}
    assert client.post("/api/v1/auth/login", json=body).status_code == 200
    return client


@pytest.mark.parametrize(
    "change",
    [
        {"password": "a wholly new one"},
        {"role": "contributor"},
        {"role": "admin"},
        {"disabled": True},
    ],
    ids=["password", "lower role", "higher role", "disabled"],
)
def test_cookie_and_token_end_when_the_account_changes(call, page, change):
    """A stolen one, too."""
    unit = call.propose()["id"]
    token = f"Bearer {call.tokens['rita']}"
    assert page.get("/api/v1/users/me").status_code == 200
    assert call("PATCH", "/users/rita", change, user="ada").status_code == 200
    assert page.get("/api/v1/users/me").status_code == 401
    path = f"/api/v1/review/{unit}/approve"
    assert page.post(path, headers=csrf(page)).status_code == 401
    assert me(call, token).status_code == 401
    assert call("GET", f"/review/{unit}", user="ada").json["status"] == "pending"


def test_every_change_from_the_page_needs_the_second_token(call, page):
    """All routes that change anything and take a session; logging in and out have none to lose."""
    for method, path in every_route(call.app):
        if method == "GET" or not path.startswith("/api/v1") or path.startswith("/api/v1/auth"):
            continue
        answer = page.open(path, method=method, json={})
        assert answer.status_code in (401, 403), path
        if answer.status_code == 403:
            assert answer.json == {"detail": "The CSRF token is missing or wrong"}, path
        else:
            assert answer.json == {"detail": "Invalid API key"}, path


def test_every_change_that_another_site_asks_for_is_refused(call, page):
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        for method, path in every_route(call.app):
            if method != "GET":
                answer = page.open(path, method=method, json={}, headers={**csrf(page), **headers})
                assert answer.status_code == 403, path
                assert answer.json == {"detail": "Requests from another site are refused"}, path


# Tokens


def _base64(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=")


def test_a_token_whose_algorithm_was_swapped_is_no_session(call):
    """Row 39: none, in any case; and each other family, with whatever its key could be."""
    claims = claims_of(call)
    # A public key, which anybody may know, used as the secret of an HMAC.
    public = (
        "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAL\n-----END PUBLIC KEY-----\n"
    )
    for alg in ("none", "NONE", "nOnE", "", "RS256", "ES256", "PS256", "EdDSA", "HS384", "HS512"):
        for secret in ("", public, "x" * 32):
            token = signed(claims, secret=secret, alg=alg)
            assert me(call, f"Bearer {token}").status_code == 401, alg
            unsigned = token.rpartition(".")[0] + "."
            assert me(call, f"Bearer {unsigned}").status_code == 401, alg
    assert me(call, f"Bearer {signed(claims, secret=public)}").status_code == 401


def test_a_token_brings_no_key_of_its_own(call):
    """By `jwk`, `jku`, `x5u` or `kid` in its head, which are not looked at."""
    own = "of-the-attacker-0123456789abcdefgh"
    for head in (
        {"kid": "../../dev/null"},
        {"kid": "' UNION SELECT 'x"},
        {"jku": "https://evil.example/keys"},
        {"x5u": "https://evil.example/chain"},
        {"jwk": {"kty": "oct", "k": _base64(own.encode()).decode()}},
    ):
        parts = [{"alg": "HS256", "typ": "JWT", **head}, claims_of(call, sub="ada")]
        body = b".".join(_base64(json.dumps(part).encode()) for part in parts)
        for secret in (own, ""):
            token = body + b"." + _base64(hmac.digest(secret.encode(), body, hashlib.sha256))
            assert me(call, f"Bearer {token.decode()}").status_code == 401, head


@pytest.mark.parametrize(
    "more",
    [
        {"exp": ...},
        {"iat": ...},
        {"sub": ...},
        {"exp": 1},
        {"nbf": "tomorrow"},
        {"sub": "nobody"},
        {"sv": -1},
    ],
    ids=str,
)
def test_a_token_with_a_claim_that_is_missing_or_wrong_is_no_session(call, more):
    """Row 39."""
    assert me(call, f"Bearer {signed(claims_of(call))}").status_code == 200
    assert me(call, f"Bearer {signed(claims_of(call, **more))}").status_code == 401


def test_a_token_that_begins_later_or_ended_a_second_ago_is_no_session(call):
    """Row 39."""
    now = int(time.time())
    for more in ({"nbf": now + 60}, {"nbf": now + 10**9}, {"exp": now - 1}, {"exp": now - 10**8}):
        assert me(call, f"Bearer {signed(claims_of(call, **more))}").status_code == 401, more


def test_the_token_of_a_deleted_account_opens_nothing_for_its_namesake(call, app):
    """Nor does one that was made by hand with the version that a first account has."""
    old = f"Bearer {call.tokens['cleo']}"
    assert me(call, old).status_code == 200
    done = app.test_cli_runner().invoke(args=["user", "delete", "cleo", "--yes"])
    assert done.exit_code == 0, done.output
    assert me(call, old).status_code == 401
    body = {"username": "cleo", "password": PASSWORD, "role": "reviewer"}
    assert call("POST", "/users", body, user="ada").status_code == 201
    assert me(call, old).status_code == 401
    answer = call("POST", "/knowledge", proposal(), key="cleo")
    assert answer.status_code == 401


def test_another_secret_ends_every_session_and_no_key(call, make_app):
    after = make_app(CQ_JWT_SECRET="of-after-the-leak-0123456789abcdefghij").test_client()
    for name in call.tokens:
        headers = {"Authorization": f"Bearer {call.tokens[name]}"}
        assert me(call, headers["Authorization"]).status_code == 200
        assert after.get("/api/v1/users/me", headers=headers).status_code == 401
        headers = {"Authorization": f"Bearer {call.keys[name]}"}
        unit = proposal(f"proposed by {name}")
        assert after.post("/api/v1/knowledge", json=unit, headers=headers).status_code == 201


# Keys where they do not belong


def test_a_key_in_a_query_is_refused_on_every_route(call):
    """With what to do now, whatever the parameter is called, and whoever else asks."""
    client = call.app.test_client(use_cookies=False)
    for method, path in every_route(call.app):
        for name, value in (
            ("api_key", call.keys["carl"]),
            ("apikey", "one-of-another-service"),
            ("x", call.keys["carl"]),
            ("q", f"why is {call.tokens['rita']} refused?"),
            ("access_token", "1"),
        ):
            headers = {"Authorization": f"Bearer {call.keys['ada']}"}
            asked = {"query_string": {name: value}, "headers": headers}
            answer = client.open(path, method=method, **asked)
            assert answer.status_code == 401, (method, path, name)
            assert answer.json["detail"].startswith(IN_URL)
            assert "Authorization" in answer.json["detail"]
            assert "revoke" in answer.json["detail"]
            assert value not in answer.text or value == "1"


def test_a_key_in_a_path_is_refused_and_a_word_that_looks_like_one_is_not(call):
    key = call.keys["carl"]
    for path in (f"/knowledge/{key}", f"/{key}", f"/x/{quote(quote(key, safe=''), safe='')}/y"):
        answer = call("GET", path)
        assert (answer.status_code, answer.json["detail"][:42]) == (401, IN_URL)
    for q in (
        "what does cqa.v1. mean?",
        "api_key",
        "eyJ is how tokens begin",
        "where is api_key= set?",
    ):
        assert call("GET", "/knowledge", key="carl", query_string={"q": q}).status_code == 200, q
    for name in ("api_key_name", "limit_api_key"):
        query = {"q": "lock", name: "x"}
        assert call("GET", "/knowledge", key="carl", query_string=query).status_code == 200, name


def test_a_key_that_was_sent_in_a_url_still_works_where_it_belongs(call):
    """Whoever put it there might not be its owner: refusing is enough, ending it is not ours."""
    assert call("GET", "/knowledge", query_string={"api_key": call.keys["carl"]}).status_code == 401
    assert call("POST", "/knowledge", proposal(), key="carl").status_code == 201
