"""Downloads into the data root: resumed, checked, complete or not there at all."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile

import pytest
import torchvision
import wds_world as world
from torchvision_world import MAKERS
from web_world import files_below, serving

from testbed.data.libraries import downloads
from testbed.data.libraries.downloads import download
from testbed.data.libraries.torchvision_sets import open_set
from testbed.data.webdataset.source import WebDataset
from testbed.errors import DataError

pytestmark = pytest.mark.usefixtures("own_web")


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


# Webdatasets ------------------------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path):
    """A web server with a webdataset of two shards."""
    shards = [world.samples({"a": b"0", "b": b"1"}), world.samples({"c": b"1"})]
    world.write_split(tmp_path / "away", shards, classnames="cat\ndog\n", templates="a {c}\n")
    with serving(files_below(tmp_path / "away", "/x-pets")) as served:
        yield served


def fetch(server, said=None, split="test"):
    lines = [] if said is None else said
    return download("wds/x/pets", split, server.url + "/{dataset_cleaned}", lines.append)


def test_a_split_is_downloaded_once_and_its_size_is_said_before(server, root):
    said = []
    assert fetch(server, said)
    size = sum(len(server.files[f"/x-pets/test/{number}.tar"]) for number in (0, 1))
    assert said == [f"downloading 2 of 2 shards of x/pets test from {server.url}/x-pets ({size / 1e6:,.1f} MB)"]
    source = WebDataset(root / "wds_x-pets", "test")
    assert (source.ids, source.class_names) == (["test/a", "test/b", "test/c"], ["cat", "dog"])
    assert not list((root / "wds_x-pets").rglob(".*"))
    server.asked.clear()
    assert fetch(server)
    assert server.asked == []


def test_datacomps_sets_come_from_its_own_place(server, root, monkeypatch):
    for name, place in (
        ("fairness/geode", "geode"),
        ("datacomp/imagenet-o", "imagenet-o"),
        ("wilds/fmow", "wilds-fmow"),
    ):
        server.files |= {
            f"/wds_{place}_test{path.removeprefix('/x-pets')}": content
            for path, content in list(server.files.items())
            if path.startswith("/x-pets/")
        }
        monkeypatch.setattr(downloads, "DATACOMP_HUB", f"{server.url}/wds_{{dataset_cleaned}}_test")
        assert download(name, "test", "", print)
        assert (root / f"wds_{place}" / "test" / "1.tar").is_file()


def test_original_files_are_not_downloaded_beside_a_webdataset(root):
    world.write_split(root / "wds_cifar10_test", [world.samples({"s": b"1"})])
    assert download("cifar10", "test", "", print)
    assert [path.name for path in root.iterdir()] == ["wds_cifar10_test"]


def test_a_split_is_stored_where_it_will_be_looked_for(server, root, monkeypatch):
    (root / "wds" / "x" / "pets").mkdir(parents=True)
    assert fetch(server)
    assert (root / "wds" / "x" / "pets" / "test" / "nshards.txt").is_file()
    monkeypatch.setenv("TESTBED_DATA", str(root / "own_{dataset_cleaned}"))
    assert fetch(server)
    assert (root / "own_x-pets" / "test" / "nshards.txt").is_file()


def test_an_interrupted_download_is_resumed_and_until_then_there_is_no_split(server, root):
    whole = len(server.files["/x-pets/test/1.tar"])
    files = [len(content) for path, content in sorted(server.files.items()) if "/test/" not in path]
    shard = len(server.files["/x-pets/test/0.tar"])
    answered = [*files, 2, shard]  # class names, templates, nshards.txt, and the first shard whole
    server.cuts = [*answered, 1000, 0, 0]
    with pytest.raises(
        DataError, match=r"1,000 bytes were downloaded; run the same command again to resume|interrupted"
    ):
        fetch(server)
    assert not (root / "wds_x-pets" / "test").exists()
    server.cuts, said = [], []
    server.asked.clear()
    assert fetch(server, said)
    assert "1 of 2 shards" in said[0]
    assert [each for each in server.asked if each[1]] == [("/x-pets/test/1.tar", "bytes=1000-")]
    assert len((root / "wds_x-pets" / "test" / "1.tar").read_bytes()) == whole


def test_a_digest_beside_a_shard_is_checked(server, root):
    digest = hashlib.sha256(server.files["/x-pets/test/0.tar"]).hexdigest()
    server.files["/x-pets/test/0.tar.sha256"] = f"{digest}  0.tar\n".encode()
    server.files["/x-pets/test/1.tar.sha256"] = b"0" * 64
    with pytest.raises(DataError, match=r"1\.tar has the SHA-256 .*, not the published 0000"):
        fetch(server)
    assert not (root / "wds_x-pets" / "test").exists()
    del server.files["/x-pets/test/1.tar.sha256"]
    assert fetch(server)


def test_what_is_not_there_or_leads_elsewhere_is_told(server, root):
    with pytest.raises(DataError, match="may have no split 'val'"):
        fetch(server, split="val")
    with pytest.raises(DataError, match="takes the URL of a folder"):
        download("wds/x/pets", "test", "/etc/{dataset}", print)
    for name in ("wds/../pets", "wds/x//pets"):
        with pytest.raises(Exception, match="must name a folder below the data root"):
            download(name, "test", server.url, print)
    assert not download("mscoco_captions", "test", server.url, print)
    with pytest.raises(DataError, match="HF_HUB_OFFLINE forbids"):
        download("wds/cars", "test", "", print)


# torchvision ------------------------------------------------------------------------------------------------------


@pytest.fixture
def cifar(tmp_path, monkeypatch):
    """A web server with CIFAR-10's archive, made small; the published checksums are those of the made files."""
    MAKERS["cifar10"](tmp_path / "made", monkeypatch)
    with serving({}) as served:
        served.tar = lambda members=(): _serve_archive(served, tmp_path / "made", members, monkeypatch)
        yield served


