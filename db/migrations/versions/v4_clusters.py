"""Metrics have the number of clusters that their samples come in, for intervals from few clusters.

Revision: 4
Revises: 3
"""

import sqlalchemy as sa
from alembic import op

revision = "4"
down_revision = "3"
branch_labels = None
depends_on = None

RESULTS_VIEW = """
CREATE VIEW results AS
SELECT models.name AS model, eval_settings.name AS eval_setting, metrics.name AS metric, metrics.slice AS slice,
       metrics.value AS value, metrics.n AS n, metrics.stderr AS stderr, metrics.unit AS unit,
       metrics.scorer AS scorer, counting.origin AS origin, models.model_type AS model_type, counting.dtype AS dtype,
       counting.sample_limit AS sample_limit, counting.random_weights AS random_weights,
       counting.id AS evaluation_id, counting.completed_at AS completed_at,
       metrics.published AS published, metrics.better AS better, metrics.lowest AS lowest, metrics.highest AS highest,
       metrics.headline AS headline, metrics.zero_one AS zero_one, metrics.clusters AS clusters
FROM evaluations AS counting
JOIN models ON models.id = counting.model_id AND models.hidden_at IS NULL
JOIN eval_settings ON eval_settings.id = counting.eval_setting_id AND eval_settings.hidden_at IS NULL
    AND eval_settings.node = ''
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
UNION ALL
SELECT models.name, eval_settings.name, claims.metric, claims.slice, claims.value, claims.n, claims.stderr, claims.unit,
       '', 'published', models.model_type, NULL, NULL, FALSE, 0, NULL, claims.published, claims.better, claims.lowest,
       claims.highest, claims.headline, claims.zero_one, NULL
FROM claims
JOIN models ON models.name = claims.model AND models.hidden_at IS NULL
JOIN eval_settings ON eval_settings.name = claims.eval_setting AND eval_settings.hidden_at IS NULL
    AND eval_settings.node = ''
WHERE claims.preferred AND NOT EXISTS (
    SELECT 1
    FROM evaluations AS own
    JOIN metrics ON metrics.evaluation_id = own.id
    WHERE own.model_id = models.id AND own.eval_setting_id = eval_settings.id AND own.status = 'complete'
        AND own.hidden_at IS NULL AND metrics.name = claims.metric AND metrics.slice = claims.slice
)
"""


def upgrade() -> None:
    op.execute("DROP VIEW results")
    op.add_column("metrics", sa.Column("clusters", sa.Integer(), nullable=True))
    op.execute(RESULTS_VIEW)
