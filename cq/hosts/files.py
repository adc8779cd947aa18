"""The files of a run: read, changed in memory, then written all or none. Knows no host."""

import os
import shutil
import stat
import tempfile
from pathlib import Path

from cq.failures import CqError

BOM = "\ufeff"


class Unusable(CqError):
    """A file cannot be read, understood or written; the text says which, and what now."""


class Files:
    """What is to be written, over what is on the disk.

    A path that leads through links stands for the true file. With `dry` nothing is written, and
    later targets see what earlier ones would have.
    """

    def __init__(self, dry=False):
        self._dry = dry
        self._new, self._seen, self._trees, self._folders = {}, {}, [], []
        self._kept = {}

    def read(self, path):
        """Its bytes, or None if there is no such file. Raises Unusable."""
        path = _true(path)
        if path in self._new:
            return self._new[path]
        if path not in self._seen:
            self._seen[path] = _load(path)
        return self._seen[path]

    def text(self, path):
        """Its text without the mark of its encoding, or None. Raises Unusable."""
        data = self.read(path)
        try:
            return None if data is None else data.decode("utf-8").removeprefix(BOM)
        except UnicodeDecodeError as fault:
            raise Unusable(f"{path} is not UTF-8; save it as UTF-8, then run this again") from fault

    def write(self, path, new):
        """Bytes, or a text, which gets the mark that the file had."""
        before = self.read(path)
        if isinstance(new, str):
            mark = BOM if before and before.startswith(BOM.encode()) else ""
            new = (mark + new).encode("utf-8")
        self._new[_true(path)] = new

    def delete(self, path):
        if self.read(path) is not None:
            self._new[_true(path)] = None

    def drop_tree(self, path):
        """Delete a folder of our own, in the end."""
        self._trees.append(path)

    def drop_folders(self, paths):
        """Delete those that are empty in the end."""
        self._folders = sorted(paths, key=lambda path: len(path.parts), reverse=True)

    def missing_folders(self):
        """Folders that writing will make."""
        found = set()
        for path, data in self._new.items():
            if data is not None:
                found |= {folder for folder in path.parents if not folder.exists()}
        return found

    def forget(self):
        """Drop what was planned since the last `commit`."""
        self._new, self._seen = dict(self._kept), {}
        self._trees, self._folders = [], []

    def commit(self):
        """Write all that was planned; if one cannot be, put everything back. Raises Unusable."""
        if self._dry:
            self._kept = dict(self._new)
            return
        planned = [(path, data) for path, data in self._new.items() if data != self._seen.get(path)]
        folders, staged, done = [], {}, []
        try:
            for path, data in planned:
                at = path
                if data is not None:
                    staged[path] = _stage(path, data, folders)
            for path, data in planned:
                at = path
                if _load(path) != self._seen.get(path):
                    raise OSError(0, "another program changed it meanwhile; run this again")
                mode = path.stat() if path.exists() else None
                done.append((path, self._seen.get(path), mode))
                path.unlink() if data is None else os.replace(staged.pop(path), path)
        except (OSError, Unusable) as fault:
            _put_back(done, staged, folders)
            why = getattr(fault, "strerror", None) or fault
            raise Unusable(f"{at} cannot be written: {why}. Nothing of it was changed") from fault
        for tree in self._trees:
            tree.unlink() if tree.is_symlink() else shutil.rmtree(tree, ignore_errors=True)
        for folder in self._folders:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        self._kept = {}
        self.forget()


def _true(path):
    return Path(os.path.realpath(path))


def _load(path):
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise Unusable(f"{path} cannot be read: {fault.strerror}") from fault


def _stage(path, data, folders):
    """Write beside the file, with its rights, in folders that are made for it."""
    for folder in reversed([each for each in path.parents if not each.exists()]):
        folder.mkdir(mode=0o755)
        folders.append(folder)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644)
    except OSError:
        os.unlink(name)
        raise
    return name


def _put_back(done, staged, folders):
    for name in staged.values():
        os.unlink(name)
    for path, data, was in reversed(done):
        if data is None:
            path.unlink(missing_ok=True)
        else:
            name = _stage(path, data, [])
            os.chmod(name, stat.S_IMODE(was.st_mode))
            os.utime(name, ns=(was.st_atime_ns, was.st_mtime_ns))
            os.replace(name, path)
    for folder in reversed(folders):
        folder.rmdir()
