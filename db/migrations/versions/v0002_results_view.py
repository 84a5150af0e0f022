"""The view ``results`` without a window over whole rows: the same rows in two thirds of the time.

Revision: 0002
Revises: 0001
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

COLUMNS = """
SELECT models.name AS model, eval_settings.name AS eval_setting, metrics.name AS metric, metrics.slice AS slice,
       metrics.value AS value, metrics.n AS n, metrics.stderr AS stderr, metrics.unit AS unit,
       metrics.scorer AS scorer, counting.origin AS origin, models.model_type AS model_type, counting.dtype AS dtype,
       counting.sample_limit AS sample_limit, counting.random_weights AS random_weights,
       counting.id AS evaluation_id, counting.completed_at AS completed_at,
       metrics.published AS published
"""

JOINED = """
JOIN models ON models.id = counting.model_id AND models.hidden_at IS NULL
JOIN eval_settings ON eval_settings.id = counting.eval_setting_id AND eval_settings.hidden_at IS NULL
JOIN metrics ON metrics.evaluation_id = counting.id
"""

# Of a cell's own evaluations and of its imported ones each, the one that no other one goes before.
RESULTS_VIEW = f"""
CREATE VIEW results AS {COLUMNS}
FROM evaluations AS counting {JOINED}
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
            other.completed_at,
            other.id
        ) > (
            CASE WHEN counting.random_weights THEN 0 ELSE 1 END,
            CASE WHEN counting.sample_limit IS NULL THEN 1 ELSE 0 END,
            counting.completed_at,
            counting.id
        )
)
"""

VIEW_OF_0001 = f"""
CREATE VIEW results AS {COLUMNS}
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
) AS counting {JOINED}
WHERE counting.place = 1
"""


def upgrade() -> None:
    op.execute("DROP VIEW results")
    op.execute(RESULTS_VIEW)


def downgrade() -> None:
    op.execute("DROP VIEW results")
    op.execute(VIEW_OF_0001)
