"""A file written whole or not at all, and only its owner's. Knows nothing of what stands in it."""

import errno
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written(path, force=False):
    """The path of an empty draft beside `path`, which takes its place once the block ends well.

    What is there already is kept unless `force`. Raises OSError, FileExistsError among them.
    """
    path = Path(path).resolve()
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
    if path.exists() and not force:
        raise _there(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".cq-")
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        settle(draft)
        _place(draft, path, force)
        settle(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def settle(path):
    """Have a file or a folder on the disk, whatever happens to the machine."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _place(draft, path, force):
    if force:
        os.replace(draft, path)
        return
    try:
        # Unlike a rename, a link never replaces what somebody put there meanwhile.
        os.link(draft, path)
    except FileExistsError:
        raise _there(path) from None
    except OSError:
        # A file system without links.
        if path.exists():
            raise _there(path) from None
        os.rename(draft, path)


def _there(path):
    return FileExistsError(errno.EEXIST, "it is there already; --force replaces it", str(path))
