"""The first names of what has moved.

Identities name modules, functions and classes of testbed, and hold the imports within what they describe. Moving a file
must not make stored results strangers, so identities go on naming it by its first name.
"""

from __future__ import annotations

import ast
from functools import lru_cache

_TESTBED = "testbed."

# A module, function or class of testbed: its name today → its first name. What is within goes with it.
MOVED: dict[str, str] = {
    "calls.takes": "models.text_encoder_base.takes",
    "data.formats.annotations": "data.annotations",
    "data.formats.caption_files": "data.caption_files",
    "data.formats.caption_pairs": "data.caption_pairs",
    "data.formats.captions": "data.captions",
    "data.formats.image_folder": "data.image_folder",
    "data.formats.image_lists": "data.image_lists",
    "data.formats.image_store": "data.image_store",
    "data.formats.predictions": "data.predictions",
    "data.formats.selection": "data.selection",
    "data.formats.selection_files": "data.selection_files",
    "data.formats.text_records": "data.text_records",
    "data.language.languages": "data.languages",
    "data.language.prompts": "data.prompts",
    "data.language.sentences": "data.sentences",
    "data.libraries.huggingface": "data.huggingface",
    "data.libraries.remote_folder": "data.remote_folder",
    "data.libraries.tfds": "data.tfds",
    "data.libraries.torchvision_sets": "data.torchvision_sets",
    "data.perturbation": "eval_settings.perturbation_base",
    "data.sets.clip_cc": "data.clip_cc",
    "data.sets.clip_cc_config": "data.clip_cc_config",
    "data.sets.digit_tasks": "data.digit_tasks",
    "data.sets.digits": "data.digits",
    "data.sets.imagenet": "data.imagenet",
    "data.sets.imagenet.class_names": "eval_settings.imagenet_base.class_names",
    "data.sets.imagenet.templates": "eval_settings.imagenet_base.templates",
    "data.sets.imagenet_o": "data.imagenet_o",
    "data.sets.multilingual_captions": "data.multilingual_captions",
    "data.sets.objectnet": "data.objectnet",
    "data.sets.openimages": "data.openimages",
    "data.sets.video": "data.video",
    "data.sets.voc": "data.voc",
    "data.webdataset.export": "data.webdataset_export",
    "data.webdataset.folder": "data.webdataset_folder",
    "data.webdataset.format": "data.webdataset_format",
    "data.webdataset.index": "data.webdataset_index",
    "data.webdataset.source": "data.webdataset",
    "entities": "db.entities",
    "eval_settings.base.annotated": "eval_settings.annotated_base",
    "eval_settings.base.benchmark": "eval_settings.benchmark_base",
    "eval_settings.base.benchmark_dataset": "eval_settings.benchmark_dataset_base",
    "eval_settings.base.benchmark_dataset.BenchmarkDataset": "eval_settings.benchmark_base.BenchmarkDataset",
    "eval_settings.base.benchmark_dataset.KINDS": "eval_settings.benchmark_names_base.KINDS",
    "eval_settings.base.benchmark_names": "eval_settings.benchmark_names_base",
    "eval_settings.base.clip_benchmark": "eval_settings.clip_benchmark_base",
    "eval_settings.base.clip_benchmark_names": "eval_settings.clip_benchmark_names_base",
    "eval_settings.base.image_embeddings": "eval_settings.image_embeddings_base",
    "eval_settings.base.imagenet": "eval_settings.imagenet_base",
    "eval_settings.base.metric": "eval_settings.metric_base",
    "eval_settings.base.scored": "eval_settings.scored_base",
    "eval_settings.base.setting": "eval_settings.eval_setting_base",
    "metrics.classification_scores": "tasks.classification_scores",
    "metrics.clip._plain_metric": "metrics._plain_metric",
    "metrics.clip.encoders": "metrics.clip_encoders",
    "metrics.clip.inputs": "metrics.clip_inputs",
    "metrics.clip.pairs": "metrics.clip_pairs",
    "metrics.clip.score": "metrics.clip_score_metric",
    "metrics.clip.tokens": "metrics.clip_tokens",
    "metrics.multilabel_scores": "tasks.multilabel_scores",
    "metrics.retrieval_scores": "tasks.retrieval_scores",
    "metrics.selection_scores": "tasks.selection_scores",
    "models.base.capability": "models.capability_base",
    "models.base.classifier": "models.model_base",
    "models.base.decoder_file": "models.decoder_file_base",
    "models.base.decoder_kinds": "models.decoder_kinds_base",
    "models.base.definition": "models.definition_base",
    "models.base.flores": "models.flores_base",
    "models.base.folder_encoder": "models.folder_encoder_base",
    "models.base.generator": "models.generator_base",
    "models.base.hub": "models.hub_base",
    "models.base.hub_folder": "models.hub_folder_base",
    "models.base.published": "models.published_base",
    "models.base.runtime": "models.runtime_base",
    "models.base.structure": "models.structure_base",
    "models.base.text_encoder": "models.text_encoder_base",
    "models.base.text_runtime": "models.text_runtime_base",
    "models.base.transform": "models.transform_base",
    "models.base.weights": "models.weights_base",
    "models.networks.batch_invariant": "models._batch_invariant",
    "models.networks.decoders": "models._decoder_networks",
    "models.networks.digits": "models._digits_networks",
    "models.networks.imagenet_testbed_table": "models._imagenet_testbed_table",
    "models.networks.open_clip_texts": "models._open_clip_texts",
    "models.networks.sentences": "models._sentence_networks",
    "models.networks.transformers": "models._transformers_networks",
    "tasks.parts.embedding": "tasks.embedding_base",
    "tasks.parts.generation": "tasks.generation_base",
    "tasks.parts.head_files": "tasks.head_files",
    "tasks.parts.scorer": "tasks.scorer_base",
    "tasks.parts.zero_shot": "tasks.zero_shot",
    "tasks.probe.adamw": "tasks.probe_adamw",
    "tasks.probe.fit": "tasks.probe_fit",
    "tasks.probe.lbfgs": "tasks.probe_lbfgs",
    "tasks.probe.spec": "tasks.probe_spec",
}


