"""Imports tables of results as claims, under their own names."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from testbed.claims.document import read_document
from testbed.claims.form import ImportReport
from testbed.claims.tables import read_csv
from testbed.db.store import Store
from testbed.errors import StoreError
from testbed.extensions.published.adding import add, read_folder


def import_results(
    store: Store, source: str | Path, model_types: Path | None = None, settings: Collection[str] | None = None
) -> ImportReport:
    """Imports a file of results, whose models and settings keep their names.

    Args:
        store: Store open for writing.
        source: A table or a JSON file, or a folder of JSON files, in a known format.
        model_types: ImageNet-testbed's table of model types (columns ``model`` and ``model_type``).
        settings: Names of settings in addition to the registry's: other columns of ImageNet-testbed's table are
            rejected. None accepts any column as a setting.

    Raises:
        StoreError: If the file has an unknown format or column, or a value out of range; nothing is imported then.
    """
    types = _read_types(model_types) if model_types else {}
    store.names.set_types(types)  # for existing models; invalid types are reported before anything else
    path = Path(source)
    documents = read_folder(path) if path.is_dir() else [read_document(path)]
    added = add(store, documents, path.stem, own_names=True, settings=settings)
    report = ImportReport(added.source.form, len(added.claims), new=added.new)
    report.cells = len({(claim.model, claim.eval_setting) for claim in added.claims})
    left_out = added.source.left_out.items()
    report.notes = [f"{column}: {number:,} of its values are left out" for column, number in left_out]
    store.names.set_types(types)
    return report


def _read_types(path: Path) -> dict[str, str]:
    header, rows = read_csv(path)
    if not {"model", "model_type"} <= set(header):
        raise StoreError(f"{path} should have the columns 'model' and 'model_type'; it has {', '.join(header)}")
    return {row[header.index("model")]: row[header.index("model_type")] for row in rows}
