"""Signing in, by password and by a provider's page, signing out, keys and their lifetimes."""

import base64
import hashlib
import http.client as http_client
import json
import re
import sys
import threading
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from cq import account, credentials, ttl
from cq.account import SignedOut, SignInFailed
from cq.credentials import Session
from cq.failures import NoAnswer, NotFound, Refused
from tests.agent.misbehaving import Misbehaving, Reset, http, said
from tests.agent.test_cli import cq as cq
from tests.cast import PASSWORD


@pytest.fixture
def node(serve):
    return serve().url


@pytest.fixture
def at_home(tmp_path, monkeypatch):
    """Sessions and documents are kept in the test's own folder."""
    monkeypatch.setenv("CQ_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def order():
    """`order(usual)`: a node that answers so."""
    nodes = []

    def start(usual):
        nodes.append(Misbehaving(usual))
        return nodes[-1]

    yield start
    for each in nodes:
        each.stop()


def test_a_person_signs_in_makes_a_key_and_an_agent_uses_it(cq, node):
    here = {"CQ_ADDR": node}
    done = cq("auth", "login", "--user", "carl", "--password-stdin", input=f"{PASSWORD}\n", **here)
    assert (done.returncode, done.stdout) == (0, "Signed in as carl\n"), done.stderr
    status = cq("auth", "status", **here).stdout
    assert f"Server: {node}\nSigned in: carl\nExpires: 20" in status
    made = cq(
        "auth",
        "key",
        "create",
        "--name",
        "my agent",
        "--ttl",
        " 7D ",
        "--labels",
        "ci, laptop",
        **here,
    )
    assert made.returncode == 0, made.stderr
    key = made.stdout.strip()
    assert key.startswith("cqa.v1.")
    assert key not in made.stderr
    assert "ci,laptop" in made.stderr
    say = ["propose", "--summary", "s", "--detail", "d", "--action", "a", "--domain", "x"]
    done = cq(*say, CQ_API_KEY=key, **here)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [row.split("\t") for row in cq("auth", "key", "list", **here).stdout.splitlines()]
    (mine,) = [row for row in rows if row[4] == "my agent"]
    assert mine[2] == "active"
    assert cq("auth", "key", "revoke", mine[0], **here).returncode == 0
    assert "does not accept" in cq(*say, CQ_API_KEY=key, **here).stderr
    assert "revoked" in cq("auth", "key", "list", **here).stdout
    assert cq("auth", "logout").stdout == "Signed out.\n"
    assert cq("auth", "logout").returncode == 0
    done = cq("auth", "status", **here)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("not signed in") == 1


def test_a_wrong_password_is_told_and_nothing_kept(cq, node, tmp_path):
    done = cq("auth", "login", "--user", "carl", "--password-stdin", input="wrong\n", CQ_ADDR=node)
    assert done.returncode == 1
    assert "name and password" in done.stderr
    assert not (tmp_path / ".config/cq/credentials").exists()


def test_a_session_is_for_its_node_alone(cq, node):
    cq("auth", "login", "--user", "carl", "--password-stdin", input=f"{PASSWORD}\n", CQ_ADDR=node)
    done = cq("auth", "key", "list", CQ_ADDR="http://127.0.0.1:9")
    assert done.returncode == 1
    assert f"signed in to {node}" in done.stderr


def test_a_bad_lifetime_is_told_before_anything_is_sent(cq, node):
    cq("auth", "login", "--user", "carl", "--password-stdin", input=f"{PASSWORD}\n", CQ_ADDR=node)
    done = cq("auth", "key", "create", "--name", "x", "--ttl", "1w", CQ_ADDR=node)
    assert done.returncode == 1
    assert "--ttl" in done.stderr


# A session is for its node


def test_a_session_of_unknown_origin_is_sent_nowhere(at_home, order):
    """Upstream's command keeps no address with it."""
    node = order(http(200, b'{"data": []}'))
    file = credentials.path()
    file.parent.mkdir(parents=True)
    file.write_text('{"session_jwt": "head.body.sign", "username": "carl"}')
    for use in (
        lambda: account.Keys(node.addr, 5),
        lambda: account.session_of(node.addr),
        lambda: account.session_of(""),
        lambda: account.sign_out(node.addr, 5),
    ):
        with pytest.raises(SignedOut, match="cq auth login"):
            use()
    assert node.seen == []


def test_a_session_of_another_node_is_sent_nowhere(at_home, order):
    node = order(http(200, b'{"data": []}'))
    credentials.save(Session("http://elsewhere.example", "carl", "head.body.sign", ""))
    for use in (lambda: account.Keys(node.addr, 5), lambda: account.sign_out(node.addr, 5)):
        with pytest.raises(SignedOut, match=r"elsewhere\.example"):
            use()
    assert node.seen == []
    assert account.session_of("").username == "carl"
    assert account.session_of("http://elsewhere.example//").username == "carl"


# By password


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"[]",
        b"",
        b'{"token": ""}',
        b'{"token": 5}',
        b'{"token": "a b"}',
        b'{"token": "a\\nb"}',
    ],
)
def test_a_node_that_gives_no_token_signs_nobody_in(at_home, order, body):
    with pytest.raises(NoAnswer, match="no token"):
        account.sign_in(order(http(200, body)).addr, "carl", "p", 5)
    assert credentials.load() is None


