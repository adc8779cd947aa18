"""Whole files of cq's own in a host's folder: written, upgraded, left once a person changed one."""

from pathlib import Path

from cq.hosts.manifest import hashes, sha256
from cq.hosts.run import CREATED, REMOVED, SKIPPED, UNCHANGED, UPDATED


class Managed:
    """`texts` {path below the folder: text}; `known` are hashes of texts that count as cq's."""

    def __init__(self, folder: Path, texts, known=()):
        self.folder, self.texts, self.known = folder, texts, known

    def install(self, run):
        manifest = run.manifest(self.folder)
        for name, text in self.texts.items():
            run.tell(*self._put(run, manifest, name, text.encode("utf-8")))
        for name in sorted(set(manifest.files) - set(self.texts)):
            self._take(run, manifest, name)

    def _put(self, run, manifest, name, want):
        path, listed = self.folder / name, manifest.files.get(name)
        there = run.files.read(path)
        if there is not None:
            if sha256(want) in hashes(there):
                if listed:
                    manifest.files[name] = sha256(want)
                    return UNCHANGED, path
                return SKIPPED, path, "was there before, with the same text; it stays yours"
            if not hashes(there) & {listed, *self.known}:
                return SKIPPED, path, "you changed it; delete it to get cq's"
        run.files.write(path, want)
        manifest.files[name] = sha256(want)
        return (CREATED if there is None else UPDATED), path

    def uninstall(self, run):
        manifest = run.manifest(self.folder)
        names = sorted(manifest.files)
        for name in names:
            self._take(run, manifest, name)
        for name in sorted(set(self.texts) - set(names)):
            path = self.folder / name
            there = run.files.read(path)
            if there is not None and hashes(there) & set(self.known):
                run.files.delete(path)
                run.tell(REMOVED, path)
            elif there is not None:
                run.tell(SKIPPED, path, "cq did not write it")
            else:
                run.tell(UNCHANGED, path)

    def _take(self, run, manifest, name):
        path = self.folder / name
        there = run.files.read(path)
        if there is not None and manifest.files[name] not in hashes(there):
            run.tell(SKIPPED, path, "you changed it; delete it yourself")
            return
        del manifest.files[name]
        if there is None:
            run.tell(UNCHANGED, path, "is gone already")
        else:
            run.files.delete(path)
            run.tell(REMOVED, path)


class Shared:
    """The skill that several hosts read: there as long as one of them is installed."""

    def __init__(self, folder, texts, known=()):
        self._files = Managed(folder, texts, known)

    def install(self, run):
        run.record.users = sorted({*(run.record.users or ()), run.target})
        self._files.install(run)

    def uninstall(self, run):
        path = self._files.folder / next(iter(self._files.texts))
        record = run.record
        if record.users is None and record.files:
            run.tell(SKIPPED, path, "which hosts use it was not kept; delete it yourself")
            return
        mine = run.target in (record.users or ())
        record.users = [user for user in record.users or () if user != run.target] or None
        if record.users or not mine:
            used = f"used by {', '.join(record.users)}" if record.users else ""
            run.tell(UNCHANGED, path, used)
        else:
            self._files.uninstall(run)
