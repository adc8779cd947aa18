"""cq's hooks among a host's: recognised by what they run, not by the path they run it from."""

import re

from cq.hosts.jsonc import MISSING
from cq.hosts.jsonfile import JsonFile
from cq.hosts.run import CREATED, REMOVED, SKIPPED, UNCHANGED, UPDATED

CURSOR = {
    "sessionStart": "session-start",
    "postToolUseFailure": "post-tool-use-failure",
    # Only to forget a failure that was mended later.
    "postToolUse": "post-tool-use",
    "stop": "stop",
}
CLAUDE = {
    "SessionStart": "session-start",
    "PostToolUseFailure": "post-tool-use-failure",
    "PostToolUse": "post-tool-use",
    "Stop": "stop",
}


class Hooks:
    """`events` {event: mode}; `command` makes the command of a mode. Claude Code keeps commands in
    groups, each with a `matcher` and `hooks`; Cursor keeps them plainly, beside a version.
    """

    def __init__(self, path, host, events, command, state, grouped):
        self.path, self.host, self.events = path, host, events
        self.command, self.state, self.grouped = command, state, grouped

    def install(self, run):
        file = JsonFile(run, self.path)
        if not self.grouped:
            file.need((), {})
            file.seed("version", 1)
        for event, mode in self.events.items():
            file.need(("hooks", event), [])
            run.tell(*self._put(file, event, self.command(mode)))
        file.save(installed=True)

    def _put(self, file, event, command):
        at, first = ("hooks", event), None
        mine = self._mine(file.doc.value(*at), event)
        for spot in reversed(mine[1:]):
            self._take(file, at, spot)
        if not mine:
            first = not file.doc.value(*at)
            entry = {"command": command}
            if self.grouped:
                entry = {"hooks": [{"type": "command", **entry}]}
            file.doc.append(at, entry)
            return (CREATED if first else UPDATED), self.path, event
        place = (*at, *mine[0], "command")
        same = file.doc.value(*place) == command
        if not same:
            file.doc.put(place, command)
        return (UNCHANGED if same and not mine[1:] else UPDATED), self.path, event

    def uninstall(self, run):
        if self.state:
            run.files.drop_tree(self.state)
        if run.files.read(self.path) is None:
            run.tell(UNCHANGED, self.path)
            return
        file = JsonFile(run, self.path)
        for event in self.events:
            run.tell(*self._undo(file, event))
        if any(each.how == REMOVED and each.path == self.path for each in run.outcomes):
            file.put_back()
            file.save(installed=False)

    def _undo(self, file, event):
        at = ("hooks", event)
        hooks = file.doc.value("hooks")
        entries = hooks.get(event, []) if isinstance(hooks, dict) else hooks
        if entries is MISSING:
            return UNCHANGED, self.path
        if not isinstance(entries, list):
            return SKIPPED, self.path, f"{event}: the hooks are in no form that is known"
        mine = self._mine(entries, event)
        for spot in reversed(mine):
            self._take(file, at, spot)
        if not mine:
            return UNCHANGED, self.path
        if not file.doc.value(*at) and not file.made(at):
            file.doc.remove(at)
        return REMOVED, self.path, event

    def _take(self, file, at, spot):
        group = (*at, *spot[:-1])
        if self.grouped and len(file.doc.value(*group)) == 1:
            file.doc.remove((*at, spot[0]))
        else:
            file.doc.remove((*at, *spot))

    def _mine(self, entries, event):
        """Where our commands of an event stand in its list, as paths."""
        pattern = re.compile(
            rf"[\"'\s]_hook\s+--host\s+{self.host}\s+--mode\s+{self.events[event]}(?:\s|$)"
        )

        def ours(entry):
            said = entry.get("command") if isinstance(entry, dict) else None
            return isinstance(said, str) and pattern.search(said)

        if not self.grouped:
            return [(nth,) for nth, entry in enumerate(entries) if ours(entry)]
        return [
            (nth, "hooks", each)
            for nth, group in enumerate(entries)
            if isinstance(group, dict) and isinstance(group.get("hooks"), list)
            for each, entry in enumerate(group["hooks"])
            if ours(entry)
        ]
