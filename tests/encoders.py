"""Encoders that fail as they are told: while they are loaded, at questions, at units, or at all."""

import threading

import numpy as np

from embeddings.encoders import Hashed

# Stands in the detail of every unit of these tests, so that an encoder knows units from questions.
TOLD = "As it was told at the time."
# What no answer to anybody may repeat.
UNSAID = "/srv/private/model-of-hunter2"


class Panic(BaseException):
    """What native code raises: no Exception."""


class Held(Hashed):
    """Good until `fault` is set: (self, texts, rows) gives the rows to answer with, or raises.

    `load` stands where a server asks for its encoder; `loading` is called by it, with self. Who
    passes by `hangs` is held up by `gate` until it is opened. `read` is all that was encoded.
    """

    def __init__(self, fault=None, loading=None, model="hashed"):
        self.fault, self.loading, self.model = fault, loading, model
        self.gate = threading.Event()
        self.read = []

    def load(self, _):
        if self.loading:
            self.loading(self)
        return self

    def encode(self, texts):
        self.read += texts
        rows = super().encode(texts)
        return self.fault(self, texts, rows) if self.fault else rows

    def recover(self):
        self.fault = None
        self.gate.set()


def raises(fault):
    """Raises this, loading or encoding."""

    def fail(*_):
        raise fault

    return fail


def answers(make):
    """Answers with what is made of the right rows."""
    return lambda held, texts, rows: make(rows)


def hangs(held, texts=(), rows=None):
    """Waits until the gate is opened, loading or encoding."""
    held.gate.wait()
    return rows


def slow(held, texts, rows):
    """Takes a while."""
    held.gate.wait(0.02)
    return rows


def at_units(fault):
    """Fails where a unit is among the texts, and only there."""
    return lambda held, texts, rows: fault(held, texts, rows) if _units(texts) else rows


def at_questions(fault):
    """Fails where no unit is among the texts."""
    return lambda held, texts, rows: rows if _units(texts) else fault(held, texts, rows)


def _units(texts):
    return any(TOLD in text for text in texts)


def at_word(word, fault):
    """Fails where a text has this word."""
    return lambda held, texts, rows: (
        fault(held, texts, rows) if any(word in text for text in texts) else rows
    )


def spoilt(value):
    """Answers with this for the last number of the last row."""

    def spoil(rows):
        rows[-1, -1] = value
        return rows

    return answers(spoil)


def blank(rows):
    rows[0] = 0
    return rows


def changed(value):
    """SQL: five of the stored vectors are this."""
    return f"UPDATE vectors SET vector = {value} WHERE unit_pk <= 5"


def filled(value):
    """SQL: a vector of this number only."""
    return f"x'{np.full(Held.dimension, value, '<f4').tobytes().hex()}'"
