"""Class names and templates of an own folder of images, or of other data at hand, which need no file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from testbed.data.language import prompts
from testbed.data.language.folder_names import ClassWords, words_of
from testbed.data.language.prompt_files import CLASS_NAMES_FILE, TEMPLATE_FILES
from testbed.eval_settings.benchmark_families.clip_benchmark import Prompts

_SHOWN = 5  # class names in a line
_ENGLISH = "en"


@dataclass(frozen=True)
class FolderPrompts(Prompts):
    """Files come first; where none has templates, they and the class names follow from the names of the folders.

    Where a file has templates and none has class names, these are the folders' names as they are.

    Attributes:
        classes: The names of the folders.
    """

    classes: Callable[[], Sequence[str]] = tuple

    def class_names(self, language: str) -> list[str] | None:
        """The class names of a file, the folders' names in words, or None for these names as they are."""
        given = super().class_names(language)
        if given is not None or language != _ENGLISH:
            return given
        words, found = self._words(), self._found(language)
        if not words.folders:
            return None  # labels that are numbers
        by_class = (
            isinstance(found, dict) and not found.keys() >= set(words.folders) and found.keys() >= set(words.names)
        )
        return list(words.names) if found is None or by_class else None

    def templates(self, language: str) -> prompts.Templates:
        """The templates of a file, else those for the names of the folders."""
        if language != _ENGLISH:
            return super().templates(language)
        templates = self._found(language)
        return self._words().templates() if templates is None else templates

    def about(self, language: str) -> list[str]:
        """Returns lines about the names and templates that follow from the folders, and how to replace them."""
        if language != _ENGLISH:
            return []
        words, given, found = self._words(), super().class_names(language), self._found(language)
        if not words.folders:
            return []
        place = next((str(folder) for folder in self._folders()), "")
        where = f"{place}/{CLASS_NAMES_FILE}, " if place else ""
        files = f"{place}/{TEMPLATE_FILES[-1]}, {where}" if place else ""
        if found is None:
            made = self._words().templates()
            said = f"the template {made[0]!r}" if len(made) == 1 else f"OpenAI's {len(made)} templates for ImageNet"
            names = "class names from a file" if given is not None else f"the class names {_shown(words)}"
            return [
                f"Prompts of {self.name}: {said}, with {names}. Others by: {files}--templates-file, --classnames-file"
            ]
        if given is None and words.changed and isinstance(found, list):
            first, name = next(iter(words.changed.items()))
            return [
                f"Prompts of {self.name}: templates from a file, with the class names as they are, such as {first!r};"
                f" others, such as {name!r}, by: {where}--classnames-file"
            ]
        return []

    def _words(self) -> ClassWords:
        return words_of(tuple(self.classes()))

    def _found(self, language: str) -> prompts.Templates | None:
        """The templates of a file, if there is one for these classes."""
        given, words = super().class_names(language), self._words()
        classes = given if given is not None else [*words.folders, *words.names]
        return prompts.find_templates(
            self.name, language, folders=self._folders(), same_as=self.same_as, classes=classes
        )


def _shown(words: ClassWords) -> str:
    """The first class names, with the folders where these are called otherwise."""
    pairs = list(zip(words.folders, words.names, strict=True))
    said = [name if folder == name else f"{name} ({folder})" for folder, name in pairs[:_SHOWN]]
    return ", ".join(said) + (", …" if len(pairs) > _SHOWN else "")
