"""Accounts over HTTP, what each role may do, when sessions end, and the API keys of people."""

import re
import uuid
from concurrent.futures import ThreadPoolExecutor

import auth
from models import ApiKey, User, db, now
from tests.cast import PASSWORD, PEOPLE, proposal

KEY = [
    "id",
    "name",
    "labels",
    "prefix",
    "key_prefix",
    "ttl",
    "expires_at",
    "created_at",
    "last_used_at",
    "revoked_at",
    "is_expired",
    "is_active",
]


def add(call, username="nora", user="ada", **more):
    body = {"username": username, "password": PASSWORD, **more}
    return call("POST", "/users", body, user=user)


def change(call, username, user="ada", **what):
    return call("PATCH", f"/users/{username}", what, user=user)


def accounts(call):
    return {row["username"]: row for row in call("GET", "/users", user="ada").json["data"]}


def make_key(call, user="carl", **more):
    return call("POST", "/users/me/api-keys", {"name": "ci", "ttl": "90d", **more}, user=user)


def keys(call, user="carl"):
    return call("GET", "/users/me/api-keys", user=user).json["data"]


def works(call, token):
    """Whether an agent may write with this key."""
    headers = {"Authorization": f"Bearer {token}"}
    answer = call("POST", "/knowledge", {}, headers=headers)
    assert answer.status_code in (401, 422), answer.text
    return answer.status_code == 422


