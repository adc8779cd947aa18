"""What the documents name is there: tests, metrics, variables, commands, files."""

import ast
import json
import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

import config
from tests.cast import HASHED, ROOT
from tests.test_layout import AGENT, modules

DOCS = ROOT / "docs"
METRIC = re.compile(r"\b(?:cq|process)_[a-z_]+[a-z]\b")


@pytest.fixture
def exposed(make_call):
    """The names of all that /metrics tells, once there is a model."""
    call = make_call(**HASHED)
    call("GET", "/knowledge?q=lock", key="carl")
    call.understands()
    answer = call.app.test_client().get("/metrics")
    names = set()
    for family in text_string_to_metric_families(answer.text):
        names.add(f"{family.name}_total" if family.type == "counter" else family.name)
    return names


def named(text, exposed):
    """The metrics that a text names, a histogram's parts as itself."""
    found = set()
    for name in METRIC.findall(text):
        whole = re.sub(r"_(bucket|sum|count)$", "", name)
        found.add(whole if whole in exposed else name)
    return found


def test_every_test_that_a_promise_names_is_there():
    text = (DOCS / "security.md").read_text()
    promises = re.findall(r"`(tests/\S+?\.py)::(test_\w+)`", text)
    assert len(promises) > 40
    known = {}
    for path, name in promises:
        if path not in known:
            tree = ast.parse((ROOT / path).read_text())
            known[path] = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert name in known[path], f"{path}::{name}"


def test_every_promise_names_a_test():
    text = (DOCS / "security.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    promises = [row for row in rows if not row.startswith("| promise |")]
    assert len(promises) > 20
    for row in promises:
        assert "::test_" in row, row


@pytest.mark.parametrize("name", ["operations.md", "grafana.json"])
def test_the_metrics_that_a_document_names_are_those_that_are_told(exposed, name):
    told = named((DOCS / name).read_text(), exposed)
    assert told - exposed == set()
    assert exposed - told == set()


def test_the_dashboard_is_whole():
    """Panels of their own, each with what it shows, in a grid without overlaps."""
    board = json.loads((DOCS / "grafana.json").read_text())
    places = set()
    for panel in board["panels"]:
        assert panel["title"]
        assert panel["targets"]
        place = panel["gridPos"]
        cells = {
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        }
        assert not cells & places, panel["title"]
        assert place["x"] + place["w"] <= 24
        places |= cells
        for target in panel["targets"]:
            expr = target["expr"]
            assert expr.count("(") == expr.count(")")
            assert expr.count("{") == expr.count("}")
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_a_label_that_a_document_asks_for_is_told(make_call):
    """By the queries of the dashboard and of the alarms."""
    call = make_call(**HASHED)
    call("GET", "/nope")
    call("GET", "/knowledge?q=lock", key="carl")
    call.understands()
    labels = {}
    for family in text_string_to_metric_families(call.app.test_client().get("/metrics").text):
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    outside = {"job", "instance"}
    board = (DOCS / "grafana.json").read_text().replace('\\"', '"')
    asked = re.findall(r"\b(cq_\w+)\{([^}]*)\}", board + (DOCS / "operations.md").read_text())
    assert len(asked) > 15
    for name, within in asked:
        used = set(re.findall(r"(\w+)=~?\"", within))
        assert used - outside <= labels[name], (name, used)


def test_every_variable_that_a_document_names_is_in_the_readme():
    readme = (ROOT / "README.md").read_text()
    listed = set(re.findall(r"^\| `(CQ_[A-Z_]+)`", readme, re.M))
    assert listed >= set(config.VARIABLES)
    for path in (*DOCS.glob("*.md"), ROOT / "Dockerfile", ROOT / "compose.yaml"):
        for name in set(re.findall(r"\bCQ_[A-Z_]+\b", path.read_text())):
            assert name in listed, (path.name, name)


def test_the_server_is_set_up_by_variables_that_it_reads():
    for name in ("Dockerfile", "compose.yaml"):
        for variable in set(re.findall(r"\bCQ_[A-Z_]+\b", (ROOT / name).read_text())):
            assert variable in config.VARIABLES, (name, variable)
            assert variable not in AGENT, (name, variable)


def test_the_image_holds_all_that_the_server_is_made_of():
    text = (ROOT / "Dockerfile").read_text()
    copied = set(re.findall(r"^COPY (\w+) \1$", text, re.M)) | {"frontend"}
    folders = {name.partition(".")[0] for name, path in modules().items() if path.parent != ROOT}
    assert copied == folders | {"frontend"}
    assert "COPY *.py ./" in text
    for name in re.findall(r"requirements[\w-]*\.txt", text):
        assert (ROOT / name).exists(), name
    assert re.search(r"^USER cq$", text, re.M)
    assert re.search(r"^VOLUME /data$", text, re.M)
    assert re.search(r"^HEALTHCHECK ", text, re.M)


def test_every_command_that_an_operator_is_told_is_one(app):
    text = (DOCS / "operations.md").read_text()
    told = set(re.findall(r"flask --app app ([a-z-]+)(?: ([a-z]+))?", text))
    assert {name for name, _ in told} >= {"user", "key", "backup", "restore", "reindex"}
    for name, below in told:
        command = app.cli.commands[name]
        if hasattr(command, "commands"):
            assert below in command.commands, (name, below)


def test_every_link_of_a_document_leads_somewhere():
    for path in (ROOT / "README.md", *DOCS.glob("*.md")):
        for link in re.findall(r"\]\(([^)#]+)(?:#[\w-]+)?\)", path.read_text()):
            if "://" not in link:
                assert (path.parent / link).exists(), (path.name, link)
