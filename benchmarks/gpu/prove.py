"""Everything that testbed does on a GPU, on one, within eight minutes: `python benchmarks/gpu/prove.py --out DIR`.

Needs Python with PyTorch, torchvision and pip, and the wheels that `wheels.sh` has collected; no network and no data
set. Installs the wheels and this checkout into ``DIR/site``, runs the parts in order of worth, each in a process of its
own with a time limit, and writes ``DIR/proof.json`` after each. It ends with status 0 whatever it finds, unless with
--check: what failed, and which target was missed, is in the file. README.md beside this says more.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
IMPORTED = ("torch", "torchvision", "numpy", "PIL", "sympy", "scipy", "sklearn", "pandas", "timm", "huggingface_hub")
INSTALLED = ("src", "db", "plotting", "extensions", "setup.cfg", "pyproject.toml", "README.md", "eval.py", "db.py")
AT_ONCE = 2  # parts that run at the same time: tiny ones, and those that measure no speed
SHORTEST = 10  # seconds; a part is not begun with less
PATIENCE = 5  # times as long may a tiny part take: it measures nothing, and other programs may run beside it
LAST_LINES = 4000  # characters of what a part printed that are kept if it ended badly


@dataclass(frozen=True)
class Part:
    """A part of the proof.

    Attributes:
        name: What ``--only`` calls it.
        file: Its program, in this folder.
        seconds: The time that it has.
        what: What it shows.
        beside: Whether it runs beside the part before it: neither measures speed or memory.
    """

    name: str
    file: str
    seconds: int
    what: str
    beside: bool = False


PARTS = (
    Part("demo", "demo.py", 110, "the demo on the GPU against the CPU, and after kill -9"),
    Part(
        "correct", "correct.py", 110, "the tests marked gpu: corruptions, attacks, random words, probes, encoders", True
    ),
    Part("throughput", "throughput.py", 180, "images a second against bare loops"),
    Part("profile", "profiled.py", 40, "where time goes, and how busy the GPU is"),
    Part("sharing", "sharing.py", 75, "two processes on one card, its memory, killed workers"),
    Part("large", "large.py", 30, "retrieval of 25,010 × 5,000 and zero-shot heads against the CPU"),
)


class Proof:
    """``proof.json``: the machine, and what each part found."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self._lock = threading.Lock()
        self.path = folder / "proof.json"
        self.content: dict[str, Any] = {**about, "parts": {}}
        self.write()

    def add(self, name: str, result: dict[str, Any]) -> None:
        """Keeps the result of a part."""
        with self._lock:
            self.content["parts"][name] = result
            self.write()

    def write(self) -> None:
        """Writes the file."""
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.content, indent=1) + "\n", encoding="utf-8")
        os.replace(new, self.path)


def main() -> None:
    """Runs the parts that were asked for."""
    options = parse()
    began = time.monotonic()
    folder = options.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    environment = surroundings(folder, options.cache)
    problem = "" if options.keep and (folder / "site").exists() else install(folder, options.wheels, environment)
    proof = Proof(folder, {**about(options, environment), "install": problem or "ok"})
    print(problem or json.dumps(proof.content), flush=True)

    def do(part: Part) -> None:
        left = options.seconds - (time.monotonic() - began)
        if left < SHORTEST:
            proof.add(part.name, {"what": part.what, "not_run": f"{left:.0f} s of {options.seconds:.0f} s were left"})
            return
        at = f"{time.monotonic() - began:.0f} s"
        result, printed = run(part, folder, environment, options, left)
        print(f"\n=== {part.name}: {part.what} (begun after {at})\n{printed}", flush=True)
        proof.add(part.name, {"what": part.what, **result})

    chosen = [part for part in PARTS if not options.only or part.name in options.only]
    together = [sorted(chosen, key=lambda part: -part.seconds)]  # the long ones first, so that none is left alone
    for group in together if options.tiny else groups(chosen):
        with ThreadPoolExecutor(AT_ONCE) as threads:
            list(threads.map(do, group))
    proof.content["seconds"] = round(time.monotonic() - began, 1)
    proof.write()
    print(f"\n=== {proof.path}, after {time.monotonic() - began:.0f} s", flush=True)
    print(summary(proof.content), flush=True)
    if options.check and not sound(proof.content):
        sys.exit(1)


