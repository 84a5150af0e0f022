"""Metrics and per-sample scores have what they declare: direction, range, whether they are the main one.

Rows of testbed's own scorers get what these declare today; of others, nothing is known. A metric that one evaluation
calls a fraction and another does not is another metric.

Revision: 0009
Revises: 0008
"""

from __future__ import annotations

import re
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

NAMES = ("better", "lowest", "highest", "headline", "zero_one")
HIGHER, LOWER, NEITHER = "higher", "lower", "neither"

# What was declared when this migration was written: names (a pattern) → direction, range, headline, 0 or 1.
RATES = (HIGHER, 0, 1, 0, False)
CLASSIFICATION = {
    "top1": (HIGHER, 0, 1, 10, True),
    r"top\d+": (HIGHER, 0, 1, 0, True),
    "mean_per_class_recall": RATES,
    "nll": (LOWER, 0, None, 0, False),
    "brier": (LOWER, 0, 2, 0, False),
    "ece": (LOWER, 0, 1, 0, False),
    "confidence": (NEITHER, 0, 1, 0, False),
}
MULTILABEL = {"mean_average_precision": (HIGHER, 0, 1, 10, False), "(mean_)?average_precision.*": RATES}
RETRIEVAL = {
    "image_retrieval_recall@5": (HIGHER, 0, 1, 10, True),
    "text_retrieval_recall@5": (HIGHER, 0, 1, 9, True),
    "image_retrieval_recall@1": (HIGHER, 0, 1, 8, True),
    "text_retrieval_recall@1": (HIGHER, 0, 1, 7, True),
    r"image_retrieval_recall@\d+": (HIGHER, 0, 1, 6, True),
    r"text_retrieval_recall@\d+": (HIGHER, 0, 1, 5, True),
    ".*_mean_reciprocal_rank": RATES,
    r".*_rank(\.\d+)?": (LOWER, 1, None, 0, False),
}
SELECTION = {"acc": (HIGHER, 0, 1, 10, True), "(text|image)_acc": (HIGHER, 0, 1, 0, True)}
SHARES = {
    "status": (NEITHER, 0, 3, 0, False),
    "coverage": (HIGHER, 0, 1, 1, False),
    "empty": (LOWER, 0, 1, -1, False),
}
OVERLAP = {
    "CIDEr": (HIGHER, 0, 10, 10, False),
    "Bleu_4": (HIGHER, 0, 1, 9, False),
    "exact": (HIGHER, 0, 1, 0, True),
    "referenced": (NEITHER, 0, 1, 0, False),
    "Bleu_[123]|METEOR|ROUGE_L|SPICE": RATES,
}
SIMILARITY = {
    "hm_cf": (HIGHER, None, 1, 11, False),
    "coarse_similarity": (HIGHER, None, 1, 10, False),
    "hm_cf_raw": (HIGHER, -1, 1, 6, False),
    "coarse_similarity_raw": (HIGHER, -1, 1, 5, False),
    "fine_(precision|recall|f1)": (HIGHER, None, 1, 0, False),
    "fine_(precision|recall|f1)_raw": (HIGHER, -1, 1, 0, False),
    ".*_baseline": (NEITHER, None, None, 0, False),
    "(reference_)?sentences": (NEITHER, 0, None, 0, False),
    **SHARES,
}
CLIP_SCORE = {
    "clip_score_pairwise": RATES,
    "ref_clip_score": (HIGHER, 0, 10 / 7, 0, False),
    r"(reference_)?cosine(\.\d+)?": (HIGHER, -1, 1, 0, False),
    **SHARES,
}
ANSWERS = {
    "score": (HIGHER, 0, None, 20, False),
    "total": (HIGHER, 0, 2800, 20, False),
    "perception": (HIGHER, 0, 2000, 0, False),
    "reasoning": (HIGHER, 0, 800, 0, False),
    "circular|both_right|mean_over_sources|mean_over_cycles|average|score_strict|anls|win_rate": (
        *(HIGHER, 0, 1, 20, False),
    ),
    "f1": (HIGHER, 0, 1, 0, False),
    "accuracy": (HIGHER, 0, 1, 10, False),
    "incorrect|losses|rote_memorization_.*|insufficient_knowledge|inadequate_generalization": (LOWER, 0, 1, 0, False),
    "unparsed|cut_off|unread|missing": (LOWER, 0, 1, -1, False),
    "prefetch|not_attempted|yes_share|ties|judged|labelled|rules_differ": (NEITHER, 0, 1, -1, False),
    "alpha": (HIGHER, None, 1, 0, False),
    "accuracy_.*|vanilla_.*|.acc(_vlmevalkit)?|average_vlmevalkit|worst_case|precision|recall|wins|score_loose": RATES,
    "complete_mastery_.*|expected_of_draw|bound_.*|rules_alone|rule_score|swap_consistency|parsed|verdict.*": RATES,
    **SHARES,
    **OVERLAP,
}
OUTPUTS = {"not_finite": (LOWER, 0, 1, -1, False)}
# Functions of testbed that settings have as metrics_fn; a fraction (or nats) of such a name is one of theirs.
SETTINGS = {
    "top1": (HIGHER, 0, 1, 10, True),
    r"top\d+": (HIGHER, 0, 1, 0, True),
    "nll": (LOWER, 0, None, 0, False),
    "ece": (LOWER, 0, 1, 0, False),
    "top1_balanced|mean_per_class_recall": RATES,
    "pm0": (HIGHER, 0, 1, 10, True),
    "pm10": (HIGHER, 0, 1, 0, True),
    "aupr_.*": (HIGHER, 0, 1, 10, False),
    "auroc_.*": RATES,
    "fpr95_.*": (LOWER, 0, 1, 0, False),
}
# Of imported tables, whose readers know these names.
IMPORTED = {**SETTINGS, **CLASSIFICATION, **MULTILABEL, **RETRIEVAL, **SELECTION, **OVERLAP, **SIMILARITY}
SCORERS: dict[str, dict[str, Any]] = {
    "classification": CLASSIFICATION,
    "multilabel": MULTILABEL,
    "retrieval": RETRIEVAL,
    "selection": SELECTION,
    "caption_similarity": SIMILARITY,
    "captioning": {"words": (NEITHER, 0, None, 0, False), **SHARES},
    "overlap": OVERLAP,
    "clip_score": {"clip_score": (HIGHER, 0, 1, 10, False), **CLIP_SCORE},
    "question_answering": ANSWERS,
    "judged_answers": ANSWERS,
    "vlmeval_benchmark": {"score": (HIGHER, None, None, 10, False), **SHARES},
    "image_embedding": {"embedding_norm": (NEITHER, 0, None, 0, False)},
    "outputs": OUTPUTS,
    "metrics_fn": SETTINGS,
}
# Scores, where they are something else than the metric of that name. Those of a metrics_fn have no scorer.
SCORES: dict[str, dict[str, Any]] = {
    "retrieval": {
        "image_retrieval_recall@5": (HIGHER, 0, 1, 10, False),
        "image_retrieval_recall@1": (HIGHER, 0, 1, 8, False),
        r"image_retrieval_recall@\d+": (HIGHER, 0, 1, 6, False),
    },
    "clip_score": {"clip_score": (HIGHER, -1, 1, 10, False)},
    "question_answering": {"score": (HIGHER, 0, 1, 10, True)},
    "judged_answers": {"score": (HIGHER, 0, 1, 10, True)},
    "": {"top1": (HIGHER, 0, 1, 10, True), "msp|max_logit|energy": (NEITHER, None, None, 0, False)},
}
UNITS = {
    "nll": "nats",
    "words": "words",
    "status|CIDEr|brier": "",
    "(reference_)?sentences": "sentences",
    r".*_rank(\.\d+)?": "rank",
    r".*_raw|(reference_)?cosine(\.\d+)?|clip_score": "cosine",
    "top.*|conf.*|.*_recall@.*|.*acc|coarse.*|fine.*|hm_cf|ref_clip_score|score|.*_score|parsed|verdict.*": "fraction",
    "Bleu_.|METEOR|ROUGE_L|SPICE|exact": "fraction",
}


