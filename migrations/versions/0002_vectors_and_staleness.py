"""the vectors of units, and when units were last confirmed"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade():
    op.create_table(
        "vectors",
        sa.Column("unit_pk", sa.Integer(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("changed", sa.Integer(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["unit_pk"], ["units.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("unit_pk", "model", "part"),
    )
    with op.batch_alter_table("vectors", schema=None) as batch_op:
        batch_op.create_index("ix_vectors_changed", ["model", "changed"], unique=False)
    with op.batch_alter_table("units", schema=None) as batch_op:
        batch_op.create_index("ix_units_confirmed", ["status", "last_confirmed"], unique=False)
    op.bulk_insert(
        sa.table("changes", sa.column("id", sa.Integer), sa.column("number", sa.Integer)),
        [{"id": 3, "number": 0}],
    )
