"""First looks at what the user's functions return where a breach of their contract gives plausible numbers.

Images are looked at where they are read. Outputs and perturbed images are looked at once, when they have arrived on the
host: nothing waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch

from testbed import devices
from testbed.contracts import returned
from testbed.contracts.returned import Range
from testbed.data.reader import Batch
from testbed.models.base.capability import LOGITS
from testbed.workers.context import Context
from testbed.workers.kernels.variants import ReadyCell

Look = tuple[str, devices.Download]  # a setting, and the range of images that it has perturbed


class Looks:
    """Checks of the values of images in a pass.

    Args:
        context: Takes lines for the user, and what is remarked on stored outputs.
        fail: Called with the evaluation of a cell and the reason why it fails.
    """

    def __init__(self, context: Context, fail: Callable[[int, str], None]) -> None:
        self._context = context
        self._fail = fail
        self._said: set[int] = set()
        self._noted: set[str] = set()
        self._perturbed: set[str] = set()
        self._outputs: set[int] = set()

    def at_images(self, cells: Sequence[ReadyCell], batch: Batch) -> list[ReadyCell]:
        """Fails the cells that perturb images which are not in [0, 1]; returns the others, of which it is said."""
        found = batch.range
        if found is None or not returned.outside(found):
            for setting in batch.perturbed.keys() - self._perturbed:
                self._perturbed.add(setting)
                self._say("perturbation_fn_cpu", setting, returned.range_of(batch.perturbed[setting]))
            return list(cells)
        said, how = returned.in_words(found), returned.how_to_stay(found)
        for cell in cells:
            name, setting = cell.model.name, cell.setting.name
            if cell.perturbs:
                self._fail(
                    cell.cell.evaluation_id,
                    f"the transform of {name} returns {said}, and {setting} perturbs images in [0, 1]: {how}",
                )
            elif cell.cell.evaluation_id not in self._said:
                self._said.add(cell.cell.evaluation_id)
                text = (
                    f"its transform returns {said}, not images in [0, 1]; settings that perturb images refuse it: {how}"
                )
                self._remark(cell, text, f"{name}: {text}")
        return [cell for cell in cells if not cell.perturbs]

    def at_perturbed(self, looks: list[Look], cell: ReadyCell, images: torch.Tensor) -> None:
        """Copies the range of the first images that a setting has perturbed to the host."""
        if cell.setting.name not in self._perturbed and len(images):
            self._perturbed.add(cell.setting.name)
            looks.append((cell.setting.name, devices.Download(torch.stack(torch.aminmax(images)))))

    def at_ranges(self, looks: Sequence[Look], cells: Iterable[ReadyCell]) -> None:
        """Fails the cells of settings whose perturbed images are far from [0, 1]."""
        for setting, download in looks:
            low, high = download.wait().tolist()
            if why := returned.far_outside("perturbation_fn_gpu", (low, high)):
                for cell in [ready_cell for ready_cell in cells if ready_cell.setting.name == setting]:
                    self._fail(cell.cell.evaluation_id, why)
            else:
                self._say("perturbation_fn_gpu", setting, (low, high))

    def _say(self, function: str, setting: str, found: Range) -> None:
        """Reports perturbed images that are slightly outside [0, 1], such as after noise that was not clipped."""
        if returned.outside(found):
            self._context.channel.note(
                f"{setting}: {function} returns {returned.in_words(found)}; models see images in [0, 1] elsewhere:"
                " clamp(0, 1) keeps them there"
            )

    def at_outputs(self, cell: ReadyCell | None, outputs: torch.Tensor) -> None:
        """Remarks on outputs that seem to be something else than logits."""
        if cell is None or cell.cell.evaluation_id in self._outputs or not len(outputs):
            return
        self._outputs.add(cell.cell.evaluation_id)
        own = cell.setting.metrics_fn is not None
        if own or cell.setting.task != "classification" or LOGITS not in cell.model.capabilities:
            return
        doubt = returned.doubts_about_logits(outputs) if outputs.ndim == 2 else ""
        if doubt:
            text = (
                f"{doubt}; top1 is right, but nll, brier, ece and confidence take logits, and are wrong: leave out the"
                " softmax or sigmoid, or return its logarithm"
            )
            self._remark(cell, f"the outputs {text}", f"{cell.model.name}: the outputs on {cell.setting.name} {text}")

    def _remark(self, cell: ReadyCell, stored: str, said: str) -> None:
        """Stores a line with an evaluation, and reports it, unless another worker has done so."""
        if self._context.store.evaluations.remark(cell.cell.evaluation_id, stored) and said not in self._noted:
            self._noted.add(said)
            self._context.channel.note(said)
