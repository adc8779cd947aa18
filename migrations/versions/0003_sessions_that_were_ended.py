"""sessions that their people ended"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade():
    op.create_table(
        "ended_sessions",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("until", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
