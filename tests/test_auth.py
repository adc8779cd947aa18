"""Signing in: passwords, tokens and attacks on them, the page's cookie, other sites, the throttle."""

import base64
import hashlib
import hmac
import json
import time

import bcrypt
import jwt
import pytest
from sqlalchemy import text

import config
from auth.passwords import NOBODY, hash_password
from models import User, db
from models.base import write
from tests.cast import PASSWORD, SECRETS

SECRET = SECRETS["CQ_JWT_SECRET"]
WRONG = {"detail": "Invalid username or password"}
NO_HEADER = {"detail": "Missing or invalid authorization header"}
NO_TOKEN = {"detail": "Invalid or expired token"}


def login(call, username="rita", password=PASSWORD, address="192.0.2.1", **more):
    body = {"username": username, "password": password, **more}
    return call("POST", "/auth/login", body, environ_overrides={"REMOTE_ADDR": address})


def me(call, header):
    return call("GET", "/users/me", headers={"Authorization": header})


def quick(app, username, password):
    """Give a password whose hash is the cheapest there is, as a database may hold it."""
    hashed = bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()
    with app.app_context():
        write()
        db.session.execute(
            text("UPDATE users SET password_hash = :hashed WHERE username = :username"),
            {"hashed": hashed, "username": username},
        )
        db.session.commit()


# Logging in


def test_a_login_answers_a_token_for_a_day(call):
    answer = login(call)
    assert answer.status_code == 200
    assert list(answer.json) == ["token", "username", "role"]
    assert (answer.json["username"], answer.json["role"]) == ("rita", "reviewer")
    assert "Set-Cookie" not in answer.headers
    token = answer.json["token"]
    assert jwt.get_unverified_header(token) == {"alg": "HS256", "typ": "JWT"}
    claims = jwt.decode(token, SECRET, algorithms=["HS256"])
    assert claims["sub"] == "rita"
    assert claims["exp"] - claims["iat"] == 24 * 3600
    assert me(call, f"Bearer {token}").json["username"] == "rita"


def test_a_wrong_password_and_an_unknown_name_are_told_alike(call, app):
    quick(app, "rita", PASSWORD)
    wrong = login(call, "rita", "wrong")
    unknown = login(call, "nobody", "wrong")
    for answer in (wrong, unknown):
        assert (answer.status_code, answer.json) == (401, WRONG)
    assert set(wrong.headers.keys()) == set(unknown.headers.keys())


def test_an_unknown_name_costs_the_hash_that_a_known_one_does(app):
    with app.app_context():
        assert NOBODY[:7] == hash_password("anything")[:7].encode()


def test_a_disabled_account_does_not_sign_in(call, app):
    quick(app, "rita", PASSWORD)
    call("PATCH", "/users/rita", {"disabled": True}, user="ada")
    answer = login(call)
    assert (answer.status_code, answer.json) == (401, WRONG)


def test_a_login_that_is_not_one_is_refused_without_echo(call):
    for body, place, type in (
        ({"password": PASSWORD}, "username", "missing"),
        ({"username": "rita"}, "password", "missing"),
        ({"username": "rita", "password": None}, "password", "string_type"),
        ({"username": 1, "password": PASSWORD}, "username", "string_type"),
        ({"username": "a\0b", "password": PASSWORD}, "username", "value_error"),
        ({"username": "rita", "password": f"{PASSWORD}\0"}, "password", "value_error"),
        ({"username": "rita", "password": PASSWORD, "session": "perhaps"}, "session", "bool_type"),
    ):
        answer = call("POST", "/auth/login", body)
        assert answer.status_code == 422, body
        (problem,) = answer.json["detail"]
        assert (problem["loc"], problem["type"]) == (["body", place], type)
        assert "input" not in problem
        assert PASSWORD not in answer.text
    for name in ("username", "password"):
        raw = json.dumps({"username": "rita", "password": PASSWORD, name: "\ud83d"}).encode()
        answer = call("POST", "/auth/login", data=raw, content_type="application/json")
        assert answer.status_code == 422
        assert answer.json["detail"][0]["loc"] == ["body", name]


