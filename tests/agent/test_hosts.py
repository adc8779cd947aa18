"""`cq install` in homes that are lived in: what cq writes, keeps, upgrades and takes out again."""

import hashlib
import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cq import hosts, prompts
from cq.failures import CqError
from cq.hosts import binary, paths, tables
from cq.hosts.files import BOM, Files, Unusable
from cq.hosts.jsonc import Document, Malformed
from tests.cast import ROOT

HERE = ROOT / "tests" / "agent" / "hosts"
PROGRAM = "/opt/cq/bin/cq"
GIVEN = tables.Given(PROGRAM, usages={"status": ("", "--json  all"), "confirm": ("<unit_id>", "")})
FORMS = {
    "plain": lambda data: data,
    "crlf": lambda data: data.replace(b"\n", b"\r\n"),
    "marked": lambda data: BOM.encode() + data,
}
CONFIGS = {
    "claude": [".claude.json", ".claude/settings.json"],
    "codex": [".codex/config.toml", ".codex/AGENTS.md"],
    "copilot": [".config/Code/User/mcp.json"],
    "cursor": [".cursor/mcp.json", ".cursor/hooks.json"],
    "devin-desktop": [".codeium/windsurf/mcp_config.json"],
    "gemini": [".gemini/settings.json", ".gemini/GEMINI.md"],
    "opencode": [".config/opencode/opencode.json", ".config/opencode/AGENTS.md"],
    "pi": [".pi/agent/AGENTS.md"],
}


def furnish(tree, folder, form="plain"):
    """A home, or a project, with what its owner has there; "dot-" stands for a leading point."""
    for path in sorted(path for path in (HERE / tree).rglob("*") if path.is_file()):
        name = path.relative_to(HERE / tree).as_posix().replace("dot-", ".")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(FORMS[form](path.read_bytes()))
    return folder


@pytest.fixture
def home(tmp_path):
    return furnish("home", tmp_path / "home")


def place(home, project=None, platform="linux", **environ):
    return paths.Place(home, platform, environ, project)


def install(home, *targets, given=GIVEN, project=None, **more):
    return hosts.install(targets or hosts.TARGETS, place(home, project), given, **more)


def uninstall(home, *targets, project=None, **more):
    return hosts.uninstall(targets or hosts.TARGETS, place(home, project), **more)


def outcomes(reports):
    """{path: outcome}, and no target failed."""
    assert not [report.failure for report in reports if report.failure]
    return {str(each.path): each.how for report in reports for each in report.outcomes}


