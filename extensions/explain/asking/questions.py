"""A model's answers to the questions of a setting, asked or judged in other ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.arrays import Array
from testbed.errors import SampleError
from testbed.extensions.explain.asking.asked import QuestionProtocol, asked_of, asking
from testbed.extensions.explain.asking.respondent import Respondent
from testbed.extensions.explain.axis import NotApplicableError, Variant
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.graph.build import Graph
from testbed.graph.item_nodes import recorded_nodes
from testbed.graph.message_ops import RowAnswers
from testbed.graph.nodes import Items
from testbed.graph.ops import Answers
from testbed.graph.requests import request_text
from testbed.graph.stored import read_outputs
from testbed.graph.values import Values
from testbed.identity.describe import describe_fields
from testbed.identity.fingerprints import forward_fingerprint, model_identity, weights_identity
from testbed.models.base.capability import Message
from testbed.tasks.judged_answers import task as judged
from testbed.tasks.parts.generation import replies_of
from testbed.tasks.question_answering import columns_of, named, score_array, task, verdicts_of
from testbed.workers.kernels.answering import Output
from testbed.workers.kernels.messages import converse
from testbed.workers.kernels.perturb import perturbed

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting


Reply = dict[str, Any] | None  # as stored


def _reply(output: Output) -> Reply:
    """The stored form of an output; None for a failed message."""
    return output if isinstance(output, dict) else None


class _Heard(Values):
    """Answers to some samples, and the replies of judges.

    Attributes:
        heard: Role → request → reply.
    """

    def __init__(self, outputs: Sequence[Reply], samples: Sequence[Any]) -> None:
        super().__init__(outputs, samples)
        self.heard: dict[str, dict[str, Reply]] = {}

    def replies(self, role: str, messages: Sequence[Message]) -> list[Reply]:
        """See `Values.replies`."""
        found = self.heard.get(role, {})
        return [found.get(request_text(message)) for message in messages]


class Questions:
    """The answers of a cell's model to its questions, asked or judged in other ways.

    Args:
        cell: The cell.
        device: Device for models that are not served.
    """

    def __init__(self, cell: EvaluatedCell, device: str = "cpu") -> None:
        self.cell = cell
        self.device = device
        forward = cell.identity.get("forward", {})
        self.seed = int(forward.get("sampling") or (forward.get("noise") or [0])[-1] or 0)
        self.own = asked_of(cell.setting)
        self._scores: dict[Variant, dict[int, float]] = {}
        self._found: dict[Variant, Sequence[Reply] | None] = {}
        self._respondents: dict[str, Respondent] = {}

    # Who is asked -------------------------------------------------------------------------------------------------

    @property
    def used(self) -> int:
        """The number of answers needed so far, including stored ones."""
        return sum(respondent.used for respondent in self._respondents.values())

    @property
    def sent(self) -> dict[str, int]:
        """Model → number of messages sent."""
        return {name: value.sent for name, value in self._respondents.items() if value.sent}

    def asks_anew(self, variant: Variant) -> bool:
        """Returns whether the model under test is asked, rather than only a judge."""
        changed: QuestionProtocol = variant.change(self.own)
        return not changed.asks_as(self.own)

    def judges(self, variant: Variant | None) -> Counter[str]:
        """Judge → maximum number of requests per answer."""
        return Counter(judging.by for judging in self._judging(variant)[1].values())

    def require_model(self) -> None:
        """Checks that the model can be asked, and that it is the evaluated one.

        Raises:
            NotApplicableError: If not.
        """
        if self.own.judges and not self.judges(None):
            raise NotApplicableError("these answers are judged by labels in files rather than by a model")
        self._require(self._model.identity, model_identity(self.cell.identity), self._model.name)
        self._model.loaded  # noqa: B018 - whether it can be asked

    def require_judges(self) -> None:
        """Checks that the judges are those that judged the stored answers.

        Raises:
            NotApplicableError: If not.
        """
        recorded = recorded_nodes(self.cell.identity)
        for role, items in self._judging(None)[1].items():
            judge = self._respondent(items.by)
            node = items.op.node(judge.identity, judge.definition, self.seed)
            self._require(node, recorded.get(role), items.by)

    def _require(self, found: str, stored: str | None, name: str) -> None:
        if found != stored:
            evaluation = self.cell.evaluation
            again = f"testbed run {evaluation.model} --on {evaluation.eval_setting}"
            raise NotApplicableError(f"{name} has changed since the answers were stored; {again} evaluates it again")

    @property
    def _model(self) -> Respondent:
        return self._respondent(self.cell.evaluation.model)

    def _respondent(self, name: str) -> Respondent:
        if name not in self._respondents:
            self._respondents[name] = Respondent(self.cell, name, self.seed, self.device)
        return self._respondents[name]

    # What is said -------------------------------------------------------------------------------------------------

    def conversations(self, variant: Variant | None, rows: Sequence[int]) -> list[Sequence[Message]]:
        """The model's messages for some samples, in turns; None is the stored way. Unreadable samples have none."""
        return [self._conversation(self._op(variant), row) for row in rows]

    def idle(self, variant: Variant, rows: Sequence[int]) -> bool:
        """Returns whether a variant asks and judges some samples in the same way as stored."""
        if not self.asks_anew(variant):
            return bool(variant.change(self.own) == self.own)
        same = self._op(variant).config == self._op(None).config
        return same and self.conversations(variant, rows) == self.conversations(None, rows)

    def _conversation(self, op: RowAnswers, row: int) -> Sequence[Message]:
        setting, sample = self._base, self.cell.dataset.samples[row].id
        sees = self._model.definition.sees_images
        try:
            content = op.read(self._source, self._positions[row], setting, sees)
        except SampleError:
            return ()
        if setting.perturbation and sees:
            content = op.changed(content, sample, lambda image, key: self._perturbed(image, key))
        return op.turns(setting, self._model.loaded, sample, content)

    def _perturbed(self, image: Any, key: str) -> Any:
        return perturbed(image, self._base, key, self.device, self.seed)

    # What is answered ---------------------------------------------------------------------------------------------

    def scores(self, variant: Variant, rows: Sequence[int]) -> Array:
        """The score of each answer, float array [m]; NaN if missing. Each answer is requested once."""
        held = self._scores.setdefault(variant, {})
        missing = [row for row in rows if row not in held]
        if missing:
            held.update(zip(missing, self._scored(variant, missing).tolist(), strict=True))
        return np.array([held[row] for row in rows], dtype=np.float64)

    def stored(self, variant: Variant) -> Sequence[Reply] | None:
        """The answers to all samples, from this evaluation or that of a variant; None if not stored."""
        return self.cell.answers if not self.asks_anew(variant) else self._evaluated(variant)

    def _scored(self, variant: Variant, rows: Sequence[int]) -> Array:
        samples = [self.cell.dataset.samples[row] for row in rows]
        outputs = self._outputs(variant, rows)
        setting, asked = self._judging(variant)
        if setting.task == task.name:
            scoring, _, rules = named(setting)
            columns = [columns_of(sample.target, setting.name) for sample in samples]
            return score_array(verdicts_of(scoring, columns, replies_of(outputs), rules))
        values = _Heard(outputs, samples)
        for role, items in asked.items():
            messages = [request for request in items.requests(setting, values) if isinstance(request, Message)]
            assert isinstance(items.op, Answers)
            replies = map(_reply, self._respondent(items.by).answers(messages, items.op.config))
            values.heard[role] = dict(zip(map(request_text, messages), replies, strict=True))
        return judged.scores(values, setting, self.cell.evaluation.model)

    def _outputs(self, variant: Variant, rows: Sequence[int]) -> list[Reply]:
        stored = self.stored(variant)
        if stored is not None:
            return [stored[row] for row in rows]
        op = self._op(variant)
        said = [(row, turns) for row in rows if (turns := self._conversation(op, row))]
        answer = partial(self._model.answers, config=op.config)
        outputs = converse(answer, [turns for _, turns in said])
        found = {row: _reply(output) for (row, _), output in zip(said, outputs, strict=True)}
        return [found.get(row) for row in rows]

    def _evaluated(self, variant: Variant) -> Sequence[Reply] | None:
        """The answers of an evaluation of a variant, identified by everything that they depend on."""
        if variant not in self._found:
            self._found[variant] = self._look_up(variant)
        return self._found[variant]

    def _look_up(self, variant: Variant) -> Sequence[Reply] | None:
        op, identity = self._op(variant), self.cell.identity
        spec = op.spec(self.cell.model, self._base, self.cell.dataset.class_names, self.seed)
        forward = describe_fields({**spec, "restricted": op.restricts(self.cell.model, self._base)})
        own = {name: value for name, value in identity["forward"].items() if name == "source"}
        model = weights_identity(identity["model"]["spec"], identity["model"]["weights"])
        fingerprint = forward_fingerprint(model, identity["dtype"], dict(sorted((forward | own).items())))
        found = self.cell.store.evaluations.sources([fingerprint])
        same = next((item for item in found if item.dataset_id == self.cell.evaluation.dataset_id), None)
        return None if same is None else list(read_outputs(self.cell.store, same.id))

    # Definitions --------------------------------------------------------------------------------------------------

    @cached_property
    def _base(self) -> EvalSetting:
        """The setting that asks the questions: for a judged setting, the one with the answers."""
        setting = self.cell.setting
        return setting if setting.scoring is None else self.cell.catalog.get_eval_setting(setting.scoring.of)

    def _op(self, variant: Variant | None) -> RowAnswers:
        changed = asking(self._base, self._base.name, [variant.change] if variant is not None else [])
        op = task.build(Graph(self.cell.model, changed)).outputs.op  # type: ignore[union-attr]
        assert isinstance(op, RowAnswers)
        return op

    def _judging(self, variant: Variant | None) -> tuple[EvalSetting, dict[str, Items]]:
        """The scoring of answers, and the questions to judges, by role."""
        setting = self.cell.setting
        if setting.scoring is None:
            return setting, {}
        if variant is not None and not self.asks_anew(variant):
            setting = asking(setting, setting.name, [variant.change])
        built = judged.build(Graph(self.cell.model, setting)).inputs
        return setting, {role: value for role, value in built.items() if isinstance(value, Items)}

    @cached_property
    def _source(self) -> Any:
        return self._base.dataset.open()

    @cached_property
    def _positions(self) -> Sequence[int]:
        positions = self._base.samples.positions(self._source, self.cell.evaluation.sample_limit)
        if [self._source.ids[position] for position in positions] != [
            sample.id for sample in self.cell.dataset.samples
        ]:
            raise NotApplicableError("the data set is not the one that was evaluated")
        return positions
