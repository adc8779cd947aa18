"""Behind reverse proxies: whose word about a caller counts, and a prefix before every path."""

import http.client
import json
import re
import threading
from contextlib import closing
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urljoin, urlsplit

import pytest
from flask import request

from cq.client import Client
from tests.cast import PASSWORD, ROOT
from tests.test_auth import quick
from tests.test_serve import API, Answer, Server

# Addresses of the machine itself that stand for callers from afar.
ATTACKER, PERSON = "127.0.0.2", "127.0.0.3"
WRONG = {"username": "rita", "password": "wrong"}


class Proxy:
    """A reverse proxy on a port of its own: what comes below `prefix` goes to `target` without it.

    It seems to be reached by `scheme`, and writes `port` behind a caller's address.
    """

    def __init__(self, target=None, prefix="", scheme="http"):
        self.target, self.prefix, self.scheme, self.port = target, prefix, scheme, ""
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self):
                proxy.forward(self)

            do_GET = do_POST = do_PATCH = answer

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def forward(self, asked):
        body = asked.rfile.read(int(asked.headers.get("Content-Length", 0)))
        if asked.path == self.prefix and self.prefix:
            asked.send_response(301)
            asked.send_header("Location", f"{self.prefix}/")
            asked.send_header("Content-Length", "0")
            asked.end_headers()
            return
        headers = [
            (name, value)
            for name, value in asked.headers.items()
            if name.lower()
            not in ("connection", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host")
        ]
        came = [*asked.headers.get_all("X-Forwarded-For", []), self.caller(asked)]
        headers += [
            ("X-Forwarded-For", ", ".join(came)),
            ("X-Forwarded-Proto", self.scheme),
            ("X-Forwarded-Host", asked.headers["Host"]),
        ]
        if self.prefix:
            headers.append(("X-Forwarded-Prefix", self.prefix))
        place = urlsplit(self.target)
        with closing(http.client.HTTPConnection(place.hostname, place.port, timeout=30)) as line:
            line.putrequest(
                asked.command,
                asked.path.removeprefix(self.prefix),
                skip_host=True,
                skip_accept_encoding=True,
            )
            for name, value in headers:
                line.putheader(name, value)
            line.endheaders(body)
            answer = line.getresponse()
            content = answer.read()
        asked.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "connection", "date", "server"):
                asked.send_header(name, value)
        asked.send_header("Content-Length", str(len(content)))
        asked.end_headers()
        asked.wfile.write(content)

    def caller(self, asked):
        return asked.client_address[0] + self.port

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def proxy():
    """Make proxies: `proxy(url, prefix="/cq")`."""
    made = []

    def make(*args, **kwargs):
        made.append(Proxy(*args, **kwargs))
        return made[-1]

    yield make
    for each in made:
        each.close()


def send(url, method, path, body=None, token=None, headers=None, address="127.0.0.1"):
    """One call from an address of this machine, as `tests.test_serve.send` makes it."""
    headers = dict(headers or {})
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if body is not None:
        body = json.dumps(body)
        headers["Content-Type"] = "application/json"
    place = urlsplit(url)
    line = http.client.HTTPConnection(
        place.hostname, place.port, timeout=30, source_address=(address, 0)
    )
    with closing(line):
        line.request(method, path, body, headers)
        answer = line.getresponse()
        return Answer(answer.status, answer.read().decode(errors="replace"), answer.headers)


def forged(number):
    """What somebody writes who wants to be another one at each call."""
    one = f"198.51.100.{number}"
    return {"X-Forwarded-For": one, "X-Real-IP": one, "Forwarded": f"for={one}", "Client-IP": one}


def statuses(url, address, times, prefix="", forge=False):
    """What so many wrong logins of rita are answered, each under a name of its own."""
    told = []
    for number in range(times):
        body = {**WRONG, "username": f"{address}-{number}"}
        headers = forged(number) if forge else {}
        answer = send(
            url, "POST", f"{prefix}{API}/auth/login", body, headers=headers, address=address
        )
        told.append(answer.status)
    return told


TEN = [401] * 10 + [429] * 2


# Whose word counts


@pytest.mark.slow
def test_behind_a_proxy_logins_are_throttled_by_the_true_address(serve, proxy):
    front = proxy(serve(CQ_TRUSTED_PROXIES="1").url)
    assert statuses(front.url, ATTACKER, 12) == TEN
    assert statuses(front.url, PERSON, 1) == [401]