def tree(folder):
    """Every folder and file with its bytes."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def times(folder):
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("target", hosts.TARGETS)
def test_a_home_is_as_it_was_after_install_and_uninstall(target, form, tmp_path):
    home = furnish("home", tmp_path, form)
    before = tree(home)
    assert set(outcomes(install(home, target)).values()) <= {"created", "updated"}
    changed = {name for name, data in before.items() if tree(home)[name] != data}
    assert changed == set(CONFIGS[target])
    for name in changed:
        data = (home / name).read_bytes()
        assert data.startswith(BOM.encode()) == (form == "marked"), name
        # A file of one line has no line ends to go by.
        assert (
            form != "crlf" or b"\n" not in before[name] or data.count(b"\n") == data.count(b"\r\n")
        ), name
    there, then = tree(home), times(home)
    assert set(outcomes(install(home, target)).values()) == {"unchanged"}
    assert (tree(home), times(home)) == (there, then)
    assert set(outcomes(uninstall(home, target)).values()) == {"removed"}
    assert tree(home) == before


@pytest.mark.parametrize("target", hosts.TARGETS)
def test_an_empty_home_is_empty_again(target, tmp_path):
    install(tmp_path, target)
    install(tmp_path, target, given=GIVEN._replace(program="/new/cq"))
    uninstall(tmp_path, target)
    assert tree(tmp_path) == {}
    assert set(outcomes(uninstall(tmp_path, target)).values()) == {"unchanged"}


@pytest.mark.parametrize("target", hosts.TARGETS)
def test_what_hosts_read_is_as_in_the_golden_files(target, home):
    install(home, target)
    for name in CONFIGS[target]:
        golden = HERE / "installed" / name.replace(".", "dot-", 1)
        got = (home / name).read_text().replace(str(home), "HOME")
        assert got == golden.read_text(), name


@pytest.mark.parametrize("target", [name for name in hosts.TARGETS if name != "devin-desktop"])
def test_a_project_is_as_it_was_after_install_and_uninstall(target, tmp_path):
    project = furnish("project", tmp_path / "project")
    before = tree(project)
    reports = install(tmp_path / "home", target, project=project)
    assert set(outcomes(reports).values()) <= {"created", "updated"}
    assert not (tmp_path / "home").exists()
    assert set(outcomes(install(tmp_path / "home", target, project=project)).values()) == {
        "unchanged"
    }
    uninstall(tmp_path / "home", target, project=project)
    assert tree(project) == before


def test_a_project_is_where_each_host_looks(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    install(tmp_path, *set(hosts.TARGETS) - {"devin-desktop"}, project=project)
    read = {name: data.decode() for name, data in tree(project).items() if data}
    for name, keys in {
        ".mcp.json": ("mcpServers", "cq"),
        ".cursor/mcp.json": ("mcpServers", "cq"),
        ".vscode/mcp.json": ("servers", "cq"),
        ".gemini/settings.json": ("mcpServers", "cq"),
        "opencode.json": ("mcp", "cq"),
    }.items():
        assert PROGRAM in str(Document(read[name]).value(*keys)), name
    assert tomllib.loads(read[".codex/config.toml"])["mcp_servers"]["cq"]["command"] == PROGRAM
    for name in ("AGENTS.md", "GEMINI.md", ".pi/APPEND_SYSTEM.md", ".cursor/rules/cq.mdc"):
        assert "Core Protocol" in read[name], name
    assert read[".github/instructions/cq.instructions.md"].startswith('---\napplyTo: "**"\n')
    # The hosts that have MCP must not read that there is none.
    assert "no cq MCP server" not in read["AGENTS.md"]
    assert str(tmp_path / ".cursor" / "cq-hook-state") in read[".cursor/hooks.json"]


def test_two_hosts_share_the_instructions_of_a_project(tmp_path):
    project = furnish("project", tmp_path / "project")
    before = (project / "AGENTS.md").read_bytes()
    install(tmp_path, "codex", "opencode", project=project)
    assert (project / "AGENTS.md").read_text().count("cq:start") == 1
    uninstall(tmp_path, "codex", project=project)
    assert "cq:start" in (project / "AGENTS.md").read_text()
    uninstall(tmp_path, "opencode", project=project)
    assert (project / "AGENTS.md").read_bytes() == before


def test_a_host_without_project_files_refuses_by_its_name(tmp_path):
    reports = install(tmp_path, "devin-desktop", "cursor", project=tmp_path)
    assert "devin-desktop reads no files of a project" in reports[1].failure
    assert not reports[0].failure


def test_the_shared_skill_stays_as_long_as_somebody_uses_it(home):
    skill = home / ".agents" / "skills" / "cq" / "SKILL.md"
    install(home, "codex", "cursor")
    assert skill.read_text() == prompts.skill()
    assert "used by cursor" in uninstall(home, "codex")[0].outcomes[0].detail
    assert skill.exists()
    uninstall(home, "pi")
    assert skill.exists()
    uninstall(home, "cursor")
    assert not (home / ".agents").exists()


def test_a_skill_that_was_changed_is_not_upgraded_and_not_removed(home):
    skill = home / ".agents" / "skills" / "cq" / "SKILL.md"
    install(home, "codex")
    skill.write_text("mine")
    assert outcomes(install(home, "codex"))[str(skill)] == "skipped"
    assert outcomes(uninstall(home, "codex"))[str(skill)] == "skipped"
    assert skill.read_text() == "mine"


@pytest.mark.parametrize("target", hosts.TARGETS)
def test_older_texts_are_upgraded_and_changed_ones_are_kept(target, home):
    install(home, target)
    for manifest in home.rglob(".cq-install-manifest.json"):
        said = json.loads(manifest.read_text())
        if not said["files"]:
            continue
        for each in said["files"]:
            assert "\\" not in each["path"]
            each["sha256"] = hashlib.sha256(b"older").hexdigest()
            (manifest.parent / each["path"]).write_bytes(b"older")
        manifest.write_text(json.dumps(said))
        first = manifest.parent / said["files"][0]["path"]
        first.write_bytes(b"changed by hand")
        got = outcomes(install(home, target))
        assert got[str(first)] == "skipped"
        assert first.read_bytes() == b"changed by hand"
        for each in said["files"][1:]:
            assert got[str(manifest.parent / each["path"])] == "updated"
        # A file that was skipped stays on record beside those that were written.
        assert len(json.loads(manifest.read_text())["files"]) == len(said["files"])


def test_texts_of_upstream_are_known_and_upgraded(home):
    """Each text is recognised by its hash; here as upstream's manifest names it."""
    root = home / ".config" / "opencode" / "commands"
    root.mkdir()
    (root / "reflect.md").write_bytes(b"upstream's")
    said = {"path": "reflect.md", "sha256": hashlib.sha256(b"upstream's").hexdigest()}
    (root / ".cq-install-manifest.json").write_text(json.dumps({"files": [said]}))
    assert outcomes(install(home, "opencode"))[str(root / "reflect.md")] == "updated"
    assert "agent: build\n---\n" in (root / "reflect.md").read_text()


