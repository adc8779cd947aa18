"""JSON with comments, edited in place: what is not named stays, byte for byte. Knows no host."""

import json
import re
from typing import NamedTuple

_GAP = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.S)
_STRING = re.compile(r'"(?:[^"\\\r\n]|\\[^\r\n])*"')
_SCALAR = re.compile(r"(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])")
# Spaces and comments up to the end of a line; a comment that goes on in the next line is none.
_REST = re.compile(r"(?:[ \t]+|//[^\r\n]*|/\*(?:(?!\*/)[^\r\n])*\*/)*")
DEEP = 100
MISSING = object()


class Malformed(ValueError):
    """Where the text is no JSON with comments, and why."""

    def __init__(self, text, at, why):
        self.line = text.count("\n", 0, at) + 1
        self.column = at - text.rfind("\n", 0, at)
        super().__init__(f"line {self.line}, column {self.column}: {why}")


class Node(NamedTuple):
    """A value: `kind` is object, array or scalar; text[start:end]; `items` of the first two."""

    kind: str
    start: int
    end: int
    items: list


class Item(NamedTuple):
    """A member or an element. `comma` stands right behind its comma, 0 if it has none."""

    key: str | None
    start: int
    node: Node
    comma: int


class _Reader:
    def __init__(self, text):
        self.text = text

    def whole(self):
        """The root, or None of a text without a value."""
        at = self.skip(0)
        if at == len(self.text):
            return None
        node = self.value(at, 0)
        at = self.skip(node.end)
        if at < len(self.text):
            raise Malformed(self.text, at, "something stands after the end")
        return node

    def skip(self, at):
        at = _GAP.match(self.text, at).end()
        if self.text.startswith("/*", at):
            raise Malformed(self.text, at, "a comment has no end")
        return at

    def value(self, at, depth):
        if depth > DEEP:
            raise Malformed(self.text, at, f"nested deeper than {DEEP}")
        if self.text[at : at + 1] in ("{", "["):
            return self.container(at, depth)
        found = _STRING.match(self.text, at) or _SCALAR.match(self.text, at)
        if not found:
            raise Malformed(self.text, at, "a value is expected")
        return Node("scalar", at, found.end(), [])

    def container(self, start, depth):
        kind, close = ("object", "}") if self.text[start] == "{" else ("array", "]")
        items, at = [], self.skip(start + 1)
        while self.text[at : at + 1] != close:
            if items and not items[-1].comma:
                raise Malformed(self.text, at, f"a comma or {close} is expected")
            key, begin = None, at
            if kind == "object":
                key, at = self.key(at)
            node = self.value(at, depth + 1)
            at = self.skip(node.end)
            comma = at + 1 if self.text[at : at + 1] == "," else 0
            items.append(Item(key, begin, node, comma))
            at = self.skip(comma) if comma else at
        return Node(kind, start, at + 1, items)

    def key(self, at):
        found = _STRING.match(self.text, at)
        if not found:
            raise Malformed(self.text, at, "a name in double quotes is expected")
        colon = self.skip(found.end())
        if self.text[colon : colon + 1] != ":":
            raise Malformed(self.text, colon, "a colon is expected")
        return _loads(self.text, found.start(), found.end()), self.skip(colon + 1)


def _loads(text, start, end):
    try:
        return json.loads(text[start:end], strict=False)
    except ValueError as fault:
        raise Malformed(text, start, str(fault)) from fault


