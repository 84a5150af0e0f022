"""A stand-in for SPICE's Java program, with the arguments and files of the one in pycocoevalcap."""

from __future__ import annotations

import sys
from pathlib import Path

PARSERS = ("stanford-corenlp-3.6.0.jar", "stanford-corenlp-3.6.0-models.jar")
JAVA = """#!{python}
import json, sys, time
from pathlib import Path

*options, flag, jar, given, out_flag, found, silent = sys.argv[1:]
assert (options, flag, jar, out_flag, silent) == (["-Xmx4G"], "-jar", "spice-1.0.jar", "-out", "-silent")
assert Path(jar).is_file()
mode = Path("mode").read_text() if Path("mode").exists() else ""
if mode == "fails":
    sys.exit("Error: out of memory\\nmore")
if mode == "hangs":
    time.sleep(600)
scores = []
for each in json.loads(Path(given).read_text()):
    shared = [set(each["test"].split()) & set(text.split()) for text in each["refs"]]
    value = max(map(len, shared)) / 10 if each["test"] != "nothing" else float("nan")
    scores.append({{"image_id": each["image_id"], "scores": {{"All": {{"f": value}}}}}})
Path(found).write_text("[{{" if mode == "breaks off" else json.dumps(scores[::-1]))
"""


def make(folder: Path) -> Path:
    """A new folder with a package and, in its folder ``bin``, a program java; returns that of the program."""
    spice = folder / "pycocoevalcap" / "spice"
    (spice / "lib").mkdir(parents=True)
    (folder / "pycocoevalcap" / "__init__.py").write_text("raise AssertionError('imported')")  # it would download
    for path in (spice / "spice-1.0.jar", *(spice / "lib" / name for name in PARSERS)):
        path.touch()
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(JAVA.format(python=sys.executable))
    java.chmod(0o755)
    return spice
