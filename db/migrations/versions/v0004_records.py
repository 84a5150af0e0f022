"""What evaluations were computed from (records), and how stored outputs compare with recomputed ones (certificates).

Revision: 0004
Revises: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "evaluation_records",
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("record", sa.String(64), nullable=False),
        sa.Column("metrics", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["evaluation_id"],
            ["evaluations.id"],
            name="fk_evaluation_records_evaluation_id_evaluations",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("evaluation_id", "record", name="pk_evaluation_records"),
    )
    op.create_table(
        "certificates",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("flips", sa.Integer(), nullable=True),
        sa.Column("differing", sa.Integer(), nullable=False),
        sa.Column("largest_difference", sa.Double(), nullable=True),
        sa.Column("tolerance", sa.Double(), nullable=True),
        sa.Column("same_metrics", sa.Boolean(), nullable=True),
        sa.Column("because", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("environment", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["evaluation_id"],
            ["evaluations.id"],
            name="fk_certificates_evaluation_id_evaluations",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_certificates"),
    )
    op.create_index("ix_certificates_evaluation_id", "certificates", ["evaluation_id"])


def downgrade() -> None:
    op.drop_index("ix_certificates_evaluation_id", table_name="certificates")
    op.drop_table("certificates")
    op.drop_table("evaluation_records")
