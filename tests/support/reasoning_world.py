"""Small tables in the published columns of benchmarks, a model that gives known answers, and judges that know them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from table_world import encoded, write_table

from testbed.db.store import Store
from testbed.eval_settings.question_tables import QuestionTables
from testbed.graph.options import RunOptions
from testbed.models.model_base import Generation, Generator
from testbed.registry import Catalog
from testbed.runner.run import run

UNREADABLE = "I would rather not say."


class Model:
    """Says what a function of the message says, and remembers the messages."""

    def __init__(self, says: Any) -> None:
        self.says = says
        self.seen: list[Any] = []

    def generate(self, messages: Any, config: Any) -> list[Generation]:
        self.seen += messages
        self.config = config
        said = [self.says(message) for message in messages]
        return [each if isinstance(each, Generation) else Generation(each) for each in said]


class World:
    """A store, a folder of tables, a model ``model`` and judges.

    Args:
        folder: Where all of it lies.
        monkeypatch: Sets the folder of tables.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tables = folder / "tables"
        monkeypatch.setenv("LMUData", str(self.tables))
        self.url = str(folder / "store.db")
        self.catalog = Catalog(packages=(), entry_points=False)
        self.catalog.add_eval_setting_family(QuestionTables())
        self.answers: dict[str, str | Generation] = {}
        self.model = self._add("model", lambda message: self.answers[message.sample])

    def _add(self, name: str, says: Any) -> Model:
        made = Model(says)
        self.catalog.add_model(Generator(name, lambda: made, 2, weights="1", architecture={"toy": name}))
        return made

    def table(self, name: str, rows: Sequence[Mapping[str, str]], answers: Sequence[str | Generation]) -> None:
        """A table ``NAME.tsv``, each row with a picture, and the model's answers to its rows."""
        header = ["index", "image", *dict.fromkeys(column for row in rows for column in row)]
        lines = [[str(n), encoded("coffee"), *(row.get(each, "") for each in header[2:])] for n, row in enumerate(rows)]
        write_table(self.tables / f"{name}.tsv", header, lines)
        self.answers = {str(number): text for number, text in enumerate(answers)}

    def judge(self, replies: Mapping[str, str], name: str = "judge") -> Model:
        """A judge that gives the reply for the answer that it is asked about.

        Args:
            replies: The model's answer → the reply.
            name: Of the judge.
        """

        def says(message: Any) -> str:
            (reply,) = [reply for text, reply in replies.items() if f": {text}\n" in message.parts[0]]
            return reply

        return self._add(name, says)

    def run(self, *settings: str, model: str = "model") -> dict[str, dict[tuple[str, str], Any]]:
        """Runs settings; of each (metric, slice) → value."""
        options = RunOptions(db_url=self.url, executor="inline", data_workers=0)
        report = run(self.catalog, options, [model], settings)
        assert report.ok, report
        with Store.open(self.url) as store:
            return {
                name: {(each.metric, each.slice): each.value for each in store.results.find([model], [name])}
                for name in settings
            }

    def scores(self, setting: str, model: str = "model", what: str = "score") -> list[float]:
        """A stored score of each answer; NaN for none."""
        with Store.open(self.url) as store:
            (evaluation,) = store.evaluations.find([model], [setting])
            (found,) = (values for (_, name), values in store.scores.read(evaluation.id).items() if name == what)
            return [float(each) for each in found]
