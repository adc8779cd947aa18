"""A host's JSON settings: edited in place, with a note of what was there, to put it back."""

from cq.hosts.files import Unusable
from cq.hosts.jsonc import MISSING, Document, Malformed


class JsonFile:
    """Open it, change `doc`, `save`. The note `was` says of each object or array that was empty
    or not there what stood in its place; "" is the whole file.
    """

    def __init__(self, run, path):
        """Raises Unusable."""
        self._run, self.path = run, path
        self._text = run.files.text(path)
        self.new = self._text is None
        try:
            self.doc = Document(self._text or "")
        except Malformed as fault:
            raise Unusable(
                f"{path} is no valid JSON: {fault}. Mend it there, then run this again"
            ) from fault
        if self.doc.root is not None and self.doc.root.kind != "object":
            raise Unusable(f"{path} holds no JSON object; mend it, then run this again")
        self._was = {} if self.new else dict(run.edit(path).get("was", {}))
        self._noted = set()

    def need(self, path, empty):
        """See to it that an object ({}) or array ([]) stands there, and all above it."""
        for depth in range(len(path) + 1):
            at = path[:depth]
            node, want = self.doc.node(*at), empty if depth == len(path) else {}
            value = MISSING if node is None else self.doc.value(*at)
            if value is MISSING and not at:
                self._note(at, self._text)
                self.doc.put(at, want)
            elif value is MISSING or value is None:
                self._note(at, None if node is None else "null")
                self.doc.put(at, want)
            elif type(value) is not type(want):
                kind = "list" if want == [] else "object"
                raise Unusable(
                    f"{self.path}: {'.'.join(at)} is no {kind}; mend it, then run this again"
                )
            elif not value:
                self._note(at, self.doc.raw(*at))

    def _note(self, path, was):
        """Of what this run made itself there is nothing to put back."""
        pointer = "/".join(path)
        if pointer not in self._noted:
            self._was[pointer] = was
            self._noted.add(pointer)

    def seed(self, name, value):
        """A member that the host wants beside ours."""
        if self.doc.node(name) is None:
            self._note((name,), None)
            self.doc.put((name,), value)

    def made(self, path):
        """Whether the note tells what stood there before."""
        return "/".join(path) in self._was

    def put_back(self):
        """What is empty now becomes what it was."""
        for pointer in sorted(filter(None, self._was), key=len, reverse=True):
            path, was = tuple(pointer.split("/")), self._was[pointer]
            node = self.doc.node(*path)
            if node is None or node.kind == "scalar" or node.items:
                continue
            inside = self.doc.raw(*path)[1:-1].strip()
            # A comment that a person wrote into it stays, and so does what holds it.
            if inside != ("" if was in (None, "null") else was[1:-1].strip()):
                continue
            if was is None:
                self.doc.remove(path)
            else:
                self.doc.replace(path, was)
        seeds = {name for name, was in self._was.items() if name and was is None}
        if {item.key for item in self.doc.root.items} <= seeds and all(
            item.node.kind == "scalar" for item in self.doc.root.items
        ):
            for name in [item.key for item in self.doc.root.items]:
                self.doc.remove((name,))
        if not self.doc.root.items and "" in self._was:
            self._root_back(self._was[""])

    def _root_back(self, was):
        inside = self.doc.raw()[1:-1].strip()
        if (was or "").strip():
            if was[1:-1].strip() == inside:
                self.doc.replace((), was)
        elif self.doc.text.strip() == self.doc.raw() and not inside:
            self.doc = Document(was or "")
            self.new = was is None

    def save(self, installed):
        """Plan the write; whether anything changed."""
        if installed and self.doc.text == (self._text or ""):
            return False
        gone = not installed and self.new and not self.doc.text
        if gone:
            self._run.files.delete(self.path)
        elif self.doc.text != self._text:
            self._run.files.write(self.path, self.doc.text)
        self._run.keep(self.path, {"was": self._was} if installed and self._was else None)
        return True