def test_a_manifest_with_the_paths_of_windows_is_read(home):
    root = home / ".agents" / "skills"
    (root / "cq").mkdir(parents=True)
    (root / "cq" / "SKILL.md").write_bytes(b"older")
    said = {"path": "cq\\SKILL.md", "sha256": hashlib.sha256(b"older").hexdigest()}
    (root / ".cq-install-manifest.json").write_text(json.dumps({"files": [said]}))
    assert outcomes(install(home, "codex"))[str(root / "cq" / "SKILL.md")] == "updated"
    assert '"cq/SKILL.md"' in (root / ".cq-install-manifest.json").read_text()


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "C:\\x", "a/../../x"])
def test_a_manifest_that_leads_out_of_its_folder_is_refused(path, home):
    root = home / ".agents" / "skills"
    root.mkdir(parents=True)
    said = {"files": [{"path": path, "sha256": "0" * 64}]}
    (root / ".cq-install-manifest.json").write_text(json.dumps(said))
    before = tree(home)
    [report] = uninstall(home, "codex")
    assert "leads out" in report.failure
    assert tree(home) == before


@pytest.mark.parametrize("target", [name for name in hosts.TARGETS if name != "pi"])
def test_keys_of_ones_own_in_the_entry_of_cq_survive(target, home):
    install(home, target)
    name = CONFIGS[target][0]
    text = (home / name).read_text()
    if target == "codex":
        text += '[mcp_servers.cq.env]  # mine\nCQ_ADDR = "https://cq.example.org"\n'
    else:
        text = text.replace('"cq": {', '"cq": { /* mine */ "env": {"CQ_API_KEY": "k"},', 1)
    (home / name).write_text(text)
    assert set(outcomes(install(home, target)).values()) == {"unchanged"}
    moved = install(home, target, given=GIVEN._replace(program="/new/cq"))
    assert outcomes(moved)[str(home / name)] == "updated"
    assert (home / name).read_text() == text.replace(PROGRAM, "/new/cq")
    far = GIVEN._replace(endpoint="https://cq.example.org/mcp")
    install(home, target, given=far)
    text = (home / name).read_text()
    assert "mine" in text
    assert "/new/cq" not in text
    detail = next(
        each.detail for each in uninstall(home, target)[0].outcomes if each.path == home / name
    )
    assert detail == "and in it your env"


REMOTE = {
    "claude": {"type": "http", "url": "U"},
    "codex": {"url": "U"},
    "copilot": {"type": "http", "url": "U"},
    "cursor": {"url": "U"},
    "devin-desktop": {"serverUrl": "U"},
    "gemini": {"httpUrl": "U"},
    "opencode": {"type": "remote", "url": "U"},
}


@pytest.mark.parametrize("target", REMOTE)
def test_a_remote_server_is_written_without_its_key(target, home, monkeypatch):
    monkeypatch.setenv("CQ_API_KEY", "cqa.v1.secret")
    before = tree(home)
    [report] = install(home, target, given=GIVEN._replace(endpoint="U"))
    text = (home / CONFIGS[target][0]).read_text()
    said = tomllib.loads(text) if target == "codex" else Document(text).value()
    servers = next(
        said[key] for key in ("mcpServers", "mcp_servers", "servers", "mcp") if key in said
    )
    assert servers["cq"] == REMOTE[target]
    assert "CQ_API_KEY" in report.notes[-1]
    assert not any(
        b"cqa.v1.secret" in (data or b"") for name, data in tree(home).items() if name not in before
    )
    # And back: nothing of the other way is left.
    install(home, target)
    install(home, target, given=GIVEN._replace(endpoint="U"))
    uninstall(home, target)
    assert tree(home) == before


