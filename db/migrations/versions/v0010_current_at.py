"""When a run last found an evaluation to be that of today's definition: of several, the latest is reported.

Revision: 0010
Revises: 0009
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

COLUMNS = """
SELECT models.name AS model, eval_settings.name AS eval_setting, metrics.name AS metric, metrics.slice AS slice,
       metrics.value AS value, metrics.n AS n, metrics.stderr AS stderr, metrics.unit AS unit,
       metrics.scorer AS scorer, counting.origin AS origin, models.model_type AS model_type, counting.dtype AS dtype,
       counting.sample_limit AS sample_limit, counting.random_weights AS random_weights,
       counting.id AS evaluation_id, counting.completed_at AS completed_at,
       metrics.published AS published, metrics.better AS better, metrics.lowest AS lowest, metrics.highest AS highest,
       metrics.headline AS headline, metrics.zero_one AS zero_one
"""

# Of a cell's own evaluations and of its imported ones each, the one that no other one goes before.
RESULTS_VIEW = """
CREATE VIEW results AS {columns}
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
            other.{moment},
            other.id
        ) > (
            CASE WHEN counting.random_weights THEN 0 ELSE 1 END,
            CASE WHEN counting.sample_limit IS NULL THEN 1 ELSE 0 END,
            counting.{moment},
            counting.id
        )
)
"""


def upgrade() -> None:
    op.add_column("evaluations", sa.Column("current_at", sa.DateTime(), nullable=True))
    op.execute("UPDATE evaluations SET current_at = completed_at")
    op.execute("DROP VIEW results")
    op.execute(RESULTS_VIEW.format(columns=COLUMNS, moment="current_at"))


def downgrade() -> None:
    op.execute("DROP VIEW results")
    op.execute(RESULTS_VIEW.format(columns=COLUMNS, moment="completed_at"))
    op.drop_column("evaluations", "current_at")
