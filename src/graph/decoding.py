"""Names for what decoding and transforming make of an image: equal where the same content becomes the same pixels."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import testbed
from testbed.data.decode import decoder
from testbed.errors import IdentityError
from testbed.identity.describe import describe, digest
from testbed.provenance.libraries import NUMERIC
from testbed.provenance.manifest import LIBRARY, Today

_PACKAGE = Path(testbed.__file__).resolve().parent


def pixels_key(transform: Any, setting_transform: Any) -> str | None:
    """A name for the pixels that a model's transform makes of images, which outlasts this run.

    It changes with the versions of libraries and with testbed's own code.

    Args:
        transform: The model's.
        setting_transform: The setting's, which comes first; or None.

    Returns:
        The name; None where users' own code takes part, which may depend on more than its text.
    """
    files: set[str] = set()
    try:
        described = describe([transform, setting_transform], files)
    except IdentityError:
        return None
    if not all(Path(file).is_relative_to(_PACKAGE) for file in files):
        return None
    return digest([decoder(), described, _surroundings()])


@cache
def _surroundings() -> Any:
    return Today().record_of((LIBRARY, name) for name in NUMERIC)[LIBRARY]