def test_a_host_without_mcp_says_so(home):
    [report] = install(home, "pi", given=GIVEN._replace(endpoint="U"))
    assert "pi has no MCP" in report.notes[0]


def test_an_endpoint_is_made_of_an_address():
    for addr in ("https://h", "https://h/", "https://h/mcp", " https://h/mcp/ "):
        assert tables.endpoint(addr) == "https://h/mcp"
    assert tables.endpoint("http://h:3000/team") == "http://h:3000/team/mcp"
    for wrong in ("h:3000", "", "ftp://h", "https://user:pw@h", "https://h?key=1", "https://h:x"):
        with pytest.raises(CqError, match="--remote takes"):
            tables.endpoint(wrong)


HOOKS = {"cursor": ".cursor/hooks.json", "claude": ".claude/settings.json"}


@pytest.mark.parametrize("target", HOOKS)
def test_hooks_of_an_older_path_are_renewed_in_place_and_not_doubled(target, home):
    name = home / HOOKS[target]
    before = name.read_bytes()
    install(home, target)
    first = name.read_text()
    name.write_text(first.replace(PROGRAM, "'/old place/cq'"))
    assert outcomes(install(home, target))[str(name)] == "updated"
    assert name.read_text() == first
    # Two of the same, as older installers left them behind.
    event = "stop" if target == "cursor" else "Stop"
    doc = Document(first)
    again = {"command": f"/older/cq _hook --host {target} --mode stop --state-dir /x"}
    doc.append(("hooks", event), {"hooks": [again]} if target == "claude" else again)
    name.write_text(doc.text)
    install(home, target)
    assert name.read_text() == first
    name.write_text(doc.text)
    uninstall(home, target)
    assert name.read_bytes() == before


def test_what_hooks_saw_goes_with_the_last_of_them(home):
    state = home / ".cursor" / "cq-hook-state"
    install(home, "cursor")
    state.mkdir()
    (state / "x-failure.json").write_text("{}")
    install(home, "cursor", project=home / "work")
    uninstall(home, "cursor", project=home / "work")
    assert state.exists()
    uninstall(home, "cursor", dry_run=True)
    assert state.exists()
    uninstall(home, "cursor")
    assert not state.exists()


@pytest.mark.parametrize(
    ("text", "why"),
    [("[]", "no JSON object"), ('{"hooks": 1}', "hooks is no object"), ('{"hooks": {"stop": {}}}', "hooks.stop is no list")],
)  # fmt: skip
def test_hooks_in_a_form_that_is_not_known_are_left_alone(text, why, home):
    (home / ".cursor" / "hooks.json").write_text(text)
    before = tree(home)
    [report] = install(home, "cursor")
    assert why in report.failure
    assert tree(home) == before


@pytest.mark.parametrize(
    ("target", "text", "where"),
    [
        ("cursor", '{\n  "mcpServers": {\n    "a": {} "b": {}\n  }\n}\n', "line 3, column 13: a comma or }"),
        ("gemini", "{ /* open", "line 1, column 3: a comment has no end"),
        ("claude", '{"a": 1}}', "line 1, column 9: something stands after the end"),
        ("opencode", "{'a': 1}", "line 1, column 2: a name in double quotes"),
        ("copilot", '{"a": 01}', "line 1, column 7: a value is expected"),
        ("devin-desktop", "[" * 500, "nested deeper"),
        ("codex", "a = 1\nb = = 2\n", "line 2, column 5"),
        ("codex", "mcp_servers = 3\n", "mcp_servers is not a table"),
        ("codex", '[mcp_servers]\ncq = {command = "x"}\n', "write it as a section [mcp_servers.cq]"),
    ],
)  # fmt: skip
def test_a_broken_file_tells_where_and_what_to_do_and_nothing_is_touched(target, text, where, home):
    file = home / CONFIGS[target][0]
    file.write_text(text)
    before = tree(home)
    [report] = install(home, target)
    assert str(file) in report.failure
    assert where in report.failure
    assert tree(home) == before


