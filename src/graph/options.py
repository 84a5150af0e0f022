"""The options of a run."""

import os
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

from testbed.inputs import Inputs, active
from testbed.models.base.definition import PRECISIONS
from testbed.paths import ENV_PAYLOADS


def option(text: str, *flags: str, **facts: Any) -> dict[str, Any]:
    """Declares a field's option on the command line, in the field's annotation.

    Args:
        text: The help text.
        flags: The option's flags. Default: ``--`` and the field's name.
        facts: Its ``least`` number, its ``choices``, its ``unit`` (``"bytes"``), and keywords of `click.Option`.
    """
    return {"help": text, "flags": flags, **facts}


@dataclass(frozen=True)
class RunOptions:
    """The options of a run: those of the command line, except for names and output.

    Annotations have the help texts of the options; these fields are described here:

    Attributes:
        db_url: The store; None: the default.
        plugins: Definition files to load.
        share_passes: Whether cells that read the same pixels are computed in one pass.
        payload_url: None: the default; an empty string: the database.
        clear_cache_interval: After how many texts a scorer gives unused memory back to the GPU; None never.
        progress_interval: After how many samples or texts of a pass a line is printed; None after ten seconds.
        inputs: What is read besides definitions: the data root, class names, zero-shot heads and the like; None takes
            what the user's variables say when the run starts.
    """

    db_url: str | None = None
    plugins: tuple[str, ...] = ()
    limit: Annotated[int | None, option("At most N samples of each setting, evenly spread.", metavar="N", least=1)] = (
        None
    )
    seed: Annotated[int, option("Seed for perturbations, sampling and random weights.", show_default=True)] = 0
    random_weights: Annotated[bool, option("Build untrained architectures; their results are marked.")] = False
    strict: Annotated[
        bool,
        option(
            "Stop at a sample that cannot be read instead of counting it as wrong; fail if outputs are NaN or"
            " infinite, or if a data set leaves out files that may be samples."
        ),
    ] = False
    gpus: Annotated[
        tuple[int, ...] | None, option("GPUs to use.  [default: all, else the CPU]", metavar="ID", least=0)
    ] = None
    cpu_processes: Annotated[
        int | None, option("Evaluation processes on the CPU.  [default: 1]", metavar="N", least=1)
    ] = None
    data_workers: Annotated[
        int | None,
        option("Data-loading processes for each evaluation process.", "--workers", metavar="N", least=0),
    ] = None
    batch_size: Annotated[
        int | None,
        option(
            "Batch size (attacks and vLLM use each model's own).  [default: each model's own]", metavar="N", least=1
        ),
    ] = None
    dtype: Annotated[
        str,
        option(
            "Precision of the models (tf32: TensorFloat-32, on NVIDIA's GPUs; lower ones through torch.autocast).",
            choices=PRECISIONS,
            show_default=True,
        ),
    ] = "float32"
    executor: Annotated[
        str,
        option(
            "Where cells are computed: in 'processes', 'inline' in this one (for debuggers), on a 'ray' cluster, or by"
            " an installed executor.",
            metavar="NAME",
            show_default=True,
        ),
    ] = "processes"
    ray_address: Annotated[
        str | None,
        option(
            "The Ray cluster for --executor ray.  [default: $RAY_ADDRESS, else this machine's, else a new one]",
            metavar="HOST:PORT",
        ),
    ] = None
    compile: Annotated[bool, option("Compile networks with torch.compile: slow to start, then faster.")] = False
    channels_last: Annotated[
        bool, option("Keep images and weights in the channels_last layout, which speeds up convolutions.")
    ] = False
    decoded_cache: Annotated[
        int,
        option(
            "Keep decoded and transformed images in the cache folder, up to this size (such as 20G), so that the next"
            " model with the same transform decodes nothing.  [default: none]",
            metavar="SIZE",
            unit="bytes",
        ),
    ] = 0
    profile: Annotated[bool, option("Measure where time goes (reading, decoding, forward, …); print and store it.")] = (
        False
    )
    override: Annotated[bool, option("Run stored cells again; the stored evaluations are hidden.")] = False
    trust: Annotated[bool, option("Reuse stored results unchecked, even if files or versions have changed since.")] = (
        False
    )
    verify: Annotated[
        str | None,
        option(
            "Recompute N samples (or P percent) of each stored result, compare them, and store the outcome.",
            metavar="N|P%",
        ),
    ] = None
    share_passes: Annotated[bool, option("Read the images again for each cell.", "--no-shared-pass")] = True
    payload_url: Annotated[
        str | None,
        option("Store outputs at an fsspec URL (s3://…, file://…), not in the database.", metavar="URL"),
    ] = None
    store_dtype: Annotated[
        str | None,
        option(
            "Store logits and embeddings rounded to 3 digits, at half the size, as separate evaluations.",
            choices=("float16",),
        ),
    ] = None
    verbose: Annotated[bool, option("Print more; show where errors come from.", "-v", "--verbose")] = False
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

    def resolved(self) -> Self:
        """These options with the user's variables read where they leave something to them, so that no process asks."""
        payload_url = os.environ.get(ENV_PAYLOADS, "") if self.payload_url is None else self.payload_url
        return replace(self, payload_url=payload_url, inputs=self.inputs or active())