@pytest.mark.slow
def test_forged_headers_dodge_no_throttle_behind_a_proxy(serve, proxy):
    front = proxy(serve(CQ_TRUSTED_PROXIES="1").url)
    assert statuses(front.url, ATTACKER, 12, forge=True) == TEN
    assert statuses(front.url, PERSON, 1, forge=True) == [401]


@pytest.mark.slow
def test_forged_headers_dodge_no_throttle_without_a_proxy(serve):
    url = serve().url
    assert statuses(url, ATTACKER, 12, forge=True) == TEN
    assert statuses(url, PERSON, 1, forge=True) == [401]


@pytest.mark.slow
def test_a_proxy_that_was_not_told_of_is_one_caller_for_all(serve, proxy):
    front = proxy(serve().url)
    assert statuses(front.url, ATTACKER, 10) == [401] * 10
    assert statuses(front.url, PERSON, 1) == [429]


@pytest.mark.slow
def test_of_two_proxies_the_address_that_the_outer_one_saw_counts(serve, proxy):
    inner = proxy(serve(CQ_TRUSTED_PROXIES="2").url)
    outer = proxy(inner.url)
    assert statuses(outer.url, ATTACKER, 12, forge=True) == TEN
    assert statuses(outer.url, PERSON, 1, forge=True) == [401]


@pytest.mark.slow
def test_the_port_of_a_caller_makes_no_caller_of_its_own(serve, proxy):
    """Some proxies add it, and each connection has another."""
    front = proxy(serve(CQ_TRUSTED_PROXIES="1").url)
    told = []
    for number in range(12):
        front.port = f":{5000 + number}"
        told += statuses(front.url, ATTACKER, 1)
    assert told == TEN


@pytest.mark.slow
def test_the_log_and_the_rates_know_the_true_caller(tmp_path, environ, proxy):
    server = Server(tmp_path, {**environ, "CQ_TRUSTED_PROXIES": "1", "CQ_READ_RATE": "3/hour"})
    front = proxy(server.listening().url)
    path = f"{API}/knowledge?domains=x"
    told = [
        send(front.url, "GET", path, headers=forged(n), address=ATTACKER).status for n in range(5)
    ]
    assert told == [200] * 3 + [429] * 2
    assert send(front.url, "GET", path, address=PERSON).status == 200
    server.end()
    assert [line["address"] for line in server.log() if "address" in line] == [ATTACKER] * 5 + [
        PERSON
    ]


@pytest.mark.slow
def test_tools_at_mcp_are_in_the_rates_of_the_true_caller(serve, proxy):
    front = proxy(serve(CQ_TRUSTED_PROXIES="1", CQ_READ_RATE="3/hour").url)
    ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"Accept": "application/json, text/event-stream"}

    def status(address, number=0):
        more = {**headers, **forged(number)}
        return send(front.url, "POST", "/mcp", ask, headers=more, address=address).status

    told = [status(ATTACKER, number) for number in range(4)]
    assert 429 not in told[:3]
    assert told[3] == 429
    assert status(PERSON) != 429


def ask(app, address="10.0.0.1", path="/health", **headers):
    """An answer of a logged route, and what the app took for the caller's address."""
    told = {}

    def look(response):
        told.update(address=request.remote_addr, host=request.host, url=request.url_root)
        return response

    app.after_request_funcs.setdefault(None, []).append(look)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    app.test_client().get(path, headers=named, environ_overrides={"REMOTE_ADDR": address})
    app.after_request_funcs[None].remove(look)
    return told


def test_what_is_no_address_is_none(make_app):
    app = make_app(CQ_TRUSTED_PROXIES="1")
    for value, address in (
        ("192.0.2.7", "192.0.2.7"),
        ("spoofed, 192.0.2.7", "192.0.2.7"),
        ("192.0.2.7:4711", "192.0.2.7"),
        ("2001:db8::7", "2001:db8::7"),
        ("[2001:db8::7]:4711", "2001:db8::7"),
        ('"[2001:db8::7]"', "2001:db8::7"),
        ("192.0.2.7, unknown", "10.0.0.1"),
        ("_hidden", "10.0.0.1"),
        ("", "10.0.0.1"),
        (",", "10.0.0.1"),
        ("<script>", "10.0.0.1"),
        ("192.0.2.7\t192.0.2.8", "10.0.0.1"),
    ):
        assert ask(app, X_Forwarded_For=value)["address"] == address, value