@pytest.mark.parametrize(
    ("claims", "expires"),
    [
        ({"exp": 1767225600}, "2026-01-01T00:00:00Z"),
        ({"exp": 1e300}, ""),
        ({"exp": "soon"}, ""),
        ({"exp": None}, ""),
        ({}, ""),
        ([], ""),
    ],
)
def test_a_sessions_end_is_read_from_its_token(at_home, order, claims, expires):
    session = account.sign_in(order(http(200, tokened(claims))).addr, "carl", "p", 5)
    assert session.expires == expires
    assert credentials.load() == session


def tokened(claims, member="token"):
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return json.dumps({member: f"head.{body}.sign"}).encode()


# Keys


@pytest.fixture
def keys(at_home, order):
    """`keys(answer)`: the keys of who is signed in to a node that answers so, and the node."""

    def start(usual):
        node = order(usual)
        credentials.save(Session(node.addr, "carl", "head.body.sign", ""))
        return account.Keys(node.addr, 5), node

    return start


@pytest.mark.parametrize(("prefix", "secret"), [("prefix", "token"), ("key_prefix", "api_key")])
def test_both_spellings_of_a_key_are_read(keys, prefix, secret):
    said = {"id": "1", "name": "n", prefix: "0123", secret: "cqa.v1.x.y", "is_active": True}
    mine, node = keys(http(201, json.dumps(said).encode()))
    made = mine.create(" n ", " 7D ", ["ci"])
    assert (made["key"], made["prefix"], made["status"]) == ("cqa.v1.x.y", "0123", "active")
    assert json.loads(node.bodies[-1]) == {"name": " n ", "ttl": "7d", "labels": ["ci"]}
    assert "Authorization: Bearer head.body.sign" in node.seen[-1]


@pytest.mark.parametrize("body", [b"{}", b"[]", b"", b"null", b'{"api_key": 5}', b'{"token": ""}'])
def test_a_key_that_is_not_shown_is_told_loudly(keys, body):
    mine, _ = keys(http(201, body))
    with pytest.raises(NoAnswer, match=r"does not show it|read"):
        mine.create("n", "7d")


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ({"revoked_at": "2026-01-01T00:00:00Z", "is_expired": True, "is_active": True}, "revoked"),
        ({"revoked_at": None, "is_expired": True, "is_active": True}, "expired"),
        ({"is_active": True}, "active"),
        ({}, "inactive"),
    ],
)
def test_a_keys_status_is_a_word(keys, facts, word):
    odd = {"id": 5, "name": None, "labels": [1, "ci"], "prefix": {}, "expires_at": 0, **facts}
    mine, _ = keys(http(200, json.dumps({"data": [odd, None, 5]}).encode()))
    (told,) = mine.all()
    assert told == {
        "id": "", "name": "", "prefix": "", "labels": ["ci"], "status": word, "expires_at": "",
    }  # fmt: skip


