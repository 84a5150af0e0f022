"""Downloads of data sets into the data root, which the user asks for (``--download``). Nothing else calls this.

torchvision's sets by torchvision's own code, with its checksums; data sets in the webdataset format shard by shard;
those of the Hugging Face hub by its client. A data set appears under its name when it is complete; until then its files
are in a hidden folder, from which the next download resumes.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import shutil
import tarfile
import urllib.error
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from testbed.calls import reason_of
from testbed.data.libraries import torchvision_sets
from testbed.data.remote_folder import RemoteFolder, download_file, offline, size_of
from testbed.data.webdataset.folder import PREFIX as WDS
from testbed.data.webdataset.folder import check_name, datacomp_name, find_webdataset, webdataset_instead
from testbed.data.webdataset.format import METADATA, NSHARDS, read_nshards
from testbed.errors import DataError
from testbed.inputs import is_url
from testbed.paths import data_root, fill_root

HUB = "https://huggingface.co/datasets/clip-benchmark/wds_{dataset_cleaned}/tree/main"
DATACOMP_HUB = "https://huggingface.co/datasets/djghosh/wds_{dataset_cleaned}_test/tree/main"
VTAB = "vtab/"
DATACOMP = ("wilds/", "fairness/", "datacomp/")
HUGGING_FACE = "hf/"
CHECKSUM = ".sha256"  # a file beside another one, with its digest in front

_ARCHIVES = (".tar", ".tgz", ".gz", ".zip", ".part", ".tag")
_DIGEST = re.compile(r"[0-9a-fA-F]{64}")
Say = Callable[[str], None]


def download(name: str, split: str, url: str, say: Say) -> bool:
    """Downloads a split of a data set into the data root, unless it is there.

    Args:
        name: The data set's name.
        url: The place of webdatasets, with ``{dataset}`` or ``{dataset_cleaned}``; empty for CLIP benchmark's and
            DataComp's on the hub.
        say: Called with a description of each download before it starts.

    Returns:
        False if testbed cannot download this data set.

    Raises:
        DataError: If it cannot be downloaded, or no data root is set.
    """
    root = data_root()
    if root is None:
        raise DataError(f"data set {name!r}: downloads need a data root; give --data-root DIR")
    known = torchvision_sets.SETS.get(name)
    if known is not None:
        return webdataset_instead(name, split) is not None or _torchvision(known, split, root, say)
    if name.startswith((WDS, VTAB)):
        return _webdataset(name.removeprefix(WDS), split, root, url or HUB, say)
    if name.startswith(DATACOMP):
        return _webdataset(datacomp_name(name), split, root, url or DATACOMP_HUB, say)
    return _hugging_face(name, root, say) if name.startswith(HUGGING_FACE) else False


# torchvision ------------------------------------------------------------------------------------------------------


def _torchvision(known: torchvision_sets.TorchvisionSet, split: str, data: Path, say: Say) -> bool:
    if torchvision_sets.is_there(known, split):
        return True
    if known.page:
        return False
    import torchvision

    reader = getattr(torchvision.datasets, known.reader)
    taken = inspect.signature(reader.__init__).parameters
    options: dict[str, Any] = {"train": split == "train"} if "train" in taken else {}
    if "split" in taken:
        options["split"] = split
    folder = data / f".download-{known.name}"
    _remove_extracted(folder)
    folder.mkdir(parents=True, exist_ok=True)
    say(f"downloading {known.name} by torchvision into {torchvision_sets.roots_of(known)[0]}")
    try:
        with _our_downloads(say):
            reader(str(folder), download=True, **options)
    except DataError:
        raise
    except Exception as error:  # torchvision raises almost anything
        raise DataError(
            f"data set {known.name!r} cannot be downloaded by torchvision: {reason_of(error)};"
            " run the same command again to resume"
        ) from error
    _merge(folder, torchvision_sets.roots_of(known)[0])
    shutil.rmtree(folder)
    return True


@contextlib.contextmanager
def _our_downloads(say: Say) -> Iterator[None]:
    """Makes torchvision fetch files as testbed does (sizes, resuming, no detour over http) and unpack them safely."""
    from torchvision.datasets import utils

    failed = set()

    def retrieve(url: str, filename: str | Path, *_: Any, **__: Any) -> None:
        if url.replace("http:", "https:", 1) in failed:
            raise urllib.error.URLError(f"{url} is not fetched without encryption")
        size = size_of(url)
        say(f"  {url} ({_megabytes(size)})")
        try:
            if not download_file(url, Path(filename), "its server may be down"):
                raise urllib.error.URLError(f"{url} does not exist (HTTP 404)")
        except DataError as error:
            failed.add(url)
            raise urllib.error.URLError(str(error)) from error

    before: dict[str, Any] = {name: getattr(utils, name, None) for name in ("_urlretrieve", "_get_redirect_url")}
    utils._urlretrieve, utils._get_redirect_url = retrieve, lambda url, *_, **__: url
    try:
        with _unpacked_safely():
            yield
    finally:
        for name, function in before.items():
            setattr(utils, name, function)


@contextlib.contextmanager
def _unpacked_safely() -> Iterator[None]:
    """Refuses members of tar archives that are absolute, lead upwards, are devices, or links to the outside."""
    if not hasattr(tarfile, "data_filter"):  # before Python 3.11.4, as in Debian 12
        with _unpacked_if_plain():
            yield
        return
    kept: Any = getattr(tarfile.TarFile, "extraction_filter", None)
    tarfile.TarFile.extraction_filter = staticmethod(tarfile.data_filter)
    try:
        yield
    finally:
        tarfile.TarFile.extraction_filter = kept


@contextlib.contextmanager
def _unpacked_if_plain() -> Iterator[None]:
    """The same, for a Python that cannot; it also refuses all links."""
    extractall = tarfile.TarFile.extractall

    def checked(archive: tarfile.TarFile, *arguments: Any, **options: Any) -> None:
        for member in archive.getmembers():
            path = PurePosixPath(member.name)
            if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir()):
                raise tarfile.ExtractError(f"its member {member.name!r} leads out of it, or is a link or a device")
        extractall(archive, *arguments, **options)

    tarfile.TarFile.extractall = checked  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        tarfile.TarFile.extractall = extractall  # type: ignore[method-assign]


def _remove_extracted(folder: Path) -> None:
    """Removes what an interrupted download had unpacked, perhaps not completely; archives remain."""
    for path in folder.rglob("*") if folder.is_dir() else ():
        if path.is_symlink() or (path.is_file() and not path.name.endswith(_ARCHIVES)):
            path.unlink()


def _merge(source: Path, target: Path) -> None:
    """Moves the content of a folder, except archives, into another one; existing files there stay."""
    target.mkdir(parents=True, exist_ok=True)
    for entry in sorted(source.iterdir()):
        place = target / entry.name
        if entry.is_dir() and (place.is_dir() or any(path.name.endswith(_ARCHIVES) for path in entry.iterdir())):
            _merge(entry, place)
        elif not place.exists() and not entry.name.endswith(_ARCHIVES):
            os.replace(entry, place)


# Webdatasets ------------------------------------------------------------------------------------------------------


def _webdataset(name: str, split: str, data: Path, url: str, say: Say) -> bool:
    """Downloads a split shard by shard; it gets its name when all of them are there."""
    check_name(name)
    check_name(split)
    folder = _webdataset_folder(name, data)
    if (folder / split / NSHARDS).is_file():
        return True
    if not is_url(url):
        raise DataError(f"--download takes the URL of a folder, https://HOST/FOLDER/{{dataset}}, not {url!r}")
    remote = RemoteFolder(fill_root(url, name))
    part = folder / f".{split}.part"
    part.mkdir(parents=True, exist_ok=True)
    for file in METADATA:
        if not (folder / file).is_file():
            _fetch(remote, file, folder / file)
    if not _fetch(remote, f"{split}/{NSHARDS}", part / NSHARDS):
        raise DataError(
            f"{remote.url_of(f'{split}/{NSHARDS}')} does not exist; {WDS}{name} may have no split {split!r}"
        )
    shards = [f"{split}/{number}.tar" for number in range(read_nshards(part))]
    missing = [shard for shard in shards if not (part / Path(shard).name).is_file()]
    sizes = [size_of(remote.url_of(name)) for name in missing]
    total = None if None in sizes else sum(size for size in sizes if size is not None)
    say(f"downloading {len(missing)} of {len(shards)} shards of {name} {split} from {remote.url} ({_megabytes(total)})")
    for shard in missing:
        if not _fetch(remote, shard, part / Path(shard).name, _published_digest(remote, shard, part)):
            raise DataError(f"{remote.url_of(shard)} does not exist (HTTP 404)")
    os.replace(part, folder / split)
    return True


def _webdataset_folder(name: str, data: Path) -> Path:
    """The folder of a data set, as `find_webdataset` finds it; the first of its candidates if none exists."""
    try:
        return Path(find_webdataset(name))
    except DataError:
        return data / f"wds_{name.replace('/', '-')}"


def _fetch(remote: RemoteFolder, name: str, path: Path, sha256: str | None = None) -> bool:
    remote.require_online(remote.url_of(name))
    try:
        return download_file(remote.url_of(name), path, "run the same command again later", sha256)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error


def _published_digest(remote: RemoteFolder, shard: str, part: Path) -> str | None:
    """The digest in the file ``….tar.sha256`` on the server, if there is one."""
    file = part / f".{Path(shard).name}{CHECKSUM}"
    if not _fetch(remote, f"{shard}{CHECKSUM}", file):
        return None
    text = file.read_bytes()[:64].decode("ascii", "replace")
    file.unlink()
    if not _DIGEST.fullmatch(text):
        raise DataError(f"{remote.url_of(shard + CHECKSUM)} should begin with 64 hexadecimal digits, not {text[:20]!r}")
    return text.lower()


def _megabytes(size: int | None) -> str:
    return "the server does not report its size" if size is None else f"{size / 1e6:,.1f} MB"


# Hugging Face -----------------------------------------------------------------------------------------------------


def _hugging_face(name: str, data: Path, say: Say) -> bool:
    """Downloads the files of a data set, none of which is code, to ``<data root>/hf/<owner>/<name>``."""
    from testbed.data.libraries.huggingface import local_folder, parse_name

    if local_folder(name) is not None:
        return True
    if offline():
        raise DataError(f"data set {name!r} is not below the data root, and HF_HUB_OFFLINE forbids downloads")
    from huggingface_hub import HfApi, hf_hub_download

    repository, configuration = parse_name(name)
    folder = data / HUGGING_FACE / repository
    part = folder.with_name(f".{folder.name}.part")
    try:
        about = HfApi().dataset_info(repository, files_metadata=True)
        files = {
            sibling.rfilename: sibling.size for sibling in about.siblings or () if not sibling.rfilename.endswith(".py")
        }
        for file in files:
            if file.startswith("/") or "\\" in file or ".." in file.split("/"):
                raise DataError(f"data set {name!r}: the hub has a file {file!r}, whose name leads elsewhere")
        if configuration is not None and any(file.startswith(f"{configuration}/") for file in files):
            files = {file: size for file, size in files.items() if file.startswith(f"{configuration}/")}
        total = sum(size or 0 for size in files.values())
        say(f"downloading {len(files)} files of {name} from the Hugging Face hub ({_megabytes(total)})")
        for file in sorted(files):
            hf_hub_download(repository, file, repo_type="dataset", revision=about.sha, local_dir=str(part))
    except DataError:
        raise
    except Exception as error:  # the hub's client raises errors of several libraries
        raise DataError(
            f"data set {name!r} cannot be downloaded from the Hugging Face hub: {reason_of(error)};"
            " run the same command again to resume"
        ) from error
    shutil.rmtree(part / ".cache", ignore_errors=True)
    os.replace(part, folder)
    return True
