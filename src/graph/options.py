"""The options of a run."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from testbed.inputs import Inputs, active
from testbed.paths import ENV_PAYLOADS


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
        dtype: Precision of the models: one of `testbed.models.base.definition.PRECISIONS`.
        store_dtype: ``"float16"`` stores outputs that were computed in float32 at half the size; None stores them as
            they are.
        seed: Seed for perturbations, sampling and random weights.
        random_weights: Whether to build untrained architectures.
        strict: Whether an unreadable sample stops the run instead of counting as wrong.
        share_passes: Whether cells that read the same pixels are computed in one pass.
        trust: Whether stored evaluations are taken as they are, even if files or versions changed since.
        verify: How much of each stored evaluation is computed again and compared: a number of samples, or a share such
            as ``"1%"``; None for none.
        override: Whether to run again what is stored already; the stored evaluations are set aside.
        compile: Whether networks are compiled by torch.compile; recorded with the evaluations.
        channels_last: Whether images and weights lie in memory with the channels last; recorded likewise.
        decoded_cache: Bytes of disk for decoded and transformed images, in the cache folder of each machine; 0: none.
        profile: Whether to measure where time goes; stored with the evaluations.
        verbose: Whether workers report where errors come from.
        executor: Where cells are computed: ``"processes"``, ``"inline"`` (in this process), ``"ray"``, or an installed
            one.
        ray_address: The Ray cluster, such as ``"10.0.0.1:6379"``; None: the one of this machine, else a new one.
        clear_cache_interval: After how many texts a scorer gives unused memory back to the GPU; None never.
        progress_interval: After how many samples or texts of a pass a line is printed; None after ten seconds.
        inputs: What is read besides definitions: the data root, class names, zero-shot heads and the like; None takes
            what the user's variables say when the run starts.
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
    store_dtype: str | None = None
    seed: int = 0
    random_weights: bool = False
    strict: bool = False
    share_passes: bool = True
    trust: bool = False
    verify: str | None = None
    override: bool = False
    executor: str = "processes"
    ray_address: str | None = None
    compile: bool = False
    channels_last: bool = False
    decoded_cache: int = 0
    profile: bool = False
    verbose: bool = False
    clear_cache_interval: int | None = None
    progress_interval: int | None = None
    inputs: Inputs | None = None

    @property
    def precision(self) -> str:
        """The precision of the outputs, a part of their identity."""
        return f"{self.dtype}/{self.store_dtype}" if self.store_dtype else self.dtype

    @property
    def random_seed(self) -> int | None:
        """The seed of random weights; None for trained weights."""
        return self.seed if self.random_weights else None

    def resolved(self) -> RunOptions:
        """These options with the user's variables read where they leave something to them, so that no process asks."""
        payload_url = os.environ.get(ENV_PAYLOADS, "") if self.payload_url is None else self.payload_url
        return replace(self, payload_url=payload_url, inputs=self.inputs or active())