@pytest.mark.parametrize("body", [b"{}", b"[]", b"", b'{"data": {}}', b'{"data": null}'])
def test_a_list_of_keys_that_is_none_is_told(keys, body):
    mine, _ = keys(http(200, body))
    with pytest.raises(NoAnswer):
        mine.all()


def test_what_is_no_keys_id_is_never_sent(keys):
    mine, node = keys(http(200, b"{}"))
    for id in ("", "..", ".", "a/b", "a b", "x" * 65, "ü", "\ud800"):
        with pytest.raises(NotFound):
            mine.revoke(id)
    assert node.seen == []
    mine.revoke("a-b_c")
    assert node.seen[-1].startswith("POST /api/v1/users/me/api-keys/a-b_c/revoke ")


def test_what_the_node_says_of_a_key_is_told(keys):
    mine, node = keys(said(409, "At most 20 keys"))
    with pytest.raises(Refused, match="At most 20 keys"):
        mine.create("n", "7d")
    node.usual = said(401, "Expired")
    with pytest.raises(SignedOut, match="cq auth login"):
        mine.all()
    node.usual = said(404, "API key not found")
    with pytest.raises(NotFound):
        mine.revoke("x")


# Signing out at the node


@pytest.mark.parametrize(
    ("usual", "outcome"),
    [
        (http(200, b"{}"), "revoked"),
        (http(204), "revoked"),
        (said(401, "Expired"), "ended"),
        (said(404, "Not Found"), "unsupported"),
        (said(405, "Method Not Allowed"), "unsupported"),
        (said(501, "No"), "unsupported"),
    ],
)
@pytest.mark.parametrize("everywhere", [False, True])
def test_signing_out_at_the_node_forgets_the_session(at_home, order, usual, outcome, everywhere):
    node = order(usual)
    credentials.save(Session(node.addr, "carl", "head.body.sign", ""))
    assert account.sign_out(node.addr, 5, everywhere) == outcome
    assert credentials.load() is None
    path = f"POST /api/v1/auth/logout{'?all_devices=true' if everywhere else ''} HTTP"
    assert node.seen[1].startswith(path)
    assert account.sign_out(node.addr, 5, everywhere) == "absent"


@pytest.mark.parametrize("usual", [said(500, "No"), said(403, "No"), said(429, "No"), Reset(b"")])
def test_a_node_that_does_not_answer_keeps_one_signed_in(at_home, order, usual):
    node = order(usual)
    credentials.save(Session(node.addr, "carl", "head.body.sign", ""))
    with pytest.raises(NoAnswer):
        account.sign_out(node.addr, 5)
    assert credentials.load()


def test_our_node_takes_a_sign_out(at_home, node):
    session = account.sign_in(node, "carl", PASSWORD, 20)
    assert session.expires
    assert account.Keys(node, 20).all()
    assert account.sign_out(node, 20) == "revoked"
    assert account.providers(node, 20) == []
    with pytest.raises(SignInFailed, match="does not sign in by github"):
        account.sign_in_by(node, "GitHub", 20, lambda url: None, lambda *_: "x")


# By a provider's page


class Provider:
    """A node that signs in by a provider: `replies` by path; `asked` are the bodies by path."""

    def __init__(self, order, **replies):
        self.replies = {
            "start": http(200, b'{"authorization_url": "https://provider.example/authorize?x=1"}'),
            "exchange": http(200, tokened({"exp": 1767225600}, "access_token")),
            "me": http(200, b'{"id": "1", "username": "carl"}'),
            **replies,
        }
        self.node, self.shown = order(self.reply), []

    def reply(self, node):
        last = node.seen[-1].split()[1].rpartition("/")[2]
        answer = self.replies[last]
        answer = answer(node) if callable(answer) else answer
        return answer.pop(0) if isinstance(answer, list) else answer

    def asked(self, last):
        heads = (head.split()[1] for head in self.node.seen)
        (found,) = [
            body for head, body in zip(heads, self.node.bodies, strict=True) if head.endswith(last)
        ]
        return json.loads(found)

    def sign_in(self, *browser, choose=None, patience=10):
        """`browser` are the queries that it comes back with, while the page is shown."""

        def show(url):
            self.shown.append(url)
            place = self.asked("/start")["redirect_uri"]
            self.heard = [visit(f"{place}{query}") for query in browser]

        return account.sign_in_by(self.node.addr, " GitHub ", 5, show, choose, patience)


