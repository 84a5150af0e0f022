"""One table for values that are found by content, such as embeddings of texts; text_embeddings moves into it.

Revision: 0005
Revises: 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "item_values",
        sa.Column("node", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("dtype", sa.String(16), nullable=False),
        sa.Column("shape", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("checksum", sa.String(64), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("node", "digest", name="pk_item_values"),
    )
    postgres = op.get_bind().dialect.name == "postgresql"
    if postgres:  # embeddings cannot be compressed
        op.execute("ALTER TABLE item_values ALTER COLUMN payload SET STORAGE EXTERNAL")
    shape = "('[' || width || ']')::json" if postgres else "'[' || width || ']'"
    op.execute(
        "INSERT INTO item_values (node, digest, dtype, shape, checksum, payload)"
        f" SELECT encoder, digest, dtype, {shape}, checksum, payload FROM text_embeddings"
    )
    op.drop_table("text_embeddings")


def downgrade() -> None:
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
    width = "(shape ->> 0)::integer" if op.get_bind().dialect.name == "postgresql" else "json_extract(shape, '$[0]')"
    op.execute(
        "INSERT INTO text_embeddings (encoder, digest, dtype, width, checksum, payload)"
        f" SELECT node, digest, dtype, {width}, checksum, payload FROM item_values"
    )
    op.drop_table("item_values")
