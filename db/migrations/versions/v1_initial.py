"""The schema of the first release.

Revision: 1
Revises: nothing
"""

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None
branch_labels = None
depends_on = None

# Of a cell's own evaluations and of its imported ones each, the one that no other one goes before.
RESULTS_VIEW = """
CREATE VIEW results AS
SELECT models.name AS model, eval_settings.name AS eval_setting, metrics.name AS metric, metrics.slice AS slice,
       metrics.value AS value, metrics.n AS n, metrics.stderr AS stderr, metrics.unit AS unit,
       metrics.scorer AS scorer, counting.origin AS origin, models.model_type AS model_type, counting.dtype AS dtype,
       counting.sample_limit AS sample_limit, counting.random_weights AS random_weights,
       counting.id AS evaluation_id, counting.completed_at AS completed_at,
       metrics.published AS published, metrics.better AS better, metrics.lowest AS lowest, metrics.highest AS highest,
       metrics.headline AS headline, metrics.zero_one AS zero_one
FROM evaluations AS counting
JOIN models ON models.id = counting.model_id AND models.hidden_at IS NULL
JOIN eval_settings ON eval_settings.id = counting.eval_setting_id AND eval_settings.hidden_at IS NULL
JOIN metrics ON metrics.evaluation_id = counting.id
WHERE counting.status = 'complete' AND counting.hidden_at IS NULL AND NOT EXISTS (
    SELECT 1
    FROM evaluations AS other
    WHERE other.model_id = counting.model_id AND other.eval_setting_id = counting.eval_setting_id
        AND other.status = 'complete' AND other.hidden_at IS NULL
        AND CASE WHEN other.origin = 'imported' THEN 1 ELSE 0 END
            = CASE WHEN counting.origin = 'imported' THEN 1 ELSE 0 END
        AND (
            CASE WHEN other.random_weights THEN 0 ELSE 1 END,
            CASE WHEN other.sample_limit IS NULL THEN 1 ELSE 0 END,
            other.current_at,
            other.id
        ) > (
            CASE WHEN counting.random_weights THEN 0 ELSE 1 END,
            CASE WHEN counting.sample_limit IS NULL THEN 1 ELSE 0 END,
            counting.current_at,
            counting.id
        )
)
"""


