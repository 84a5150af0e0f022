"""The samples of records as files: answers that can be scored again, and tables of the values of all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from testbed.errors import StoreError
from testbed.exchange.every_eval_ever.reading import is_class, read_samples, records_in
from testbed.exchange.recorded import write_answers, write_values

UNKNOWN = "samples are of eval settings that testbed does not have; only their values are written"


@dataclass
class SampleFiles:
    """What was written.

    Attributes:
        samples: The number of samples in the records.
        files: The files.
        answers: Of these, recorded answers → the eval setting that they are of.
        left_out: Why samples were left out, or what of them → how often.
    """

    samples: int = 0
    files: list[str] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)


def write_samples(source: Path, folder: Path | None, is_known: Callable[[str], bool]) -> SampleFiles:
    """Writes the samples of the records in a folder.

    Answers in text to an eval setting that is known are written as recorded answers; all samples as tables of values.

    Args:
        source: The folder, or the file of one record.
        folder: The output folder, created if missing; None writes nothing.
        is_known: Whether a name is an eval setting's.

    Raises:
        StoreError: If there is no record, or one cannot be read; or two records are of one cell.
    """
    done = SampleFiles()
    held: dict[tuple[str, str], Path] = {}
    for path in records_in(source) if source.is_dir() else [source]:
        record = read_samples(path)
        done.left_out.update(record.left_out)
        for setting, samples in record.samples.items():
            other = held.setdefault((record.model, setting), path)
            if other != path:
                raise StoreError(
                    f"{other} and {path} both have samples of {record.model} on {setting}; import them apart"
                )
            done.samples += len(samples)
            texts = {name: each for name, each in samples.items() if not is_class(each) and each.kind == "text"}
            if texts and not is_known(setting):
                done.left_out[UNKNOWN] += len(texts)
            if folder is None:
                continue
            if texts and is_known(setting):
                answers = write_answers(folder, record.model, setting, texts)
                done.answers[str(answers)] = setting
                done.files.append(str(answers))
            done.files.append(str(write_values(folder, record.model, setting, samples)))
    return done
