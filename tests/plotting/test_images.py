"""Images: browsers that hang, fail or are missing."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import time

import plotly.graph_objects as go
import pytest

from testbed.errors import TestbedError
from testbed.plotting import images
from testbed.plotting.images import images_problem, write_images

pytest.importorskip("kaleido")


@pytest.fixture
def figure():
    return go.Figure(go.Scatter(x=[0, 1], y=[0, 1]), {"width": 300, "height": 200})


@pytest.fixture
def browser(tmp_path, monkeypatch):
    """Puts a script in place of the browser; it writes down each start and its process."""

    def put(does: str):
        path = tmp_path / "browser"
        path.write_text(f"#!/bin/sh\necho $$ >> {tmp_path}/started\n{does}\n")
        path.chmod(0o755)
        monkeypatch.setenv("BROWSER_PATH", str(path))
        return tmp_path / "started"

    return put


def is_running(process: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_browser_that_hangs_is_stopped(figure, browser, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(images, "START_SECONDS", 1.0)
    monkeypatch.setattr(images, "FIGURE_SECONDS", 2.0)
    started = browser("exec sleep 600")
    caplog.set_level(logging.WARNING, "testbed")
    with pytest.raises(TestbedError, match=r"could not draw .*f\.png: the browser did not answer within 3 s, 2 times"):
        write_images([figure], [tmp_path / "f.png"])
    assert "starting another" in caplog.text
    processes = [int(word) for word in started.read_text().split()]
    assert len(processes) == images.TRIES
    assert not any(is_running(process) for process in processes)
    assert not (tmp_path / "f.png").exists()


def test_ctrl_c_stops_a_browser_that_hangs(figure, browser, tmp_path, monkeypatch):
    monkeypatch.setattr(images, "START_SECONDS", 3600.0)
    started = browser("exec sleep 600")
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it

    def interrupt():
        while not started.exists() or not started.read_text().strip():
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        write_images([figure], [tmp_path / "f.png"])
    signal.signal(signal.SIGINT, usual)
    while is_running(int(started.read_text())):  # the test's limit ends this if it does not end by itself
        time.sleep(0.1)


def test_a_browser_that_ends_at_once_is_not_tried_again(figure, browser, tmp_path):
    started = browser("exit 3")
    with pytest.raises(TestbedError, match=r"^the browser could not draw .*f\.png: [^\n]+$"):
        write_images([figure], [tmp_path / "f.png"])
    assert len(started.read_text().split()) == 1


def test_a_browser_that_is_not_there(figure, monkeypatch, tmp_path):
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "none"))
    with pytest.raises(TestbedError, match=r"^the browser could not draw .*f\.svg: [^\n]+$"):
        write_images([figure], [tmp_path / "f.svg"])


def test_a_browser_that_ends_while_it_draws(figure, tmp_path, monkeypatch):
    """Kaleido's tasks are then cancelled, which is no `Exception`."""
    import kaleido

    class Ending(kaleido.Kaleido):
        async def __aenter__(self):
            raise asyncio.CancelledError

    monkeypatch.setattr(kaleido, "Kaleido", Ending)
    monkeypatch.setenv("BROWSER_PATH", sys.executable)
    with pytest.raises(TestbedError, match="the browser ended while it was drawing"):
        write_images([figure], [tmp_path / "f.png"])


@pytest.mark.slow
@pytest.mark.skipif(images_problem() is not None, reason=str(images_problem()))
@pytest.mark.long
def test_after_one_that_hangs_another_one_draws(figure, browser, tmp_path, monkeypatch, caplog):
    from choreographer.browsers import Chromium

    real = os.environ.get("BROWSER_PATH") or Chromium.find_browser(skip_local=False)
    monkeypatch.setattr(images, "START_SECONDS", 0.0)
    monkeypatch.setattr(images, "FIGURE_SECONDS", 7.0)
    started = browser(f'[ $(wc -l < {tmp_path}/started) = 1 ] && exec sleep 600\nexec {real} "$@"')
    paths = [tmp_path / "f.png", tmp_path / "g.svg"]
    write_images([figure, figure], paths)
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    assert b'width="300" height="200"' in paths[1].read_bytes()
    assert len(started.read_text().split()) == 2
    assert "starting another" in caplog.text
