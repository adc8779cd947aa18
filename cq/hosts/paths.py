"""Where each host keeps its things, on every platform; nothing is read here."""

import os
import sys
from pathlib import Path
from typing import NamedTuple


class Place(NamedTuple):
    """For whom: a home on a platform (as `sys.platform` names it), or a project's folder."""

    home: Path
    platform: str
    environ: dict
    project: Path | None = None

    @property
    def base(self):
        """What paths in the manifest are relative to."""
        return self.project or self.home

    @property
    def skills(self):
        """Skills that hosts share."""
        return self.base / ".agents" / "skills"


def here(project=None, environ=os.environ):
    """The place of this machine's user. Raises RuntimeError without a home."""
    return Place(Path.home(), sys.platform, dict(environ), project)


def vscode(place):
    """VS Code's folder of a user with the default profile."""
    home, given = place.home, place.environ
    if place.platform == "darwin":
        return home / "Library" / "Application Support" / "Code" / "User"
    if place.platform == "win32":
        roaming = given.get("APPDATA", "").strip()
        return (Path(roaming) if roaming else home / "AppData" / "Roaming") / "Code" / "User"
    config = given.get("XDG_CONFIG_HOME", "")
    return (Path(config) if config.startswith("/") else home / ".config") / "Code" / "User"


def opencode(place):
    """OpenCode's folder: OPENCODE_CONFIG_DIR, or the same below the home on every platform."""
    if place.project:
        return place.project / ".opencode"
    own = place.environ.get("OPENCODE_CONFIG_DIR", "")
    return Path(own) if own else place.home / ".config" / "opencode"


def opencode_config(place):
    """The file of settings: the one with comments if that is the one in use."""
    folder = place.project or opencode(place)
    plain, commented = folder / "opencode.json", folder / "opencode.jsonc"
    return commented if commented.exists() and not plain.exists() else plain
