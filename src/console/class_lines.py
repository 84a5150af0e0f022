"""Reports how a run read the classes of its data: a line per data set, and objects for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from testbed.console.output import say, say_some
from testbed.data.language.class_vocabulary import plain
from testbed.models.base.class_order import NATURAL, OPTION, folders_of, natural_key
from testbed.models.base.class_reading import numbered_outputs
from testbed.registry.references import SettingReference

if TYPE_CHECKING:
    from testbed.execution.report import Report
    from testbed.graph.cells import Cell
    from testbed.models.base.class_reading import ClassReading

SHOWN = 12  # lines
FIRST = 5  # class names that a line shows


def print_classes(report: Report) -> None:
    """Prints how classes were matched to outputs, and for which cells their order is unknown."""
    lines = [*lines_of_readings(report), *lines_of_numbers(report)]
    say_some(lines, SHOWN, "Classes: {}; --json shows how the classes of each were read", "more data set")
    for line in [*lines_of_parts(report), *lines_of_class_orders(report)]:
        say(line)


def readings_as_objects(report: Report) -> list[dict[str, Any]]:
    """Describes how classes were matched to outputs by name, cell by cell."""
    return [
        {
            "model": cell.model,
            "eval_setting": cell.setting,
            "outputs": read.known.vocabulary.title,
            "num_outputs": len(read.known.vocabulary),
            "from": read.known.where,
            "assumed": read.known.assumed,
            "among": "present" if present else "all",
            "classes": [
                {"class": name, "output": output, "id": read.known.vocabulary.wnid(output), "name": shown}
                for (name, shown), output in zip(read.pairs, read.outputs, strict=True)
            ],
        }
        for cell, read, present in _read_cells(report)
    ]


def lines_of_readings(report: Report) -> list[str]:
    """A line for each data set whose classes were matched by name, and for each way of matching them."""
    found: dict[tuple[Any, ...], tuple[ClassReading, bool, str, dict[str, None]]] = {}
    for cell, read, present in _read_cells(report):
        key = (cell.setting, read.outputs, read.known.words)
        found.setdefault(key, (read, present, cell.setting, {}))[3][cell.model] = None
    several = len({key[0] for key in found}) < len(found)  # models differ
    return [
        _line(read, present, setting + (f" with {', '.join(models)}" if several else ""))
        for read, present, setting, models in found.values()
    ]


def lines_of_numbers(report: Report) -> list[str]:
    """A line for each data set with numbered labels, whose classes have no names."""
    found = {}
    for cell in report.plan.cells:
        if cell.opened_model is None or cell.opened_setting is None:
            continue
        dataset, setting = cell.opened_setting.dataset, cell.opened_setting.setting
        known = numbered_outputs(cell.opened_model.definition, setting, dataset.class_names)
        if known is None:
            continue
        labels = sorted({label for sample in dataset.samples for label in _listed(sample.target) if type(label) is int})
        names = known.vocabulary
        shown = ", ".join(f"{label} = {names.display(label)}" for label in labels[:FIRST] if 0 <= label < len(names))
        found[cell.setting, known.words] = (
            f"Classes: {cell.setting} has labels without names; they are read as output numbers, {known.words}: {shown}"
        )
    return list(found.values())


def lines_of_parts(report: Report) -> list[str]:
    """A line for each data set that is only partly present."""
    found: dict[str, str] = {}
    for cell in report.plan.cells:
        opened = cell.opened_setting
        if opened is None or not opened.setting.samples.part_of:
            continue
        whole = str(replace(SettingReference.parse(cell.setting), part=False))
        names = opened.dataset.class_names or ()
        there = len({label for sample in opened.dataset.samples for label in _listed(sample.target)})
        found[cell.setting] = (
            f"Part: {cell.setting} has {len(opened.positions):,} of the {opened.setting.samples.part_of:,} samples of"
            f" {whole}, of {there:,} of its {len(names):,} classes; it counts as another setting, and is not compared"
            " with"
            f" published values of {whole}"
        )
    return list(found.values())


def as_run(report: Report, settings: Sequence[str]) -> list[str]:
    """Settings as a run names them; partly present ones have another name."""
    ran = {cell.setting for cell in report.plan.cells}
    return [text if text in ran else _part_in(ran, text) or text for text in settings]


def _part_in(ran: set[str], setting: str) -> str | None:
    name = str(replace(SettingReference.parse(setting), part=True))
    return name if name in ran else None


def _listed(target: Any) -> list[Any]:
    return target if isinstance(target, list) else [target]


def _line(read: ClassReading, present: bool, setting: str) -> str:
    outputs = len(read.known.vocabulary)
    if present:
        over = f"scored among these {len(read.outputs):,} classes alone"
    else:
        over = f"scored over all {outputs:,} outputs (--among present: over these alone)"
    return f"Classes: {setting} has {len(read.outputs):,} of {read.known.words}; {over}; read {_read_in_words(read)}"


def _read_in_words(read: ClassReading) -> str:
    """Describes how classes were read, with the classes whose outputs have other names."""
    other = [(name, shown) for name, shown in read.pairs if plain(name) != plain(shown)]
    if not other:
        return "by their names"
    more = f" and {len(other) - FIRST:,} more" if len(other) > FIRST else ""
    by_name = f"; {len(read.pairs) - len(other):,} by their names" if len(other) < len(read.pairs) else ""
    return f"as {', '.join(f'{name} = {shown}' for name, shown in other[:FIRST])}{more}{by_name}"


def _read_cells(report: Report) -> list[tuple[Cell, ClassReading, bool]]:
    return [
        (cell, cell.opened_setting.read, cell.opened_setting.setting.among_present)
        for cell in report.plan.cells
        if cell.opened_setting is not None and cell.opened_setting.read is not None
    ]


def lines_of_class_orders(report: Report) -> list[str]:
    """Lines about cells whose class order is unknown: programs differ in it, or texts are labels."""
    lines = []
    for cell in report.plan.cells:
        if cell.opened_model is None or cell.opened_setting is None or cell.opened_setting.read is not None:
            continue
        order = cell.opened_model.definition.class_order
        own = list(cell.opened_setting.dataset.class_names or ())
        if order is None:
            if getattr(cell.opened_setting.source, "sorted_texts", False):
                shown = _first([f"{place} {name}" for place, name in enumerate(own)])
                lines.append(
                    f"Class order? {cell.model} does not name its outputs; they are taken for the classes of"
                    f" {cell.setting} in alphabetical order: {shown}. If the order is another one, write numbers as"
                    " labels"
                )
            continue
        folders = folders_of(cell.opened_setting.setting)
        names = folders or own
        other = sorted(names, key=natural_key)
        if other == names or order.is_known(bool(folders)) or not (folders or order.where):
            continue
        lines.append(
            f"Class order? It is unknown in which order {cell.model} has the classes of {cell.setting}; the setting's"
            f" order was used: {_first(names)}. timm trains in the order {_first(other)}: if it was trained that way,"
            f" run again with {OPTION} {NATURAL}"
        )
    return lines


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:FIRST]) + (" …" if len(names) > FIRST else "")
