#!/usr/bin/env bash
# Collects wheels for Python 3.12 on Linux x86-64: what testbed and its tests need beside PyTorch and torchvision, so
# that prove.py can install them without a network.
#
#   bash benchmarks/gpu/wheels.sh [FOLDER] [--without "NAME NAME …"] [--with-scipy] [--with-transformers]
#
# FOLDER is benchmarks/gpu/wheels if not given; wheels in it are removed first. Versions are those of constraints.txt.
# All must stay below 50 MiB. So they are packed again with LZMA, which pip reads as well, and scipy, which most images
# have, comes only --with-scipy (then, and --with-transformers, whatever the size). --without leaves out what the image
# has, and all that only this requires. Fails if a wheel requires what is neither there nor left out. Takes minutes.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$root/benchmarks/gpu/wheels limit=50 without= scipy= transformers=
while (($#)); do
    case $1 in
        --without) without+=" $2"; shift ;;
        --with-scipy) scipy=1 limit=inf ;;
        --with-transformers) transformers=1 limit=inf ;;
        -*) echo "wheels.sh has no option $1" >&2; exit 2 ;;
        *) folder=$1 ;;
    esac
    shift
done
[[ $scipy ]] || without+=" scipy"

# What the tests need: conftest.py imports psycopg.
wanted="psycopg[binary] pytest pytest-timeout pytest-xdist pyautoattack"
# What setup.cfg and those require, and what that requires in turn.
names="open-clip-torch ftfy wcwidth regex timm huggingface-hub hf-xet httpx2 httpcore2 h11 anyio idna truststore
    safetensors sqlalchemy alembic mako pandas python-dateutil tzdata plotly narwhals click nltk defusedxml joblib
    cloudpickle sentencex rich pygments markdown-it-py mdurl scikit-learn scipy threadpoolctl pyyaml packaging tqdm
    psycopg psycopg-binary pytest pluggy iniconfig pytest-timeout pytest-xdist execnet pyautoattack"
if [[ $transformers ]]; then
    wanted+=" transformers sentencepiece protobuf"
    names+=" transformers tokenizers sentencepiece protobuf typer annotated-doc shellingham pydantic pydantic-core
        annotated-types typing-inspection"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/wheels.py" <<'PYTHON'
import configparser, re, sys, zipfile
from email.parser import HeaderParser
from pathlib import Path
try:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name as plain
except ImportError:
    from pip._vendor.packaging.requirements import Requirement
    from pip._vendor.packaging.utils import canonicalize_name as plain

TARGET = dict(python_version="3.12", python_full_version="3.12.0", sys_platform="linux", os_name="posix",
              platform_system="Linux", platform_machine="x86_64", implementation_name="cpython",
              platform_python_implementation="CPython")
WITH_TORCH = ("torch torchvision numpy pillow fsspec jinja2 markupsafe sympy mpmath networkx filelock "
              "typing-extensions setuptools").split()
# 40 MiB, the weights of a network to try it on, and 2 MiB for Jupyter; their lines in RECORD begin with these, too
LEFT_OUT = re.compile(rb"pyautoattack/examples/|plotly/labextension/|plotly-[\d.]+\.data/data/share/jupyter/")

def parsed(lines, extras=()):
    """The requirements in these lines that hold on the target."""
    found = map(Requirement, filter(None, (line.split("#")[0].strip() for line in lines)))
    return [each for each in found if not each.marker
            or any(each.marker.evaluate({**TARGET, "extra": extra}) for extra in ("", *extras))]

def versions(constraints, without, *names):
    """Prints the names with their versions (pip would read the file's markers for the Python that runs)."""
    known = {plain(each.name): each.specifier for each in parsed(Path(constraints).read_text().splitlines())}
    print(*(f"{name}{known.get(name, '')}" for name in names if name not in without.split()), sep="\n")

def pack(wheel):
    """Packs a wheel again without what is LEFT_OUT; the other contents stay, and so do their hashes in RECORD."""
    new = wheel.with_suffix(".new")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(new, "w") as packed:
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename.endswith(".dist-info/RECORD"):
                content = b"".join(line for line in content.splitlines(True) if not LEFT_OUT.match(line))
            if not LEFT_OUT.match(entry.filename.encode()):
                packed.writestr(entry, content, zipfile.ZIP_STORED if entry.is_dir() else zipfile.ZIP_LZMA)
    new.replace(wheel) if new.stat().st_size < wheel.stat().st_size else new.unlink()

def finish(config, wanted, without, limit, *wheels):
    """Removes wheels that nothing requires, packs the others, and prints their sizes and what is missing."""
    settings, have, files, problems, seen = configparser.ConfigParser(), {}, {}, [], set()
    settings.read(config)
    for wheel in map(Path, wheels):
        with zipfile.ZipFile(wheel) as content:
            file = next(each for each in content.namelist() if each.endswith(".dist-info/METADATA"))
            about = HeaderParser().parsestr(content.read(file).decode())
        have[plain(about["Name"])], files[plain(about["Name"])] = about, wheel
    left = [("testbed", each) for each in parsed(settings["options"]["install_requires"].splitlines())]
    left += [("the tests", each) for each in parsed(wanted.split())]
    while left:
        by, need = left.pop()
        name, asked = plain(need.name), (plain(need.name), *sorted(need.extras))
        if name in [*WITH_TORCH, *without.split()]:
            continue
        if name not in have:
            problems.append(f"missing: {by} requires {need}")
        elif not need.specifier.contains(have[name]["Version"], prereleases=True):
            problems.append(f"{by} requires {need}, but there is {have[name]['Version']}")
        elif asked not in seen:
            left += [(name, each) for each in parsed(have[name].get_all("Requires-Dist", []), need.extras)]
        seen.add(asked)
    for name in sorted(have.keys() - {each[0] for each in seen}):
        print(f"not needed: {name}")
        files.pop(name).unlink()
    for wheel in files.values():
        pack(wheel)
    sizes = sorted((wheel.stat().st_size / 2**20, wheel.name) for wheel in files.values())
    sizes.append((sum(size for size, _ in sizes), f"{len(files)} wheels"))
    print(*(f"{size:8.2f} MiB  {name}" for size, name in sizes), sep="\n")
    problems += [f"more than {limit} MiB"] if sizes[-1][0] > float(limit) else []
    sys.exit("\n".join(problems) or 0)

globals()[sys.argv[1]](*sys.argv[2:])
PYTHON

mkdir -p "$folder"
rm -f "$folder"/*.whl
python=${PYTHON:-python3}
"$python" "$work/wheels.py" versions "$root/constraints.txt" "$without" $names > "$work/names.txt"
"$python" -m pip download -qq --no-deps --only-binary=:all: --python-version 3.12 --implementation cp \
    $(printf -- '--platform manylinux%s_x86_64 ' _2_28 _2_27 _2_17 2014 1) -d "$folder" -r "$work/names.txt"
"$python" "$work/wheels.py" finish "$root/setup.cfg" "$wanted" "$without" "$limit" "$folder"/*.whl
