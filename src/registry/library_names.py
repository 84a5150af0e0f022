"""The model names of torchvision, timm and open_clip, read from their source files without importing them.

Importing a library takes seconds and imports torch. The files are read once per version, and the result is cached. A
version whose files have another form is imported and asked.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import json
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from testbed.errors import PluginError
from testbed.paths import cache_dir, write_atomically
from testbed.registry.static_values import UNKNOWN, StaticModule

_FORMAT = 5  # changes with what is read

Names = dict[str, list[str]]


def library_names(distribution: str) -> Names:
    """The architectures of a library with the names of their pretrained weights, the default ones first.

    Args:
        distribution: ``"torchvision"``, ``"timm"`` or ``"open_clip_torch"``.

    Returns:
        Architecture → names of weights; empty if the library is not installed.

    Raises:
        PluginError: If the library is installed but cannot be imported, where that is needed.
    """
    return _answers(distribution)[0]


def places_of_weights(distribution: str) -> Names:
    """The repositories of the Hugging Face hub, and the URLs, that a library takes weights from.

    Args:
        distribution: As for `library_names`.

    Returns:
        Repository or URL → testbed's names of the models; empty if the library is not installed.

    Raises:
        PluginError: If the library is installed but cannot be imported, where that is needed.
    """
    return _answers(distribution)[1]


@cache
def _answers(distribution: str) -> tuple[Names, Names]:
    try:
        version = importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return {}, {}
    path = cache_dir("names") / f"{distribution}-{version}-{_FORMAT}.json"
    known = _remembered(path)
    if known is None:
        known = _read(distribution)
        try:
            write_atomically(path, json.dumps(known).encode())
        except OSError:
            pass  # not cached
    return known


def _remembered(path: Path) -> tuple[Names, Names] | None:
    """The cached answers; None if there are none or the file is invalid."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return (known[0], known[1]) if _is_answer(known) else None


def _is_answer(known: Any) -> bool:
    return isinstance(known, list) and len(known) == 2 and all(map(_are_names, known))


def _are_names(known: Any) -> bool:
    return isinstance(known, dict) and all(
        isinstance(several, list) and all(isinstance(name, str) for name in several) for several in known.values()
    )


def _read(distribution: str) -> tuple[Names, Names]:
    """The names in the files of a library; raises PluginError if it has to be asked and cannot be imported."""
    package, reader = _READERS[distribution]
    try:
        names, hub = reader(_folder(package))
    except (OSError, ValueError, SyntaxError, _UnexpectedError):
        names, hub = {}, {}
    if not names:  # a version whose files have another form
        try:
            names, hub = _ASKED[distribution]()
        except Exception as error:
            raise PluginError(f"{distribution} is installed but cannot list its models: {error!s:.200}") from error
    return names, dict(hub)


class _UnexpectedError(Exception):
    """A file does not define a table of constants as expected."""


