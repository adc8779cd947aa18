"""Each host as a table of steps: what it gets, and where."""

from typing import NamedTuple
from urllib.parse import urlsplit

from cq.failures import CqError
from cq.hosts import binary, hooks, paths, texts
from cq.hosts.blocks import Block
from cq.hosts.hooks import Hooks
from cq.hosts.managed import Managed, Shared
from cq.hosts.servers import Json, Toml

STATE = "cq-hook-state"


class Given(NamedTuple):
    """What is written for everybody: the program, the node's endpoint or "", and for hosts
    without MCP {command: (arguments, options)}.
    """

    program: str = "cq"
    endpoint: str = ""
    usages: dict = {}


class Host(NamedTuple):
    """`key` tells where the key goes for a remote server; `notes` are for a person."""

    steps: list
    key: str = ""
    notes: tuple = ()


def endpoint(addr):
    """Where a node answers MCP, by its address. Raises CqError."""
    try:
        parts = urlsplit(addr.strip())
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good or "@" in parts.netloc or parts.query or parts.fragment:
        raise CqError(
            f"--remote takes a node's address such as https://cq.example.org, not {addr!r}"
        )
    path = parts.path.rstrip("/")
    path = path if path.endswith("/mcp") else f"{path}/mcp"
    return f"{parts.scheme}://{parts.netloc}{path}"


def claude(place, given):
    folder = place.base / ".claude"
    settings = place.project / ".mcp.json" if place.project else place.home / ".claude.json"
    entry = {"type": "stdio", "command": given.program, "args": ["mcp"]}
    remote = {"type": "http", "url": given.endpoint}
    return Host(
        [
            Managed(folder / "skills", texts.skill()),
            Json(settings, ("mcpServers", "cq"), remote if given.endpoint else entry),
            Managed(folder / "commands", texts.commands("cq/")),
            _hooks(place, given, folder / "settings.json", "claude", hooks.CLAUDE),
        ],
        _headers(settings, "mcpServers.cq", "${CQ_API_KEY}"),
        _plugin(place),
    )


def _plugin(place):
    """A word on upstream's plugin, which is left alone."""
    known = place.home / ".claude" / "plugins" / "installed_plugins.json"
    try:
        there = '"cq@' in known.read_text(encoding="utf-8", errors="replace")
    except OSError:
        there = False
    said = "the plugin cq is installed too and stays; `claude plugin uninstall cq` removes it"
    return (said,) if there else ()


def codex(place, given):
    folder = place.base / ".codex"
    told = place.project / "AGENTS.md" if place.project else folder / "AGENTS.md"
    entry = {"command": given.program, "args": ["mcp"]}
    return Host(
        [
            _skill(place),
            Toml(
                folder / "config.toml",
                ("mcp_servers", "cq"),
                {"url": given.endpoint} if given.endpoint else entry,
            ),
            Block(told, texts.block(), texts.BLOCK_KNOWN),
        ],
        f'bearer_token_env_var = "CQ_API_KEY" below [mcp_servers.cq] in {folder / "config.toml"}',
    )


def copilot(place, given):
    if place.project:
        settings = place.project / ".vscode" / "mcp.json"
        told = Managed(
            place.project / ".github" / "instructions",
            {"cq.instructions.md": texts.copilot_project()},
        )
    else:
        settings = paths.vscode(place) / "mcp.json"
        folder = place.home / ".copilot" / "instructions"
        told = Managed(folder, {"cq.md": texts.copilot_line()}, texts.COPILOT_KNOWN)
    entry = {"type": "stdio", "command": given.program, "args": ["mcp"]}
    remote = {"type": "http", "url": given.endpoint}
    return Host(
        [
            _skill(place),
            Json(settings, ("servers", "cq"), remote if given.endpoint else entry),
            told,
        ],
        _headers(settings, "servers.cq", "${env:CQ_API_KEY}"),
    )