def groups(parts: Sequence[Part]) -> list[list[Part]]:
    """Which parts run at the same time."""
    found: list[list[Part]] = []
    for part in parts:
        if part.beside and found:
            found[-1].append(part)
        else:
            found.append([part])
    return found


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("proof"), help="the folder for everything (default: proof)")
    parser.add_argument("--wheels", type=Path, default=HERE / "wheels", help="the folder of wheels.sh")
    parser.add_argument("--device", default=None, help="such as cuda:0 (default: the first GPU)")
    parser.add_argument("--cpu", action="store_true", help="run on the CPU what can; the rest is marked as not run")
    parser.add_argument("--tiny", action="store_true", help="everything as small as possible")
    parser.add_argument("--only", nargs="+", choices=[part.name for part in PARTS], help="these parts alone")
    parser.add_argument("--seconds", type=float, default=480, help="the time for all parts (default: 480)")
    parser.add_argument("--cache", type=Path, default=None, help="a cache folder with trained demo models, to copy")
    parser.add_argument("--check", action="store_true", help="end with status 1 if something failed or differs")
    parser.add_argument("--keep", action="store_true", help="use what an earlier call has installed into --out")
    parser.add_argument("--commit", default="", help="the commit of this checkout, where git cannot be asked")
    options = parser.parse_args()
    options.device = "cpu" if options.cpu else options.device or "cuda:0"
    return options


def surroundings(folder: Path, cache: Path | None) -> dict[str, str]:
    """The variables of the parts: nothing of the user's, no network."""
    own = folder / "cache"
    if cache is not None and not own.exists():
        shutil.copytree(cache, own)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TESTBED_")}
    # Each of some hundred processes would compile torch again if nobody kept what the first one compiled.
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    if not compiled("torch"):
        kept["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join([str(folder / "site"), str(ROOT / "benchmarks")]),
        "PYTHONUNBUFFERED": "1",
        "TESTBED_CACHE": str(own),
        "HF_HUB_OFFLINE": "1",
    }


def compiled(package: str) -> bool:
    """Returns whether the code of an installed package lies beside its sources, compiled."""
    found = find_spec(package)
    return bool(found and found.origin and Path(cache_from_source(found.origin)).exists())


def install(folder: Path, wheels: Path, environment: dict[str, str]) -> str:
    """Installs the wheels and this checkout into ``site``; returns what went wrong, else an empty string."""
    site = folder / "site"
    if site.exists():
        shutil.rmtree(site)
    tree = folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir()
    for name in INSTALLED:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tree / name)
    found = sorted(map(str, wheels.glob("*.whl")))
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-compile", "--no-cache-dir"]
    for what in ([*found], ["--no-build-isolation", str(tree)]):
        if not what:
            continue
        command = [*pip, "--target", str(site), *what]
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode:
            return f"pip failed: {done.stderr.strip()[-LAST_LINES:]}"
    shutil.rmtree(tree)
    if "PYTHONPYCACHEPREFIX" in environment:
        compile_all(site, environment)
    done = subprocess.run(
        [sys.executable, "-c", _MISSING], capture_output=True, text=True, check=False, env=environment
    )
    missing = done.stdout.strip() if done.returncode == 0 else done.stderr.strip()[-LAST_LINES:]
    return f"required but not installed: {missing}; wheels.sh collects it, scipy --with-scipy" if missing else ""


def compile_all(site: Path, environment: dict[str, str]) -> None:
    """Compiles what the parts import, on all cores: one process alone would take half a minute."""
    places = [find_spec(name) for name in IMPORTED]
    folders = [str(Path(found.origin).parent) for found in places if found and found.origin]
    command = [sys.executable, "-m", "compileall", "-q", "-j", "0", str(site), *folders]
    subprocess.run(command, check=False, env=environment, stdout=subprocess.DEVNULL)


