"""the first schema"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade():
    op.create_table(
        "changes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("username", sa.String(), nullable=False),
        sa.Column("password_hash", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("session_version", sa.Integer(), nullable=False),
        sa.Column("disabled_at", sa.String(), nullable=True),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("username"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("labels", sa.Text(), nullable=False),
        sa.Column("key_prefix", sa.String(), nullable=False),
        sa.Column("key_hash", sa.String(), nullable=False),
        sa.Column("ttl", sa.String(), nullable=False),
        sa.Column("expires_at", sa.String(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.Column("last_used_at", sa.String(), nullable=True),
        sa.Column("revoked_at", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("key_hash"),
    )
    with op.batch_alter_table("api_keys", schema=None) as batch_op:
        batch_op.create_index("ix_api_keys_user", ["user_id", "created_at"], unique=False)

    op.create_table(
        "units",
        sa.Column("pk", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("tier", sa.String(), nullable=False),
        sa.Column("domains", sa.Text(), nullable=False),
        sa.Column("summary", sa.String(), nullable=False),
        sa.Column("detail", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("languages", sa.Text(), nullable=False),
        sa.Column("frameworks", sa.Text(), nullable=False),
        sa.Column("pattern", sa.String(), nullable=False),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("confirmations", sa.Integer(), nullable=False),
        sa.Column("first_observed", sa.String(), nullable=False),
        sa.Column("last_confirmed", sa.String(), nullable=False),
        sa.Column("extensions", sa.Text(), nullable=True),
        sa.Column("superseded_by", sa.String(), nullable=True),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("author_id", sa.Integer(), nullable=True),
        sa.Column("reviewed_by", sa.String(), nullable=True),
        sa.Column("reviewed_at", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("open_flags", sa.Integer(), nullable=False),
        sa.Column("idempotency_key", sa.String(), nullable=True),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("changed", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["author_id"], ["users.id"], ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("pk"),
        sa.UniqueConstraint("id"),
    )
    with op.batch_alter_table("units", schema=None) as batch_op:
        batch_op.create_index("ix_units_author", ["author_id", "created_at", "id"], unique=False)
        batch_op.create_index("ix_units_changed", ["changed"], unique=False)
        batch_op.create_index("ix_units_confidence", ["status", "confidence"], unique=False)
        batch_op.create_index(
            "ix_units_disputed",
            ["created_at", "id"],
            unique=False,
            sqlite_where=sa.text("open_flags > 0"),
            postgresql_where=sa.text("open_flags > 0"),
        )
        batch_op.create_index("ix_units_idempotency", ["author_id", "idempotency_key"], unique=True)
        batch_op.create_index("ix_units_newest", ["created_at", "id"], unique=False)
        batch_op.create_index("ix_units_queue", ["status", "created_at", "id"], unique=False)
        batch_op.create_index(
            "ix_units_repeat", ["author_id", "content_hash", "created_at"], unique=False
        )
        batch_op.create_index("ix_units_reviewed", ["status", "reviewed_at"], unique=False)

    op.create_table(
        "events",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("unit_pk", sa.Integer(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("by", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("at", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("self_reviewed", sa.Boolean(), nullable=False),
        sa.Column("details", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["unit_pk"], ["units.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("events", schema=None) as batch_op:
        batch_op.create_index("ix_events_unit", ["unit_pk", "id"], unique=False)

    op.create_table(
        "flags",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("unit_pk", sa.Integer(), nullable=False),
        sa.Column("by", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("detail", sa.String(), nullable=True),
        sa.Column("duplicate_of", sa.String(), nullable=True),
        sa.Column("at", sa.String(), nullable=False),
        sa.Column("answered_by", sa.String(), nullable=True),
        sa.Column("answered_at", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["unit_pk"], ["units.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("flags", schema=None) as batch_op:
        batch_op.create_index("ix_flags_unit", ["unit_pk", "id"], unique=False)

    op.create_table(
        "revisions",
        sa.Column("unit_pk", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("by", sa.String(), nullable=False),
        sa.Column("at", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["unit_pk"], ["units.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("unit_pk", "number"),
    )
    op.create_table(
        "unit_domains",
        sa.Column("unit_pk", sa.Integer(), nullable=False),
        sa.Column("domain", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["unit_pk"], ["units.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("unit_pk", "domain"),
    )
    with op.batch_alter_table("unit_domains", schema=None) as batch_op:
        batch_op.create_index("ix_unit_domains_domain", ["domain", "unit_pk"], unique=False)

    op.create_table(
        "votes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("unit_pk", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("at", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["unit_pk"], ["units.pk"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("votes", schema=None) as batch_op:
        batch_op.create_index("ix_votes_unit", ["unit_pk", "user_id", "kind", "at"], unique=False)
        batch_op.create_index("ix_votes_user", ["user_id"], unique=False)

    op.bulk_insert(
        sa.table("changes", sa.column("id", sa.Integer), sa.column("number", sa.Integer)),
        [{"id": id, "number": 0} for id in (1, 2)],
    )
    if op.get_bind().dialect.name == "sqlite":
        full_text()


def full_text():
    """An FTS5 table with the words of each unit, folded, under its row number."""
    op.execute(
        "CREATE VIRTUAL TABLE units_fts USING fts5(summary, detail, action, domains,"
        " tokenize='porter unicode61 remove_diacritics 2')"
    )
