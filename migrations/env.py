"""How Alembic reaches the app's database. It leaves logging alone: the server has set it up."""

from alembic import context

from migrations.env_options import ours
from models import db

with db.engine.connect() as connection:
    if connection.dialect.name == "postgresql":
        # A change of a large table takes its time.
        connection.exec_driver_sql("SET statement_timeout = 0")
        connection.commit()
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
