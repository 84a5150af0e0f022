"""Class names and prompt templates of named data sets, found in files: nothing of other people's is kept here.

They are looked for in this order:

1. the files that the user names (``--classnames-file``, ``--templates-file``), in CLIP benchmark's JSON formats:
   ``{data set: [class names]}``; ``{data set: [templates with {c}]}``, ``{data set: {class: [prompts]}}`` or, as CuPL
   has it, ``{class: [prompts]}``;
2. text files beside the data, one entry per line: ``classnames.txt``, ``zeroshot_classification_templates.txt`` or
   ``templates.txt``, and ``classnames.zh.txt`` and the like in another language;
3. the JSON files of an installed clip-benchmark package, of which no code is run;
4. for ImageNet's classes in English, open_clip's.

A data set is looked up under its full name, then without the prefix of its origin.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.data.language.prompt_files import (
    CLASS_NAMES_FILE,
    TEMPLATE_FILES,
    read_json,
    read_lines,
    strings_of,
    template_lines,
    templates_of,
    texts_of,
)
from testbed.data.language.prompt_files import Templates as Templates
from testbed.data.language.template_places import has_place
from testbed.errors import DataError
from testbed.inputs import active
from testbed.paths import expanded

IMAGENET = "imagenet1k"
PREFIXES = ("wds/", "vtab/", "tfds/", "hf/", "folder/", "file/", "object/")
# Languages that published files spell in two ways.
_SPELLINGS = {"zh": ("zh", "cn"), "cn": ("cn", "zh"), "ja": ("ja", "jp"), "jp": ("jp", "ja")}
_PACKAGE = "clip_benchmark"
# Where clip-benchmark has other class names for one data set under one name.
_PACKAGED_AS = {"vtab/caltech101": "caltech101_vtab"}


def class_names_file(given: Path) -> Path:
    """A file of class names that comes before all others, checked; see `templates_file`."""
    return _checked(given, strings_of)


def templates_file(given: Path) -> Path:
    """A file of templates that comes before all others, checked.

    A file that does not exist is taken from the installed clip-benchmark package if it has one of that name
    (``cupl_prompts.json``).

    Raises:
        DataError: If it cannot be read or is in no known form.
    """
    return _checked(given, texts_of)


def _checked(given: Path, check: Callable[[Path, str, Any], object]) -> Path:
    path = _own_or_packaged(expanded(given))
    for key, value in read_json(path).items():
        check(path, key, value)
    return path


def in_language(file: str, language: str) -> str:
    """The name of a file beside the data in a language: ``classnames.zh.txt``; without a code in English."""
    stem, _, suffix = file.rpartition(".")
    return file if language == "en" else f"{stem}.{language}.{suffix}"


def languages_beside(folder: Path) -> list[str]:
    """The languages other than English of which a folder has class names or templates."""
    codes = set()
    for file in (CLASS_NAMES_FILE, *TEMPLATE_FILES):
        stem, _, suffix = file.rpartition(".")
        codes |= {path.name[len(stem) + 1 : -len(suffix) - 1] for path in folder.glob(f"{stem}.*.{suffix}")}
    return sorted(code for code in codes if code.replace("_", "").isalnum())


def lookup_keys(name: str) -> list[str]:
    """Returns the names under which a data set is looked up: ``wds/vtab/x``, ``vtab/x``, ``x``."""
    keys = [name]
    while prefix := next((prefix for prefix in PREFIXES if keys[-1].startswith(prefix)), None):
        keys.append(keys[-1].removeprefix(prefix))
    return keys


# Class names ------------------------------------------------------------------------------------------------------


def class_names(
    name: str,
    language: str = "en",
    *,
    folders: Sequence[Path] = (),
    count: int | None = None,
    same_as: str | None = None,
    own: bool = False,
) -> list[str] | None:
    """The class names of a data set in a language.

    Args:
        name: The data set's name.
        language: Its code.
        folders: The possible folders of the data, with files beside them.
        count: The number of classes.
        same_as: Another data set with the same names, such as ``imagenet1k``.
        own: Accepts the data set's own names, in English, where no file has others.

    Returns:
        A name for each class, or None for the data set's own names.

    Raises:
        DataError: If there are none, or another number of them; the message lists the possible sources.
    """
    keys = [*lookup_keys(name), *([same_as] if same_as else [])]
    names_and_place = _find_class_names(keys, language, folders)
    if names_and_place is None:
        if own and language == "en":
            return None
        raise DataError(_missing("class names", "--classnames-file", name, language, folders, (CLASS_NAMES_FILE,)))
    names, where = names_and_place
    if count is not None and len(names) != count:
        raise DataError(
            f"data set {name!r} has {count} classes; {where} has {len(names)} class names"
            f"{f' in the language {language!r}' if language != 'en' else ''}, and should have one for each"
        )
    return names


def _find_class_names(keys: Sequence[str], language: str, folders: Sequence[Path]) -> tuple[list[str], str] | None:
    if path := active().class_names:
        content = read_json(Path(path))
        for key in keys:
            if key in content:
                return strings_of(Path(path), key, content[key]), path
    for folder in folders:
        if (beside := folder / in_language(CLASS_NAMES_FILE, language)).is_file():
            return read_lines(beside), str(beside)
    for file in _packaged(language, "classnames"):
        content = read_json(file)
        for packaged in [spelling for key in keys for spelling in (_PACKAGED_AS.get(key, key), key)]:
            if packaged in content:
                return strings_of(file, packaged, content[packaged]), str(file)
    if IMAGENET in keys and language == "en":
        from testbed.data.sets.imagenet import class_names as imagenet_names

        return imagenet_names(), "open_clip"
    return None


# Templates --------------------------------------------------------------------------------------------------------


def templates(
    name: str,
    language: str = "en",
    *,
    folders: Sequence[Path] = (),
    same_as: str | None = None,
    classes: Sequence[str] | None = None,
) -> Templates:
    """The prompt templates of a data set in a language; see `find_templates`.

    Raises:
        DataError: If there are none. ImageNet's are not taken for other data sets, nor those of another language.
    """
    templates_found = find_templates(name, language, folders=folders, same_as=same_as, classes=classes)
    if templates_found is None:
        raise DataError(_missing("prompt templates", "--templates-file", name, language, folders, TEMPLATE_FILES))
    return templates_found


def find_templates(
    name: str,
    language: str = "en",
    *,
    folders: Sequence[Path] = (),
    same_as: str | None = None,
    classes: Sequence[str] | None = None,
) -> Templates | None:
    """The prompt templates of a data set in a language, as files have them.

    Args:
        name: The data set's name.
        language: Its code.
        folders: As `class_names`.
        same_as: As `class_names`.
        classes: The class names, where they are known; they identify a file of ``{class: [prompts]}``.

    Returns:
        Templates with ``{c}``, or a dictionary of class name to prompts; None if there are none.

    Raises:
        DataError: If a file is not in a known form.
    """
    keys = [*lookup_keys(name), *([same_as] if same_as else [])]
    if templates_found := _given_templates(keys, classes):
        return templates_found
    for folder in folders:
        for file in [folder / in_language(name, language) for name in TEMPLATE_FILES]:
            if file.is_file():
                return template_lines(file)
    for packaged in _packaged(language, "zeroshot_classification_templates"):
        content = read_json(packaged)
        for key in keys:
            if key in content:
                return templates_of(packaged, key, content[key])
    if IMAGENET in keys and language == "en":
        from testbed.data.sets.imagenet import templates as imagenet_templates

        return imagenet_templates()
    return None


def given_templates(name: str, classes: Sequence[str] | None = None) -> Templates | None:
    """The prompt templates of a data set in the file that the user names; None if it has none, or there is no file.

    Args:
        name: The data set's name.
        classes: As `templates`.

    Raises:
        DataError: If the file is in no known form.
    """
    return _given_templates(lookup_keys(name), classes)


def _given_templates(keys: Sequence[str], classes: Sequence[str] | None) -> Templates | None:
    if not (path := active().templates):
        return None
    content = read_json(Path(path))
    for key in keys:
        if key in content:
            return templates_of(Path(path), key, content[key])
    if _is_by_class(content) and (classes is None or not set(classes).isdisjoint(content)):
        return {name: strings_of(Path(path), name, prompts) for name, prompts in content.items()}
    return None


def _is_by_class(content: Mapping[str, Any]) -> bool:
    """Checks whether a file is ``{class: [prompts]}``: whole prompts, none of them to be filled in."""
    texts = [prompt for prompts in content.values() if isinstance(prompts, list) for prompt in prompts]
    return all(isinstance(value, list) for value in content.values()) and not any(
        has_place(str(text)) for text in texts
    )


# Babel-ImageNet ---------------------------------------------------------------------------------------------------

BABEL = "babel_imagenet"
_BABEL_FILES = ("babel_imagenet.json", "nllb_dist13b_prompts.json")


def babel_classes(language: str, folders: Sequence[Path] = ()) -> tuple[list[int], list[str]]:
    """Returns Babel-ImageNet's classes in a language: their places in ImageNet, and their names.

    They are read from ``babel_imagenet.json``, beside the data or in the installed clip-benchmark package.

    Raises:
        DataError: If the file is missing, or does not have this language.
    """
    path = _babel_file(_BABEL_FILES[0], folders)
    entry = read_json(path).get(language.upper())
    if entry is None:
        raise DataError(f"{path} does not have the language {language!r}; it has {', '.join(sorted(read_json(path)))}")
    well_formed = isinstance(entry, list) and len(entry) == 2 and all(isinstance(part, list) for part in entry)
    if not well_formed or len(entry[0]) != len(entry[1]) or not all(
        type(label) is int and 0 <= label < 1000 for label in entry[0]
    ):  # fmt: skip
        raise DataError(f"{path}: {language.upper()} should be [[class numbers from 0 to 999], [as many names]]")
    return list(entry[0]), strings_of(path, language.upper(), entry[1])


def babel_templates(language: str, folders: Sequence[Path] = ()) -> Templates:
    """Returns Babel-ImageNet's prompt templates in a language, from ``nllb_dist13b_prompts.json``, after the user's.

    Raises:
        DataError: If there are none.
    """
    if path := active().templates:
        content = read_json(Path(path))
        if BABEL in content:
            return templates_of(Path(path), BABEL, content[BABEL])
    file = _babel_file(_BABEL_FILES[1], folders)
    entry = read_json(file).get(language.upper())
    if entry is None:
        raise DataError(
            f"{file} has no prompt templates in the language {language!r}, which Babel-ImageNet's authors give none"
            f' for; give some with --templates-file FILE: {{"{BABEL}": ["… {{c}} …"]}}'
        )
    return templates_of(file, language.upper(), strings_of(file, language.upper(), entry))


def _babel_file(name: str, folders: Sequence[Path]) -> Path:
    for path in (*(folder / name for folder in folders), *_package_files(name)):
        if path.is_file():
            return path
    where = f" in {folders[0]}" if folders else ""
    raise DataError(f"data set {BABEL!r} needs the file {name}{where}, or pip install -e '.[prompts]'")


# The installed package ----------------------------------------------------------------------------------------------


def _own_or_packaged(path: Path) -> Path:
    if not path.is_file() and len(path.parts) == 1:
        return next((file for file in _package_files(path.name) if file.is_file()), path)
    return path


def _packaged(language: str, what: str) -> list[Path]:
    """The installed package's file of that language, under either spelling."""
    if not language.isalpha():
        return []
    files = [file for code in _SPELLINGS.get(language, (language,)) for file in _package_files(f"{code}_{what}.json")]
    return [file for file in files if file.is_file()]


def _package_files(name: str) -> list[Path]:
    """Returns where the installed package would have a file; it is found without being imported."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return []
    return [Path(folder) / "datasets" / name for folder in spec.submodule_search_locations]


def _missing(what: str, flag: str, name: str, language: str, folders: Sequence[Path], files: Sequence[str]) -> str:
    example = "class names" if what == "class names" else "a photo of a {c}."
    ways = [f'{flag} FILE with {{"{name}": ["{example}", …]}}']
    if language == "en":
        where = folders[0] / files[0] if folders else f"{files[0]} beside the data"
        ways.append(f"the file {where} with one per line")
    ways.append("pip install -e '.[prompts]', where CLIP benchmark has some for it")
    spoken = "" if language == "en" else f" in the language {language!r}"
    return f"data set {name!r} has no {what}{spoken}, which zero-shot classification needs; give {'; or '.join(ways)}"
