"""Weight files from the Hugging Face hub or a plain URL: found in caches, downloaded, or explained."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path

from testbed.models.base.weights import cannot_fetch, plain, require_host

log = logging.getLogger("testbed")


def hub_file(
    name: str, repository: str, files: Sequence[str], revision: str | None = None, fetch: bool = True
) -> Path | None:
    """The first existing file of some candidates in a repository of the Hugging Face hub.

    Args:
        name: The model, for messages.
        repository: ``owner/name``.
        files: File names, the preferred one first.
        revision: A branch, tag or commit; None is the main branch.
        fetch: Downloads it if it is not in the cache.

    Returns:
        The path in the hub's cache, or None if it is missing and ``fetch`` is False.

    Raises:
        WeightsError: If it cannot be downloaded.
    """
    from huggingface_hub import constants, hf_hub_download, try_to_load_from_cache

    for file in files:
        cached = try_to_load_from_cache(repository, file, revision=revision)
        if isinstance(cached, str):
            return Path(cached)
    if not fetch:
        return None
    url = f"{constants.ENDPOINT}/{repository}/resolve/{revision or 'main'}/{files[0]}"
    place = f"the Hugging Face cache, {constants.HF_HUB_CACHE} ('hf download {repository} {files[0]}' does both)"
    require_host(name, url, place)
    log.info("downloading the weights of %s from %s", name, repository)
    reason = ""
    for file in files:
        try:
            return Path(hf_hub_download(repository, file, revision=revision))
        except Exception as error:
            reason = plain(error)
    raise cannot_fetch(name, url, place, reason)


def url_file(name: str, url: str, path: Path, fetch: bool = True, sha256: str | None = None) -> Path | None:
    """The file at a URL, in the place where a library expects it.

    Args:
        name: The model, for messages.
        url: The file's address.
        path: The place.
        fetch: Downloads it if it is missing.
        sha256: The prefix of the digest that a downloaded file must have.

    Returns:
        The path, or None if it is missing and ``fetch`` is False.

    Raises:
        WeightsError: If it cannot be downloaded, or has another digest.
    """
    import torch

    if path.is_file():
        return path
    if not fetch:
        return None
    require_host(name, url, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    log.info("downloading %s to %s", url, path)
    try:
        torch.hub.download_url_to_file(url, str(path), hash_prefix=sha256, progress=False)
    except (OSError, RuntimeError) as error:
        raise cannot_fetch(name, url, path, plain(error)) from error
    return path


def hash_in_name(url: str) -> str | None:
    """The prefix of the SHA-256 digest in the names of published checkpoints: ``resnet18-f37072fd.pth``."""
    match = re.search(r"-([a-f0-9]{8,})\.[a-z]+$", url)
    return match[1] if match else None


def torch_hub_path(url: str) -> Path:
    """The place of a URL's checkpoint in torch.hub's cache."""
    import torch

    return Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]
