"""Reviewers and contributors, and the API keys of their agents. Hashing stands in `auth`."""

from datetime import UTC, datetime, timedelta
from secrets import randbits
from typing import NamedTuple

from sqlalchemy import ForeignKey, Index, delete, exists, func, select, update
from sqlalchemy.orm import Mapped, mapped_column

from cq.unit import ROLES
from errors import Conflict, NotFound, Unauthorized
from models.base import PEOPLE, Json, db, iso, now, offset, turn, write

KEYS = 20
LISTED = 200
# Seconds for which the end of a session is remembered after its time.
KEPT_ENDED = 30 * 86400


class Actor(NamedTuple):
    """Who acts, and through what: `page`, `token`, `key` or `command`."""

    id: int
    name: str
    role: str
    channel: str

    def may(self, role):
        """Whether this role or a higher one is held."""
        return ROLES.index(self.role) <= ROLES.index(role)

    def check(self):
        """See `User.check`."""
        User.check(self.id)


class User(db.Model):
    __tablename__ = "users"
    __table_args__ = {"sqlite_autoincrement": True}

    id: Mapped[int] = mapped_column(primary_key=True)
    username: Mapped[str] = mapped_column(unique=True)
    password_hash: Mapped[str]
    role: Mapped[str]
    session_version: Mapped[int] = mapped_column(default=0)
    disabled_at: Mapped[str | None]
    created_at: Mapped[str]

    @classmethod
    def named(cls, username):
        return db.session.scalar(select(cls).where(cls.username == username))

    @classmethod
    def of_session(cls, username, version, session_id):
        """Whom a token stands for: None once the account or the session has ended."""
        ended = exists().where(EndedSession.id == session_id)
        holds = (cls.disabled_at.is_(None), cls.session_version == version, ~ended)
        return db.session.scalar(select(cls).where(cls.username == username, *holds))

    @classmethod
    def find(cls, username):
        user = cls.named(username)
        if user is None:
            raise NotFound("User not found")
        return user

    @classmethod
    def add(cls, username, password_hash, role):
        """A new account; the first of all is admin whatever was asked, or nobody could be made.

        Its session version starts at random, so that no token of a deleted namesake fits.
        """
        write(PEOPLE)
        if cls.named(username):
            raise Conflict("This username is taken")
        first = not db.session.scalar(select(exists().select_from(cls)))
        user = cls(
            username=username,
            password_hash=password_hash,
            role="admin" if first else role,
            session_version=randbits(31),
            created_at=now(),
        )
        db.session.add(user)
        return user

    @classmethod
    def change(cls, username, role=None, disabled=None, password_hash=None):
        """New role, state or password; each ends sessions. The last admin stays one."""
        write(PEOPLE)
        values = {"session_version": cls.session_version + 1}
        if role is not None:
            values["role"] = role
        if disabled is not None:
            values["disabled_at"] = now() if disabled else None
        if password_hash is not None:
            values["password_hash"] = password_hash
        keeps = cls.username == username
        if disabled or role not in (None, "admin"):
            keeps = keeps & cls._not_last_admin()
        done = db.session.execute(update(cls).where(keeps).values(**values))
        user = cls.find(username)
        if not done.rowcount:
            raise Conflict("The last admin stays an admin; make another one first")
        db.session.refresh(user)
        return user

    @classmethod
    def check(cls, user_id):
        """Once it is somebody's turn to write: are they still there to write it down for?

        Raises Unauthorized.
        """
        there = exists().where(cls.id == user_id, cls.disabled_at.is_(None))
        if not db.session.scalar(select(there)):
            raise Unauthorized("This account is gone or disabled")

    @classmethod
    def remove(cls, username):
        """Delete the account and its keys; what it proposed, decided and voted stays."""
        write(PEOPLE)
        gone = db.session.execute(
            delete(cls).where(cls.username == username, cls._not_last_admin())
        )
        if not gone.rowcount:
            cls.find(username)
            raise Conflict("The last admin cannot be deleted; make another one first")

    @classmethod
    def _not_last_admin(cls):
        other = cls.__table__.alias()
        return (cls.role != "admin") | exists().where(
            other.c.role == "admin", other.c.disabled_at.is_(None), other.c.id != cls.id
        ).correlate(cls.__table__)

    @classmethod
    def page(cls, limit, offset):
        rows = db.session.scalars(select(cls).order_by(cls.username).limit(limit).offset(offset))
        return rows.all()

    def wire(self):
        return {
            "username": self.username,
            "role": self.role,
            "disabled": self.disabled_at is not None,
            "created_at": offset(self.created_at),
        }


