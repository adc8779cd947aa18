"""Where a node's API is found, what is kept of it, and where no key may be led."""

import hashlib
import json
import os
import socket
import stat
import threading
import time

import pytest

from cq import discovery, transport
from cq.discovery import Node
from cq.failures import BadAddress, DiscoveryFailed
from tests.agent.misbehaving import CERTIFICATE, Drip, Hang, Misbehaving, Reset, http

GOOD = {"version": 1, "api_base_url": "http://127.0.0.1:9/api", "api_version": "v1"}
DAY = 86400


@pytest.fixture
def node(tmp_path):
    """`node(probe)`: a node whose document is so; `tls=True` for one that is asked by https."""
    made = []

    def start(probe, tls=False):
        file = None
        if tls:
            file = tmp_path / "certificate.pem"
            file.write_text(CERTIFICATE)
        made.append(Misbehaving(http(500), probe, file))
        return made[-1]

    yield start
    for each in made:
        each.stop()


@pytest.fixture
def trusted(tmp_path, monkeypatch):
    """The certificate of https nodes is trusted."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


def document(**more):
    return http(200, json.dumps({**GOOD, **more}).encode())


def find(node, folder=None, seconds=5, **more):
    return discovery.find(node.addr, time.monotonic() + seconds, folder, **more)


def failure(node, *args, **more):
    with pytest.raises(DiscoveryFailed) as failed:
        find(node, *args, **more)
    return str(failed.value)


def file_of(addr, folder):
    return folder / f"{hashlib.sha256(addr.encode()).hexdigest()}.json"


# Addresses


@pytest.mark.parametrize(
    "text",
    [
        "localhost:3000",
        "localhost",
        "",
        "   ",
        "/",
        "//host",
        "ftp://host",
        "http://",
        "http:///path",
        "http://[::1",
        "http://host:port",
        "http://host:65536",
        "http://host:-1",
        "http://ho st",
        "http://höst",
        "http://host/a b",
        "http://host/ü",
        "http://ho\nst",
        "http://host\t/a",
        "http://host?x=1",
        "http://host?",
        "http://host#a",
        "http://host/#",
        "http://user@host",
        "http://user:s3cret@host",
        "http://:s3cret@host",
        "http://user:s3cret@ho st",
    ],
)
def test_what_is_no_address_is_refused_with_one_that_is(text):
    with pytest.raises(BadAddress, match="such as http://localhost:3000") as refused:
        discovery.address(text)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("http://localhost:3000", "http://localhost:3000"),
        (" https://h.example//\n", "https://h.example"),
        ("https://h/cq/", "https://h/cq"),
        ("http://[::1]:3000", "http://[::1]:3000"),
        ("HTTP://h", "HTTP://h"),
    ],
)
def test_addresses_lose_the_slashes_at_their_end(text, read):
    assert discovery.address(text) == read


# The decision table


def test_a_document_says_where_the_api_is(node):
    said = node(document(node_name="ours", later={"more": 1}))
    assert find(said) == Node("http://127.0.0.1:9/api", "ours")
    assert said.seen[0].startswith("GET /.well-known/cq-node.json HTTP/1.1\r\n")
    assert "\r\nAccept: application/json\r\n" in said.seen[0]
    assert "\r\nUser-Agent: cq/" in said.seen[0]


def test_slashes_at_the_end_of_the_api_are_dropped(node):
    assert find(node(document(api_base_url="http://127.0.0.1:9/api//"))).api.endswith("/api")


def test_without_a_document_the_api_is_where_it_always_is(node):
    absent = node(http(404))
    assert find(absent) == Node(f"{absent.addr}/api/v1", "")


def test_a_path_of_the_address_is_kept(node):
    absent = node(http(404))
    found = discovery.find(f"{absent.addr}/cq/", time.monotonic() + 5)
    assert found.api == f"{absent.addr}/cq/api/v1"
    assert absent.seen[0].startswith("GET /cq/.well-known/cq-node.json ")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "parse"),
        (b"hello", "parse"),
        (b"[]", "parse"),
        (b"null", "parse"),
        (b"[" * 50_000, "parse"),
        (b'{"version": 1}}', "parse"),
        (b"\xff\xfe\x00", "parse"),
        *(
            (json.dumps({**GOOD, "version": version}).encode(), "upgrade")
            for version in (0, 2, "1", True, 1.0, None, [1])
        ),
        *(
            (json.dumps({**GOOD, "api_version": version}).encode(), "upgrade")
            for version in ("v2", "V1", "", None, 1)
        ),
        *(
            (json.dumps({**GOOD, "api_base_url": base}).encode(), "no http address")
            for base in (
                "",
                None,
                1,
                "/api/v1",
                "ftp://127.0.0.1",
                "http://",
                "http://127.0.0.1:99999",
                "http://127.0.0.1:x",
                "http://[::1",
                "http://u:p@127.0.0.1",
                "http://127.0.0.1/?key=",
                "http://127.0.0.1/\r\nX: y",
            )
        ),
    ],
)
def test_a_bad_document_is_told_and_not_kept(node, folder, body, told):
    bad = node(http(200, body))
    assert told in failure(bad, folder)
    assert len(bad.seen) == 1
    assert not folder.exists()


@pytest.mark.parametrize("kind", ["text/html", "TEXT/HTML; charset=utf-8", " Text/Html"])
def test_a_web_page_is_named_as_one(node, kind):
    assert "SPA" in failure(node(http(200, json.dumps(GOOD).encode(), kind)))


def test_a_document_of_more_than_64_kib_is_refused(node):
    at_most = json.dumps(GOOD).encode().ljust(64 * 1024)
    assert find(node(http(200, at_most))).api == GOOD["api_base_url"]
    assert "64 KiB" in failure(node(http(200, at_most + b" ")))


@pytest.mark.parametrize("status", [204, 300, 304, 401, 403, 410, 429])
def test_a_status_that_says_nothing_is_told_at_once(node, status):
    other = node(http(status))
    assert str(status) in failure(other)
    assert len(other.seen) == 1


@pytest.mark.parametrize("first", [http(500), http(503), Reset(b""), b"", b"no HTTP\r\n\r\n"])
def test_a_fault_is_asked_about_once_more(node, first):
    faulty = node(lambda it: document() if len(it.seen) > 1 else first)
    assert find(faulty).api == GOOD["api_base_url"]


def test_a_fault_that_stays_is_told(node):
    faulty = node(http(502))
    assert "502" in failure(faulty)
    assert len(faulty.seen) == 2


def test_no_second_attempt_without_time_for_it(node):
    faulty = node(http(502))
    failure(faulty, seconds=0.15)
    assert len(faulty.seen) == 1


@pytest.mark.parametrize(
    "probe", [Hang(b""), Hang(b"HTTP/1.1 200 OK\r\n"), Drip(http(200, b" " * 99))]
)
def test_the_deadline_holds(node, probe):
    began = time.monotonic()
    assert "in time" in failure(node(probe), seconds=0.4)
    assert time.monotonic() - began < 3


def test_nothing_that_listens_is_told():
    with pytest.raises(DiscoveryFailed, match=r"nothing listens at 127\.0\.0\.1:9"):
        discovery.find("http://127.0.0.1:9", time.monotonic() + 5)


# What is kept


def test_a_document_is_kept_for_a_day_and_for_nobody_else_to_read(node, folder):
    said = node(document(node_name="ours"))
    found = find(said, folder)
    file = file_of(said.addr, folder)
    assert [each.name for each in folder.iterdir()] == [file.name]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == {**GOOD, "node_name": "ours"}
    age(file, DAY - 60)
    assert find(said, folder) == found
    assert len(said.seen) == 1
    age(file, DAY + 1)
    assert find(said, folder) == found
    assert len(said.seen) == 2


@pytest.mark.parametrize("theirs", [False, True])
def test_the_absence_of_a_document_is_kept_for_five_minutes(node, folder, theirs):
    absent = node(http(404))
    find(absent, folder)
    file = file_of(absent.addr, folder)
    if theirs:
        # As upstream's Python client keeps it.
        file.write_text(
            f'{{"version":1,"api_base_url":"{absent.addr}/api/v1","api_version":"v1","node_name":null}}'
        )
    age(file, 290)
    find(absent, folder)
    assert len(absent.seen) == 1
    age(file, 310)
    absent.probe = document(node_name="there now")
    assert find(absent, folder).name == "there now"


def age(file, seconds):
    when = time.time() - seconds
    os.utime(file, (when, when))


def test_what_is_kept_is_for_one_address(node, folder):
    one, other = node(document(node_name="one")), node(document(node_name="other"))
    assert (find(one, folder).name, find(other, folder).name) == ("one", "other")
    assert (find(one, folder).name, find(other, folder).name) == ("one", "other")


@pytest.mark.parametrize(
    "kept",
    [
        b"",
        b"{",
        b"\xff",
        b"[" * 50_000,
        json.dumps({**GOOD, "version": 2}).encode(),
        json.dumps({**GOOD, "api_base_url": "http://192.0.2.1/api"}).encode(),
    ],
)
def test_what_is_kept_is_checked_like_what_is_said(node, folder, kept):
    said = node(document())
    find(said, folder)
    file_of(said.addr, folder).write_bytes(kept)
    assert find(said, folder).api == GOOD["api_base_url"]
    assert len(said.seen) == 2
    assert json.loads(file_of(said.addr, folder).read_bytes()) == GOOD


def test_what_was_kept_in_the_future_is_asked_anew(node, folder):
    said = node(document())
    find(said, folder)
    age(file_of(said.addr, folder), -3600)
    find(said, folder)
    assert len(said.seen) == 2


def test_refresh_and_forget_ask_anew(node, folder):
    said = node(document())
    find(said, folder)
    find(said, folder, refresh=True)
    assert len(said.seen) == 2
    discovery.forget(said.addr + "/", folder)
    find(said, folder)
    assert len(said.seen) == 3


def test_a_folder_that_cannot_be_costs_no_answer(node, tmp_path):
    said, file = node(document()), tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "below"):
        assert find(said, folder).api == GOOD["api_base_url"]
        discovery.forget(said.addr, folder)
    # A folder where the file should be.
    file_of(said.addr, tmp_path).mkdir()
    assert find(said, tmp_path).api == GOOD["api_base_url"]
    discovery.forget(said.addr, tmp_path)
    assert not list(tmp_path.glob("tmp-*"))


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"XDG_CACHE_HOME": "/c"}, "/c/cq/discovery"),
        ({"XDG_CACHE_HOME": "c"}, None),
        ({"XDG_CACHE_HOME": "  "}, os.path.expanduser("~/.cache/cq/discovery")),
        ({}, os.path.expanduser("~/.cache/cq/discovery")),
    ],
)
def test_the_folder_is_upstreams(environ, expected):
    found = discovery.cache_folder(environ)
    assert (found and str(found)) == expected


# Redirects and security


def test_redirects_within_the_origin_are_followed_three_times(node):
    def steps(most):
        def answer(it):
            asked = len(it.seen)
            return (
                http(302, Location=f"/step/{asked}/cq-node.json") if asked <= most else document()
            )

        return answer

    # Only paths with the document's name are asked for by `probe`.
    three = node(steps(3))
    three.usual = three.probe
    assert find(three).api == GOOD["api_base_url"]
    assert len(three.seen) == 4
    four = node(steps(4))
    four.usual = four.probe
    assert "302" in failure(four)
    assert len(four.seen) == 4


def test_a_redirect_elsewhere_is_told_and_not_followed(node):
    other = node(document())
    first = node(http(301, Location=f"{other.addr}/.well-known/cq-node.json"))
    told = failure(first)
    assert first.addr in told
    assert other.addr in told
    assert other.seen == []


@pytest.mark.parametrize(
    "location",
    [
        "https://{}/",
        "http://[::1",
        "http://{}:99999/",
        "//192.0.2.1/x",
        "http://{}@192.0.2.1/",
        "ftp://{}",
        "/ü",
    ],
)
def test_a_redirect_that_leads_astray_is_a_failure(node, location):
    astray = node(http(301))
    place = astray.addr.removeprefix("http://")
    head = f"HTTP/1.1 301 Moved\r\nLocation: {location.format(place)}\r\nContent-Length: 0\r\n\r\n"
    astray.probe = head.encode("latin-1")
    assert "CQ_ADDR" in failure(astray)


LED = [
    ("https://127.0.0.1:9/api", True),
    ("http://localhost:9/api", True),
    ("http://[::1]:9/api", True),
    ("http://192.0.2.1/api", False),
    ("https://192.0.2.1/api", False),
    ("http://127.0.0.1.example/api", False),
    ("http://localhost.example/api", False),
]


@pytest.mark.parametrize(("base", "may"), LED)
def test_by_http_a_node_leads_to_no_other_machine(node, base, may):
    leading = node(document(api_base_url=base))
    if may:
        assert find(leading).api == base
    else:
        assert "refused" in failure(leading)


@pytest.mark.parametrize(
    ("base", "may"),
    [
        ("https://127.0.0.1:9/api", True),
        ("https://api.example/v1", True),
        ("http://127.0.0.1:9/api", False),
        ("http://api.example/v1", False),
    ],
)
@pytest.mark.usefixtures("trusted")
def test_by_https_a_node_leads_anywhere_by_https_alone(node, folder, base, may):
    leading = node(document(api_base_url=base), tls=True)
    if may:
        assert find(leading, folder).api == base
        assert find(leading, folder).api == base
        assert len(leading.seen) == 1
    else:
        assert "without https" in failure(leading, folder)
        assert not folder.exists()


def test_a_certificate_that_nobody_vouches_for_is_told(node):
    assert "certificate" in failure(node(document(), tls=True))


def test_an_https_address_of_a_plain_server_is_told():
    with socket.create_server(("127.0.0.1", 0)) as line:

        def serve():
            for _ in range(2):
                connection, _ = line.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(http(400))

        serving = threading.Thread(target=serve)
        serving.start()
        addr = f"https://127.0.0.1:{line.getsockname()[1]}"
        with pytest.raises(DiscoveryFailed, match="TLS"):
            discovery.find(addr, time.monotonic() + 5)
        serving.join()


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("probe", [Hang(b""), Drip(http(200, b" " * 99))])
def test_the_deadline_holds_within_tls(node, probe):
    began = time.monotonic()
    assert "in time" in failure(node(probe, tls=True), seconds=0.5)
    assert time.monotonic() - began < 3


def test_a_calls_count_is_seen_at_the_seam(node):
    calls = []

    def counted(*args):
        calls.append(args)
        return transport.send(*args)

    said = node(document())
    find(said, send=counted)
    ((method, url, headers, body, _, limit),) = calls
    assert (method, body, limit) == ("GET", None, 64 * 1024)
    assert url == f"{said.addr}/.well-known/cq-node.json"
    assert "Authorization" not in headers
