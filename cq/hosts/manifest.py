"""What was installed, as kept beside it: files with their hashes, and how to undo edits.

The one of the shared skills also keeps who uses the skill, what each edited file was like, and the
folders that were made; its form is upstream's with more names in it.
"""

import hashlib
import json
import re
from pathlib import PurePosixPath

from cq.hosts.files import Unusable

NAME = ".cq-install-manifest.json"


def hashes(data):
    """Of the bytes, and of the same text with lines as cq writes them (git may change them)."""
    return {sha256(data), sha256(data.replace(b"\r\n", b"\n"))}


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Manifest:
    """`files` {path: sha256}, `users` a list or None if never kept, `edits` {path: what it was}."""

    def __init__(self, files, folder):
        """Raises Unusable."""
        self._store, self.path = files, folder / NAME
        self.files, self.users, self.edits, self.folders = {}, None, {}, []
        text = files.text(self.path)
        if text is not None:
            self._load(text)

    def _load(self, text):
        try:
            said = json.loads(text)
            self.files = {self._safe(each["path"]): str(each["sha256"]) for each in said["files"]}
            self.edits = {str(name): dict(was) for name, was in said.get("edits", {}).items()}
            self.folders = [self._safe(name) for name in said.get("folders", [])]
            self.users = [str(name) for name in said["users"]] if "users" in said else None
        except (ValueError, KeyError, TypeError, AttributeError) as fault:
            raise Unusable(
                f"{self.path} is damaged ({fault}); delete it, then run this again: "
                "files that differ from cq's count as yours"
            ) from fault

    def _safe(self, name):
        """A path below the folder, with forward slashes."""
        path = PurePosixPath(str(name).replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or re.match("[A-Za-z]:", str(path)):
            raise ValueError(f"{name!r} leads out of the folder")
        return str(path)

    def save(self):
        if not (self.files or self.users or self.edits):
            return self._store.delete(self.path)
        files = [{"path": name, "sha256": self.files[name]} for name in sorted(self.files)]
        said = {"files": files}
        if self.users is not None:
            said["users"] = sorted(self.users)
        if self.edits:
            said["edits"] = {name: self.edits[name] for name in sorted(self.edits)}
        if self.folders:
            said["folders"] = sorted(self.folders)
        return self._store.write(self.path, json.dumps(said, indent=2, ensure_ascii=False) + "\n")
