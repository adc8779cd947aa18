"""A store to measure over: units by a seed, put in through the models."""

import random
from itertools import product

from sqlalchemy import insert

import auth
import config
from app import create_app
from cq import unit as rules
from models import Actor, ApiKey, Event, Unit, UnitDomain, User, db, now
from models.base import write
from models.proposing import digest

SEED = 1
PENDING = 1000
BATCH = 5000
# Zipf: the commonest tag stands on more than half of the units, the rarest on two of a hundred.
TAGS = [f"tag{number:02}" for number in range(1, 41)]
WEIGHTS = [1 / number for number in range(1, 41)]
STEMS = ["lock", "cache", "token", "index", "thread", "socket", "proxy", "build", "deploy", "key"]
STEMS += ["region", "bucket", "quota", "parse", "encode", "schema", "header", "queue", "log"]
WORDS = [
    "".join(parts)
    for parts in product(("", "re", "pre", "un", "over"), STEMS, ("", "s", "er", "ing"))
]
CONFIDENCES = [0.2, 0.35, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.9]
DAY = 86400


def fill(path, size):
    """Make a database of `size` approved units and some pending ones.

    (ids of the approved, an API key, the token of a reviewer's session).
    """
    rng = random.Random(SEED)
    app = create_app(config.from_env({"CQ_DB_PATH": str(path)}))
    with app.app_context():
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


def _add(rng, by, change, size, status, first, oldest, newest):
    """Ids of `size` units of a status, from row number `first` on, so many seconds old."""
    ids = []
    for start in range(first, first + size, BATCH):
        units, tags, events = [], [], []
        for pk in range(start, min(start + BATCH, first + size)):
            ago = oldest - (oldest - newest) * (pk - first) / size
            unit = _unit(rng, by, change, pk, status, now(ago))
            units.append(unit)
            tags += [{"unit_pk": pk, "domain": domain} for domain in unit["domains"]]
            for type in ("proposed", status)[: 2 if status == "approved" else 1]:
                step = {"unit_pk": pk, "type": type, "by": by.name, "channel": "key"}
                events.append({**step, "at": unit["created_at"]})
        db.session.execute(insert(Unit), units)
        db.session.execute(insert(UnitDomain), tags)
        db.session.execute(insert(Event), events)
        ids += [unit["id"] for unit in units]
    return ids


def _unit(rng, by, change, pk, status, time):
    """A row of `units`."""
    said = words(rng)
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


def words(rng):
    """What a proposal says: some 85 words, three tags."""
    texts = {"summary": 10, "detail": 60, "action": 15}
    return {
        "domains": draw(rng, 3),
        "insight": {name: " ".join(rng.choices(WORDS, k=size)) for name, size in texts.items()},
        "context": {"languages": ["python"], "frameworks": [], "pattern": ""},
    }


def draw(rng, size):
    """Different tags, by their weights."""
    tags = []
    while len(tags) < size:
        tag = rng.choices(TAGS, WEIGHTS)[0]
        if tag not in tags:
            tags.append(tag)
    return tags