def test_a_login_is_json_and_nothing_else(call):
    """Row 44: what a form can send is no login."""
    form = {"username": "rita", "password": PASSWORD}
    for kwargs in (
        {"data": form},
        {"data": json.dumps(form), "content_type": "text/plain"},
        {"data": json.dumps(form), "content_type": "application/x-www-form-urlencoded"},
        {"data": json.dumps(form)},
    ):
        answer = call("POST", "/auth/login", **kwargs)
        assert answer.status_code == 422
        assert PASSWORD not in answer.text


# Passwords


def test_a_long_password_is_wrong_and_not_a_fault(call, app):
    """Row 40: for a known and an unknown name alike, with nothing cut off."""
    quick(app, "rita", "é" * 36)
    assert login(call, "rita", "é" * 36).status_code == 200
    assert login(call, "rita", "é" * 35 + "e").status_code == 401
    for password in ("é" * 36 + "x", "é" * 73, "x" * 5000):
        answer = login(call, "rita", password)
        assert (answer.status_code, answer.json) == (401, WRONG)
    answer = login(call, "nobody", "é" * 73)
    assert (answer.status_code, answer.json) == (401, WRONG)


def test_a_password_that_cannot_be_kept_is_refused(call, app):
    """Row 40, wherever a password is set."""
    quick(app, "rita", PASSWORD)
    for password in ("", "   ", "\u00a0\n", "é" * 37, "x" * 73, "a\0b"):
        for method, path, body, field, who in (
            ("POST", "/users", {"username": "nora", "password": password}, "password", "ada"),
            ("PATCH", "/users/carl", {"password": password}, "password", "ada"),
            (
                "PATCH",
                "/users/me",
                {"password": PASSWORD, "new_password": password},
                "new_password",
                "rita",
            ),
        ):
            answer = call(method, path, body, user=who)
            assert answer.status_code == 422, (path, password)
            (problem,) = answer.json["detail"]
            assert problem["loc"] == ["body", field]
            assert password not in answer.text or not password.strip()
    assert login(call).status_code == 200
    with app.app_context():
        assert User.named("nora") is None


# The throttle


def test_after_ten_failures_a_minute_an_account_is_refused_from_anywhere(call, app):
    """Right or wrong, in any case of the name; others still sign in."""
    quick(app, "rita", PASSWORD)
    quick(app, "carl", PASSWORD)
    for number in range(10):
        answer = login(call, "rita", "wrong", address=f"192.0.2.{number}")
        assert (answer.status_code, answer.json) == (401, WRONG)
    for name, password in (("rita", "wrong"), ("rita", PASSWORD), ("RITA", PASSWORD)):
        answer = login(call, name, password, address="198.51.100.1")
        assert answer.status_code == 429
        assert 1 <= int(answer.headers["Retry-After"]) <= 61
        assert isinstance(answer.json["detail"], str)
    assert login(call, "carl", address="198.51.100.1").status_code == 200


def test_after_ten_failures_a_minute_an_address_is_refused_for_any_account(call, app):
    names = ("ada", "rita", "carl", "cleo")
    for name in names:
        quick(app, name, PASSWORD)
    for number in range(10):
        assert login(call, names[number % 4], "wrong").status_code == 401
    answer = login(call, "ada")
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["Retry-After"]) <= 61
    assert login(call, "ada", address="198.51.100.1").status_code == 200


def test_logins_that_succeed_are_not_counted(call, app):
    quick(app, "rita", PASSWORD)
    assert {login(call).status_code for _ in range(12)} == {200}


def test_requests_that_are_no_login_are_not_counted(call, app):
    quick(app, "rita", PASSWORD)
    for _ in range(11):
        assert call("POST", "/auth/login", {"username": "rita"}).status_code == 422
    assert login(call, address="127.0.0.1").status_code == 200


@pytest.mark.slow
def test_a_real_and_an_unreal_name_are_throttled_alike(call):
    """Row 65: the same codes in the same sequence, each from an address of its own."""
    told = {}
    for address, name in (("192.0.2.1", "rita"), ("192.0.2.2", "nobody")):
        answers = [login(call, name, "wrong", address=address) for _ in range(12)]
        told[name] = [(answer.status_code, answer.json) for answer in answers]
        assert all(1 <= int(answer.headers["Retry-After"]) <= 61 for answer in answers[10:])
    assert told["rita"] == told["nobody"]
    assert [code for code, _ in told["rita"]] == [401] * 10 + [429] * 2


