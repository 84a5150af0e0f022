"""Claims: values that others published, with the files that they are from.

Revision: 3
Revises: 2
"""

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "claim_sources",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("repository", sa.String(length=256), nullable=False),
        sa.Column("revision", sa.String(length=64), nullable=False),
        sa.Column("path", sa.String(length=1024), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("licence", sa.String(length=64), nullable=False),
        sa.Column("date", sa.String(length=32), nullable=False),
        sa.Column("form", sa.String(length=512), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("left_out", sa.JSON(), nullable=True),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_claim_sources"),
        sa.UniqueConstraint("fingerprint", name="uq_claim_sources_fingerprint"),
    )
    op.create_table(
        "claims",
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("model", sa.String(length=512), nullable=False),
        sa.Column("eval_setting", sa.String(length=512), nullable=False),
        sa.Column("metric", sa.String(length=256), nullable=False),
        sa.Column("slice", sa.String(length=256), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("unit", sa.String(length=32), nullable=False),
        sa.Column("published", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=True),
        sa.Column("protocol", sa.JSON(), nullable=True),
        sa.Column("file_row", sa.String(length=128), nullable=False),
        sa.Column("file_column", sa.String(length=256), nullable=False),
        sa.Column("why", sa.String(length=256), nullable=True),
        sa.ForeignKeyConstraint(
            ["source_id"], ["claim_sources.id"], name="fk_claims_source_id_claim_sources", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("source_id", "position", name="pk_claims"),
    )
    op.create_index("ix_claims_model", "claims", ["model"], unique=False)
    op.create_index("ix_claims_eval_setting", "claims", ["eval_setting"], unique=False)
