"""The options of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Executor = Literal["processes", "inline"]


@dataclass(frozen=True)
class RunOptions:
    """The options of a run: those of the command line, except for names and output.

    Attributes:
        db_url: The store; None: the default.
        payload_url: Where outputs are stored (fsspec); None: the default; an empty string: the database.
        plugins: Definition files to load.
        limit: The maximum number of samples of each setting, evenly spread.
        batch_size: Images per batch; None: each model's own batch size.
        data_workers: Data-loading processes for each evaluation process; None: automatic.
        gpus: Ids of the GPUs to use; None: all visible ones.
        cpu_processes: Evaluation processes on the CPU; None: automatic.
        dtype: Precision of the models: float32, bfloat16 or float16.
        seed: Seed for perturbations, sampling and random weights.
        random_weights: Whether to build untrained architectures.
        strict: Whether an unreadable sample stops the run instead of counting as wrong.
        share_passes: Whether cells that read the same pixels are computed in one pass.
        trust: Whether to reuse stored evaluations unchecked, even if files or versions changed since.
        verify: How much of each stored evaluation to recompute and compare: a number of samples, or a share such as
            ``"1%"``; None: nothing.
        override: Whether to run stored cells again; the stored evaluations are set aside.
        verbose: Whether workers report where errors come from.
        executor: Whether cells are computed in separate processes or in this one.
        clear_cache_interval: The number of texts after which a judge clears the GPU's cache; None: never.
        progress_interval: The number of samples or texts between progress lines; None: a line every ten seconds.
    """

    db_url: str | None = None
    payload_url: str | None = None
    plugins: tuple[str, ...] = ()
    limit: int | None = None
    batch_size: int | None = None
    data_workers: int | None = None
    gpus: tuple[int, ...] | None = None
    cpu_processes: int | None = None
    dtype: str = "float32"
    seed: int = 0
    random_weights: bool = False
    strict: bool = False
    share_passes: bool = True
    trust: bool = False
    verify: str | None = None
    override: bool = False
    executor: Executor = "processes"
    verbose: bool = False
    clear_cache_interval: int | None = None
    progress_interval: int | None = None

    @property
    def random_seed(self) -> int | None:
        """The seed of random weights; None for trained weights."""
        return self.seed if self.random_weights else None