def test_too_many_logins_at_once_are_refused_and_not_counted(call, app):
    """Hashing takes a core: the other half of the threads stays free for everybody else."""
    quick(app, "rita", PASSWORD)
    gate = app.extensions["cq_logins"]
    places = 0
    while gate.acquire(blocking=False):
        places += 1
    assert places == app.config["CQ_THREADS"] // 2
    for name, password in (("rita", PASSWORD), ("rita", "wrong"), ("nobody", "wrong")) * 4:
        answer = login(call, name, password)
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) >= 1
        assert isinstance(answer.json["detail"], str)
    assert call.found(domains="x") == []
    gate.release(places)
    assert login(call).status_code == 200


def test_failed_logins_give_their_place_back(call, app):
    quick(app, "rita", PASSWORD)
    for _ in range(app.config["CQ_THREADS"]):
        assert login(call, "rita", "wrong").status_code == 401
    assert login(call).status_code == 200


def test_every_number_of_threads_that_is_accepted_lets_somebody_sign_in(make_call, make_app):
    call = make_call(CQ_THREADS="2")
    quick(call.app, "rita", PASSWORD)
    assert login(call).status_code == 200
    with pytest.raises(config.ConfigError, match="CQ_THREADS"):
        make_app(CQ_THREADS="1")


# Tokens


def claims_of(call, name="rita", **more):
    claims = {**jwt.decode(call.tokens[name], SECRET, algorithms=["HS256"]), **more}
    return {claim: value for claim, value in claims.items() if value is not ...}


def signed(claims, secret=SECRET, alg="HS256"):
    """A token made by hand, which checks nothing of what it signs."""
    parts = [{"alg": alg, "typ": "JWT"}, claims]
    body = b".".join(_base64(json.dumps(part).encode()) for part in parts)
    kind = hashlib.sha384 if alg == "HS384" else hashlib.sha256
    return (body + b"." + _base64(hmac.digest(secret.encode(), body, kind))).decode()