def test_a_target_that_fails_leaves_the_others_alone(home):
    (home / ".cursor" / "rules").write_text("a file where a folder is needed")
    before = tree(home)
    reports = {report.target: report for report in install(home)}
    assert "rules" in reports["cursor"].failure
    assert [name for name, report in reports.items() if report.failure] == ["cursor"]
    after = tree(home)
    assert {name for name in after if name.startswith(".cursor")} == {
        name for name in before if name.startswith(".cursor")
    }
    said = json.loads(after[".agents/skills/.cq-install-manifest.json"])
    assert "cursor" not in said["users"]


def test_what_was_written_is_put_back_if_a_later_file_cannot_be(tmp_path):
    first, second, third = (tmp_path / name for name in ("a", "b/new", "c"))
    first.write_bytes(b"before")
    third.write_bytes(b"before")
    files, then = Files(), times(tmp_path)[str(first)]
    for path in (first, second, third):
        files.write(path, b"after")
    third.write_bytes(b"somebody else's")
    with pytest.raises(Unusable, match="another program changed it"):
        files.commit()
    assert tree(tmp_path) == {"a": b"before", "c": b"somebody else's"}
    assert times(tmp_path)[str(first)] == then


def test_a_link_is_followed_and_rights_are_kept(home):
    true, link = home / "dotfiles.json", home / ".cursor" / "mcp.json"
    link.rename(true)
    link.symlink_to(true)
    true.chmod(0o600)
    install(home, "cursor")
    assert link.is_symlink()
    assert PROGRAM in true.read_text()
    assert stat.S_IMODE(true.stat().st_mode) == 0o600
    assert stat.S_IMODE((home / ".cursor/rules/cq.mdc").stat().st_mode) == 0o644


def test_a_home_behind_a_link_is_empty_again_too(tmp_path):
    (tmp_path / "true").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "true")
    install(tmp_path / "home")
    uninstall(tmp_path / "home")
    assert tree(tmp_path / "true") == {}


@pytest.mark.parametrize(
    ("there", "then"),
    [
        ('[mcp_servers.cq.env]\nA = "1"\n', '[mcp_servers.cq]\ncommand = "P"\nargs = ["mcp"]\n[mcp_servers.cq.env]\nA = "1"\n'),
        ('["mcp_servers"."cq"]\ncommand="x"  # mine\n# and\n[z]\n', '["mcp_servers"."cq"]\ncommand="P"  # mine\nargs = ["mcp"]\n# and\n[z]\n'),
        ('[mcp_servers.cq]\n"args"=[\n "mcp", # c\n]\nurl = "u"', '[mcp_servers.cq]\n"args"=[\n "mcp", # c\n]\ncommand = "P"\n'),
    ],
)  # fmt: skip
def test_an_entry_of_ones_own_in_toml_is_completed(there, then, home):
    file = home / ".codex" / "config.toml"
    file.write_text(there)
    assert (
        outcomes(install(home, "codex", given=GIVEN._replace(program="P")))[str(file)] == "updated"
    )
    assert file.read_text() == then


def test_a_block_that_a_person_changed_is_kept(home):
    file = home / ".codex" / "AGENTS.md"
    install(home, "codex")
    mine = file.read_text().replace("## CQ", "## CQ, my way")
    file.write_text(mine)
    assert outcomes(install(home, "codex"))[str(file)] == "skipped"
    assert outcomes(uninstall(home, "codex"))[str(file)] == "skipped"
    assert file.read_text() == mine


def test_a_block_without_a_record_is_renewed_in_place(home):
    file = home / ".codex" / "AGENTS.md"
    file.write_text("above\n\n<!-- cq:start -->\nolder\n<!-- cq:end -->\n\nbelow\n")
    assert outcomes(install(home, "codex"))[str(file)] == "updated"
    assert file.read_text().startswith("above\n\n<!-- cq:start -->\n## CQ\n")
    uninstall(home, "codex")
    assert file.read_text() == "above\n\nbelow\n"


def test_a_block_without_an_end_is_left_alone(home):
    file = home / ".codex" / "AGENTS.md"
    file.write_text("<!-- cq:end -->\n<!-- cq:start -->\n")
    assert outcomes(install(home, "codex"))[str(file)] == "skipped"
    assert outcomes(uninstall(home, "codex"))[str(file)] == "skipped"


