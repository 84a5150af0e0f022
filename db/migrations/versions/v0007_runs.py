"""Runs, and what each of them is computing.

Revision: 0007
Revises: 0006
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("place", sa.String(64), nullable=False),
        sa.Column("process", sa.Integer(), nullable=False),
        sa.Column("process_start", sa.String(64), nullable=False),
        sa.Column("command", sa.Text(), nullable=False),
        sa.Column("started_at", sa.DateTime(), nullable=False),
        sa.Column("beat_at", sa.DateTime(), nullable=False),
        sa.Column("ended_at", sa.DateTime(), nullable=True),
        sa.Column("outcome", sa.String(16), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
    )
    op.create_table(
        "leases",
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("stop", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("evaluation_id", "start", name="pk_leases"),
        sa.ForeignKeyConstraint(
            ["evaluation_id"], ["evaluations.id"], name="fk_leases_evaluation_id_evaluations", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_leases_run_id_runs", ondelete="CASCADE"),
    )
    op.create_index("ix_leases_run_id", "leases", ["run_id"])
    op.create_table(
        "item_leases",
        sa.Column("node", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("node", "digest", name="pk_item_leases"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_item_leases_run_id_runs", ondelete="CASCADE"),
    )
    op.create_index("ix_item_leases_run_id", "item_leases", ["run_id"])
    op.add_column("evaluations", sa.Column("run_id", sa.Integer(), nullable=True))
    op.create_index("ix_evaluations_run_id", "evaluations", ["run_id"])


def downgrade() -> None:
    op.drop_index("ix_evaluations_run_id", "evaluations")
    op.drop_column("evaluations", "run_id")
    op.drop_table("item_leases")
    op.drop_table("leases")
    op.drop_table("runs")
