"""Claims: values that others published, with the files that they are from; imported tables become such.

Revision: 3
Revises: 2
"""

import hashlib

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"
branch_labels = None
depends_on = None

# Of a cell's own evaluations and of its imported ones each, the one that no other one goes before; and for numbers that
# neither has, what is published.
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
UNION ALL
SELECT models.name, eval_settings.name, claims.metric, claims.slice, claims.value, claims.n, claims.stderr, claims.unit,
       '', 'published', models.model_type, NULL, NULL, FALSE, 0, NULL, claims.published, claims.better, claims.lowest,
       claims.highest, claims.headline, claims.zero_one
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

# Evaluations that are numbers of a table: those from other stores have an identity, or no text.
IMPORTED = """e.origin = 'imported' AND e.status = 'complete' AND e.hidden_at IS NULL AND e.identity IS NULL
    AND e.forward_fingerprint IS NULL AND e.dataset_id IS NULL AND e.source IS NOT NULL"""
FROM_TABLES = f"""{IMPORTED}
    AND EXISTS (SELECT 1 FROM metrics AS m WHERE m.evaluation_id = e.id)
    AND NOT EXISTS (
        SELECT 1 FROM metrics AS m WHERE m.evaluation_id = e.id AND (m.published IS NULL OR m.value IS NULL)
    )"""
SOURCE = """
INSERT INTO claim_sources (fingerprint, name, repository, revision, path, sha256, licence, date, form, rows, left_out,
                           digest, place)
VALUES (:fingerprint, :name, '', '', :path, '', '', '', 'a table that was imported', :rows, '{}', '', 6)
"""
CLAIMS = f"""
INSERT INTO claims (source_id, position, model, eval_setting, metric, slice, value, unit, published, n, stderr, better,
                    lowest, highest, headline, zero_one, protocol, file_row, file_column, why, preferred)
SELECT (SELECT id FROM claim_sources WHERE fingerprint = :fingerprint), place, model, eval_setting, metric, slice,
       value, unit, published, n, stderr, better, lowest, highest, headline, zero_one, '{{}}', file_row, metric, NULL,
       latest = 1
FROM (
    SELECT e.source AS source, models.name AS model, eval_settings.name AS eval_setting, m.name AS metric,
           m.slice AS slice, m.value AS value, m.unit AS unit, m.published AS published, m.n AS n, m.stderr AS stderr,
           m.better AS better, m.lowest AS lowest, m.highest AS highest, m.headline AS headline,
           m.zero_one AS zero_one, 'evaluation ' || e.id AS file_row,
           row_number() OVER (PARTITION BY e.source ORDER BY e.id, m.name, m.slice) AS place,
           row_number() OVER (
               PARTITION BY e.model_id, e.eval_setting_id, m.name, m.slice ORDER BY e.current_at DESC, e.id DESC
           ) AS latest
    FROM evaluations AS e
    JOIN models ON models.id = e.model_id
    JOIN eval_settings ON eval_settings.id = e.eval_setting_id
    JOIN metrics AS m ON m.evaluation_id = e.id
    WHERE {FROM_TABLES}
) AS numbers
WHERE source = :source
"""


def upgrade() -> None:
    op.execute("DROP VIEW results")
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
        sa.Column("place", sa.Integer(), nullable=False),
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
        sa.Column("stderr", sa.Double(), nullable=True),
        sa.Column("better", sa.String(length=16), nullable=True),
        sa.Column("lowest", sa.Double(), nullable=True),
        sa.Column("highest", sa.Double(), nullable=True),
        sa.Column("headline", sa.Integer(), nullable=False),
        sa.Column("zero_one", sa.Boolean(), nullable=False),
        sa.Column("protocol", sa.JSON(), nullable=True),
        sa.Column("file_row", sa.String(length=128), nullable=False),
        sa.Column("file_column", sa.String(length=256), nullable=False),
        sa.Column("why", sa.String(length=256), nullable=True),
        sa.Column("preferred", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"], ["claim_sources.id"], name="fk_claims_source_id_claim_sources", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("source_id", "position", name="pk_claims"),
    )
    op.create_index("ix_claims_model", "claims", ["model"], unique=False)
    op.create_index("ix_claims_eval_setting", "claims", ["eval_setting"], unique=False)
    _claim_imported_tables()
    op.execute(RESULTS_VIEW)


def _claim_imported_tables() -> None:
    """Numbers that were imported from tables, whose texts they have, were evaluations until now."""
    connection = op.get_bind()
    tables = connection.execute(
        sa.text(f"SELECT source, count(*) FROM evaluations AS e WHERE {FROM_TABLES} GROUP BY source ORDER BY source")
    ).all()
    for source, rows in tables:
        name = (source.rpartition(".")[0] or source)[:128]
        about = {"name": name, "path": source[:1024], "rows": rows}
        about["fingerprint"] = hashlib.sha256(f"imported before schema 3: {source}".encode()).hexdigest()
        connection.execute(sa.text(SOURCE), about)
        connection.execute(sa.text(CLAIMS), {"source": source, "fingerprint": about["fingerprint"]})
    gone = [row[0] for row in connection.execute(sa.text(f"SELECT e.id FROM evaluations AS e WHERE {FROM_TABLES}"))]
    for column, table in (("evaluation_id", "metrics"), ("id", "evaluations")):
        statement = sa.text(f"DELETE FROM {table} WHERE {column} = :id")
        if gone:
            connection.execute(statement, [{"id": evaluation_id} for evaluation_id in gone])