def cursor(place, given):
    folder = place.base / ".cursor"
    entry = {"command": given.program, "args": ["mcp"]}
    settings = folder / "mcp.json"
    return Host(
        [
            _skill(place),
            Json(
                settings,
                ("mcpServers", "cq"),
                {"url": given.endpoint} if given.endpoint else entry,
            ),
            Managed(folder / "rules", {"cq.mdc": texts.cursor_rule()}, texts.CURSOR_KNOWN),
            _hooks(place, given, folder / "hooks.json", "cursor", hooks.CURSOR),
        ],
        _headers(settings, "mcpServers.cq", "${env:CQ_API_KEY}"),
    )


def devin_desktop(place, given):
    if place.project:
        return None
    settings = place.home / ".codeium" / "windsurf" / "mcp_config.json"
    entry = {"command": given.program, "args": ["mcp"]}
    remote = {"serverUrl": given.endpoint}
    return Host(
        [
            _skill(place),
            Json(settings, ("mcpServers", "cq"), remote if given.endpoint else entry),
        ],
        _headers(settings, "mcpServers.cq", "${env:CQ_API_KEY}"),
    )


def gemini(place, given):
    folder = place.base / ".gemini"
    told = place.project / "GEMINI.md" if place.project else folder / "GEMINI.md"
    settings = folder / "settings.json"
    entry = {"command": given.program, "args": ["mcp"]}
    remote = {"httpUrl": given.endpoint}
    return Host(
        [
            _skill(place),
            Json(settings, ("mcpServers", "cq"), remote if given.endpoint else entry),
            Managed(folder / "commands", texts.gemini_commands()),
            Block(told, texts.block()),
        ],
        _headers(settings, "mcpServers.cq", "$CQ_API_KEY"),
    )


def opencode(place, given):
    folder, settings = paths.opencode(place), paths.opencode_config(place)
    told = place.project / "AGENTS.md" if place.project else folder / "AGENTS.md"
    entry = {"type": "local", "command": [given.program, "mcp"]}
    remote = {"type": "remote", "url": given.endpoint}
    return Host(
        [
            _skill(place),
            Json(
                settings,
                ("mcp", "cq"),
                remote if given.endpoint else entry,
                {"$schema": "https://opencode.ai/config.json"},
            ),
            Managed(folder / "commands", texts.opencode_commands()),
            Block(told, texts.block(), texts.BLOCK_KNOWN),
        ],
        _headers(settings, "mcp.cq", "{env:CQ_API_KEY}"),
    )


def pi(place, given):
    # In a project other hosts read AGENTS.md too, and they have MCP: there Pi's own file is taken.
    folder = place.project / ".pi" if place.project else place.home / ".pi" / "agent"
    told = folder / ("APPEND_SYSTEM.md" if place.project else "AGENTS.md")
    program = binary.quoted([given.program], place.platform)
    speaks = "pi has no MCP, over HTTP or not: it runs the command cq, which goes by CQ_ADDR"
    return Host(
        [
            _skill(place),
            Managed(folder / "prompts", texts.pi_prompts()),
            Block(told, texts.pi_block(program, given.usages)),
        ],
        notes=(speaks,) if given.endpoint else (),
    )


def _skill(place):
    return Shared(place.skills, texts.skill())


def _headers(settings, entry, variable):
    return f'"headers": {{"Authorization": "Bearer {variable}"}} in {entry} of {settings}'


def _hooks(place, given, settings, host, events):
    # A project's hooks keep what they see in the home: it is no part of the project.
    state = place.home / f".{host}" / STATE

    def command(mode):
        words = [given.program, "_hook", "--host", host, "--mode", mode, "--state-dir", str(state)]
        return binary.quoted(words, place.platform)

    own = None if place.project else state
    return Hooks(settings, host, events, command, own, grouped=host == "claude")


HOSTS = {
    "claude": claude,
    "codex": codex,
    "copilot": copilot,
    "cursor": cursor,
    "devin-desktop": devin_desktop,
    "gemini": gemini,
    "opencode": opencode,
    "pi": pi,
}
