"""Tables of results become claims, under the names that they have."""

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
    """Imports a file of results, whose models and settings keep the names that they have there.

    Args:
        store: Open to write.
        source: A table or a JSON file, or a folder of JSON files, of a form that is known.
        model_types: ImageNet-testbed's table of model types (columns ``model`` and ``model_type``).
        settings: Names of settings besides the registry's: a column of ImageNet-testbed's table that names another one
            is refused. None takes any column as a setting.

    Raises:
        StoreError: If the file is of no form that is known, has a column that is not, or a value out of range; nothing
            is imported then.
    """
    types = _read_types(model_types) if model_types else {}
    store.names.set_types(types)  # of models that are there; and one that cannot be stored is told before all else
    path = Path(source)
    documents = read_folder(path) if path.is_dir() else [read_document(path)]
    added = add(store, documents, path.stem, own_names=True, settings=settings)
    report = ImportReport(added.source.form, len(added.claims), new=added.new)
    report.cells = len({(each.model, each.eval_setting) for each in added.claims})
    left_out = added.source.left_out.items()
    report.notes = [f"{column}: {number:,} of its values are left out" for column, number in left_out]
    store.names.set_types(types)
    return report


def _read_types(path: Path) -> dict[str, str]:
    header, rows = read_csv(path)
    if not {"model", "model_type"} <= set(header):
        raise StoreError(f"{path} should have the columns 'model' and 'model_type'; it has {', '.join(header)}")
    return {row[header.index("model")]: row[header.index("model_type")] for row in rows}
