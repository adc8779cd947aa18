"""What the steps of one target share: the files, the manifests, and the report."""

import os
from pathlib import Path
from typing import NamedTuple

from cq.hosts.files import Files
from cq.hosts.manifest import Manifest
from cq.hosts.paths import Place

CREATED, UPDATED, UNCHANGED = "created", "updated", "unchanged"
REMOVED, SKIPPED = "removed", "skipped"


class Outcome(NamedTuple):
    """What became of a file: one of the words above, and where that needs it, why."""

    how: str
    path: Path
    detail: str = ""


class Run:
    """A target's turn; `outcomes` is filled by its steps."""

    def __init__(self, target: str, place: Place, files: Files):
        self.target, self.place, self.files = target, place, files
        self.outcomes, self._manifests = [], {}

    def tell(self, how, path, detail=""):
        self.outcomes.append(Outcome(how, path, detail))

    def manifest(self, folder):
        if folder not in self._manifests:
            self._manifests[folder] = Manifest(self.files, folder)
        return self._manifests[folder]

    @property
    def record(self):
        """The manifest that keeps what goes beyond one folder."""
        return self.manifest(self.place.skills)

    def edit(self, path):
        """What is kept of an edited file."""
        return self.record.edits.get(self._name(path), {})

    def keep(self, path, edit):
        if edit:
            self.record.edits[self._name(path)] = edit
        else:
            self.record.edits.pop(self._name(path), None)

    def finish(self, installed):
        """Plan the manifests, and the folders that are to go if they are empty."""
        base = self.place.base
        if not installed:
            self.files.drop_folders([base / name for name in self.record.folders])
        for manifest in self._manifests.values():
            manifest.save()
        if installed:
            true = Path(os.path.realpath(base))
            made = {
                folder.relative_to(true).as_posix()
                for folder in self.files.missing_folders()
                if folder.is_relative_to(true) and folder != true
            }
            self.record.folders = sorted({*self.record.folders, *made})
            self.record.save()

    def _name(self, path):
        base = self.place.base
        return (path.relative_to(base) if path.is_relative_to(base) else path).as_posix()