def test_what_was_added_round_cq_stays(home):
    """A person goes on working in the files between install and uninstall."""
    install(home)
    codex, told = home / ".codex/config.toml", home / ".codex/AGENTS.md"
    codex.write_text(codex.read_text() + "\n# later\n[mcp_servers.later]\ncommand = 'x'\n")
    told.write_text(told.read_text() + "\nLater.\n")
    gemini = Document((home / ".gemini/settings.json").read_text())
    gemini.put(("mcpServers", "later"), {"command": "x"})
    (home / ".gemini/settings.json").write_text(gemini.text)
    uninstall(home)
    original = (HERE / "home/dot-codex/config.toml").read_text()
    assert codex.read_text() == original + "\n# later\n[mcp_servers.later]\ncommand = 'x'\n"
    assert told.read_text() == (HERE / "home/dot-codex/AGENTS.md").read_text() + "\nLater.\n"
    left = (home / ".gemini/settings.json").read_text()
    assert Document(left).value("mcpServers") == {"later": {"command": "x"}}
    assert "// and here I may add servers" in left


def test_gemini_gets_commands_that_its_toml_reader_reads(home):
    install(home, "gemini")
    for name, text in (("reflect", prompts.reflect()), ("status", prompts.status())):
        said = tomllib.loads((home / f".gemini/commands/cq/{name}.toml").read_text())
        assert f"description: {said['description']}\n" in text
        assert text.endswith(said["prompt"])
        assert said["prompt"].startswith(f"# /cq:{name}")


def test_commands_are_put_in_each_hosts_form(home):
    install(home, "opencode", "pi", "claude")
    front = (home / ".config/opencode/commands/status.md").read_text().split("---\n")[1]
    assert "name:" not in front
    assert front.endswith("agent: build\n")
    pi = (home / ".pi/agent/prompts/cq-status.md").read_text()
    assert "# /cq-status" in pi
    assert "/cq:" not in pi
    assert (home / ".claude/commands/cq/status.md").read_text() == prompts.status()
    told = (home / ".pi/agent/AGENTS.md").read_text()
    assert "no cq MCP server" in told
    assert f"### {PROGRAM} confirm <unit_id>\n" in told


def test_a_path_with_blanks_is_quoted(home):
    install(home, "pi", "cursor", given=GIVEN._replace(program="/my tools/cq"))
    assert "### '/my tools/cq' status\n" in (home / ".pi/agent/AGENTS.md").read_text()
    hooks = Document((home / ".cursor/hooks.json").read_text()).value("hooks", "sessionStart")
    assert hooks[0]["command"].startswith(
        "'/my tools/cq' _hook --host cursor --mode session-start "
    )
    assert binary.quoted(["it's"], "linux") == "'it'\\''s'"
    assert binary.quoted(["C:\\my dir\\", 'a"b', "x"], "win32") == '"C:\\my dir\\\\" "a\\"b" x'


def test_upstreams_plugin_is_left_alone_and_told(home):
    plugins = home / ".claude" / "plugins"
    plugins.mkdir()
    (plugins / "installed_plugins.json").write_text('{"plugins": {"cq@cq": {}}}')
    assert "plugin cq" in install(home, "claude")[0].notes[0]
    assert (plugins / "installed_plugins.json").read_text() == '{"plugins": {"cq@cq": {}}}'