def _folder(package: str) -> Path:
    """The installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise _UnexpectedError(f"the package {package} has no files")
    return Path(spec.origin).parent


def _torchvision(folder: Path) -> tuple[Names, Names]:
    """Reads the builders registered in ``models/*.py``; their weights are the enumeration that they take."""
    names: Names = {}
    hub: Names = {}
    for path in sorted((folder / "models").glob("*.py")):
        module = StaticModule(path)
        for function in module.decorated("register_model"):
            known = [
                (weights, about)
                for weights, about in _enumerated(module, _weights_class(function, path))
                if about.get("categories")  # others classify nothing
            ]
            names[function.name] = [weights for weights, _ in known]
            for weights, about in known:
                hub[about["url"]] = [function.name if weights == known[0][0] else f"{function.name}.{weights.lower()}"]
    return dict(sorted(names.items())), hub


def _weights_class(function: ast.FunctionDef, path: Path) -> str:
    for arg in (*function.args.args, *function.args.kwonlyargs):
        if arg.arg == "weights" and arg.annotation is not None:
            inner = [
                node.id for node in ast.walk(arg.annotation) if isinstance(node, ast.Name) and node.id != "Optional"
            ]
            if len(inner) == 1:
                return inner[0]
    raise _UnexpectedError(f"{path.name}: {function.name} does not name the weights that it takes")


def _enumerated(module: StaticModule, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Returns the members of an enumeration of weights, with their URL and metadata."""
    for statement in module.classes[name].body if name in module.classes else []:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue  # such as DEFAULT, another name of a member
        given = {keyword.arg: module.value(keyword.value) for keyword in statement.value.keywords}
        url, meta = given.get("url"), given.get("meta")
        if not isinstance(url, str) or not isinstance(meta, dict):
            raise _UnexpectedError(f"the weights {name} are not constants")
        yield statement.targets[0].id, {**meta, "url": url}  # type: ignore[attr-defined]


def _timm(folder: Path) -> tuple[Names, Names]:
    """Reads the functions registered in ``models/*.py``, with the tags of ``default_cfgs``."""
    names: Names = {}
    places: dict[str, tuple[str, ...]] = {}
    for path in sorted((folder / "models").glob("*.py")):
        module = StaticModule(path)
        tagged = _tags(module, path)
        for function in module.decorated("register_model"):
            tags, weights = tagged.get(function.name, (deque(), {}))
            known = [tag for tag in tags if tag in weights]
            others = sorted(known[1:] if tags and known[:1] == [tags[0]] else known, key=_natural)
            names[function.name] = [*(tag for tag in known if tag not in others), *others]
            for tag in names[function.name]:
                full = f"{function.name}.{tag}" if tag else function.name
                where, url = weights[tag]
                where = f"{where}{full}" if where == "timm/" else where.partition("@")[0]
                places[full] = tuple(filter(None, (where, url)))
    hub: Names = defaultdict(list)
    for full in sorted(places, key=_natural):
        for place in places[full]:
            hub[place].append(f"timm/{full}")
    return {name: names[name] for name in sorted(names, key=_natural)}, hub


def _tags(module: StaticModule, path: Path) -> dict[str, tuple[deque[str], dict[str, tuple[str, str]]]]:
    """Returns architecture → tags, the default first, and places of weights: as timm's ``generate_default_cfgs``."""
    table: dict[str, Any] = {}
    for statement in module.body:
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        if (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Name)
            and value.func.id == "generate_default_cfgs"
        ):
            written = value.args[0]
            changed = module.changed_with(written.id) if isinstance(written, ast.Name) else set()
            defaults = module.value(written)
            if changed and _QUICK in changed and isinstance(defaults, dict):
                defaults |= _quick(defaults)
                changed = set()
            if changed:
                raise _UnexpectedError(f"{path.name}: the table of weights is changed by code")
            if not isinstance(defaults, dict):
                raise _UnexpectedError(f"{path.name}: the table of weights is not one of constants")
            table = defaults
    tags: dict[str, deque[str]] = defaultdict(deque)
    weights: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    chosen = set()
    for name, about in table.items():
        if not isinstance(about, dict):
            raise _UnexpectedError(f"{path.name}: the weights of {name} are not constants")
        place = tuple(about.get(key) or "" for key in ("hf_hub_id", "url", "file"))
        if any(item is UNKNOWN for item in place):
            raise _UnexpectedError(f"{path.name}: the place of the weights of {name} is not constant")
        model, _, tag = name.partition(".")
        first = (any(place) and not tag) or (tag.endswith("*") and model not in chosen)
        tag = tag.strip("*")
        if first:
            chosen.add(model)
        if first or (any(place) and not weights[model]):
            tags[model].appendleft(tag)
        else:
            tags[model].append(tag)
        if any(place):
            weights[model][tag] = place[0], place[1]
    return {model: (several, weights[model]) for model, several in tags.items()}


_QUICK = "_quick_gelu_cfgs"


def _quick(table: dict[str, Any]) -> dict[str, Any]:
    """Returns timm's networks with QuickGELU, which take the weights of those that are noted to be trained so."""
    configurations = {}
    for name, about in table.items():
        notes = about.get("notes") if isinstance(about, dict) else None
        if notes and "quickgelu" in notes[0]:
            place = about.get("hf_hub_id")
            place = f"timm/{name}" if place == "timm/" else place
            configurations[name.replace("_clip_", "_clip_quickgelu_")] = {**about, "hf_hub_id": place}
    return configurations


def _open_clip(folder: Path) -> tuple[Names, Names]:
    """The configurations in ``model_configs``, with the tags of ``pretrained.py``."""
    module = StaticModule(folder / "pretrained.py")
    table = module.named("_PRETRAINED")
    if module.changed_with("_PRETRAINED") - {"_PRETRAINED", "_PRETRAINED_quickgelu"}:
        raise _UnexpectedError("pretrained.py: the table of weights is changed by code")
    if not isinstance(table, dict) or not all(isinstance(tags, dict) for tags in table.values()):
        raise _UnexpectedError("pretrained.py: the table of weights is not one of constants")
    for name, tags in list(table.items()):
        quick = {tag: about for tag, about in tags.items() if about.get("quick_gelu")}
        table |= {f"{name}-quickgelu": quick} if quick else {}
    names: Names = {}
    for path in (folder / "model_configs").glob("*.json"):
        if all(key in json.loads(path.read_bytes()) for key in ("embed_dim", "vision_cfg", "text_cfg")):
            names[path.stem] = list(table.get(path.stem, {}))
    hub: Names = defaultdict(list)
    for name, tags in table.items():
        for tag, about in tags.items():
            if place := about.get("hf_hub"):
                hub[place.rpartition("/")[0]].append(f"{name},{tag}")
    return {name: names[name] for name in sorted(names, key=_natural)}, hub


def _natural(name: str) -> list[int | str]:
    """The libraries' own order of names."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name.lower())]


def _ask_torchvision() -> tuple[Names, Names]:
    from torchvision import models

    names: Names = {}
    hub: Names = {}
    for name in models.list_models(module=models):
        known = [weights for weights in models.get_model_weights(name) if weights.meta.get("categories")]
        names[name] = [weights.name for weights in known]
        for weights in known:
            hub[weights.url] = [name if weights is known[0] else f"{name}.{weights.name.lower()}"]
    return names, hub


def _ask_timm() -> tuple[Names, Names]:
    import timm

    names: Names = {name: [] for name in timm.list_models()}
    hub: Names = defaultdict(list)
    for name in timm.list_pretrained():
        architecture, _, tag = name.partition(".")
        names[architecture].append(tag)
        config = timm.get_pretrained_cfg(name)
        for place in filter(None, ((config.hf_hub_id or "").partition("@")[0], config.url)):
            hub[place].append(f"timm/{name}")
    for architecture, tags in names.items():
        default = timm.get_pretrained_cfg(architecture).tag if tags else ""
        tags.sort(key=lambda tag: tag != default)
    return names, hub


def _ask_open_clip() -> tuple[Names, Names]:
    import open_clip

    hub: Names = defaultdict(list)
    for architecture, tag in open_clip.list_pretrained():
        if place := open_clip.get_pretrained_cfg(architecture, tag).get("hf_hub"):
            hub[place.rpartition("/")[0]].append(f"{architecture},{tag}")
    return {name: open_clip.list_pretrained_tags_by_model(name) for name in open_clip.list_models()}, hub


_ASKED: dict[str, Callable[[], tuple[Names, Names]]] = {
    "torchvision": _ask_torchvision,
    "timm": _ask_timm,
    "open_clip_torch": _ask_open_clip,
}
_READERS: dict[str, tuple[str, Callable[[Path], tuple[Names, Names]]]] = {
    "torchvision": ("torchvision", _torchvision),
    "timm": ("timm", _timm),
    "open_clip_torch": ("open_clip", _open_clip),
}