class Document:
    """A text and the verbs that change it. Paths are tuples of names and places in arrays."""

    def __init__(self, text):
        """Raises Malformed."""
        self.text = text
        self.eol = "\r\n" if "\r\n" in text else "\n"
        self.root = _Reader(text).whole()

    def value(self, *path):
        """As Python has it, or MISSING."""
        node = self.node(*path)
        return MISSING if node is None else self._python(node)

    def node(self, *path):
        found, node = None, self.root
        for step in path:
            found = self._item(node, step)
            node = found and found.node
        return node

    def raw(self, *path):
        """The very text of a value."""
        node = self.node(*path)
        return self.text[node.start : node.end]

    def put(self, path, value):
        """Replace the value, or add it, where what it lies in is there."""
        node = self.node(*path)
        if node is not None:
            self.replace(path, self._dumps(value, self._indent_at(node.start)))
        elif path:
            self._insert(self.node(*path[:-1]), path[-1], value)
        else:
            self._edit([(0, len(self.text), self._dumps(value, "") + self.eol)])

    def append(self, path, value):
        self._insert(self.node(*path), None, value)

    def replace(self, path, text):
        """Put a text in the place of a value."""
        node = self.node(*path)
        self._edit([(node.start, node.end, text)])

    def remove(self, path):
        """Take a member or an element out, with its line and the comment at the line's end."""
        inside = self.node(*path[:-1])
        item = self._item(inside, path[-1])
        nth = inside.items.index(item)
        before = inside.items[nth - 1] if nth else None
        last = nth == len(inside.items) - 1
        end = item.comma or item.node.end
        # What has no comma of its own leaves its neighbour's behind.
        bare = last and before and not item.comma
        edits = [(before.comma - 1, before.comma, "")] if bare else []
        rest = _REST.match(self.text, end).end()
        line = self.text.rfind("\n", 0, item.start)
        if self.text[line + 1 : item.start].strip() or line < 0:
            edits.append((*self._within_line(inside, item, before, end, last), ""))
        elif self.text[rest] not in "\r\n" and not last:
            edits.append((item.start, inside.items[nth + 1].start, ""))
        else:
            line -= self.text[line - 1 : line] == "\r"
            edits.append((line, rest if self.text[rest] in "\r\n" else end, ""))
        self._edit(edits)

    def _within_line(self, inside, item, before, end, last):
        if not last:
            return item.start, end + len(self.text[end:]) - len(self.text[end:].lstrip(" \t"))
        behind = before.comma if before else inside.start + 1
        return (behind if not self.text[behind : item.start].strip() else item.start), end

    def _item(self, node, step):
        if node is None or node.kind == "scalar":
            return None
        if isinstance(step, int):
            return node.items[step] if node.kind == "array" and step < len(node.items) else None
        # As in every reader, the last of several members of a name counts.
        return next((item for item in reversed(node.items) if item.key == step), None)

    def _python(self, node):
        if node.kind == "object":
            return {item.key: self._python(item.node) for item in node.items}
        if node.kind == "array":
            return [self._python(item.node) for item in node.items]
        return _loads(self.text, node.start, node.end)

    def _insert(self, inside, key, value):
        name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
        if not inside.items:
            return self._fill(inside, name, value)
        last = inside.items[-1]
        end = last.comma or last.node.end
        comma = "," if last.comma else ""
        edits = [] if last.comma else [(end, end, ",")]
        if self._starts_line(last.start):
            indent = self._indent_at(last.start)
            rest = _REST.match(self.text, end).end()
            at = rest if self.text[rest] in "\r\n" else end
            new = f"{self.eol}{indent}{name}{self._dumps(value, indent)}{comma}"
        else:
            at, new = end, f" {name}{json.dumps(value, ensure_ascii=False)}{comma}"
        return self._edit([*edits, (at, at, new)])

    def _fill(self, inside, name, value):
        """The first of an object or array."""
        close = self._indent_at(inside.start)
        indent = close + self._unit()
        new = f"{self.eol}{indent}{name}{self._dumps(value, indent)}"
        inner = self.text[inside.start + 1 : inside.end - 1]
        at = inside.start + 1 + (_REST.match(inner).end() if "\n" in inner else len(inner.rstrip()))
        if "\n" not in inner:
            self._edit([(at, inside.end - 1, f"{new}{self.eol}{close}")])
        else:
            at = at if self.text[at] in "\r\n" else inside.start + 1
            self._edit([(at, at, new)])

    def _dumps(self, value, indent):
        text = json.dumps(value, ensure_ascii=False, indent=self._unit())
        return text.replace("\n", f"{self.eol}{indent}")

    def _unit(self):
        """One step of this text's indentation."""
        if self.root and self.root.items and self._starts_line(self.root.items[0].start):
            return self._indent_at(self.root.items[0].start) or "  "
        return "  "

    def _starts_line(self, at):
        line = self.text.rfind("\n", 0, at)
        return line >= 0 and not self.text[line + 1 : at].strip()

    def _indent_at(self, at):
        line = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip())]

    def _edit(self, edits):
        text = self.text
        # Of two at one spot the first in the list comes first in the text.
        for start, end, new in sorted(edits, key=lambda edit: edit[0])[::-1]:
            text = text[:start] + new + text[end:]
        self.text = text
        self.root = _Reader(text).whole()