def test_vs_code_and_opencode_are_where_each_platform_has_them(tmp_path):
    home = Path("/h")
    for platform, environ, folder in (
        ("linux", {}, "/h/.config/Code/User"),
        ("linux", {"XDG_CONFIG_HOME": "/x"}, "/x/Code/User"),
        ("linux", {"XDG_CONFIG_HOME": "not/absolute"}, "/h/.config/Code/User"),
        ("darwin", {"XDG_CONFIG_HOME": "/x"}, "/h/Library/Application Support/Code/User"),
        ("win32", {}, "/h/AppData/Roaming/Code/User"),
        ("win32", {"APPDATA": "/roaming"}, "/roaming/Code/User"),
    ):
        assert paths.vscode(place(home, platform=platform, **environ)).as_posix() == folder
    assert paths.opencode(place(home, XDG_CONFIG_HOME="/x")) == Path("/h/.config/opencode")
    assert paths.opencode(place(home, OPENCODE_CONFIG_DIR="/o")) == Path("/o")
    (tmp_path / "opencode.jsonc").write_text("{}")
    commented = paths.opencode_config(place(home, OPENCODE_CONFIG_DIR=str(tmp_path)))
    assert commented == tmp_path / "opencode.jsonc"
    for target, name in (
        ("codex", ".codex/config.toml"), ("cursor", ".cursor/mcp.json"), ("claude", ".claude.json"),
        ("devin-desktop", ".codeium/windsurf/mcp_config.json"), ("gemini", ".gemini/settings.json"),
    ):  # fmt: skip
        for platform in ("linux", "darwin", "win32"):
            steps = tables.HOSTS[target](place(home, platform=platform), GIVEN).steps
            assert steps[1].path == home / name


def test_the_program_is_the_one_that_stays(tmp_path):
    def script(name):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text("")
        path.chmod(0o755)
        return str(path)

    passing, lasting = script("uv/archive-v0/xyz/bin/cq"), script("bin/cq")
    home = {"PATH": os.path.dirname(lasting)}
    given = {"CQ_INSTALL_BINARY": "/not/there/yet/cq", "PATH": ""}
    assert binary.find(given) == ("/not/there/yet/cq", "")
    with pytest.raises(CqError, match="absolute"):
        binary.find({"CQ_INSTALL_BINARY": "bin/cq"})
    assert binary.find({"CQ_INSTALL_BINARY": "C:\\cq.exe"}, platform="win32") == ("C:\\cq.exe", "")
    with pytest.raises(CqError, match="set CQ_INSTALL_BINARY"):
        binary.find({"PATH": ""}, "-c", "/nowhere/python")
    path, warning = binary.find({"PATH": ""}, passing, "/nowhere/python")
    assert path == passing
    assert "may vanish" in warning
    assert binary.find(home, passing, "/nowhere/python") == (lasting, "")


TEXTS = [
    "{}", "{ }", "{\n}\n", "{\n  // note\n}", "{ // note\n}", "{ /* c */ }", '{"a":1}', '{ "a": 1, }',
    '{\n  "a": 1\n}\n', '{\n  "a": 1,\n}\n', '{\n\t"a": 1 // x\n}', '{\n    "a": 1, // x\n    // y\n}\n',
    '{\n  "a": {\n    "b": 2\n  }, "c": 3\n}', '{\n  "a": 1 }', '{"a": "// no", "b": ["/*", 1]}',
    '// top\n{\r\n  "a": 1\r\n}\r\n// end\r\n', '{"a": 1 // x\n}', '{\n  "a": 1   \n}', '{\n  "a":\n    1\n  , "b": 2\n}',
    '{"a": 12345678901234567890, "e": 1e400, "u": "\\u00e9<>&"}',
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_an_entry_goes_in_and_out_of_any_json_without_a_trace(text, tmp_path):
    file = tmp_path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    for mark in ("", BOM):
        file.write_bytes((mark + text).encode())
        before = Document(text).value()
        install(tmp_path, "cursor")
        middle = Document(file.read_bytes().decode().removeprefix(BOM)).value()
        assert {key: middle[key] for key in before} == before
        assert middle["mcpServers"]["cq"]["command"] == PROGRAM
        uninstall(tmp_path, "cursor")
        assert file.read_bytes() == (mark + text).encode()


@pytest.mark.parametrize(
    "text",
    ["", "\n", "a = 1", "a = 1\n", "a = 1\n\n\n", "# c\r\n[x]\r\nb = '''\r\n[y]\r\n'''\r\n", "[mcp_servers]\n", "[[x]]\na = [\n  1, # [y]\n]\n[x.y]\n"],
)  # fmt: skip
def test_a_table_goes_in_and_out_of_any_toml_without_a_trace(text, tmp_path):
    file = tmp_path / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_bytes(text.encode())
    install(tmp_path, "codex")
    assert tomllib.loads(file.read_text())["mcp_servers"]["cq"]["args"] == ["mcp"]
    install(tmp_path, "codex", given=GIVEN._replace(program="/new/cq"))
    assert tomllib.loads(file.read_text())["mcp_servers"]["cq"]["command"] == "/new/cq"
    uninstall(tmp_path, "codex")
    assert file.read_bytes() == text.encode()


@pytest.mark.parametrize(
    "text", ["{", '{"a"}', "{,}", "[1 2]", "nul", '{"a": tru}', "{} x", '"\\x"x']
)
def test_what_is_no_json_is_not_taken_for_it(text):
    with pytest.raises(Malformed, match="line 1, column"):
        Document(text)


@pytest.fixture
def cq(tmp_path):
    """`cq("install", ...)`: the finished process in a furnished home."""
    furnish("home", tmp_path / "home")

    def run(*arguments, **variables):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("CQ_", "XDG_"))}
        own = {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path / "home")}
        return subprocess.run(
            [sys.executable, "-c", "from cq.cli import main; main()", *arguments],
            env={**kept, **own, "CQ_INSTALL_BINARY": PROGRAM, **variables},
            capture_output=True, text=True, encoding="utf-8", timeout=60,
        )  # fmt: skip

    return run


