"""Embeddings of texts in the store: each text once for each model that embedded it, found by its content."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from testbed.db import payloads
from testbed.db.base import StoreBase, in_parts, insert_new, insert_or_replace
from testbed.db.tables import TextEmbeddingRow
from testbed.errors import LackingEmbeddingsError
from testbed.identity import digest_bytes

if TYPE_CHECKING:
    import numpy as np

AGAIN = "eval.py with the same model and setting and --override embeds its texts again"


class TextEmbeddings(StoreBase):
    """What embedding models made of texts."""

    def lacking_texts(self, encoder: str, texts: Iterable[str]) -> list[str]:
        """Those of some texts that are not embedded yet, each once, in their order.

        Args:
            encoder: What tells the model from others, its weights and its precision included.
            texts: Any.
        """
        digests = {_digest(text): text for text in texts}
        known: set[str] = set()
        with self.reading() as session:
            for part in in_parts(digests):
                rows = sa.select(TextEmbeddingRow.digest).where(
                    TextEmbeddingRow.encoder == encoder, TextEmbeddingRow.digest.in_(part)
                )
                known.update(session.scalars(rows))
        return [text for digest, text in digests.items() if digest not in known]

    def put_text_embeddings(self, encoder: str, texts: Sequence[str], values: Any, replace: bool = False) -> None:
        """Keeps embeddings; of a text that is embedded already, the first stays.

        Args:
            encoder: As in `lacking_texts`.
            texts: Different ones.
            values: Array or CPU tensor [len(texts), D].
            replace: Whether these take the place of what is there.
        """
        rows = []
        for text, value in zip(texts, values, strict=True):
            payload = payloads.encode(value)
            rows.append(
                {
                    "encoder": encoder,
                    "digest": _digest(text),
                    "dtype": payload.dtype,
                    "width": payload.count,
                    "checksum": payload.checksum,
                    "payload": bytes(payload.data),
                }
            )
        # In one order, as every writer has it: else two runs could wait for each other.
        rows.sort(key=lambda row: str(row["digest"]))
        with self.writing() as session:
            (insert_or_replace if replace else insert_new)(session, TextEmbeddingRow, rows)

    def read_text_embeddings(self, encoder: str, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        """The embeddings of some texts, in their order: array [len(texts), D].

        Raises:
            LackingEmbeddingsError: If one is not stored, or they are not all of one width.
            CorruptOutputError: If one differs from its checksum.
        """
        import numpy as np

        places: dict[str, list[int]] = {}
        for place, text in enumerate(texts):
            places.setdefault(_digest(text), []).append(place)
        values: np.ndarray[Any, Any] | None = None
        found = 0
        table = TextEmbeddingRow
        columns = (table.digest, table.dtype, table.width, table.checksum, table.payload)
        with self.reading() as session:
            for part in in_parts(places):
                rows = sa.select(*columns).where(table.encoder == encoder, table.digest.in_(part))
                for digest, dtype, width, checksum, payload in session.execute(rows):
                    payloads.verify(payload, checksum, f"the embedding of the text {digest}", AGAIN)
                    if values is None:
                        values = np.empty((len(texts), width), dtype=payloads.result_dtype(dtype))
                    if width != values.shape[1]:
                        raise LackingEmbeddingsError(
                            f"the scorer's stored embeddings of texts have {values.shape[1]} numbers, others {width};"
                            f" they are of one model and must have as many: {AGAIN}"
                        )
                    values[places[digest]] = payloads.decode(payload, dtype, width, ())
                    found += 1
        if found != len(places):
            raise LackingEmbeddingsError(
                f"{len(places) - found} of {len(places)} texts have no stored embedding of the scorer; run eval.py"
                " with the same model and setting, which embeds what is missing"
            )
        return np.zeros((0, 0), dtype=np.float32) if values is None else values


def _digest(text: str) -> str:
    return digest_bytes(text.encode("utf-8", "surrogatepass"))
