"""The first schema.

Revision: 0001
Revises: nothing
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

RESULTS_VIEW = """
CREATE VIEW results AS
SELECT models.name AS model, eval_settings.name AS eval_setting, metrics.name AS metric, metrics.slice AS slice,
       metrics.value AS value, metrics.n AS n, metrics.stderr AS stderr, metrics.unit AS unit,
       metrics.scorer AS scorer, ranked.origin AS origin, models.model_type AS model_type, ranked.dtype AS dtype,
       ranked.sample_limit AS sample_limit, ranked.random_weights AS random_weights,
       ranked.id AS evaluation_id, ranked.completed_at AS completed_at,
       metrics.published AS published
FROM (
    SELECT evaluations.*, ROW_NUMBER() OVER (
        PARTITION BY evaluations.model_id, evaluations.eval_setting_id,
            CASE WHEN evaluations.origin = 'imported' THEN 1 ELSE 0 END
        ORDER BY CASE WHEN evaluations.random_weights THEN 1 ELSE 0 END,
            CASE WHEN evaluations.sample_limit IS NULL THEN 0 ELSE 1 END,
            evaluations.completed_at DESC, evaluations.id DESC
    ) AS place
    FROM evaluations
    WHERE evaluations.status = 'complete' AND evaluations.hidden_at IS NULL
) AS ranked
JOIN models ON models.id = ranked.model_id AND models.hidden_at IS NULL
JOIN eval_settings ON eval_settings.id = ranked.eval_setting_id AND eval_settings.hidden_at IS NULL
JOIN metrics ON metrics.evaluation_id = ranked.id
WHERE ranked.place = 1
"""


def upgrade() -> None:
    op.create_table(
        "models",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(512), nullable=False),
        sa.Column("model_type", sa.String(128)),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("hidden_at", sa.DateTime()),
        sa.PrimaryKeyConstraint("id", name="pk_models"),
        sa.UniqueConstraint("name", name="uq_models_name"),
    )
    op.create_table(
        "eval_settings",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(512), nullable=False),
        sa.Column("parent", sa.String(512)),
        sa.Column("task", sa.String(64)),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("hidden_at", sa.DateTime()),
        sa.PrimaryKeyConstraint("id", name="pk_eval_settings"),
        sa.UniqueConstraint("name", name="uq_eval_settings_name"),
    )
    op.create_table(
        "datasets",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("name", sa.String(512), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("class_names", sa.JSON()),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_datasets"),
        sa.UniqueConstraint("fingerprint", name="uq_datasets_fingerprint"),
    )
    op.create_table(
        "samples",
        sa.Column("dataset_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("sample_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("target", sa.JSON()),
        sa.Column("group_name", sa.Text()),
        sa.Column("slices", sa.JSON()),
        sa.PrimaryKeyConstraint("dataset_id", "position", name="pk_samples"),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name="fk_samples_dataset_id_datasets", ondelete="CASCADE"
        ),
    )
    _create_evaluations()
    _create_outputs()
    op.execute(RESULTS_VIEW)


def _create_evaluations() -> None:
    op.create_table(
        "definitions",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_definitions"),
    )
    op.create_table(
        "evaluations",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("model_id", sa.Integer(), nullable=False),
        sa.Column("eval_setting_id", sa.Integer(), nullable=False),
        sa.Column("dataset_id", sa.Integer()),
        sa.Column("derived_from_id", sa.Integer()),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("forward_fingerprint", sa.String(64)),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("size", sa.Integer()),
        sa.Column("sample_limit", sa.Integer()),
        sa.Column("dtype", sa.String(16)),
        sa.Column("random_weights", sa.Boolean(), nullable=False),
        sa.Column("identity", sa.JSON()),
        sa.Column("environment", sa.JSON()),
        sa.Column("source", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("updated_at", sa.DateTime(), nullable=False),
        sa.Column("completed_at", sa.DateTime()),
        sa.Column("hidden_at", sa.DateTime()),
        sa.PrimaryKeyConstraint("id", name="pk_evaluations"),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name="fk_evaluations_model_id_models", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["eval_setting_id"],
            ["eval_settings.id"],
            name="fk_evaluations_eval_setting_id_eval_settings",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name="fk_evaluations_dataset_id_datasets"),
        sa.ForeignKeyConstraint(
            ["derived_from_id"], ["evaluations.id"], name="fk_evaluations_derived_from_id_evaluations"
        ),
    )
    for column in ("eval_setting_id", "dataset_id", "derived_from_id", "forward_fingerprint"):
        op.create_index(f"ix_evaluations_{column}", "evaluations", [column])
    visible = sa.text("hidden_at IS NULL")
    op.create_index(
        "uq_evaluations_visible_cell",
        "evaluations",
        ["model_id", "eval_setting_id", "fingerprint"],
        unique=True,
        sqlite_where=visible,
        postgresql_where=visible,
    )


def _create_outputs() -> None:
    op.create_table(
        "output_chunks",
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("dtype", sa.String(16), nullable=False),
        sa.Column("shape", sa.JSON(), nullable=False),
        sa.Column("checksum", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("uri", sa.Text()),
        sa.Column("payload", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("evaluation_id", "kind", "start", name="pk_output_chunks"),
        _of_evaluation("output_chunks"),
    )
    op.create_table(
        "sample_errors",
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("evaluation_id", "position", name="pk_sample_errors"),
        _of_evaluation("sample_errors"),
    )
    op.create_table(
        "scores",
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("scorer", sa.String(128), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("dtype", sa.String(16), nullable=False),
        sa.Column("checksum", sa.String(64), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("evaluation_id", "scorer", "name", name="pk_scores"),
        _of_evaluation("scores"),
    )
    op.create_table(
        "metrics",
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("scorer", sa.String(128), nullable=False),
        sa.Column("name", sa.String(256), nullable=False),
        sa.Column("slice", sa.String(256), nullable=False),
        sa.Column("value", sa.Double()),
        sa.Column("unit", sa.String(32), nullable=False),
        sa.Column("n", sa.Integer()),
        sa.Column("stderr", sa.Double()),
        sa.Column("published", sa.Text()),
        sa.PrimaryKeyConstraint("evaluation_id", "scorer", "name", "slice", name="pk_metrics"),
        _of_evaluation("metrics"),
    )
    op.create_table(
        "artifacts",
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("spec", sa.JSON()),
        sa.Column("dtype", sa.String(16), nullable=False),
        sa.Column("shape", sa.JSON(), nullable=False),
        sa.Column("checksum", sa.String(64), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", name="pk_artifacts"),
    )
    if op.get_bind().dialect.name == "postgresql":
        # Logits hardly compress: trying costs most of the write speed and gains nothing.
        op.execute("ALTER TABLE output_chunks ALTER COLUMN payload SET STORAGE EXTERNAL")


def _of_evaluation(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["evaluation_id"],
        ["evaluations.id"],
        name=f"fk_{table}_evaluation_id_evaluations",
        ondelete="CASCADE",
    )


def downgrade() -> None:
    op.execute("DROP VIEW results")
    for table in ("artifacts", "metrics", "scores", "sample_errors", "output_chunks", "evaluations"):
        op.drop_table(table)
    for table in ("definitions", "samples", "datasets", "eval_settings", "models"):
        op.drop_table(table)
