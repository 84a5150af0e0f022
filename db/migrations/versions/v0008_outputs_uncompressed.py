"""Postgres stores outputs as they are: it would try in vain to compress floats, which takes half of the time.

Revision: 0008
Revises: 0007
"""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE output_chunks ALTER COLUMN payload SET STORAGE EXTERNAL")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE output_chunks ALTER COLUMN payload SET STORAGE EXTENDED")
