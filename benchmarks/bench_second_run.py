"""Measures the cost of validating stored results: the demo's 192 cells, defined by a separate plug-in.

    python benchmarks/bench_second_run.py [--repeats 5] [--before /path/to/another/checkout/eval.py --python ITS_PYTHON]

Times whole programs: an unchanged command, the same after ``touch`` on the plug-in, and after an edit of a comment in
it, which computes eight samples of each cell again. With ``--before``, the unchanged command of another checkout runs
in turn with this one, each on a store of its own.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

EVAL = Path(__file__).parent.parent / "eval.py"
# 32 settings on the digits, so that with the demo's six models there are 192 cells.
PLUGIN = """
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.registry import registry

digits = registry.get_eval_setting("digits")
TEMPLATES = ["a photo of the digit {c}"]
for index in range(32):
    registry.add_eval_setting(
        EvalSetting(
            name=f"shade-{index}",
            dataset=digits.dataset,
            size=digits.size,
            perturbation_fn_gpu=lambda images, factor=1 - index / 64: images * factor,
            templates=TEMPLATES,
        )
    )
"""


class Program:
    """``eval.py`` of a checkout, on a store of its own."""

    def __init__(self, script: Path, python: str, folder: Path) -> None:
        folder.mkdir()
        self.plugin = folder / "shades.py"
        self.plugin.write_text(PLUGIN)
        self.words = [python, str(script), "--plugin", str(self.plugin), "--models", "demo"]
        self.words += ["--eval-settings", "shade-*", "--db-url", str(folder / "testbed.db")]

    def seconds(self) -> float:
        """Measures the time of a run."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        began = time.perf_counter()
        subprocess.run(self.words, check=True, capture_output=True, env=environment)
        return time.perf_counter() - began


@click.command()
@click.option("--repeats", default=5, show_default=True)
@click.option("--before", type=click.Path(exists=True, path_type=Path), help="The eval.py of another checkout.")
@click.option("--python", default=sys.executable, help="The Python that the other checkout is installed for.")
def main(repeats: int, before: Path | None, python: str) -> None:
    """Prints medians, and ratios run by run."""
    with tempfile.TemporaryDirectory() as name:
        ours = Program(EVAL, sys.executable, Path(name) / "ours")
        print(f"first run, 192 cells: {ours.seconds():.1f} s")
        if before is not None:
            theirs = Program(before, python, Path(name) / "theirs")
            theirs.seconds()
            pairs = [(ours.seconds(), theirs.seconds()) for _ in range(repeats)]
            ratio = statistics.median(one / other for one, other in pairs)
            print(f"unchanged, against {before}: ratio {ratio:.2f} (median of {repeats} pairs)")
        unchanged = [ours.seconds() for _ in range(repeats)]
        print(f"unchanged: {statistics.median(unchanged):.2f} s")
        for what in ("touch", "edit of a comment"):
            times = []
            for turn in range(repeats):
                ours.plugin.touch()
                if what != "touch":
                    ours.plugin.write_text(f"{ours.plugin.read_text()}# {turn}\n")
                times.append(ours.seconds())
            print(f"after {what}: {statistics.median(times):.2f} s")


if __name__ == "__main__":
    main()