class EndedSession(db.Model):
    """A session that its person ended before its time: its token's `jti`, until it ends anyway."""

    __tablename__ = "ended_sessions"

    id: Mapped[str] = mapped_column(primary_key=True)
    until: Mapped[str]

    @classmethod
    def end(cls, session_id, until):
        """`until` is a datetime. Lets go of those that have long ended by themselves: a clock that
        went ahead and is set right must not let an ended session in again.
        """
        write(PEOPLE)
        db.session.execute(delete(cls).where(cls.until < now(KEPT_ENDED)))
        db.session.merge(cls(id=session_id, until=iso(until)))


class ApiKey(db.Model):
    __tablename__ = "api_keys"
    __table_args__ = (Index("ix_api_keys_user", "user_id", "created_at"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    name: Mapped[str]
    labels: Mapped[list] = mapped_column(Json)
    key_prefix: Mapped[str]
    key_hash: Mapped[str] = mapped_column(unique=True)
    ttl: Mapped[str]
    expires_at: Mapped[str]
    created_at: Mapped[str]
    last_used_at: Mapped[str | None]
    revoked_at: Mapped[str | None]

    @classmethod
    def add(cls, user_id, name, labels, ttl, duration, id, prefix, key_hash):
        """A key valid for `duration` seconds; 20 active ones stay 20 whoever asks at once."""
        write(PEOPLE)
        User.check(user_id)
        born = datetime.now(UTC)
        active = db.session.scalar(
            select(func.count())
            .select_from(cls)
            .where(cls.user_id == user_id, cls.revoked_at.is_(None), cls.expires_at > iso(born))
        )
        if active >= KEYS:
            raise Conflict(f"Maximum of {KEYS} active API keys per user")
        key = cls(
            id=id,
            user_id=user_id,
            name=name,
            labels=labels,
            ttl=ttl,
            key_prefix=prefix,
            key_hash=key_hash,
            created_at=iso(born),
            expires_at=iso(born + timedelta(seconds=duration)),
        )
        db.session.add(key)
        return key

    @classmethod
    def of(cls, user_id):
        """Keys of a person, newest first: all that are active, and the latest 200."""
        mine = cls.user_id == user_id
        newest = (cls.created_at.desc(), cls.id)
        latest = select(cls.id).where(mine).order_by(*newest).limit(LISTED).scalar_subquery()
        active = cls.revoked_at.is_(None) & (cls.expires_at > now())
        return db.session.scalars(
            select(cls).where(mine, active | cls.id.in_(latest)).order_by(*newest)
        ).all()

    @classmethod
    def revoke(cls, user_id, key_id):
        """Twice is as good as once: the first time is kept."""
        write(PEOPLE)
        mine = (cls.id == key_id, cls.user_id == user_id)
        db.session.execute(
            update(cls).where(*mine, cls.revoked_at.is_(None)).values(revoked_at=now())
        )
        if not db.session.scalar(select(exists().where(*mine))):
            raise NotFound("API key not found")

    @classmethod
    def owner(cls, key_id):
        """(key_hash, expires_at, id, username, role) of an unrevoked key and its owner, or None."""
        return db.session.execute(
            select(cls.key_hash, cls.expires_at, User.id, User.username, User.role)
            .join(User, User.id == cls.user_id)
            .where(cls.id == key_id, cls.revoked_at.is_(None), User.disabled_at.is_(None))
        ).first()

    @classmethod
    def touch(cls, key_id):
        """Note the time of use, which no memory follows."""
        turn(0.05)
        db.session.execute(update(cls).where(cls.id == key_id).values(last_used_at=now()))

    def wire(self):
        """U's names, and those that its command line reads beside them."""
        expired = self.expires_at <= now()
        return {
            "id": self.id,
            "name": self.name,
            "labels": self.labels,
            "prefix": self.key_prefix,
            "key_prefix": self.key_prefix,
            "ttl": self.ttl,
            "expires_at": offset(self.expires_at),
            "created_at": offset(self.created_at),
            "last_used_at": offset(self.last_used_at),
            "revoked_at": offset(self.revoked_at),
            "is_expired": expired,
            "is_active": self.revoked_at is None and not expired,
        }
