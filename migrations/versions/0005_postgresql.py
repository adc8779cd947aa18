"""the ways of PostgreSQL: full text by tsvector, and text that sorts by its bytes"""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade():
    if op.get_bind().dialect.name == "postgresql":
        full_text()
        bytewise()


def full_text():
    """A table with the stems of each unit's words, and the dictionary that makes stems."""
    op.execute("CREATE TEXT SEARCH DICTIONARY cq_stem (TEMPLATE = snowball, Language = porter)")
    op.execute(
        "CREATE TABLE units_fts (unit_pk integer PRIMARY KEY REFERENCES units ON DELETE CASCADE,"
        " words tsvector NOT NULL, length integer NOT NULL)"
    )
    # What waits to be put in would have to be read by each search.
    op.execute(
        "CREATE INDEX units_fts_words ON units_fts USING gin (words) WITH (fastupdate = off)"
    )


def bytewise():
    """As SQLite does: tags, ids and times stand in one order on every machine."""
    columns = op.get_bind().exec_driver_sql(
        "SELECT table_name, column_name, data_type FROM information_schema.columns"
        " WHERE table_schema = current_schema() AND data_type IN ('character varying', 'text')"
        " AND table_name <> 'alembic_version'"
    )
    for table, column, kind in columns.all():
        op.execute(f'ALTER TABLE "{table}" ALTER COLUMN "{column}" TYPE {kind} COLLATE "C"')
