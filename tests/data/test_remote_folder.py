"""Folders on a web server: fetched once, gone on with where they were cut off, and never half a file."""

from __future__ import annotations

import pytest
from web_world import serving

from testbed.data import remote_folder
from testbed.data.remote_folder import RemoteFolder
from testbed.errors import DataError

BIG = bytes(range(256)) * 4000  # about a megabyte


pytestmark = pytest.mark.usefixtures("own_web")


@pytest.fixture
def server():
    """A web server with files; ``cuts`` are after how many bytes it hangs up."""
    with serving({"/data/names.txt": b"cat\n", "/data/test/0.tar": BIG}) as served:
        served.url += "/data"
        yield served


def paths(server):
    return [path for path, _ in server.asked]


def test_a_file_is_fetched_once(server, tmp_path):
    folder = RemoteFolder(server.url + "/")
    path = folder.fetch("test/0.tar")
    assert path.read_bytes() == BIG
    assert path.is_relative_to(tmp_path / "cache" / "remote")
    assert RemoteFolder(server.url).fetch("test/0.tar") == path
    assert paths(server) == ["/data/test/0.tar"]
    assert sorted(each.name for each in path.parent.iterdir()) == ["0.tar"]


def test_two_urls_are_two_folders(server):
    assert RemoteFolder(server.url).local != RemoteFolder(server.url + "2").local


def test_a_file_that_is_not_there_is_asked_for_once(server):
    folder = RemoteFolder(server.url)
    assert folder.fetch("kind.txt", optional=True) is None
    assert folder.fetch("kind.txt", optional=True) is None
    assert paths(server) == ["/data/kind.txt"]
    with pytest.raises(DataError, match=r"/data/kind.txt does not exist"):
        folder.fetch("kind.txt")


def test_a_download_that_is_cut_off_goes_on_where_it_stopped(server):
    server.cuts = [300_000, 200_000]
    assert RemoteFolder(server.url).fetch("test/0.tar").read_bytes() == BIG
    assert [given for _, given in server.asked] == [None, "bytes=300000-", "bytes=500000-"]


def test_what_was_fetched_is_kept_for_the_next_time(server):
    server.cuts = [1000, 1000, 1000]
    folder = RemoteFolder(server.url)
    with pytest.raises(DataError, match=r"the connection was interrupted; 3,000 bytes were downloaded"):
        folder.fetch("test/0.tar")
    assert not (folder.local / "test" / "0.tar").exists()
    assert folder.fetch("test/0.tar").read_bytes() == BIG
    assert server.asked[-1][1] == "bytes=3000-"


def test_a_file_that_has_changed_is_fetched_from_its_beginning(server):
    server.cuts = [1000, 1000, 1000]
    folder = RemoteFolder(server.url)
    with pytest.raises(DataError):
        folder.fetch("test/0.tar")
    server.tag, server.files["/data/test/0.tar"] = '"two"', BIG[::-1]
    assert folder.fetch("test/0.tar").read_bytes() == BIG[::-1]


@pytest.mark.parametrize("tag", ["", 'W/"weak"'])
def test_without_a_sure_mark_of_the_version_it_begins_anew(server, tag):
    server.tag, server.cuts = tag, [1000]
    assert RemoteFolder(server.url).fetch("test/0.tar").read_bytes() == BIG
    assert [given for _, given in server.asked] == [None, None]


def test_a_server_that_takes_the_range_for_an_error_is_asked_anew(server):
    folder = RemoteFolder(server.url)
    server.cuts = [1000, 1000, 1000]
    with pytest.raises(DataError):
        folder.fetch("test/0.tar")
    server.status = 416
    with pytest.raises(DataError, match="416"):
        folder.fetch("test/0.tar")
    server.status = 0
    assert folder.fetch("test/0.tar").read_bytes() == BIG


@pytest.mark.parametrize(("status", "message"), [(401, "it is private"), (403, "it is private"), (400, "says 400")])
def test_what_the_server_refuses_is_told_at_once(server, status, message):
    server.status = status
    with pytest.raises(DataError, match=message):
        RemoteFolder(server.url).fetch("names.txt", optional=True)
    assert len(server.asked) == 1


def test_a_fault_of_the_server_is_tried_again(server):
    server.status = 503
    with pytest.raises(DataError, match=r"names.txt is not available: the server says 503.*give a local folder"):
        RemoteFolder(server.url).fetch("names.txt")
    assert len(server.asked) == 3


def test_without_a_server_there_is_one_clear_line(server):
    folder = RemoteFolder(f"http://127.0.0.1:{server.server_port}/data")
    server.shutdown()
    server.server_close()
    with pytest.raises(DataError, match=r"names.txt is not available: .*refused.*give a local folder"):
        folder.fetch("names.txt")


def test_redirections_are_followed_but_not_to_other_protocols(server):
    server.moved = {"/data/a.tar": f"{server.url}/test/0.tar", "/data/b.tar": "file:///etc/passwd"}
    assert RemoteFolder(server.url).fetch("a.tar").read_bytes() == BIG
    with pytest.raises(DataError, match=r"file:///etc/passwd"):
        RemoteFolder(server.url).fetch("b.tar")


def test_a_redirection_to_an_unsafe_protocol_is_not_followed():
    request = remote_folder.urllib.request.Request("https://host/a.tar")
    with pytest.raises(DataError, match="less secure"):
        remote_folder._Redirects().redirect_request(request, None, 302, "", {}, "http://host/a.tar")


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd"])
def test_names_stay_in_the_folder(server, name):
    with pytest.raises(DataError, match="leaves"):
        RemoteFolder(server.url).fetch(name)
    assert server.asked == []


@pytest.mark.parametrize("url", ["ftp://host/x", "file:///etc", "https://", "https://host/x?token=1", "https://h/x#a"])
def test_what_is_no_url_of_a_folder_is_refused(url):
    with pytest.raises(DataError, match="is not the URL of a folder"):
        RemoteFolder(url)


def test_a_password_in_a_url_is_refused_and_not_shown():
    with pytest.raises(DataError) as caught:
        RemoteFolder("https://me:secret@host/x")
    assert "secret" not in str(caught.value)


# The Hugging Face hub ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "branch"),
    [
        ("https://huggingface.co/datasets/clip-benchmark/wds_vtab-cifar10/tree/main", "main"),
        ("https://huggingface.co/datasets/clip-benchmark/wds_vtab-cifar10/tree/main/", "main"),
        ("https://huggingface.co/datasets/clip-benchmark/wds_vtab-cifar10", "main"),
        ("https://huggingface.co/datasets/clip-benchmark/wds_vtab-cifar10/tree/v2/deep", "v2/deep"),
    ],
)
def test_the_hub_has_text_and_archives_under_different_addresses(url, branch):
    folder = RemoteFolder(url)
    base = "https://huggingface.co/datasets/clip-benchmark/wds_vtab-cifar10"
    assert folder.url_of("classnames.txt") == f"{base}/raw/{branch}/classnames.txt"
    assert folder.url_of("test/0.tar") == f"{base}/resolve/{branch}/test/0.tar"


def test_the_hubs_offline_switch_is_heeded(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DataError, match="HF_HUB_OFFLINE forbids"):
        RemoteFolder("https://huggingface.co/datasets/a/b/tree/main").fetch("classnames.txt", optional=True)
