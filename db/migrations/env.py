"""How Alembic runs the migrations: on the connection, and in the transaction, that it is given."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
