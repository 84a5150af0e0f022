"""Stored nodes of a setting, such as its image embeddings, are rows with the setting's name and the node's.

Revision: 2
Revises: 1
"""

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"
branch_labels = None
depends_on = None

NODES = ("image_embeddings", "distinct")  # which had the names of settings until now

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
"""


def upgrade() -> None:
    op.execute("DROP VIEW results")
    with op.batch_alter_table("eval_settings") as table:
        table.add_column(sa.Column("node", sa.String(length=32), server_default="", nullable=False))
        table.drop_constraint("uq_eval_settings_name", type_="unique")
        table.create_unique_constraint("uq_eval_settings_name_node", ["name", "node"])
    with op.batch_alter_table("eval_settings") as table:
        table.alter_column("node", server_default=None)
    for node in NODES:
        end = len(node) + 1
        op.execute(
            f"UPDATE eval_settings SET node = '{node}', name = substr(name, 1, length(name) - {end})"
            f" WHERE substr(name, length(name) - {end - 1}) = '.{node}'"
        )
    op.execute(RESULTS_VIEW)