def visit(url, method="GET"):
    place = urlsplit(url)
    with closing(http_client.HTTPConnection(place.hostname, place.port, timeout=10)) as line:
        line.request(method, f"{place.path}?{place.query}")
        return line.getresponse().status


def test_a_provider_signs_one_in_with_pkce(at_home, order):
    provider = Provider(order)
    session = provider.sign_in("?exchange_code=one-time")
    assert session == Session(provider.node.addr, "carl", session.token, "2026-01-01T00:00:00Z")
    assert credentials.load() == session
    assert provider.shown == ["https://provider.example/authorize?x=1"]
    assert provider.heard == [200]
    started, exchanged = provider.asked("/start"), provider.asked("/exchange")
    assert started["provider"] == "github"
    assert exchanged["exchange_code"] == "one-time"
    verifier = exchanged["code_verifier"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", verifier)
    hashed = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
    assert started["code_challenge"] == hashed.rstrip(b"=").decode()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/cb/[A-Za-z0-9_-]{22}", started["redirect_uri"])
    # The token goes with the question who one is, and with no other.
    assert [head.split()[1] for head in provider.node.seen if "Authorization" in head] == [
        "/api/v1/users/me"
    ]
    # Nobody listens any more.
    with pytest.raises(ConnectionRefusedError):
        visit(started["redirect_uri"])


def test_every_sign_in_has_secrets_of_its_own(at_home, order):
    one, other = Provider(order), Provider(order)
    for each in (one, other):
        each.sign_in("?exchange_code=x")
    for name, path in (("redirect_uri", "/start"), ("code_verifier", "/exchange")):
        assert (
            one.asked(path)[name].rpartition("/")[2] != other.asked(path)[name].rpartition("/")[2]
        )


def test_only_the_first_answer_counts_and_no_preview_takes_its_place(at_home, order):
    provider = Provider(order)
    provider.sign_in(
        "", "?utm=1", "x?exchange_code=guess", "?exchange_code=mine", "?exchange_code=late"
    )
    assert provider.heard == [400, 400, 404, 200, 410]
    assert provider.asked("/exchange")["exchange_code"] == "mine"


def test_a_head_request_takes_nobodys_place(at_home, order):
    provider = Provider(order)

    def show(url):
        place = f"{provider.asked('/start')['redirect_uri']}?exchange_code=x"
        assert visit(place, "HEAD") == 501
        assert visit(place) == 200

    assert account.sign_in_by(provider.node.addr, "github", 5, show, None).username == "carl"


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("?error=access_denied&error_description=You+said+no", "You said no"),
        ("?error=access_denied", "access_denied"),
        (f"?error={'x' * 5000}", "xxx"),
    ],
)
def test_a_provider_that_says_no_is_told(at_home, order, query, told):
    provider = Provider(order)
    with pytest.raises(SignInFailed, match=told) as failed:
        provider.sign_in(query)
    assert len(str(failed.value)) < 300
    assert provider.heard == [400]
    assert credentials.load() is None


def test_a_person_who_does_not_come_back_is_waited_for_no_longer(at_home, order):
    with pytest.raises(SignInFailed, match="did not complete in time"):
        Provider(order).sign_in(patience=0.1)
    assert credentials.load() is None


def test_a_person_who_gives_up_ends_it(at_home, order):
    def show(url):
        raise KeyboardInterrupt

    provider = Provider(order)
    with pytest.raises(KeyboardInterrupt):
        account.sign_in_by(provider.node.addr, "github", 5, show, None)
    with pytest.raises(ConnectionRefusedError):
        visit(provider.asked("/start")["redirect_uri"])