def test_fewer_addresses_than_proxies_are_none(make_app):
    app = make_app(CQ_TRUSTED_PROXIES="2")
    assert ask(app, X_Forwarded_For="192.0.2.7")["address"] == "10.0.0.1"
    assert ask(app, X_Forwarded_For="192.0.2.7, 10.0.0.2")["address"] == "192.0.2.7"


def test_without_trusted_proxies_no_header_changes_what_we_are(make_app):
    headers = {
        "X_Forwarded_For": "192.0.2.7",
        "X_Forwarded_Host": "evil.example",
        "X_Forwarded_Proto": "https",
        "X_Forwarded_Prefix": "/evil",
        "Forwarded": "for=192.0.2.7;host=evil.example;proto=https",
    }
    told = ask(make_app(), **headers)
    assert told == {"address": "10.0.0.1", "host": "localhost", "url": "http://localhost/"}
    told = ask(make_app(CQ_TRUSTED_PROXIES="1"), **headers)
    assert told == {
        "address": "192.0.2.7",
        "host": "evil.example",
        "url": "https://evil.example/evil/",
    }


def test_a_prefix_host_or_scheme_that_is_none_is_passed_over(make_app):
    """Row 52 of the troublesome inputs."""
    app = make_app(CQ_TRUSTED_PROXIES="1")
    for prefix in (
        "//evil.example", "/a//b", "https://evil.example", "evil", "/..", "/a/../b", "/a b", "/a;b",
        "/a?b", "/a%2Fb", "/é", "/a\\b", "/", "\\evil",
    ):  # fmt: skip
        assert ask(app, X_Forwarded_Prefix=prefix)["url"] == "http://localhost/", prefix
    for prefix in ("/cq", "/cq/", "/team-1/cq_2", "/~cq/v1.2"):
        told = ask(app, X_Forwarded_Prefix=prefix)["url"]
        assert told == f"http://localhost{prefix.rstrip('/')}/"
    for host in ("evil example", "a/b", "a@b", "", "x:port", "[::1"):
        assert ask(app, X_Forwarded_Host=host)["host"] == "localhost", host
    for scheme in ("javascript", "ftp", "HTTPS", ""):
        assert ask(app, X_Forwarded_Proto=scheme)["url"] == "http://localhost/", scheme


def test_neighbours_in_one_ipv6_network_are_one_caller(make_call):
    call = make_call(CQ_READ_RATE="3/hour")

    def status(address):
        where = {"REMOTE_ADDR": address}
        return call("GET", "/knowledge?domains=x", environ_overrides=where).status_code

    told = [status(f"2001:db8:1:1::{number}") for number in range(5)]
    assert told == [200] * 3 + [429] * 2
    assert status("2001:db8:1:2::1") == 200
    assert [status(f"::ffff:192.0.2.{number}") for number in (1, 1, 1, 1, 2)] == [200] * 3 + [
        429,
        200,
    ]


# A prefix


@pytest.fixture
def below(serve, proxy, call):
    """A server that a proxy has at /cq, with one approved unit."""
    quick(call.app, "rita", PASSWORD)
    call.unit = call.approve(tier="public")
    front = proxy(prefix="/cq")
    front.target = serve(CQ_TRUSTED_PROXIES="1", CQ_PUBLIC_URL=f"{front.url}/cq").url
    return front


@pytest.mark.slow
def test_the_page_and_all_it_loads_are_found_below_a_prefix(below):
    """Row 52."""
    asked = send(below.url, "GET", "/cq")
    assert (asked.status, asked.headers["Location"]) == (301, "/cq/")
    page = send(below.url, "GET", "/cq/")
    assert page.status == 200
    links = re.findall(r'(?:href|src)="([^"#]+)"', page.body)
    assert "app.js" in links
    seen = set()
    pages = [f"pages/{path.name}" for path in (ROOT / "frontend/pages").iterdir()]
    waiting = [urljoin("/cq/", link) for link in [*links, *pages]]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        answer = send(below.url, "GET", path)
        assert answer.status == 200, path
        if path.endswith(".js"):
            waiting += [urljoin(path, name) for name in re.findall(r'from "([^"]+)"', answer.body)]
    assert {"/cq/pages/review.js", "/cq/parts/card.js", "/cq/style.css"} <= seen
    assert all(path.startswith("/cq/") for path in seen)


