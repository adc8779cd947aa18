"""A block at the end of a text, put there and cut out again so that the text is as it was."""

import re


def eol(text):
    return "\r\n" if "\r\n" in text else "\n"


def append(text, block):
    """Below a blank line. A text without a last line end gets a block without one."""
    end = eol(text)
    block = block.replace("\n", end)
    if not text:
        return block + end
    return f"{text}{end}{block}{end}" if text.endswith("\n") else f"{text}{end}{end}{block}"


def cut(text, start, stop):
    """Without the block text[start:stop], its line end, and the blank line above it."""
    before, after = text[:start], text[stop:]
    if not after:
        above = re.search(r"\r?\n\r?\n\Z", before)
        return before[: above.start()] if above else before
    above = re.search(r"\n(\r?\n)\Z", before)
    before = before[: above.start(1)] if above else before
    return before + re.sub(r"\A\r?\n", "", after)