def about(options: argparse.Namespace, environment: dict[str, str]) -> dict[str, Any]:
    """The machine, the versions, and the seconds that a process takes to import everything."""
    began = time.monotonic()
    script = _VERSIONS if options.tiny else _IMPORTS + _VERSIONS
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment)
    seconds = round(time.monotonic() - began, 1)
    versions = json.loads(done.stdout) if done.returncode == 0 else {"torch": done.stderr[-LAST_LINES:]}
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": options.commit or commit(),
        "device": options.device,
        "tiny": options.tiny,
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "import_seconds": seconds,
        "compiled_before": compiled("torch"),
        **versions,
    }


_MISSING = """
from importlib.metadata import PackageNotFoundError, requires, version
from packaging.requirements import Requirement
missing = []
for each in map(Requirement, requires("results-testbed")):
    try:
        if each.marker is None or each.marker.evaluate({"extra": ""}):
            version(each.name)
    except PackageNotFoundError:
        missing.append(each.name)
print(*missing)
"""
_IMPORTS = "import timm, open_clip, sklearn.linear_model, testbed.workers.worker, testbed.cli.eval"
_VERSIONS = """
import json, torch, torchvision
cards = [torch.cuda.get_device_name(each) for each in range(torch.cuda.device_count())]
versions = {"torch": torch.__version__, "torchvision": torchvision.__version__, "cuda": torch.version.cuda}
print(json.dumps({**versions, "cards": cards}))
"""


def commit() -> str:
    """The commit of this checkout, if git knows it."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def run(
    part: Part, folder: Path, environment: dict[str, str], options: argparse.Namespace, left: float
) -> tuple[dict[str, Any], str]:
    """Runs a part in a process of its own; returns what it found and how it ended, and the end of what it printed."""
    out = folder / f"{part.name}.json"
    out.unlink(missing_ok=True)
    seconds = min(part.seconds * (PATIENCE if options.tiny else 1), left)
    command = [sys.executable, str(HERE / part.file), "--device", options.device, "--out", str(out)]
    command += ["--seconds", str(seconds), *(["--tiny"] if options.tiny else [])]
    began = time.monotonic()
    log = folder / f"{part.name}.log"
    with log.open("w", encoding="utf-8") as printed:
        process = subprocess.Popen(
            command, stdout=printed, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment, cwd=folder,
            start_new_session=True,
        )  # fmt: skip
        try:
            status: int | None = process.wait(seconds + 5)
        except subprocess.TimeoutExpired:
            status = None
        with_all(process)
    result: dict[str, Any] = {
        "seconds": round(time.monotonic() - began, 1),
        "found": json.loads(out.read_text(encoding="utf-8")) if out.exists() else [],
    }
    text = log.read_text(encoding="utf-8", errors="replace")[-LAST_LINES:]
    if status != 0:
        result["ended"] = f"stopped after {seconds:.0f} s" if status is None else f"exit status {status}"
        result["printed"] = text
    return result, text


def with_all(process: subprocess.Popen[bytes]) -> None:
    """Ends a part and whatever it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def bad(part: dict[str, Any]) -> list[dict[str, Any]]:
    """The findings of a part that failed, or where something differs."""
    return [finding for finding in part.get("found", []) if "failed" in finding or finding.get("ok") is False]


def sound(content: dict[str, Any]) -> bool:
    """Returns whether everything was installed, and all parts finished without failures or differences."""
    parts = content["parts"].values()
    return content["install"] == "ok" and not any(bad(part) or "ended" in part or "not_run" in part for part in parts)


def summary(content: dict[str, Any]) -> str:
    """A line for each part, and one for each finding that failed, differs or misses its target."""
    lines = []
    for name, part in content["parts"].items():
        found = part.get("found", [])
        wrong = bad(part)
        missed = [finding for finding in found if finding.get("met") is False]
        absent = [finding for finding in found if "not_run" in finding]
        ended = part.get("ended") or part.get("not_run") or "done"
        lines.append(
            f"{name}: {ended}, {len(found)} findings, {len(wrong)} failed or different, {len(missed)} targets missed,"
            f" {len(absent)} not run, {part.get('seconds', 0)} s"
        )
        lines += [f"  {'failed' if 'failed' in finding else 'differs'}: {finding['name']}" for finding in wrong]
        lines += [
            f"  missed: {finding['name']}: {finding.get('ratio')} of {finding.get('target')}" for finding in missed
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
