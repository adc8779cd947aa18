"""How Alembic reaches the app's database. It leaves logging alone: the server has set it up."""

from alembic import context

from models import db

FULL_TEXT = "units_fts"


def ours(object, name, type, reflected, compare_to):
    """The tables of full-text search belong to SQLite; migrations make them, models do not."""
    return not (type == "table" and name.startswith(FULL_TEXT))


with db.engine.connect() as connection:
    context.configure(
        connection=connection,
        target_metadata=db.metadata,
        include_object=ours,
        render_as_batch=True,
        compare_type=True,
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()
