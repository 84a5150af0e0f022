"""Tables of questions as eval settings: VLMEvalKit's by their names, and your own files; see docs/tables.md.

``MMStar``, ``MMBench_DEV_EN``, … are VLMEvalKit's sets, whose tables lie in the folder of tables (``--lmu-data``).
Any other name of a table there also works, and ``tsv:/path/to/table.tsv`` is any file. ``X.vlmevalkit`` reads the
answers to X by VLMEvalKit's published rules; ``X.as_pandas`` reads the table itself as VLMEvalKit does. Sets of videos
have their frames in their names: ``MVBench_8frame``, ``Video-MME_1fps_subs``, ``mine_16frame``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from testbed.data.tables.known import QuestionTable, find_table, has_table, header_of, known_tables
from testbed.data.tables.readings import AS_TEXT, AS_VLMEVALKIT
from testbed.data.tables.videos import VideoTable
from testbed.eval_settings.base.question_kind import Questions
from testbed.eval_settings.base.questions import (
    BENCHMARKS,
    questions_by_columns,
    questions_of,
    questions_of_videos,
    with_frames,
)
from testbed.eval_settings.base.videos import framed_names, listed_collections
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.paths import expanded
from testbed.registry import registry

FAMILY = "tsv:"
SUFFIX = ".tsv"
AS_PANDAS = ".as_pandas"
SEVERAL_TURNS = "MT"  # VLMEvalKit's kind of sets that are conversations
CLASSES = "docs/vlmevalkit.md"
_OF_TABLES = ("answers", "sized", "texts", "files", "places", "archive", "indexed", "masks")  # fields of `Questions`


class QuestionTables:
    """Every table of questions."""

    name = "tables of questions"

    def names(self) -> Iterable[str]:
        """Returns the sets that VLMEvalKit knows; those that rules alone cannot score report that when they are run."""
        return dict.fromkeys((*BENCHMARKS, *known_tables()))

    def canonical(self, name: str) -> str | None:
        """The name; a path is made absolute."""
        base = name.removesuffix(AS_PANDAS)
        if base.startswith(FAMILY):
            path = base.removeprefix(FAMILY)
            return f"{FAMILY}{expanded(path).absolute()}{name.removeprefix(base)}" if path.endswith(SUFFIX) else None
        known = base in BENCHMARKS or base in known_tables() or has_table(base)
        return name if known or questions_of_videos(base) is not None or _own_videos(base) is not None else None

    def build(self, name: str) -> EvalSetting:
        """The setting; raises DataError if the table of an unknown name cannot be read."""
        base = name.removesuffix(AS_PANDAS)
        path = base.removeprefix(FAMILY) if base.startswith(FAMILY) else ""
        questions = _of_file(Path(path)) if path else _of_name(base)
        data_set = Path(path).stem if path else base
        options = {"prompt": questions.prompt, "data_set": data_set, "generation": dict(questions.generation)}
        options |= {"scoring": questions.scoring, "report": questions.report}
        if questions.lacks:
            options["lacks"] = questions.lacks
        reading = AS_TEXT if base == name else AS_VLMEVALKIT
        return EvalSetting(
            name=name,
            dataset=_table(path or base, reading, questions, "" if path else questions.table),
            size=None,
            task="question_answering",
            task_options=options,
            description=f"questions of {base}",
        )


def _table(name: str, reading: str, questions: Questions, shared: str) -> QuestionTable | VideoTable:
    if questions.frames is None:
        more: dict[str, Any] = {field: getattr(questions, field) for field in _OF_TABLES}
        return QuestionTable(name, reading, questions.required, shared, **more)
    own: dict[str, Any] = {"origin": questions.origin, "lists": questions.lists}
    return VideoTable(shared or name, questions.frames, questions.subtitles, reading, questions.required, **own)


def _of_file(path: Path) -> Questions:
    """Returns the questions of a table in a file: of the benchmark of its name, else by its columns."""
    return BENCHMARKS.get(path.stem) or questions_by_columns(header_of(path))


def _own_videos(name: str) -> Questions | None:
    """Returns the questions of one's own table of videos with the frames in its name: ``mine_16frame``."""
    table, frames = with_frames(name) or ("", None)
    if frames is None or has_table(name) or not has_table(table):
        return None
    questions = questions_by_columns(header_of(find_table(table)))
    return None if questions.frames is None else replace(questions, frames=frames, table=table)


def _of_name(name: str) -> Questions:
    """Returns the questions of a table in the folder of tables."""
    known = known_tables().get(name)
    if known is None:
        own = BENCHMARKS.get(name) or questions_of_videos(name) or _own_videos(name)
        return own or questions_by_columns(header_of(find_table(name)))
    found = questions_of(name, known.kind, known.prompt_class, known.score_class)
    if found is not None:
        return found
    framed = framed_names(name)
    lacks = f"{name} is not scored by rules alone (VLMEvalKit's {known.score_class}, of the kind {known.kind})"
    if framed:
        lacks = f"the frames of videos are a part of the name: {', '.join(framed)}, or another number of them"
    elif known.modality == "IMAGE" and known.kind != SEVERAL_TURNS:
        lacks += f"; a class in VLMEvalKit's form scores it: testbed run --plugin FILE, see {CLASSES}"
    return replace(questions_by_columns([]), lacks=lacks)


registry.add_eval_setting_family(QuestionTables())
for _collection, _names in listed_collections().items():
    registry.add_eval_setting_collection(_collection, _names)
