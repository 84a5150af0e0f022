"""Embeddings of texts, each text once for each model that embedded it.

Revision: 0003
Revises: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "text_embeddings",
        sa.Column("encoder", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("dtype", sa.String(16), nullable=False),
        sa.Column("width", sa.Integer(), nullable=False),
        sa.Column("checksum", sa.String(64), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("encoder", "digest", name="pk_text_embeddings"),
    )
    if op.get_bind().dialect.name == "postgresql":  # embeddings cannot be compressed
        op.execute("ALTER TABLE text_embeddings ALTER COLUMN payload SET STORAGE EXTERNAL")


def downgrade() -> None:
    op.drop_table("text_embeddings")
