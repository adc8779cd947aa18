"""The entry of cq among a host's MCP servers, in JSON or TOML: our keys are set, others stay."""

from cq.hosts import toml
from cq.hosts.jsonc import MISSING
from cq.hosts.jsonfile import JsonFile
from cq.hosts.run import CREATED, REMOVED, UNCHANGED, UPDATED

# By which a host reaches a server; what does not belong to the way asked for has to go.
WAYS = {"command", "args", "url", "httpUrl", "serverUrl"}


def contradicting(there, entry):
    """Keys of the other way, and its `type`."""
    gone = [key for key in there if key in WAYS and key not in entry]
    return [*gone, "type"] if gone and "type" in there and "type" not in entry else gone


class Json:
    """`where` is the path of the entry; `seeds` stand at the top of a new file."""

    def __init__(self, path, where, entry, seeds=None):
        self.path, self.where, self.entry, self.seeds = path, where, entry, seeds or {}

    def install(self, run):
        file = JsonFile(run, self.path)
        file.need((), {})
        for name, value in self.seeds.items() if file.new else ():
            file.seed(name, value)
        file.need(self.where[:-1], {})
        there = file.doc.value(*self.where)
        if not isinstance(there, dict):
            file.doc.put(self.where, self.entry)
            file.save(installed=True)
            run.tell(CREATED, self.path)
            return
        changed = contradicting(there, self.entry)
        for key in changed:
            file.doc.remove((*self.where, key))
        for key, value in self.entry.items():
            if there.get(key, MISSING) != value:
                changed.append(key)
                file.doc.put((*self.where, key), value)
        if changed:
            file.save(installed=True)
        run.tell(UPDATED if changed else UNCHANGED, self.path)

    def uninstall(self, run):
        if run.files.read(self.path) is None:
            run.tell(UNCHANGED, self.path)
            return
        file = JsonFile(run, self.path)
        there = file.doc.value(*self.where)
        if there is MISSING:
            run.tell(UNCHANGED, self.path)
            return
        file.doc.remove(self.where)
        file.put_back()
        file.save(installed=False)
        run.tell(REMOVED, self.path, with_it(there))


class Toml:
    def __init__(self, path, where, entry):
        self.path, self.where, self.entry = path, where, entry

    def install(self, run):
        text = run.files.text(self.path)
        there = toml.table(self.path, text or "", self.where)
        if there is None:
            run.files.write(self.path, toml.add(text or "", self.where, self.entry))
            run.keep(self.path, {"was": {"": None}} if text is None else None)
            run.tell(CREATED, self.path)
            return
        gone = contradicting(there, self.entry)
        new = {key: value for key, value in self.entry.items() if there.get(key) != value}
        if gone or new:
            run.files.write(self.path, toml.change(self.path, text, self.where, new, gone))
        run.tell(UPDATED if gone or new else UNCHANGED, self.path)

    def uninstall(self, run):
        text = run.files.text(self.path)
        there = None if text is None else toml.table(self.path, text, self.where)
        if there is None:
            run.tell(UNCHANGED, self.path)
            return
        left = toml.remove(self.path, text, self.where)
        if not left.strip() and run.edit(self.path):
            run.files.delete(self.path)
        else:
            run.files.write(self.path, left)
        run.keep(self.path, None)
        run.tell(REMOVED, self.path, with_it(there))


def with_it(there):
    """What else goes with the entry."""
    own = sorted(set(there) - WAYS - {"type"}) if isinstance(there, dict) else []
    return f"and in it your {', '.join(own)}" if own else ""