def test_a_dry_run_says_what_the_true_run_does_and_touches_nothing(cq, tmp_path):
    original = tree(tmp_path)
    for more in ([], ["--uninstall"]):
        before, then = tree(tmp_path), times(tmp_path)
        told = cq("install", "--target", "all", "--dry-run", *more)
        assert (tree(tmp_path), times(tmp_path)) == (before, then)
        done = cq("install", "--target", "all", *more)
        assert done.stdout == told.stdout
        assert (done.returncode, done.stderr) == (0, "")
    assert tree(tmp_path) == original


def test_the_report_marks_what_became_of_each_file(cq, tmp_path):
    done = cq("install", "--target", " Cursor,codex", "--target", "codex")
    assert done.stdout.startswith(f"[codex]\n  + {tmp_path}/home/.agents/skills/cq/SKILL.md\n  + ")
    assert f"  ~ {tmp_path}/home/.codex/AGENTS.md\n" in done.stdout
    assert "\n[cursor]\n  = " in done.stdout
    assert f"  + {tmp_path}/home/.cursor/hooks.json  (sessionStart)\n" in done.stdout
    assert f"  ~ {tmp_path}/home/.cursor/hooks.json  (stop)\n" in done.stdout
    said = json.loads(cq("install", "--target", "codex", "--json").stdout)
    assert {step["outcome"] for step in said[0]["steps"]} == {"unchanged"}
    assert "  - " in cq("install", "--target", "cursor", "--uninstall").stdout


def test_one_failure_among_several_ends_with_1(cq, tmp_path):
    (tmp_path / "home/.cursor/mcp.json").write_text("{")
    done = cq("install", "--target", "cursor,pi")
    assert done.returncode == 1
    assert "Error: cursor: " in done.stderr
    assert "mcp.json is no valid JSON: line 1" in done.stderr
    assert f"### {PROGRAM} query" in (tmp_path / "home/.pi/agent/AGENTS.md").read_text()


def test_all_in_a_project_are_those_that_read_projects(cq, tmp_path):
    (tmp_path / "p").mkdir()
    done = cq("install", "--target", "all", "--project", str(tmp_path / "p"))
    assert done.returncode == 0
    assert "devin-desktop" not in done.stdout
    assert cq("install", "--target", "devin-desktop", "--project", str(tmp_path)).returncode == 1


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([], "select at least one --target"),
        (["--target", " , "], "select at least one --target"),
        (["--target", "emacs"], "claude, codex, copilot, cursor, devin-desktop, gemini, opencode, pi"),
        (["--target", "codex", "stray"], "unexpected extra argument"),
        (["--target", "codex", "--project", "/not/there"], "does not exist"),
        (["--target", "codex", "--uninstall", "--remote", "https://h"], "--remote goes with"),
    ],
)  # fmt: skip
def test_misuse_is_told_and_touches_nothing(given, why, cq, tmp_path):
    before = tree(tmp_path)
    done = cq("install", *given)
    assert done.returncode == 2
    assert why in " ".join(done.stderr.split())
    assert tree(tmp_path) == before


def test_a_program_with_a_relative_path_is_refused(cq):
    done = cq("install", "--target", "codex", CQ_INSTALL_BINARY="bin/cq")
    assert (done.returncode, "absolute" in done.stderr) == (1, True)
