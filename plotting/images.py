"""Figures as images, rendered by a headless browser that is stopped if it hangs."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from concurrent.futures import Future, wait
from pathlib import Path
from threading import Thread
from typing import Any

from testbed.calls import first_line
from testbed.errors import TestbedError
from testbed.plotting.page import is_print

log = logging.getLogger("testbed")

IMAGE_SUFFIXES = (".pdf", ".png", ".svg")
INSTALL_IMAGES = "pip install -e '.[figures]', and a Chromium or Chrome (on Debian: apt-get install chromium)"

START_SECONDS = 60.0
FIGURE_SECONDS = 30.0  # a figure takes about a second
TRIES = 2
PRINT_PIXELS = 300 / 96  # of a PNG for print, at 300 dots per inch


def images_problem() -> str | None:
    """The reason why images cannot be drawn here, with what to install; None if they can."""
    try:
        import kaleido  # noqa: F401
        from choreographer.browsers import Chromium
    except ImportError:
        return f"images need the package kaleido: {INSTALL_IMAGES}; HTML needs neither"
    if os.environ.get("BROWSER_PATH") or Chromium.find_browser(skip_local=False):
        return None
    return f"images need a browser, and none was found: {INSTALL_IMAGES}; HTML needs neither"


def write_images(figures: list[Any], paths: list[Path]) -> None:
    """Writes figures as images with one browser; a browser that hangs is stopped and replaced once.

    Args:
        figures: Figures of plotly.
        paths: The path of each figure, with a suffix in `IMAGE_SUFFIXES`.

    Raises:
        TestbedError: If kaleido or a browser is missing, with what to install; or the browser fails, or hangs again.
    """
    problem = images_problem()
    if problem:
        raise TestbedError(problem)
    jobs = [_job(figure, path) for figure, path in zip(figures, paths, strict=True)]
    limit = START_SECONDS + FIGURE_SECONDS * len(jobs)
    for last in [False] * (TRIES - 1) + [True]:
        try:
            _draw_apart(jobs, limit)
        except TimeoutError:  # including kaleido's own
            error = f"the browser did not answer within {limit:g} s"
            if last:
                raise TestbedError(f"the browser could not draw {paths[0]}: {error}, {TRIES} times") from None
            log.warning("%s; it was stopped, starting another", error)
        except Exception as error:
            reason = first_line(str(error.args[0]) if error.args else type(error).__name__)
            raise TestbedError(f"the browser could not draw {paths[0]}: {reason}") from error
        else:
            return


def _job(figure: Any, path: Path) -> dict[str, Any]:
    """The arguments for kaleido."""
    from plotly.io import defaults

    size = {
        "width": figure.layout.width or defaults.default_width,
        "height": figure.layout.height or defaults.default_height,
    }
    scale = (PRINT_PIXELS if path.suffix == ".png" else 1) if is_print(figure) else 2
    return {"fig": figure.to_dict(), "path": path, "opts": {"format": path.suffix[1:], "scale": scale, **size}}


def _draw_apart(jobs: list[dict[str, Any]], limit: float) -> None:
    """Draws in a separate thread, because this one may run an event loop, as in a notebook.

    Raises:
        TimeoutError: If that takes longer than the limit.
    """
    browsers: list[Any] = []
    ended: Future[None] = Future()

    def work() -> None:
        try:
            ended.set_result(asyncio.run(_draw(jobs, limit, browsers)))
        except BaseException as error:
            ended.set_exception(error)

    # A daemon with a limited wait: nothing that hangs in there may keep the program from ending.
    Thread(target=work, name="images", daemon=True).start()
    try:
        if not wait([ended], limit + 2 * FIGURE_SECONDS).done:
            raise TimeoutError
    except BaseException:  # including Ctrl-C
        for browser in browsers:
            _kill(browser)
        raise
    ended.result()


async def _draw(jobs: list[dict[str, Any]], limit: float, browsers: list[Any]) -> None:
    """Draws with a new browser, which is added to a list.

    Raises:
        TimeoutError: If that takes longer than the limit.
    """
    from kaleido import Kaleido

    browser = Kaleido()
    browsers.append(browser)

    async def work() -> None:
        async with browser:
            await browser.write_fig_from_object(jobs, cancel_on_error=True)

    task = asyncio.ensure_future(work())
    await asyncio.wait({task}, timeout=limit)
    if not task.done():
        # Starting, drawing and stopping may all hang, and kaleido guards only drawing. Once the processes are gone,
        # kaleido notices and ends by itself.
        _kill(browser)
        await asyncio.wait({task}, timeout=FIGURE_SECONDS)
        if task.done() and not task.cancelled():
            task.exception()  # retrieved because asyncio would print it; it only reports the kill
        raise TimeoutError
    if task.cancelled():  # this is how kaleido ends when the browser ends
        raise RuntimeError("the browser ended while it was drawing")
    task.result()


def _kill(browser: Any) -> None:
    """Ends a browser's processes, which form a process group on systems that support these."""
    process = getattr(browser, "subprocess", None)
    if process is None:
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (AttributeError, ProcessLookupError, PermissionError):
        process.kill()
