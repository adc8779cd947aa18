"""A store to measure over: units by a seed, put in through the models, and vectors of them."""

import random
from secrets import token_hex

import numpy as np
from sqlalchemy import insert

import auth
import config
import embeddings
from app import create_app
from bench import texts
from cq import unit as rules
from models import Actor, ApiKey, Event, Unit, UnitDomain, User, Vector, db, full_text, now
from models.base import VECTORS, write
from models.proposing import digest

PENDING = 1000
BATCH = 5000
# How far units of a topic lie from its middle: a cosine of some 0.7.
SPREAD = 1.0
CONFIDENCES = [0.2, 0.35, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.9]
DAY = 86400
SECRETS = {name: token_hex(32) for name in ("CQ_JWT_SECRET", "CQ_API_KEY_PEPPER")}


def fill(path, size):
    """Make a database of `size` approved units and some pending ones, without vectors.

    (ids of the approved, an API key, the token of a reviewer's session).
    """
    rng = random.Random(texts.SEED)
    with _app(path).app_context():
        ada = User.add("ada", auth.hash_password("bench"), "admin")
        db.session.commit()
        id, secret = auth.new_key()
        ApiKey.add(ada.id, "bench", [], "1d", 86400, id, secret[:8], auth.key_hash(secret))
        db.session.commit()
        by = Actor(ada.id, ada.username, ada.role, "key")
        change = write()
        approved = _add(rng, by, change, size, "approved", 1, 60 * DAY, DAY)
        _add(rng, by, change, PENDING, "pending", size + 1, DAY, 0)
        db.session.commit()
        key, token = auth.key_token(id, secret), auth.token_for(ada)
        db.engine.dispose()
    return approved, key, token


def embed(path, model, middles):
    """Give each unit a vector as if `model` had made it: near the middle of its topic."""
    rng = np.random.default_rng(texts.SEED)
    with _app(path).app_context():
        change = write(VECTORS)
        units = db.session.execute(db.select(Unit.pk, Unit.summary, Unit.detail)).all()
        for start in range(0, len(units), BATCH):
            some = units[start : start + BATCH]
            rows = _around(rng, middles[[unit.pk % texts.TOPICS for unit in some]])
            said = {"model": model, "part": 0, "dimension": middles.shape[1], "changed": change}
            made = [
                {
                    **said,
                    "unit_pk": unit.pk,
                    "content_hash": embeddings.digest(unit.summary, unit.detail),
                    "vector": embeddings.pack(row),
                }
                for unit, row in zip(some, rows, strict=True)
            ]
            db.session.execute(insert(Vector), made)
        db.session.commit()
        db.engine.dispose()


def _app(path):
    return create_app(config.from_env({**named(path), "CQ_EMBEDDER": "off"}))


def named(path):
    """The variables that name a database, which is a file or an address.

    Beside a file are its secrets; one that is elsewhere has them of this process.
    """
    if "://" not in str(path):
        return {"CQ_DB_PATH": str(path)}
    return {"CQ_DATABASE_URL": path, **SECRETS}


def _around(rng, middles):
    away = rng.standard_normal(middles.shape, np.float32)
    rows = middles + SPREAD * away / np.linalg.norm(away, axis=1, keepdims=True)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _add(rng, by, change, size, status, first, oldest, newest):
    """Ids of `size` units of a status, from row number `first` on, so many seconds old."""
    ids = []
    for start in range(first, first + size, BATCH):
        units, tags, words, events = [], [], {}, []
        for pk in range(start, min(start + BATCH, first + size)):
            ago = oldest - (oldest - newest) * (pk - first) / size
            unit = _unit(rng, by, change, pk, status, now(ago))
            units.append(unit)
            tags += [{"unit_pk": pk, "domain": domain} for domain in unit["domains"]]
            words[pk] = unit
            for type in ("proposed", status)[: 2 if status == "approved" else 1]:
                step = {"unit_pk": pk, "type": type, "by": by.name, "channel": "key"}
                events.append({**step, "at": unit["created_at"]})
        db.session.execute(insert(Unit), units)
        db.session.execute(insert(UnitDomain), tags)
        full_text.replace(words)
        db.session.execute(insert(Event), events)
        ids += [unit["id"] for unit in units]
    return ids


def _unit(rng, by, change, pk, status, time):
    """A row of `units`."""
    said = texts.proposal(rng, pk % texts.TOPICS)
    return {
        "pk": pk,
        "id": f"ku_{rng.getrandbits(128):032x}",
        "status": status,
        "tier": "public" if rng.random() < 0.2 else "private",
        "domains": said["domains"],
        **said["insight"],
        **said["context"],
        "confidence": rng.choice(CONFIDENCES) if status == "approved" else rules.START,
        "first_observed": time,
        "last_confirmed": time,
        "created_at": time,
        "created_by": by.name,
        "author_id": by.id,
        "reviewed_by": by.name if status == "approved" else None,
        "reviewed_at": time if status == "approved" else None,
        "content_hash": digest(**said, extensions=None),
        "changed": change,
    }
