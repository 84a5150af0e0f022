"""The digits as a webdataset, whose class names and prompts may come from files."""

from __future__ import annotations

import json
from pathlib import Path

from testbed.data.sets.digits import CLASS_NAMES, Digits
from testbed.eval_settings.digits import TEMPLATES
from testbed.extensions.exchange.webdataset_export import export

EVERY_TENTH = 10


def write_digits(root: Path) -> Path:
    """Writes ``wds_digits`` with 54 digits and the digits' prompts; returns its folder."""
    source = Digits("test")
    source.ids, source.targets = source.ids[::EVERY_TENTH], source.targets[::EVERY_TENTH]
    images = [Digits("test").image(position) for position in range(0, 540, EVERY_TENTH)]
    source.image = images.__getitem__  # type: ignore[method-assign]
    export(source, root / "wds_digits", "test", "classification", templates=TEMPLATES)
    return root / "wds_digits"


def write_json(path: Path, content: object) -> str:
    """Writes a JSON file; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return str(path)


NAMES = {"digits": ["nought", *CLASS_NAMES[1:]]}
SHORT = {"digits": ["the number {c}"]}
BY_CLASS = {name: [f"a small {name}"] for name in CLASS_NAMES}