@pytest.mark.slow
def test_a_person_works_below_a_prefix_by_cookies_that_stay_there(below, call):
    body = {"username": "rita", "password": PASSWORD, "session": True}
    origin = {"Origin": below.url}
    answer = send(below.url, "POST", f"/cq{API}/auth/login", body, headers=origin)
    assert answer.status == 200, answer.body
    jar = SimpleCookie()
    for line in answer.headers.get_all("Set-Cookie"):
        jar.load(line)
    session, second = jar["access_token_cookie"], jar["csrf_access_token"]
    assert (session["path"], second["path"]) == ("/cq/api/", "/cq/")
    assert session["httponly"]
    assert not second["httponly"]
    cookies = {"Cookie": f"{session.key}={session.value}; {second.key}={second.value}"}
    assert send(below.url, "GET", f"/cq{API}/users/me", headers=cookies).json["username"] == "rita"
    unit = call.propose("another one")["id"]
    path = f"/cq{API}/review/{unit}/approve"
    changing = {**cookies, **origin, "X-CSRF-TOKEN": second.value}
    evil = {**changing, "Origin": "https://evil.example"}
    assert send(below.url, "POST", path, {}, headers=evil).status == 403
    assert send(below.url, "POST", path, {}, headers=changing).status == 200
    gone = send(below.url, "POST", f"/cq{API}/auth/logout", headers=changing)
    assert gone.status == 200
    for line in gone.headers.get_all("Set-Cookie"):
        assert "Max-Age=0" in line
        assert "; Path=/cq/" in line
    assert send(below.url, "GET", f"/cq{API}/users/me", headers=cookies).status == 401


@pytest.mark.slow
def test_an_agent_finds_the_api_below_a_prefix_by_the_document_there(
    below, call, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    document = send(below.url, "GET", "/cq/.well-known/cq-node.json").json
    assert document["api_base_url"] == f"{below.url}/cq/api/v1"
    with Client(f"{below.url}/cq", call.keys["carl"], str(tmp_path / "l.db"), environ={}) as client:
        found = client.query(["terraform"])
    assert [unit["id"] for unit in found.units] == [call.unit["id"]]


@pytest.mark.slow
def test_the_api_document_leads_below_a_prefix(below, serve):
    document = send(below.url, "GET", "/cq/api/openapi.json").json
    assert document["servers"] == [{"url": "/cq"}]
    assert "servers" not in send(below.target, "GET", "/api/openapi.json").json
    page = send(below.url, "GET", "/cq/api/docs").body
    for link in re.findall(r'(?:href|src)="([^"]+)"', page):
        assert send(below.url, "GET", urljoin("/cq/api/docs", link)).status == 200, link


@pytest.mark.slow
def test_nothing_leads_out_of_a_prefix(below, call):
    """No answer redirects, with a slash too many or without one."""
    for path in (
        "/",
        "/api",
        "/api/",
        "/api/docs",
        "/api/docs/",
        "/health/",
        f"{API}/knowledge/",
        "//knowledge",
        "/mcp/",
    ):
        answer = send(below.url, "GET", f"/cq{path}", token=call.keys["carl"])
        assert answer.status in (200, 404, 405), path
        assert "Location" not in answer.headers


@pytest.mark.slow
def test_metrics_are_not_told_through_a_proxy_without_the_token(below):
    assert send(below.url, "GET", "/cq/metrics").status == 403
    assert send(below.target, "GET", "/metrics").status == 200


# https


@pytest.mark.slow
def test_cookies_stay_on_https_where_the_proxy_has_it(serve, proxy, call):
    quick(call.app, "rita", PASSWORD)
    url = serve(CQ_TRUSTED_PROXIES="1").url
    body = {"username": "rita", "password": PASSWORD, "session": True}
    for scheme, secure in (("https", True), ("http", False)):
        front = proxy(url, scheme=scheme)
        origin = {"Origin": f"{scheme}://127.0.0.1:{urlsplit(front.url).port}"}
        # What the caller says of it is written over.
        forge = {**origin, "X-Forwarded-Proto": "http"}
        answer = send(front.url, "POST", f"{API}/auth/login", body, headers=forge)
        assert answer.status == 200, answer.body
        lines = answer.headers.get_all("Set-Cookie")
        assert {"; Secure" in line for line in lines} == {secure}


def test_a_forged_host_lets_no_other_site_in(call):
    """Of a caller that is no trusted proxy."""
    headers = {"Origin": "https://evil.example", "X-Forwarded-Host": "evil.example"}
    answer = call("POST", "/auth/login", {**WRONG}, headers=headers)
    assert (answer.status_code, answer.json) == (
        403,
        {"detail": "Requests from another site are refused"},
    )