def _serve_archive(served, made, members, monkeypatch):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for information, content in members:
            archive.addfile(information, io.BytesIO(content))
        archive.add(made / "cifar-10-batches-py", "cifar-10-batches-py")
    served.files["/cifar.tar.gz"] = file.getvalue()
    monkeypatch.setattr(torchvision.datasets.CIFAR10, "url", f"{served.url}/cifar.tar.gz")
    monkeypatch.setattr(torchvision.datasets.CIFAR10, "filename", "cifar.tar.gz")
    monkeypatch.setattr(torchvision.datasets.CIFAR10, "tgz_md5", hashlib.md5(file.getvalue()).hexdigest())


def test_torchvision_downloads_its_own_with_its_checksums(cifar, root):
    cifar.tar()
    said = []
    assert download("cifar10", "test", "", said.append)
    assert "downloading cifar10 by torchvision" in said[0]
    size = len(cifar.files["/cifar.tar.gz"])
    assert f"{cifar.url}/cifar.tar.gz ({size / 1e6:,.1f} MB)" in said[1]
    assert len(open_set("cifar10", "test")) >= 2
    assert [path.name for path in root.iterdir()] == ["cifar10"]
    cifar.asked.clear()
    assert download("cifar10", "train", "", said.append)
    assert cifar.asked == []


def test_an_archive_that_is_not_the_published_one_is_refused(cifar, root, monkeypatch):
    cifar.tar()
    monkeypatch.setattr(torchvision.datasets.CIFAR10, "tgz_md5", "0" * 32)
    with pytest.raises(DataError, match=r"'cifar10' cannot be downloaded by torchvision: .*corrupted"):
        download("cifar10", "test", "", print)
    assert not (root / "cifar10").exists()


def test_torchvisions_archives_are_resumed(cifar, root):
    cifar.tar()
    cifar.cuts = [500, 0, 0]
    with pytest.raises(DataError, match="run the same command again to resume"):
        download("cifar10", "test", "", print)
    assert not (root / "cifar10").exists()
    cifar.cuts = []
    assert download("cifar10", "test", "", print)
    assert cifar.asked[-1] == ("/cifar.tar.gz", "bytes=500-")


@pytest.fixture(params=["this Python", "Python 3.11.2"])
def release(request, monkeypatch):
    """Debian 12's Python has no filters for archives."""
    if request.param == "Python 3.11.2":
        monkeypatch.delattr(tarfile, "data_filter", raising=False)


@pytest.mark.usefixtures("release")
def test_a_plain_archive_is_unpacked_by_every_python(cifar, root):
    cifar.tar()
    assert download("cifar10", "test", "", print)
    assert len(open_set("cifar10", "test")) >= 2


@pytest.mark.usefixtures("release")
@pytest.mark.parametrize("name", ["../evil", "/tmp/evil-of-testbed"])
def test_an_archive_whose_members_lead_elsewhere_is_not_unpacked_there(name, cifar, root):
    cifar.tar([world.member(name, b"evil")])
    with contextlib.suppress(DataError):  # an absolute path is made relative, one that leads upwards refused
        download("cifar10", "test", "", print)
    assert not (root / "evil").exists()
    assert not os.path.exists("/tmp/evil-of-testbed")
    assert tarfile.TarFile.__dict__.get("extraction_filter") is None


# The Hugging Face hub ---------------------------------------------------------------------------------------------

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def _of_the_hub(server, root, name="hf/a/pets"):
    """Downloads in a process of its own, whose hub is the server."""
    line = f"from testbed.data.libraries.downloads import download; print(download({name!r}, 'test', '', print))"
    environment = {**os.environ, "HF_ENDPOINT": server.url, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
    environment |= {"HF_HOME": str(root.parent / "hub"), "TESTBED_DATA": str(root), "HF_HUB_DISABLE_TELEMETRY": "1"}
    return subprocess.run([sys.executable, "-c", line], env=environment, capture_output=True, text=True)


@pytest.fixture
def hub(root):
    files = {"README.md": b"pets", "test/cat/1.png": world.picture(1), "pets.py": b"import this"}
    with serving({f"/datasets/a/pets/resolve/{COMMIT}/{name}": content for name, content in files.items()}) as served:
        served.list = lambda *more: _list(served, {**files, **dict.fromkeys(more, b"")})
        served.said = {"X-Repo-Commit": COMMIT}
        yield served


def _list(served, files):
    about = {"id": "a/pets", "sha": COMMIT, "private": False, "gated": False, "tags": [], "downloads": 0, "likes": 0}
    about["siblings"] = [{"rfilename": name, "size": len(content)} for name, content in files.items()]
    for path in ("?blobs=true", f"/revision/{COMMIT}", f"/revision/{COMMIT}?blobs=true"):
        served.files[f"/api/datasets/a/pets{path}"] = json.dumps(about).encode()


def test_a_data_set_of_the_hub_is_downloaded_without_its_code(hub, root):
    hub.list()
    done = _of_the_hub(hub, root)
    assert done.stdout.splitlines()[-1:] == ["True"], done.stderr
    assert "downloading 2 files of hf/a/pets from the Hugging Face hub (0.0 MB)" in done.stdout
    found = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    assert found == ["hf/a/pets/README.md", "hf/a/pets/test/cat/1.png"]


def test_a_file_of_the_hub_that_leads_elsewhere_is_refused(hub, root):
    hub.list("../../evil.parquet")
    assert "whose name leads elsewhere" in _of_the_hub(hub, root).stderr
    assert not list(root.rglob("*.*"))
