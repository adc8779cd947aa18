"""Instructions of cq in a Markdown file that is a person's: a block between two marks."""

from cq.hosts import tail
from cq.hosts.manifest import sha256
from cq.hosts.run import CREATED, REMOVED, SKIPPED, UNCHANGED, UPDATED

START, END = "<!-- cq:start -->", "<!-- cq:end -->"


class Block:
    """`text` is what stands between the marks; hosts that read the same file share the block."""

    def __init__(self, path, text, known=()):
        self.path, self.known = path, known
        self.block = f"{START}\n{text.strip()}\n{END}"

    def install(self, run):
        text, edit = run.files.text(self.path), dict(run.edit(self.path))
        edit["users"] = sorted({*edit.get("users", ()), run.target})
        spot = _find(text or "")
        if spot is None:
            run.tell(SKIPPED, self.path, f"{START} has no {END} below it; mend or delete it")
            return
        there = None if spot == () else _plain(text[slice(*spot)])
        if there is not None and there != self.block and self._changed(there, edit):
            run.tell(SKIPPED, self.path, "you changed the block; delete it to get cq's")
            return
        if there is None:
            run.files.write(self.path, tail.append(text or "", self.block))
            edit = {"users": edit["users"], "made": text is None}
            run.tell(UPDATED if text else CREATED, self.path)
        elif there == self.block:
            run.tell(UNCHANGED, self.path)
        else:
            block = self.block.replace("\n", tail.eol(text))
            run.files.write(self.path, text[: spot[0]] + block + text[spot[1] :])
            run.tell(UPDATED, self.path)
        run.keep(self.path, {**edit, "sha256": sha256(self.block.encode())})

    def uninstall(self, run):
        text, edit = run.files.text(self.path), dict(run.edit(self.path))
        others = [user for user in edit.get("users", ()) if user != run.target]
        spot = _find(text or "")
        if not spot:
            run.keep(self.path, None)
            how = SKIPPED if spot is None else UNCHANGED
            run.tell(how, self.path, f"{START} has no {END} below it" if spot is None else "")
        elif others:
            run.keep(self.path, {**edit, "users": others})
            run.tell(UNCHANGED, self.path, f"used by {', '.join(others)}")
        elif self._changed(_plain(text[slice(*spot)]), edit):
            run.keep(self.path, None)
            run.tell(SKIPPED, self.path, "you changed the block; delete it yourself")
        else:
            left = tail.cut(text, *spot)
            run.keep(self.path, None)
            if not left.strip() and edit.get("made", True):
                run.files.delete(self.path)
            else:
                run.files.write(self.path, left)
            run.tell(REMOVED, self.path)

    def _changed(self, there, edit):
        """Whether somebody else than cq wrote what stands there; not known without a record."""
        kept = edit.get("sha256")
        return kept is not None and sha256(there.encode()) not in (kept, *self.known)


def _plain(text):
    return text.replace("\r\n", "\n")


def _find(text):
    """(start, end) of the block, () if there is none, None if it has no end."""
    start = text.find(START)
    if start < 0:
        return ()
    end = text.find(END, start)
    return None if end < 0 else (start, end + len(END))
