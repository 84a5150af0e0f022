"""A tiny training run on the digits whose checkpoints are watched, and a watch in a process that can be killed."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import timm
import torch
from torch.nn.functional import cross_entropy

ARCH = "timm/test_resnet"
LOOKS = ("--image-size", "32", "--mean", ".5", ".5", ".5", "--std", ".5", ".5", ".5")
PATIENCE = 60  # seconds


def trained(epochs: int, images: int = 256) -> list[bytes]:
    """The checkpoint file of each epoch."""

    from testbed.models.digits import train_data

    torch.manual_seed(0)
    pixels, labels, _ = train_data()
    pixels, labels = (pixels[:images] - 0.5) / 0.5, labels[:images]
    network = timm.create_model("test_resnet", num_classes=10)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    written = []
    for _ in range(epochs):
        network.train()
        for batch in torch.randperm(images).split(64):
            optimizer.zero_grad()
            cross_entropy(network(pixels[batch]), labels[batch]).backward()
            optimizer.step()
        file = io.BytesIO()
        torch.save(network.state_dict(), file)
        written.append(file.getvalue())
    return written


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


class WatchProcess:
    """``testbed watch`` in a forked process, so that it starts quickly; its output goes to files."""

    def __init__(self, folder: Path, name: str, *words: str) -> None:
        self.out, self.err = folder / f"{name}.out", folder / f"{name}.err"
        self.ended = False
        self.pid = os.fork()
        if self.pid == 0:
            self._become(folder, ["testbed", "watch", *words])

    def _become(self, folder: Path, argv: list[str]) -> None:
        code = 1
        try:
            for path, descriptor in ((self.out, 1), (self.err, 2)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
            os.chdir(folder)
            sys.argv = argv
            from testbed.cli import program

            program.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What it has told in whole lines."""
        text = self.out.read_text() if self.out.exists() else ""
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def wait_for(self, what: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not what():
            assert time.monotonic() < deadline, self.err.read_text()
            assert os.waitpid(self.pid, os.WNOHANG) == (0, 0), self.err.read_text()
            time.sleep(0.02)

    def wait_for_step(self, *steps: int) -> None:
        self.wait_for(lambda: set(steps) <= {row["step"] for row in self.rows})

    def kill(self, number: int = signal.SIGKILL) -> int:
        """Ends it by a signal; returns its exit status."""
        os.kill(self.pid, number)
        return self.wait()

    def wait(self) -> int:
        self.ended = True
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