@lru_cache(maxsize=4096)
def first_name(name: str) -> str:
    """The name under which identities know a module, function or class, given its dotted name of today."""
    if not name.startswith(_TESTBED):
        return name
    known, rest = name.removeprefix(_TESTBED), ""
    while known:
        if known in MOVED:
            return f"{_TESTBED}{MOVED[known]}{rest}"
        known, dot, last = known.rpartition(".")
        rest = f"{dot}{last}{rest}"
    return name


def with_first_names(tree: ast.AST) -> ast.AST:
    """The same syntax tree, which imports what has moved from where it first was. The tree is changed on the way."""
    named: ast.AST = _FirstNames().visit(tree)
    return named


class _FirstNames(ast.NodeTransformer):
    """Rewrites imports."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Rewrites imports, and puts those that stand together into the order of their first names."""
        super().generic_visit(node)
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(node, block, None)
            if isinstance(statements, list):
                setattr(node, block, _in_order(statements))
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt]:
        """One statement for each module that the names were first in."""
        if node.level or not (node.module or "").startswith("testbed"):
            return node
        by_module: dict[str, list[ast.alias]] = {}
        for alias in node.names:
            module, _, name = first_name(f"{node.module}.{alias.name}").rpartition(".")
            by_module.setdefault(module, []).append(ast.alias(name, alias.asname))
        if list(by_module) == [node.module]:
            return node
        return [_Moved(module, names, 0) for module, names in by_module.items()]


class _Moved(ast.ImportFrom):
    """An import of something that has moved."""


def _in_order(statements: list[ast.stmt]) -> list[ast.stmt]:
    """The statements, with each row of imports from testbed in order if one of them is of something that has moved."""
    ordered: list[ast.stmt] = []
    row: list[ast.ImportFrom] = []
    for statement in [*statements, None]:
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("testbed"):
            row.append(statement)
            continue
        if any(isinstance(each, _Moved) for each in row):
            row = _joined(row)
        ordered += row
        row = []
        if statement is not None:
            ordered.append(statement)
    return ordered


def _joined(row: list[ast.ImportFrom]) -> list[ast.ImportFrom]:
    """Imports as ruff writes them: a statement for each module, and one for each name that is given another."""
    plain: dict[str, list[ast.alias]] = {}
    renamed: list[ast.ImportFrom] = []
    for each in row:
        for alias in each.names:
            if alias.asname is None:
                plain.setdefault(str(each.module), []).append(alias)
            else:
                renamed.append(ast.ImportFrom(each.module, [alias], 0))
    joined = [ast.ImportFrom(module, sorted(names, key=_by_kind), 0) for module, names in plain.items()]
    return sorted([*joined, *renamed], key=lambda each: str(each.module))


def _by_kind(alias: ast.alias) -> tuple[int, str]:
    """Constants before classes before the rest."""
    name = alias.name
    return (0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2), name
