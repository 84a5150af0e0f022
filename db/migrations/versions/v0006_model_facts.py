"""How many parameters a model has, for tables and figures.

Revision: 0006
Revises: 0005
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("models", sa.Column("parameters", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("models", "parameters")