@pytest.mark.parametrize(
    "page",
    [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "",
        "/relative",
        "https://",
        "https://[::1",
        "https://a b",
        "-x",
        5,
        None,
    ],
)
def test_a_page_that_is_none_is_not_shown(at_home, order, page):
    provider = Provider(order, start=http(200, json.dumps({"authorization_url": page}).encode()))
    with pytest.raises(NoAnswer, match="page"):
        provider.sign_in("?exchange_code=x")
    assert provider.shown == []


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (said(400, "invalid_grant"), SignInFailed),
        (http(400, b'{"error": "invalid_grant", "detail": "Used"}'), SignInFailed),
        (said(422, "Bad"), Refused),
        (said(500, "Bad"), NoAnswer),
        (http(200, b"{}"), NoAnswer),
        (http(200, b'{"access_token": null}'), NoAnswer),
    ],
)
def test_an_exchange_that_fails_signs_nobody_in(at_home, order, reply, failure):
    with pytest.raises(failure):
        Provider(order, exchange=reply).sign_in("?exchange_code=x")
    assert credentials.load() is None


def test_an_account_without_a_name_gets_one(at_home, order):
    taken = http(409, b'{"error": "username_unavailable", "suggestions": ["carl1", 5, "carl2"]}')
    bad = http(422, b'{"error": "username_invalid_format", "detail": "Only letters"}')
    odd = http(409, b'{"error": "username_unavailable", "suggestions": 5}')
    provider = Provider(
        order, me=http(200, b'{"username": ""}'), username=[taken, bad, odd, http(200, b"{}")]
    )
    heard, given = [], iter([" ", "carl", "c!", "c", "\tcarl9 "])

    def choose(*said):
        heard.append(said)
        return next(given)

    assert provider.sign_in("?exchange_code=x", choose=choose).username == "carl9"
    assert heard == [
        ("", []),
        ("", []),
        ("username_unavailable", ["carl1", "carl2"]),
        ("Only letters", []),
        ("username_unavailable", []),
    ]
    assert credentials.load().username == "carl9"


@pytest.mark.parametrize(
    "reply",
    [
        http(409, b'{"error": "username_already_set"}'),
        said(409, "No"),
        said(429, "No"),
        said(422, "No"),
    ],
)
def test_a_name_that_cannot_be_chosen_ends_it(at_home, order, reply):
    provider = Provider(order, me=http(200, b"{}"), username=reply)
    with pytest.raises((Refused, NoAnswer)):
        provider.sign_in("?exchange_code=x", choose=lambda *_: "carl")
    assert credentials.load() is None


def test_providers_are_listed_by_their_names(at_home, order):
    offered = [
        {"name": "GitLab ", "enabled": True},
        {"name": " github", "enabled": True},
        {"name": "google", "enabled": False},
        {"name": "github", "enabled": True},
        {"name": "", "enabled": True},
        {"name": 5, "enabled": True},
        None,
    ]
    node = order(http(200, json.dumps({"providers": offered}).encode()))
    assert account.providers(node.addr, 5) == ["github", "gitlab"]
    node.usual = http(200, b"[]")
    with pytest.raises(NoAnswer, match="providers"):
        account.providers(node.addr, 5)


# Lifetimes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30d", ("30d", 2592000)),
        (" 12H ", ("12h", 43200)),
        ("007d", ("007d", 604800)),
        ("31536000s", ("31536000s", 31536000)),
        ("525600m", ("525600m", 31536000)),
        ("8760h", ("8760h", 31536000)),
        ("365d", ("365d", 31536000)),
        (" " * 70 + "30d", ("30d", 2592000)),
    ],
)
def test_lifetimes_are_read(text, expected):
    assert ttl.parse(text) == expected


NONE = """1w 30 d d30 3.5d -1d 1d2h 3mo 5y 0d 000h 366d 8761h 525601m 31536001s 99999999999999999999d
    00000000000000001d ١d"""


@pytest.mark.parametrize("text", [*NONE.split(), "", " ", "1 d", "1d\n1d", "x" * 10_000])
def test_what_is_no_lifetime_is_refused_briefly(text):
    with pytest.raises(ValueError, match=r"lifetime|large|small") as refused:
        ttl.parse(text)
    assert len(str(refused.value)) < 256


# From the command line

BROWSER = """#!{python}
import sys, urllib.request
urllib.request.urlopen(sys.argv[1]).read()
"""


