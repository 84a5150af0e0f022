"""What the tests of models share: photos as pictures, and hand-made caches of weights."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from testbed.registry.library_names import library_names

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="session")
def pictures(photos: list[Any]) -> list[Any]:
    """Photos as PIL images: square, wide, tall, and one smaller than most networks want."""
    wide, square = Image.fromarray(photos[2]), Image.fromarray(photos[0])
    return [wide, square, wide.transpose(Image.Transpose.ROTATE_90), square.resize((150, 117))]


@pytest.fixture(scope="session")
def library_lists() -> None:
    """The names that the libraries know, asked in three processes at once."""
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(library_names, ("torchvision", "timm", "open_clip_torch")))


@pytest.fixture
def torch_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder in place of torch.hub's; what is returned is where it keeps checkpoints."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    folder = tmp_path / "torch" / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def hub_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str, Mapping[str, Path | bytes]], None]:
    """An empty Hugging Face cache, and a function that puts files of a repository into it as the hub's client does."""
    root = tmp_path / "hub"
    root.mkdir()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(root))

    def plant(repository: str, files: Mapping[str, Path | bytes]) -> None:
        folder = root / f"models--{repository.replace('/', '--')}"
        (folder / "refs").mkdir(parents=True, exist_ok=True)
        (folder / "refs" / "main").write_text(COMMIT)
        snapshot = folder / "snapshots" / COMMIT
        snapshot.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            if isinstance(content, bytes):
                (snapshot / name).write_bytes(content)
            else:
                shutil.copyfile(content, snapshot / name)

    return plant
