"""The files beside the data that have class names and templates."""

from __future__ import annotations

CLASS_NAMES_FILE = "classnames.txt"
TEMPLATE_FILES = ("zeroshot_classification_templates.txt", "templates.txt")


def is_prompt_file(name: str) -> bool:
    """Checks whether a file of this name has class names or templates, in some language (``classnames.zh.txt``)."""
    stem, _, suffix = name.rpartition(".")
    return f"{stem.partition('.')[0]}.{suffix}" in (CLASS_NAMES_FILE, *TEMPLATE_FILES)