@pytest.fixture
def provider(order, tmp_path):
    """A node whose provider's page sends the browser straight back; `browser` opens pages."""

    def page(node):
        to = provider.asked("/start")["redirect_uri"]
        return http(302, Location=f"{to}?exchange_code=x")

    def started(node):
        url = f"{node.addr}/page"
        return http(200, json.dumps({"authorization_url": url}).encode())

    offered = {"providers": [{"name": "github", "enabled": True}]}
    provider = Provider(
        order, start=started, page=page, providers=http(200, json.dumps(offered).encode())
    )
    program = tmp_path / "browser"
    program.write_text(BROWSER.format(python=sys.executable))
    program.chmod(0o700)
    provider.browser = str(program)
    return provider


def test_a_person_signs_in_on_a_providers_page(cq, provider, tmp_path):
    here = {"CQ_ADDR": provider.node.addr, "BROWSER": provider.browser}
    assert cq("auth", "providers", **here).stdout == "github\n"
    done = cq("auth", "login", "GitHub", input="\n", **here)
    assert done.returncode == 0, done.stderr
    assert f"{provider.node.addr}/page" in done.stdout
    assert done.stdout.endswith("Signed in as carl\n")
    assert "Signed in: carl" in cq("auth", "status", **here).stdout


def test_a_name_is_chosen_on_the_terminal(cq, provider):
    here = {"CQ_ADDR": provider.node.addr, "BROWSER": provider.browser}
    taken = http(409, b'{"error": "username_unavailable", "suggestions": ["carl1"]}')
    provider.replies |= {"me": http(200, b"{}"), "username": [taken, http(200, b"{}")]}
    done = cq("auth", "login", "github", input="\n\ncarl\ncarl1\n", **here)
    assert done.returncode == 0, done.stderr
    assert "Free: carl1" in done.stdout
    assert done.stdout.endswith("Signed in as carl1\n")


def test_no_enter_no_sign_in(cq, provider):
    done = cq("auth", "login", "github", CQ_ADDR=provider.node.addr, BROWSER=provider.browser)
    assert done.returncode == 1
    assert "cancelled" in done.stderr
    assert not [head for head in provider.node.seen if "/page" in head]


def test_a_browser_that_does_not_open_is_told(cq, provider):
    start = provider.replies["start"]

    def started(node):
        # Somebody opens the page by hand, and says no there.
        to = json.loads(node.bodies[-1])["redirect_uri"]
        threading.Thread(target=visit, args=[f"{to}?error=access_denied"]).start()
        return start(node)

    provider.replies["start"] = started
    here = {"CQ_ADDR": provider.node.addr, "BROWSER": "/nowhere", "PATH": "/nowhere"}
    done = cq("auth", "login", "github", input="\n", **here)
    assert "Couldn't open browser" in done.stdout
    assert "access_denied" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("logout", "--all-devices"),
        ("login", " "),
        ("login", "github", "--user", "carl"),
        ("login", "github", "--password-stdin"),
        ("providers", "x"),
    ],
)
def test_a_misuse_is_told(cq, arguments):
    done = cq("auth", *arguments, CQ_ADDR="http://127.0.0.1:9")
    assert done.returncode == 2, done.stderr


def test_signing_out_at_our_node_ends_the_session_there(cq, node, at_home):
    here = {"CQ_ADDR": node}
    for _ in range(2):
        cq("auth", "login", "--user", "carl", "--password-stdin", input=f"{PASSWORD}\n", **here)
    done = cq("auth", "logout", "--revoke", "--all-devices", **here)
    assert done.stdout == "Signed out, here and at the node.\n"
    assert cq("auth", "logout", "--revoke", **here).stdout == "Signed out already.\n"


def test_a_node_that_is_away_keeps_one_signed_in_unless_only_this_machine_forgets(cq, order):
    node = order(http(200, tokened({"exp": 1767225600})))
    here = {"CQ_ADDR": node.addr}
    cq("auth", "login", "--user", "carl", "--password-stdin", input="x\n", **here)
    node.usual = http(503)
    done = cq("auth", "logout", "--revoke", **here)
    assert done.returncode == 1
    assert "Without --revoke" in done.stderr
    assert "carl" in cq("auth", "status", **here).stdout
    assert cq("auth", "logout", **here).stdout == "Signed out.\n"