def upgrade() -> None:
    op.create_table(
        "artifacts",
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("spec", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("dtype", sa.String(length=16), nullable=False),
        sa.Column("shape", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("checksum", sa.String(length=64), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", name="pk_artifacts"),
    )
    op.create_table(
        "datasets",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=512), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("class_names", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_datasets"),
        sa.UniqueConstraint("fingerprint", name="uq_datasets_fingerprint"),
    )
    op.create_table(
        "definitions",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("content", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_definitions"),
    )
    op.create_table(
        "eval_settings",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=512), nullable=False),
        sa.Column("parent", sa.String(length=512), nullable=True),
        sa.Column("task", sa.String(length=64), nullable=True),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("hidden_at", sa.DateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_eval_settings"),
        sa.UniqueConstraint("name", name="uq_eval_settings_name"),
    )
    op.create_table(
        "item_values",
        sa.Column("node", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("dtype", sa.String(length=16), nullable=False),
        sa.Column("shape", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("checksum", sa.String(length=64), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("node", "digest", name="pk_item_values"),
    )
    op.create_table(
        "models",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=512), nullable=False),
        sa.Column("model_type", sa.String(length=128), nullable=True),
        sa.Column("parameters", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("hidden_at", sa.DateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_models"),
        sa.UniqueConstraint("name", name="uq_models_name"),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("place", sa.String(length=64), nullable=False),
        sa.Column("process", sa.Integer(), nullable=False),
        sa.Column("process_start", sa.String(length=64), nullable=False),
        sa.Column("command", sa.Text(), nullable=False),
        sa.Column("started_at", sa.DateTime(), nullable=False),
        sa.Column("beat_at", sa.DateTime(), nullable=False),
        sa.Column("ended_at", sa.DateTime(), nullable=True),
        sa.Column("outcome", sa.String(length=16), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
    )
    op.create_table(
        "evaluations",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("model_id", sa.Integer(), nullable=False),
        sa.Column("eval_setting_id", sa.Integer(), nullable=False),
        sa.Column("dataset_id", sa.Integer(), nullable=True),
        sa.Column("derived_from_id", sa.Integer(), nullable=True),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("forward_fingerprint", sa.String(length=64), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("origin", sa.String(length=16), nullable=False),
        sa.Column("size", sa.Integer(), nullable=True),
        sa.Column("sample_limit", sa.Integer(), nullable=True),
        sa.Column("run_id", sa.Integer(), nullable=True),
        sa.Column("dtype", sa.String(length=16), nullable=True),
        sa.Column("random_weights", sa.Boolean(), nullable=False),
        sa.Column("identity", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("environment", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("updated_at", sa.DateTime(), nullable=False),
        sa.Column("completed_at", sa.DateTime(), nullable=True),
        sa.Column("current_at", sa.DateTime(), nullable=True),
        sa.Column("hidden_at", sa.DateTime(), nullable=True),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name="fk_evaluations_dataset_id_datasets"),
        sa.ForeignKeyConstraint(
            ["derived_from_id"], ["evaluations.id"], name="fk_evaluations_derived_from_id_evaluations"
        ),
        sa.ForeignKeyConstraint(
            ["eval_setting_id"],
            ["eval_settings.id"],
            name="fk_evaluations_eval_setting_id_eval_settings",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name="fk_evaluations_model_id_models", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_evaluations"),
    )
    op.create_index("ix_evaluations_dataset_id", "evaluations", ["dataset_id"], unique=False)
    op.create_index("ix_evaluations_derived_from_id", "evaluations", ["derived_from_id"], unique=False)
    op.create_index("ix_evaluations_eval_setting_id", "evaluations", ["eval_setting_id"], unique=False)
    op.create_index("ix_evaluations_forward_fingerprint", "evaluations", ["forward_fingerprint"], unique=False)
    op.create_index("ix_evaluations_run_id", "evaluations", ["run_id"], unique=False)
    op.create_index(
        "uq_evaluations_visible_cell",
        "evaluations",
        ["model_id", "eval_setting_id", "fingerprint"],
        unique=True,
        sqlite_where=sa.text("hidden_at IS NULL"),
        postgresql_where=sa.text("hidden_at IS NULL"),
    )
    op.create_table(
        "item_leases",
        sa.Column("node", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_item_leases_run_id_runs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("node", "digest", name="pk_item_leases"),
    )
    op.create_index("ix_item_leases_run_id", "item_leases", ["run_id"], unique=False)
    op.create_table(
        "samples",
        sa.Column("dataset_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("sample_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("target", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("group_name", sa.Text(), nullable=True),
        sa.Column("slices", sa.JSON(none_as_null=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name="fk_samples_dataset_id_datasets", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("dataset_id", "position", name="pk_samples"),
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
            ["evaluation_id"], ["evaluations.id"], name="fk_certificates_evaluation_id_evaluations", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_certificates"),
    )
    op.create_index("ix_certificates_evaluation_id", "certificates", ["evaluation_id"], unique=False)
    op.create_table(
        "evaluation_records",
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("record", sa.String(length=64), nullable=False),
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
        "leases",
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("stop", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["evaluation_id"], ["evaluations.id"], name="fk_leases_evaluation_id_evaluations", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_leases_run_id_runs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("evaluation_id", "start", name="pk_leases"),
    )
    op.create_index("ix_leases_run_id", "leases", ["run_id"], unique=False)
    op.create_table(
        "metrics",
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("scorer", sa.String(length=128), nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("slice", sa.String(length=256), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("unit", sa.String(length=32), nullable=False),
        sa.Column("n", sa.Integer(), nullable=True),
        sa.Column("stderr", sa.Double(), nullable=True),
        sa.Column("published", sa.Text(), nullable=True),
        sa.Column("better", sa.String(length=8), nullable=True),
        sa.Column("lowest", sa.Double(), nullable=True),
        sa.Column("highest", sa.Double(), nullable=True),
        sa.Column("headline", sa.Integer(), server_default="0", nullable=False),
        sa.Column("zero_one", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.ForeignKeyConstraint(
            ["evaluation_id"], ["evaluations.id"], name="fk_metrics_evaluation_id_evaluations", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("evaluation_id", "scorer", "name", "slice", name="pk_metrics"),
    )
    op.create_table(
        "output_chunks",
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("dtype", sa.String(length=16), nullable=False),
        sa.Column("shape", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("checksum", sa.String(length=64), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("uri", sa.Text(), nullable=True),
        sa.Column("payload", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(
            ["evaluation_id"], ["evaluations.id"], name="fk_output_chunks_evaluation_id_evaluations", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("evaluation_id", "kind", "start", name="pk_output_chunks"),
    )
    op.create_table(
        "sample_errors",
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["evaluation_id"], ["evaluations.id"], name="fk_sample_errors_evaluation_id_evaluations", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("evaluation_id", "position", name="pk_sample_errors"),
    )
    op.create_table(
        "scores",
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("scorer", sa.String(length=128), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("dtype", sa.String(length=16), nullable=False),
        sa.Column("checksum", sa.String(length=64), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("unit", sa.String(length=32), server_default=sa.text("''"), nullable=False),
        sa.Column("better", sa.String(length=8), nullable=True),
        sa.Column("lowest", sa.Double(), nullable=True),
        sa.Column("highest", sa.Double(), nullable=True),
        sa.Column("headline", sa.Integer(), server_default="0", nullable=False),
        sa.Column("zero_one", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.ForeignKeyConstraint(
            ["evaluation_id"], ["evaluations.id"], name="fk_scores_evaluation_id_evaluations", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("evaluation_id", "scorer", "name", name="pk_scores"),
    )
    op.execute(RESULTS_VIEW)
    if op.get_bind().dialect.name == "postgresql":
        # It would try in vain to compress floats, which takes half of the time.
        for table in ("output_chunks", "item_values"):
            op.execute(f"ALTER TABLE {table} ALTER COLUMN payload SET STORAGE EXTERNAL")
