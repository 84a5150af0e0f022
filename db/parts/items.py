"""Values keyed by content, each stored once per node: embeddings of texts, answers to messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from testbed.db.base import StorePart, in_parts, insert_new, insert_or_replace
from testbed.db.connection.retry import retried
from testbed.db.payloads import encoding
from testbed.db.tables import ItemValueRow
from testbed.errors import LackingEmbeddingsError
from testbed.identity.describe import digest_bytes

if TYPE_CHECKING:
    import numpy as np

AGAIN = "testbed run with the same model and setting and --override recomputes it"


class ItemValues(StorePart):
    """The outputs of models for texts, or for messages written as JSON.

    A node is named by the digest of everything that determines its values besides the text: the model, its weights
    and precision, and the language where it matters.
    """

    @retried
    def lacking(self, node: str, texts: Iterable[str]) -> list[str]:
        """The texts without a stored value, deduplicated, in order."""
        digests = {text_key(text): text for text in texts}
        known: set[str] = set()
        with self.reading() as session:
            for part in in_parts(digests):
                rows = sa.select(ItemValueRow.digest).where(ItemValueRow.node == node, ItemValueRow.digest.in_(part))
                known.update(session.scalars(rows))
        return [text for digest, text in digests.items() if digest not in known]

    @retried
    def put(self, node: str, texts: Sequence[str], values: Any, replace: bool = False) -> None:
        """Stores a value for each text; existing values are kept.

        Args:
            node: As in `lacking`.
            texts: Distinct texts.
            values: Array or CPU tensor [len(texts), D], or a list of JSON values.
            replace: Whether to replace existing values.
        """
        rows = []
        for text, value in zip(texts, values, strict=True):
            payload = encoding.encode([value] if isinstance(values, list) else value)
            rows.append(
                {
                    "node": node,
                    "digest": text_key(text),
                    "dtype": payload.dtype,
                    "shape": [payload.count, *payload.shape],
                    "checksum": payload.checksum,
                    "payload": bytes(payload.data),
                }
            )
        # All writers use the same order: otherwise two runs could wait for each other.
        rows.sort(key=lambda row: str(row["digest"]))
        with self.writing() as session:
            (insert_or_replace if replace else insert_new)(session, ItemValueRow, rows)

    @retried
    def read(self, node: str, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        """Reads the values of texts, in their order: array [len(texts), D].

        Raises:
            LackingEmbeddingsError: If one is missing, or they differ in width.
            CorruptOutputError: If one differs from its checksum.
        """
        import numpy as np

        places: dict[str, list[int]] = {}
        for index, text in enumerate(texts):
            places.setdefault(text_key(text), []).append(index)
        values: np.ndarray[Any, Any] | None = None
        found = 0
        table = ItemValueRow
        columns = (table.digest, table.dtype, table.shape, table.checksum, table.payload)
        with self.reading() as session:
            for part in in_parts(places):
                rows = sa.select(*columns).where(table.node == node, table.digest.in_(part))
                for digest, dtype, (width, *rest), checksum, payload in session.execute(rows):
                    encoding.verify(payload, checksum, f"the embedding of the text {digest}", AGAIN)
                    if values is None:
                        values = np.empty((len(texts), width, *rest), dtype=encoding.result_dtype(dtype))
                    if width != values.shape[1]:
                        raise LackingEmbeddingsError(
                            f"the stored embeddings of some texts have {values.shape[1]} numbers, those of"
                            " others"
                            f" {width}, although one model computed them: {AGAIN}"
                        )
                    values[places[digest]] = encoding.decode(payload, dtype, width, rest)
                    found += 1
        if found != len(places):
            raise LackingEmbeddingsError(
                f"{len(places) - found} of {len(places)} texts have no stored embedding; testbed run with the same"
                " model and setting computes them, with --override if the cell is stored"
            )
        return np.zeros((0, 0), dtype=np.float32) if values is None else values

    @retried
    def read_answers(self, node: str, texts: Sequence[str]) -> list[Any]:
        """Reads the JSON values of texts, in their order; None for a text without one.

        Raises:
            CorruptOutputError: If one differs from its checksum.
        """
        table = ItemValueRow
        found: dict[str, Any] = {}
        with self.reading() as session:
            for part in in_parts({text_key(text) for text in texts}):
                rows = sa.select(table.digest, table.dtype, table.checksum, table.payload)
                for digest, dtype, checksum, payload in session.execute(
                    rows.where(table.node == node, table.digest.in_(part))
                ):
                    encoding.verify(payload, checksum, f"the answer to the request {digest}", AGAIN)
                    found[digest] = encoding.decode(payload, dtype, 1, ())[0]
        return [found.get(text_key(text)) for text in texts]


def text_key(text: str) -> str:
    """The digest that identifies the values of a text."""
    return digest_bytes(text.encode("utf-8", "surrogatepass"))