def _base64(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=")


def test_a_token_made_by_hand_is_accepted_if_nothing_is_wrong_with_it(call):
    """Else the refusals below would prove nothing."""
    assert me(call, f"Bearer {signed(claims_of(call))}").status_code == 200


def test_a_token_with_wrong_claims_is_no_session(call):
    """Row 39."""
    now = int(time.time())
    for more in (
        {"exp": now - 1},
        {"exp": now - 24 * 3600},
        {"exp": ...},
        {"exp": None},
        {"exp": "tomorrow"},
        {"iat": ...},
        {"iat": "today"},
        # Made by a clock that was set back since, but not by more than a day.
        {"iat": now + 2 * 24 * 3600},
        {"nbf": now + 3600},
        {"sub": ...},
        {"sub": None},
        {"sub": 2},
        {"sub": ["rita"]},
        {"sub": {"rita": 1}},
        {"sub": "nobody"},
        {"sub": "Rita"},
        {"sub": ""},
        {"sv": ...},
        {"sv": 0},
        {"sv": None},
        {"type": "refresh"},
    ):
        answer = me(call, f"Bearer {signed(claims_of(call, **more))}")
        assert (answer.status_code, answer.json) == (401, NO_TOKEN), more


def test_a_token_that_is_not_signed_by_us_is_no_session(call):
    """Row 39: no signature, another secret, another algorithm."""
    claims = claims_of(call)
    head, body, signature = call.tokens["rita"].split(".")
    other = _base64(json.dumps(claims_of(call, sub="ada")).encode()).decode()
    none = _base64(b'{"alg":"none","typ":"JWT"}').decode()
    for token in (
        f"{none}.{body}.",
        f"{none}.{body}.{signature}",
        f"{head}.{body}.",
        f"{head}.{body}",
        f"{head}.{other}.{signature}",
        f"{head}.{body}.{signature[:-2]}",
        signed(claims, alg="none"),
        signed(claims, alg="None"),
        signed(claims, alg="RS256"),
        signed(claims, alg="HS384"),
        signed(claims, alg=["HS256"]),
        signed(claims, alg=None),
        signed(claims, secret="x" * 32),
        signed(claims, secret=f"{SECRET} "),
        signed(claims, secret=SECRETS["CQ_API_KEY_PEPPER"]),
        signed([claims]),
        signed("rita"),
        "a.b.c",
        "..",
        "x",
        f"{head}.{body}.{signature}.x",
    ):
        answer = me(call, f"Bearer {token}")
        assert (answer.status_code, answer.json) == (401, NO_TOKEN), token


def test_a_token_that_is_nested_too_deep_is_no_session(call):
    """It is read before its signature is checked."""
    deep = b"[" * 100_000 + b"]" * 100_000
    parts = call.tokens["rita"].split(".")
    for place in (0, 1):
        forged = [*parts]
        forged[place] = _base64(b'{"sub":' + deep[80_000:120_000] + b"}").decode()
        answer = me(call, f"Bearer {'.'.join(forged)}")
        assert (answer.status_code, answer.json) == (401, NO_TOKEN)


def test_a_token_ends_with_its_account(call, app):
    """Row 39: deleted, disabled; on every route and not only on one's own."""
    for name, end in (("rita", ["delete", "rita", "--yes"]), ("ada", ["disable", "ada"])):
        call("PATCH", "/users/carl", {"role": "admin"}, user="ada")
        header = f"Bearer {call.tokens[name]}"
        assert me(call, header).status_code == 200
        done = app.test_cli_runner().invoke(args=["user", *end])
        assert done.exit_code == 0, done.output
        for path in ("/users/me", "/users/me/api-keys", "/review/queue", "/review/stats"):
            answer = call("GET", path, headers={"Authorization": header})
            assert (answer.status_code, answer.json) == (401, NO_TOKEN)


def test_the_header_is_exactly_the_scheme_a_space_and_the_token(call):
    token = call.tokens["rita"]
    assert me(call, f"Bearer {token}").status_code == 200
    for header in (
        f"bearer {token}",
        f"BEARER {token}",
        f"Bearer  {token}",
        f"Bearer {token} x",
        f"Bearer {token} ",
        f"Bearer{token}",
        f"Basic {token}",
        f"Token {token}",
        token,
        "Bearer",
        "",
    ):
        answer = me(call, header)
        assert (answer.status_code, answer.json) == (401, NO_HEADER), header
        assert "WWW-Authenticate" not in answer.headers
    answer = call("GET", "/users/me")
    assert (answer.status_code, answer.json) == (401, NO_HEADER)
    for header in ("Bearer ", "Bearer \xe9", f"Bearer {call.keys['rita']}"):
        assert me(call, header).status_code == 401, header


def test_who_is_not_signed_in_is_told_before_the_body_is_read(call):
    """D-27."""
    for path in ("/users", "/users/me/api-keys", "/review/bulk", "/knowledge"):
        answer = call("POST", path, data=b"{not json", content_type="application/json")
        assert answer.status_code == 401, path


# The page's session


@pytest.fixture
def page(call, app):
    """A browser at the review page in which rita has signed in, and the answer to her login."""
    quick(app, "rita", PASSWORD)
    client = app.test_client()
    body = {"username": "rita", "password": PASSWORD, "session": True}
    return client, client.post("/api/v1/auth/login", json=body)


def csrf(client):
    return {"X-CSRF-TOKEN": client.get_cookie("csrf_access_token").value}


def test_the_page_gets_a_cookie_that_no_script_reads_and_no_token(page):
    client, answer = page
    assert answer.status_code == 200
    assert answer.json == {"username": "rita", "role": "reviewer"}
    session = client.get_cookie("access_token_cookie", path="/api/")
    assert session.http_only
    assert session.same_site == "Strict"
    assert session.value not in answer.text
    second = client.get_cookie("csrf_access_token")
    assert not second.http_only
    assert second.same_site == "Strict"
    for line in answer.headers.getlist("Set-Cookie"):
        assert "SameSite=Strict" in line
        assert "Domain" not in line
    assert client.get("/api/v1/users/me").json["username"] == "rita"
    assert client.get("/api/v1/review/queue").status_code == 200


def test_the_cookie_stays_on_https_where_the_server_has_it(make_call):
    for url, secure in (("https://cq.example.org", True), ("http://cq.example.org", False)):
        call = make_call(CQ_PUBLIC_URL=url)
        quick(call.app, "rita", PASSWORD)
        lines = login(call, session=True).headers.getlist("Set-Cookie")
        assert len(lines) == 2
        assert {"; Secure" in line for line in lines} == {secure}


def test_a_change_from_the_page_carries_the_second_token(page, call):
    client, _ = page
    unit = call.propose()
    path = f"/api/v1/review/{unit['id']}"
    other = call.app.test_client()
    quick(call.app, "ada", PASSWORD)
    body = {"username": "ada", "password": PASSWORD, "session": True}
    assert other.post("/api/v1/auth/login", json=body).status_code == 200
    for headers in ({}, {"X-CSRF-TOKEN": ""}, {"X-CSRF-TOKEN": "x"}, csrf(other)):
        for answer in (
            client.post(f"{path}/approve", headers=headers),
            client.patch(path, json={"domains": ["x"]}, headers=headers),
            client.post(
                "/api/v1/users/me/api-keys", json={"name": "x", "ttl": "1d"}, headers=headers
            ),
        ):
            assert answer.status_code == 403
            assert answer.json == {"detail": "The CSRF token is missing or wrong"}
    assert call("GET", f"/review/{unit['id']}", user="ada").json["status"] == "pending"
    assert client.post(f"{path}/approve", headers=csrf(client)).status_code == 200


def test_a_header_comes_before_the_cookie(page, call):
    """And a wrong one does not fall back on it."""
    client, _ = page
    headers = {"Authorization": f"Bearer {call.tokens['ada']}"}
    assert client.get("/api/v1/users/me", headers=headers).json["username"] == "ada"
    for header in ("Bearer x", "Basic x", ""):
        answer = client.get("/api/v1/users/me", headers={"Authorization": header})
        assert answer.status_code == 401


def test_a_cookie_that_is_no_token_is_no_session(call):
    for value in ("x", signed(claims_of(call, exp=int(time.time()) - 1)), call.keys["rita"]):
        client = call.app.test_client()
        client.set_cookie("access_token_cookie", value, path="/api/")
        answer = client.get("/api/v1/users/me")
        assert (answer.status_code, answer.json) == (401, NO_TOKEN)


def test_the_page_reads_what_is_private(page, call):
    client, _ = page
    unit = call.approve("private", ["p"])
    path = "/api/v1/knowledge?domains=p"
    assert [found["id"] for found in client.get(path).json["data"]] == [unit["id"]]
    call("PATCH", "/users/rita", {"disabled": True}, user="ada")
    assert client.get(path).json == {"data": []}


def test_a_new_password_at_the_page_gives_it_a_new_cookie(page, call):
    client, _ = page
    old = client.get_cookie("access_token_cookie", path="/api/").value
    body = {"password": PASSWORD, "new_password": "another one"}
    answer = client.patch("/api/v1/users/me", json=body, headers=csrf(client))
    assert answer.status_code == 200
    assert "token" not in answer.json
    assert client.get_cookie("access_token_cookie", path="/api/").value != old
    assert client.get("/api/v1/users/me").status_code == 200
    client.set_cookie("access_token_cookie", old, path="/api/")
    assert client.get("/api/v1/users/me").status_code == 401


def test_signing_out_takes_the_cookies(page):
    client, _ = page
    answer = client.post("/api/v1/auth/logout")
    assert (answer.status_code, answer.json) == (200, {"message": "Signed out."})
    assert client.get_cookie("access_token_cookie", path="/api/") is None
    assert client.get_cookie("csrf_access_token") is None
    assert client.get("/api/v1/users/me").status_code == 401
    assert client.post("/api/v1/auth/logout").status_code == 200


def test_signing_out_ends_the_session_and_no_other(page, call):
    client, _ = page
    cookie = client.get_cookie("access_token_cookie", path="/api/").value
    tokens = [
        client.post("/api/v1/auth/login", json={"username": "rita", "password": PASSWORD}).json[
            "token"
        ]
        for _ in range(2)
    ]
    assert client.post("/api/v1/auth/logout", headers=csrf(client)).status_code == 200
    client.set_cookie("access_token_cookie", cookie, path="/api/")
    assert client.get("/api/v1/users/me").status_code == 401

    def status(method, path, token):
        headers = {"Authorization": f"Bearer {token}"}
        return client.open(f"/api/v1{path}", method=method, headers=headers).status_code

    assert status("POST", "/auth/logout", tokens[0]) == 200
    assert status("GET", "/users/me", tokens[0]) == 401
    assert status("POST", "/auth/logout", tokens[0]) == 401
    assert status("GET", "/users/me", tokens[1]) == 200


def test_signing_out_on_all_devices_ends_all_sessions_of_that_person(page, call):
    client, _ = page
    login = {"username": "rita", "password": PASSWORD}
    tokens = [client.post("/api/v1/auth/login", json=login).json["token"] for _ in range(2)]
    headers = [{"Authorization": f"Bearer {token}"} for token in tokens]
    done = client.post("/api/v1/auth/logout?all_devices=true", headers=headers[0])
    assert done.status_code == 200
    for each in (*headers, {}):
        assert client.get("/api/v1/users/me", headers=each).status_code == 401
    assert call("GET", "/users/me", user="ada").status_code == 200


def test_an_old_page_session_ends(page, call):
    client, _ = page
    token = client.get_cookie("access_token_cookie", path="/api/").value
    claims = jwt.decode(token, SECRET, algorithms=["HS256"])
    claims = {**claims, "iat": claims["iat"] - 24 * 3600, "exp": int(time.time()) - 1}
    client.set_cookie("access_token_cookie", signed(claims), path="/api/")
    assert client.get("/api/v1/users/me").status_code == 401


# Other sites

FOREIGN = (
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"},
    {"Origin": "https://evil.example"},
    {"Origin": "http://localhost.evil.example"},
    {"Origin": "http://localhost:8000"},
    {"Origin": "http://evil.example@localhost"},
    {"Origin": "null"},
    {"Origin": "localhost"},
    {"Origin": "http://["},
)


def test_another_site_changes_nothing(page, call):
    """Row 44: whatever cookie and token come along, logging in and out included."""
    client, _ = page
    unit = call.propose()
    wrong = {"username": "rita", "password": PASSWORD, "session": True}
    for headers in FOREIGN:
        for answer in (
            client.post(
                f"/api/v1/review/{unit['id']}/approve", headers={**headers, **csrf(client)}
            ),
            client.patch("/api/v1/users/me", json={}, headers={**headers, **csrf(client)}),
            client.post("/api/v1/auth/login", json=wrong, headers=headers),
            client.post("/api/v1/auth/logout", headers=headers),
            call("POST", "/knowledge", {}, key="carl", headers=headers),
        ):
            assert answer.status_code == 403, headers
            assert answer.json == {"detail": "Requests from another site are refused"}
            assert "Set-Cookie" not in answer.headers
    assert call("GET", f"/review/{unit['id']}", user="ada").json["status"] == "pending"


def test_our_own_page_and_callers_that_are_no_browser_are_let_in(page, call):
    client, _ = page
    for number, headers in enumerate(
        (
            {},
            {"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"},
            {"Sec-Fetch-Site": "none"},
            {"Origin": "http://localhost"},
        )
    ):
        unit = call.propose(f"unit {number}")
        path = f"/api/v1/review/{unit['id']}/approve"
        answer = client.post(path, headers={**headers, **csrf(client)})
        assert answer.status_code == 200, headers


def test_reading_is_open_to_links_from_anywhere(page):
    client, _ = page
    for headers in FOREIGN:
        assert client.get("/api/v1/users/me", headers=headers).status_code == 200


def test_a_cross_site_form_decides_nothing(page, call):
    """Row 44: the body of a form is no JSON, even where a browser tells no site."""
    client, _ = page
    unit = call.propose()
    path = f"/api/v1/review/{unit['id']}/approve"
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = client.post(path, data=b'{"tier":"public"}', content_type=kind)
        assert answer.status_code == 403
        answer = client.post(
            path, data=b'{"tier":"public"}', content_type=kind, headers=csrf(client)
        )
        assert answer.status_code == 422
    assert call("GET", f"/review/{unit['id']}", user="ada").json["status"] == "pending"


def test_answers_to_people_are_not_kept_by_caches(call):
    for path in ("/users/me", "/users/me/api-keys", "/review/queue"):
        assert call("GET", path, user="rita").headers["Cache-Control"] == "no-store"
    answer = call("POST", "/auth/login", {"username": "rita"})
    assert answer.headers["Cache-Control"] == "no-store"
