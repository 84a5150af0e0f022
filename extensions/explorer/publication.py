"""The explorer of published results, for ``testbed publish``."""

from __future__ import annotations

from pathlib import Path

from testbed.db.store import Store
from testbed.extensions.explorer.explorer import make_explorer, samples_part
from testbed.extensions.explorer.export import write
from testbed.registry import registry
from testbed.stored_results.pictures import Pictures


def write_site(store: Store, folder: Path, title: str) -> int:
    """Writes the explorer's pages of the values that somebody publishes, and returns the number of files.

    Args:
        store: Store with only these values, as claims; their publisher has measured them.
        folder: The folder of the pages.
        title: Their title.
    """
    explorer = make_explorer(store, registry, None, title, {}, parts=True, measured=True)
    return write(folder, explorer, samples_part(explorer), Pictures(store, registry), {}).files