def signed_in(call, token):
    answer = call("GET", "/users/me", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code in (200, 401), answer.text
    return answer.status_code == 200


# Roles


def test_a_role_that_is_too_low_is_told_which_is_needed(call):
    """Whatever the body: who is not let in is not told what is wrong with it either."""
    for method, path, needed, names in (
        ("GET", "/review/queue", "reviewer", ["carl"]),
        ("POST", "/review/bulk", "reviewer", ["carl"]),
        ("GET", "/users", "admin", ["carl", "rita"]),
        ("POST", "/users", "admin", ["carl", "rita"]),
        ("PATCH", "/users/carl", "admin", ["carl", "rita"]),
        ("GET", "/users/carl/api-keys", "admin", ["carl", "rita"]),
    ):
        for name in names:
            answer = call(method, path, None if method == "GET" else [], user=name)
            detail = f"This needs the role {needed}; yours is {PEOPLE[name]}"
            assert (answer.status_code, answer.json) == (403, {"detail": detail}), (path, name)


def test_the_routes_of_reviewers_and_admins_ask_for_their_role(app):
    for rule in app.url_map.iter_rules():
        if rule.rule.startswith("/api/v1/review"):
            assert app.view_functions[rule.endpoint].asks == ("session", "reviewer"), rule
        if rule.rule.startswith("/api/v1/users"):
            needed = "contributor" if rule.rule.startswith("/api/v1/users/me") else "admin"
            assert app.view_functions[rule.endpoint].asks == ("session", needed), rule


def test_an_agent_of_any_role_proposes(call):
    for name in ("ada", "rita", "carl"):
        assert call.propose(f"of {name}", key=name)["created_by"] == name


# Accounts


def test_oneself_is_told_without_secrets(call):
    answer = call("GET", "/users/me", user="rita")
    assert list(answer.json) == ["username", "role", "disabled", "created_at"]
    assert answer.json["username"] == "rita"
    assert (answer.json["role"], answer.json["disabled"]) == ("reviewer", False)
    assert answer.json["created_at"].endswith("+00:00")


def test_an_admin_makes_an_account_that_can_sign_in(call):
    answer = add(call, "  nora ", role="reviewer")
    assert answer.status_code == 201
    assert list(answer.json) == ["username", "role", "disabled", "created_at"]
    assert (answer.json["username"], answer.json["role"]) == ("nora", "reviewer")
    assert accounts(call)["nora"] == answer.json
    login = call("POST", "/auth/login", {"username": "nora", "password": PASSWORD})
    assert (login.status_code, login.json["role"]) == (200, "reviewer")


def test_a_taken_name_is_a_conflict(call):
    answer = add(call, "carl", role="admin")
    assert (answer.status_code, answer.json) == (409, {"detail": "This username is taken"})
    assert accounts(call)["carl"]["role"] == "contributor"


def test_without_a_role_an_account_is_a_contributor_and_case_makes_another_name(call):
    answer = add(call, "Carl")
    assert (answer.status_code, answer.json["role"]) == (201, "contributor")


def test_an_account_that_cannot_be_is_refused(call):
    before = accounts(call)
    for body, place, type in (
        ({"password": PASSWORD}, "username", "missing"),
        ({"username": "", "password": PASSWORD}, "username", "string_too_short"),
        ({"username": " \u00a0", "password": PASSWORD}, "username", "string_too_short"),
        ({"username": "\u200b", "password": PASSWORD}, "username", "value_error"),
        ({"username": "no\nra", "password": PASSWORD}, "username", "value_error"),
        ({"username": "no\0ra", "password": PASSWORD}, "username", "value_error"),
        ({"username": "x" * 65, "password": PASSWORD}, "username", "string_too_long"),
        ({"username": 1, "password": PASSWORD}, "username", "string_type"),
        ({"username": "nora"}, "password", "missing"),
        ({"username": "nora", "password": None}, "password", "string_type"),
        ({"username": "nora", "password": PASSWORD, "role": "owner"}, "role", "enum"),
        ({"username": "nora", "password": PASSWORD, "role": None}, "role", "string_type"),
    ):
        answer = call("POST", "/users", body, user="ada")
        assert answer.status_code == 422, body
        (problem,) = answer.json["detail"]
        assert (problem["loc"], problem["type"]) == (["body", place], type), body
        assert PASSWORD not in answer.text
    assert accounts(call) == before


def test_accounts_are_listed_by_name_and_in_pages(call):
    names = [row["username"] for row in call("GET", "/users", user="ada").json["data"]]
    assert names == ["ada", "carl", "cleo", "rita"]
    page = call("GET", "/users?limit=2&offset=1", user="ada").json["data"]
    assert [row["username"] for row in page] == ["carl", "cleo"]
    for query in ("limit=-1", "limit=1001", "offset=-1"):
        assert call("GET", f"/users?{query}", user="ada").status_code == 422


def test_a_role_is_given_and_taken(call, app):
    answer = change(call, "carl", role="reviewer")
    assert (answer.status_code, answer.json["role"]) == (200, "reviewer")
    with app.app_context():
        headers = {"Authorization": f"Bearer {auth.token_for(User.find('carl'))}"}
    assert call("GET", "/review/queue", headers=headers).status_code == 200
    assert accounts(call)["carl"]["role"] == "reviewer"


def test_a_change_that_is_not_one_is_refused(call):
    for body in (
        {"role": "owner"},
        {"role": None},
        {"disabled": "perhaps"},
        {"disabled": None},
        {"password": ""},
        {"password": 1},
    ):
        answer = change(call, "carl", **body)
        assert answer.status_code == 422, body
        assert answer.json["detail"][0]["loc"] == ["body", *body]
    answer = change(call, "nobody", role="admin")
    assert (answer.status_code, answer.json) == (404, {"detail": "User not found"})
    assert signed_in(call, call.tokens["carl"])


def test_the_last_admin_stays_one(call, app):
    """Another one who is disabled does not count."""
    for what in ({"role": "admin"}, {"disabled": True}):
        assert change(call, "rita", **what).status_code == 200
    for what in ({"role": "reviewer"}, {"role": "contributor"}, {"disabled": True}):
        answer = change(call, "ada", **what)
        assert answer.status_code == 409, what
        assert "last admin" in answer.json["detail"]
    done = app.test_cli_runner().invoke(args=["user", "delete", "ada", "--yes"])
    assert done.exit_code == 1
    assert signed_in(call, call.tokens["ada"])
    row = accounts(call)["ada"]
    assert (row["role"], row["disabled"]) == ("admin", False)
    assert change(call, "rita", disabled=False).status_code == 200
    assert change(call, "ada", role="reviewer").status_code == 200


def test_of_the_last_two_admins_one_stays(call, app):
    """Both step down at the same time."""
    assert change(call, "rita", role="admin").status_code == 200
    with app.app_context():
        call.tokens["rita"] = auth.token_for(User.find("rita"))
    with ThreadPoolExecutor(2) as pool:
        tries = [pool.submit(change, call, name, name, role="reviewer") for name in ("ada", "rita")]
    assert sorted(one.result().status_code for one in tries) == [200, 409]


# Sessions end


def test_sessions_end_when_the_account_changes(call, app):
    """Demoted, promoted, disabled, given a password, deleted: at once, and for good."""

    def fresh():
        with app.app_context():
            return auth.token_for(User.find("carl"))

    changes = [
        {"role": "reviewer"},
        {"role": "contributor"},
        {"password": "another one"},
        {"disabled": True},
    ]
    tokens = []
    for what in changes:
        tokens.append(fresh())
        assert signed_in(call, tokens[-1])
        assert change(call, "carl", **what).status_code == 200
        assert not signed_in(call, tokens[-1]), what
    assert not signed_in(call, fresh())
    assert change(call, "carl", disabled=False).status_code == 200
    tokens.append(fresh())
    assert signed_in(call, tokens[-1])
    done = app.test_cli_runner().invoke(args=["user", "delete", "carl", "--yes"])
    assert done.exit_code == 0, done.output
    for token in tokens:
        answer = call("GET", "/users/me", headers={"Authorization": f"Bearer {token}"})
        assert (answer.status_code, answer.json) == (401, {"detail": "Invalid or expired token"})
    assert signed_in(call, call.tokens["cleo"])


def test_a_new_password_ends_all_sessions_but_the_one_it_answers(call):
    body = {"password": PASSWORD, "new_password": "another one"}
    answer = call("PATCH", "/users/me", body, user="carl")
    assert answer.status_code == 200
    assert answer.json["username"] == "carl"
    assert not signed_in(call, call.tokens["carl"])
    assert signed_in(call, answer.json["token"])
    login = {"username": "carl", "password": "another one"}
    assert call("POST", "/auth/login", login).status_code == 200
    assert works(call, call.keys["carl"])


def test_the_present_password_is_asked_for_a_new_one(call):
    body = {"password": "not it", "new_password": "another one"}
    answer = call("PATCH", "/users/me", body, user="carl")
    assert answer.status_code == 422
    assert answer.json["detail"][0]["loc"] == ["body", "password"]
    assert "not it" not in answer.text
    assert signed_in(call, call.tokens["carl"])


def test_no_token_of_a_deleted_account_fits_a_namesake_made_anew(call, app):
    """Not in the same second, and not after any number of changes to either account."""
    tokens = []
    with app.app_context():
        for step in (add_nora, *[change_nora] * 3):
            step()
            tokens.append(auth.token_for(User.find("nora")))
        assert signed_in(call, tokens[-1])
        User.remove("nora")
        db.session.commit()
        for step in (add_nora, *[change_nora] * 6):
            step()
            assert not any(signed_in(call, token) for token in tokens)


def add_nora():
    User.add("nora", "unused", "admin")
    db.session.commit()


def change_nora():
    User.change("nora", disabled=False)
    db.session.commit()


def test_a_namesake_made_anew_inherits_neither_keys_nor_proposals(call, app):
    body = {"name": "ci", "ttl": "90d"}
    with app.app_context():
        add_nora()
        headers = {"Authorization": f"Bearer {auth.token_for(User.find('nora'))}"}
        key = call("POST", "/users/me/api-keys", body, headers=headers).json["token"]
        headers = {"Authorization": f"Bearer {key}"}
        unit = call("POST", "/knowledge", proposal(), headers=headers).json
        User.remove("nora")
        db.session.commit()
        add_nora()
        headers = {"Authorization": f"Bearer {auth.token_for(User.find('nora'))}"}
    assert not works(call, key)
    assert call("GET", "/users/me/api-keys", headers=headers).json == {"data": []}
    assert call("GET", "/users/me/proposals", headers=headers).json["items"] == []
    left = call("GET", f"/review/{unit['id']}", user="rita").json
    assert left["knowledge_unit"]["created_by"] == "nora"


# API keys


def test_a_new_key_has_the_shape_that_clients_know(call):
    answer = make_key(call, labels=[" ci ", "nightly", "", "ci", "CI"])
    assert answer.status_code == 201
    key = answer.json
    assert list(key) == [*KEY, "token", "api_key"]
    space, version, id, secret = key["token"].split(".")
    assert (space, version) == ("cqa", "v1")
    assert re.fullmatch(r"[0-9a-f]{32}", id)
    assert re.fullmatch(r"[a-z2-7]{52}", secret)
    assert key["api_key"] == key["token"]
    assert key["id"] == id
    assert key["prefix"] == key["key_prefix"] == secret[:8]
    assert (key["name"], key["ttl"]) == ("ci", "90d")
    assert key["labels"] == ["ci", "nightly", "CI"]
    assert key["last_used_at"] is key["revoked_at"] is None
    assert (key["is_expired"], key["is_active"]) == (False, True)
    assert key["created_at"].endswith("+00:00")
    assert key["expires_at"].endswith("+00:00")
    assert now(-90 * 86400 - 5) > key["expires_at"] > now(-90 * 86400 + 60)
    assert works(call, key["token"])


def test_a_token_is_shown_once_and_stored_nowhere(call, app):
    made = make_key(call).json
    secret = made["token"].rpartition(".")[2]
    answer = call("GET", "/users/me/api-keys", user="carl")
    assert list(answer.json) == ["data"]
    for key in answer.json["data"]:
        assert list(key) == KEY
    assert secret not in answer.text
    with app.app_context():
        kept = db.session.execute(ApiKey.__table__.select().where(ApiKey.id == made["id"])).one()
        assert secret not in str(kept)
        assert kept.key_hash == auth.key_hash(secret)
        assert re.fullmatch(r"[0-9a-f]{64}", kept.key_hash)


def test_keys_are_ones_own_newest_first_whatever_became_of_them(call):
    made = [make_key(call, name=f"key {number}").json["id"] for number in range(3)]
    call("POST", f"/users/me/api-keys/{made[1]}/revoke", user="carl")
    assert [key["id"] for key in keys(call)][:3] == made[::-1]
    assert [key["name"] for key in keys(call, "cleo")] == ["first"]


def test_the_life_of_a_key_is_a_number_and_a_unit(call):
    """The vectors of the agent specification, section 6.1."""
    lives = {
        "15m": 900,
        "1h": 3600,
        "90d": 90 * 86400,
        " 30D ": 30 * 86400,
        "0030d": 30 * 86400,
        "000000000000001d": 86400,
        "365d": 31536000,
        "8760h": 31536000,
        "525600m": 31536000,
        "31536000s": 31536000,
    }
    for ttl, seconds in lives.items():
        answer = make_key(call, ttl=ttl)
        assert answer.status_code == 201, ttl
        key = answer.json
        assert key["ttl"] == ttl.strip().lower()
        assert now(-seconds - 5) > key["expires_at"] > now(-seconds + 60)
        call("POST", f"/users/me/api-keys/{key['id']}/revoke", user="carl")


def test_a_life_that_is_none_is_refused(call):
    before = keys(call)
    words = {
        "ttl is required": ["   "],
        "ttl is not a valid duration": [
            *("1w", "30", "d", "d30", "3.5d", "-1d", "+1d", "1d2h", "3mo", "5y", "1 d", "1d\n2"),
            "\u0661d",
        ],
        "ttl must be greater than zero": ["0d", "000h", "0s"],
        "ttl exceeds the maximum of 365d": ["366d", "8761h", "525601m", "31536001s"],
    }
    for detail, refused in words.items():
        for ttl in refused:
            answer = make_key(call, ttl=ttl)
            assert answer.status_code == 422, ttl
            assert isinstance(answer.json["detail"], str)
            assert answer.json["detail"].startswith(detail), ttl
    for ttl in ("", "9" * 20 + "d", "00000000000000001d", None, 90):
        answer = make_key(call, ttl=ttl)
        assert answer.status_code == 422, ttl
        (problem,) = answer.json["detail"]
        assert problem["loc"] == ["body", "ttl"]
    assert keys(call) == before


def test_a_key_that_cannot_be_is_refused(call):
    before = keys(call)
    for more, place in (
        ({"name": ""}, ["name"]),
        ({"name": "   "}, ["name"]),
        ({"name": "x" * 65}, ["name"]),
        ({"name": "a\nb"}, ["name"]),
        ({"name": None}, ["name"]),
        ({"labels": None}, ["labels"]),
        ({"labels": "ci"}, ["labels"]),
        ({"labels": ["x" * 65]}, ["labels", 0]),
        ({"labels": [1]}, ["labels", 0]),
        ({"labels": [str(number) for number in range(17)]}, ["labels"]),
    ):
        answer = make_key(call, **more)
        assert answer.status_code == 422, more
        (problem,) = answer.json["detail"]
        assert problem["loc"] == ["body", *place]
    assert keys(call) == before
    longest = {"name": f" {'x' * 64} ", "labels": ["y" * 64] * 16}
    answer = make_key(call, **longest)
    assert answer.json["name"] == "x" * 64
    assert answer.json["labels"] == ["y" * 64]


def test_twenty_active_keys_are_all(call, app):
    """Revoked and expired ones do not count."""
    (first,) = keys(call)
    for _ in range(19):
        assert make_key(call).status_code == 201
    answer = make_key(call)
    assert answer.status_code == 409
    assert answer.json == {"detail": "Maximum of 20 active API keys per user"}
    assert make_key(call, ttl="0d").status_code == 422
    call("POST", f"/users/me/api-keys/{first['id']}/revoke", user="carl")
    assert make_key(call).status_code == 201
    assert make_key(call).status_code == 409
    with app.app_context():
        carl = User.find("carl").id
        db.session.execute(
            ApiKey.__table__.update().where(ApiKey.user_id == carl).values(expires_at=now())
        )
        db.session.commit()
    assert make_key(call).status_code == 201
    assert len(keys(call)) == 22
    assert make_key(call, "cleo").status_code == 201


def test_keys_made_at_the_same_time_do_not_pass_the_cap(call):
    """D-03."""
    for _ in range(18):
        make_key(call)
    with ThreadPoolExecutor(6) as pool:
        codes = [one.status_code for one in pool.map(lambda _: make_key(call), range(6))]
    assert sorted(codes) == [201] + [409] * 5
    assert sum(key["is_active"] for key in keys(call)) == 20


def test_a_key_is_accepted_in_each_spelling_of_its_id(call):
    _, _, id, secret = call.keys["carl"].split(".")
    dashed = str(uuid.UUID(id))
    for spelling in (dashed, id.upper(), f"{{{dashed}}}", f"urn:uuid:{dashed}"):
        assert works(call, f"cqa.v1.{spelling}.{secret}"), spelling


def test_a_key_that_is_not_exactly_one_is_refused(call):
    _, _, id, secret = call.keys["carl"].split(".")
    other = call.keys["cleo"].rpartition(".")[2]
    for token in (
        f"cqa.v1.{id}.{other}",
        f"cqa.v1.{id}.{secret.upper()}",
        f"cqa.v1.{id}.{secret[:-1]}",
        f"cqa.v1.{id}.{secret}a",
        f"cqa.v1.{id}.{secret[:-1]}=",
        f"cqa.v1.{id}.{secret[:-1]}\xe9",
        f"cqa.v1.{id}.{secret} ",
        f"cqa.v1.{id}.{secret}.x",
        f"cqa.v2.{id}.{secret}",
        f"cqb.v1.{id}.{secret}",
        f"CQA.v1.{id}.{secret}",
        f" cqa.v1.{id}.{secret}",
        f"cqa.v1.{'0' * 32}.{secret}",
        f"cqa.v1.{id[:-1]}.{secret}",
        f"cqa.v1..{secret}",
        f"{id}.{secret}",
        secret,
        "",
    ):
        assert not works(call, token), token
    for header in (f"bearer {call.keys['carl']}", f"Basic {call.keys['carl']}", call.keys["carl"]):
        answer = call("POST", "/knowledge", {}, headers={"Authorization": header})
        assert (answer.status_code, answer.json) == (401, {"detail": "Invalid API key"})


def test_a_key_in_the_address_is_no_key(call):
    """Row 42."""
    key = call.keys["carl"]
    for query in (f"api_key={key}", f"token={key}", f"access_token={key}"):
        assert call("POST", f"/knowledge?{query}", proposal()).status_code == 401
        assert call("GET", f"/users/me?jwt={call.tokens['ada']}&{query}").status_code == 401


def test_a_revoked_key_works_no_longer_and_revoking_twice_is_as_good_as_once(call):
    key = make_key(call).json
    assert works(call, key["token"])
    path = f"/users/me/api-keys/{key['id']}/revoke"
    answer = call("POST", path, user="carl")
    assert (answer.status_code, answer.json) == (200, {"message": "API key revoked."})
    assert not works(call, key["token"])
    shown = keys(call)[0]
    assert shown["revoked_at"].endswith("+00:00")
    assert (shown["is_active"], shown["is_expired"]) == (False, False)
    again = call("POST", path, user="carl")
    assert (again.status_code, again.json) == (200, {"message": "API key revoked."})
    assert keys(call)[0] == shown
    assert works(call, call.keys["carl"])


def test_what_is_not_ones_own_key_is_not_found(call):
    (foreign,) = keys(call, "cleo")
    (mine,) = keys(call)
    dashed = str(uuid.UUID(mine["id"]))
    for id in (foreign["id"], "0" * 32, dashed, mine["id"].upper(), "x"):
        answer = call("POST", f"/users/me/api-keys/{id}/revoke", user="carl")
        assert (answer.status_code, answer.json) == (404, {"detail": "API key not found"})
    assert works(call, call.keys["cleo"])
    assert works(call, call.keys["carl"])


def test_an_expired_key_works_no_longer(call, app):
    with app.app_context():
        id, secret = auth.new_key()
        hashed = auth.key_hash(secret)
        ApiKey.add(User.find("carl").id, "old", [], "1s", -1, id, secret[:8], hashed)
        db.session.commit()
    assert not works(call, auth.key_token(id, secret))
    (old,) = (key for key in keys(call) if key["name"] == "old")
    assert (old["is_expired"], old["is_active"], old["revoked_at"]) == (True, False, None)
    answer = call("POST", f"/users/me/api-keys/{id}/revoke", user="carl")
    assert answer.json == {"message": "API key revoked."}


def test_an_admin_sees_and_revokes_the_keys_of_others(call):
    made = make_key(call, labels=["ci"]).json
    answer = call("GET", "/users/carl/api-keys", user="ada")
    assert answer.json == {"data": keys(call)}
    assert made["token"].rpartition(".")[2] not in answer.text
    path = f"/users/carl/api-keys/{made['id']}/revoke"
    answer = call("POST", path, user="ada")
    assert (answer.status_code, answer.json) == (200, {"message": "API key revoked."})
    assert not works(call, made["token"])
    for path, detail in (
        (f"/users/cleo/api-keys/{keys(call)[1]['id']}/revoke", "API key not found"),
        (f"/users/nobody/api-keys/{made['id']}/revoke", "User not found"),
    ):
        answer = call("POST", path, user="ada")
        assert (answer.status_code, answer.json) == (404, {"detail": detail})
    assert call("GET", "/users/nobody/api-keys", user="ada").status_code == 404
    assert works(call, call.keys["carl"])


def test_the_keys_of_an_account_stop_while_it_is_disabled_and_when_it_is_deleted(call, app):
    assert works(call, call.keys["carl"])
    change(call, "carl", disabled=True)
    assert not works(call, call.keys["carl"])
    change(call, "carl", disabled=False)
    assert works(call, call.keys["carl"])
    done = app.test_cli_runner().invoke(args=["user", "delete", "carl", "--yes"])
    assert done.exit_code == 0, done.output
    assert not works(call, call.keys["carl"])
    assert works(call, call.keys["cleo"])


def test_old_peppers_let_old_keys_live_on(make_call):
    """D-35: new keys are hashed with the first pepper."""
    first = make_call()
    peppers = ("pepper-of-the-tests", "a-second-pepper", "a-third-pepper")
    second = make_call(CQ_API_KEY_PEPPER=peppers[1], CQ_API_KEY_PEPPERS_OLD=peppers[0])
    assert works(second, first.keys["carl"])
    newer = make_key(second).json["token"]
    assert works(second, newer)
    assert not works(make_call(), newer)
    third = make_call(CQ_API_KEY_PEPPER=peppers[2], CQ_API_KEY_PEPPERS_OLD=", ".join(peppers[:2]))
    assert works(third, first.keys["carl"])
    assert works(third, newer)
    without = make_call(CQ_API_KEY_PEPPER=peppers[2])
    assert not works(without, first.keys["carl"])
    assert not works(without, newer)
