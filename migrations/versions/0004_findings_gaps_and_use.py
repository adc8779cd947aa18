"""what the safety check found, what agents ask for, and what they are served"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade():
    op.add_column("units", sa.Column("findings", sa.Text(), nullable=True))
    op.create_table(
        "queries",
        sa.Column("day", sa.String(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("asked", sa.Integer(), nullable=False),
        sa.Column("missed", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("day", "tags"),
    )
    op.create_table(
        "uses",
        sa.Column("unit_pk", sa.Integer(), nullable=False),
        sa.Column("served", sa.Integer(), nullable=False),
        sa.Column("last", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["unit_pk"], ["units.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("unit_pk"),
    )
    with op.batch_alter_table("uses", schema=None) as batch_op:
        batch_op.create_index("ix_uses_served", ["served", "unit_pk"], unique=False)