def declared(scorer: str, name: str, own: dict[str, Any]) -> tuple[Any, ...] | None:
    """What a scorer declares of a name; None if nothing is known."""
    kind = scorer.partition("@")[0]
    tables: tuple[dict[str, Any], ...] = (own.get(kind, {}), SCORERS.get(kind, {}))
    return next((v for table in tables for pattern, v in table.items() if re.fullmatch(pattern, name)), None)


def unit_of(name: str) -> str:
    return next((unit for pattern, unit in UNITS.items() if re.fullmatch(pattern, name)), "")


def columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("better", sa.String(8), nullable=True),
        sa.Column("lowest", sa.Double(), nullable=True),
        sa.Column("highest", sa.Double(), nullable=True),
        sa.Column("headline", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("zero_one", sa.Boolean(), nullable=False, server_default=sa.false()),
    ]


# The view of 0002 with the new columns.
VIEW_BEFORE = """
CREATE VIEW results AS
SELECT models.name AS model, eval_settings.name AS eval_setting, metrics.name AS metric, metrics.slice AS slice,
       metrics.value AS value, metrics.n AS n, metrics.stderr AS stderr, metrics.unit AS unit,
       metrics.scorer AS scorer, counting.origin AS origin, models.model_type AS model_type, counting.dtype AS dtype,
       counting.sample_limit AS sample_limit, counting.random_weights AS random_weights,
       counting.id AS evaluation_id, counting.completed_at AS completed_at,
       metrics.published AS published{more}
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
MORE = "".join(f", metrics.{name} AS {name}" for name in NAMES)


def upgrade() -> None:
    op.execute("DROP VIEW results")
    for column in columns():
        op.add_column("metrics", column)
    op.add_column("scores", sa.Column("unit", sa.String(32), nullable=False, server_default=sa.text("''")))
    for column in columns():
        op.add_column("scores", column)
    fill("metrics", {"": IMPORTED})
    fill("scores", SCORES)
    op.execute(VIEW_BEFORE.format(more=MORE))


def fill(name: str, own: dict[str, Any]) -> None:
    """Writes what is known of the names in a table, in one pass over its rows."""
    table = sa.table(name, *(sa.column(each) for each in ("scorer", "name", "unit", *NAMES)))
    with_unit = name == "scores"
    connection = op.get_bind()
    keys = connection.execute(sa.select(table.c.scorer, table.c.name, table.c.unit).distinct()).all()
    known = []
    for scorer, metric, unit in keys:
        found = declared(scorer, metric, own)
        # A number of somebody's own, without a unit, only has the name of one of testbed's.
        if found is None or (scorer == "metrics_fn" and not with_unit and unit not in ("fraction", "nats")):
            continue
        if metric == "score" and unit == "fraction":  # that of OCRBench is in points
            found = (found[0], 0, 1, *found[3:])
        told = unit_of(metric) if with_unit else unit
        facts_of = dict(zip(NAMES, found, strict=True))
        known.append({"scorer": scorer, "name": metric, "unit": unit, "told": told, **facts_of})
    if not known:
        return
    facts = sa.Table(
        f"declared_{name}",
        sa.MetaData(),
        sa.Column("scorer", sa.String(128)),
        sa.Column("name", sa.String(256)),
        sa.Column("unit", sa.String(32)),
        sa.Column("told", sa.String(32)),
        *columns(),
    )
    facts.create(connection)
    connection.execute(facts.insert(), known)
    of_row = f"d.scorer = {name}.scorer AND d.name = {name}.name AND d.unit = {name}.unit"
    written, read = ", ".join(("unit", *NAMES)), ", ".join(f"d.{each}" for each in ("told", *NAMES))
    op.execute(
        f"UPDATE {name} SET ({written}) = (SELECT {read} FROM declared_{name} AS d WHERE {of_row})"
        f" WHERE EXISTS (SELECT 1 FROM declared_{name} AS d WHERE {of_row})"
    )
    facts.drop(connection)


def downgrade() -> None:
    op.execute("DROP VIEW results")
    for name in reversed(NAMES):
        op.drop_column("metrics", name)
        op.drop_column("scores", name)
    op.drop_column("scores", "unit")
    op.execute(VIEW_BEFORE.format(more=""))
