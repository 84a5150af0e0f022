"""Common parts of VLMEvalKit's base classes of models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from testbed.data.picture_files import IMAGE_SUFFIXES, is_picture_file
from testbed.errors import RunError
from testbed.standins.vlmevalkit.smp.vlm import concat_images_vlmeval

BLINK_HEIGHT = 512  # of pictures that are put side by side for a model that takes one


class MessageForms:
    """Messages in all forms that VLMEvalKit's models take."""

    INTERLEAVE = False
    allowed_types = ("text", "image", "video")
    dump_image_func: Callable[[Any], list[str]] | None = None

    def preproc_content(self, inputs: Any) -> list[dict[str, Any]]:
        """A message as a list of dictionaries: from a text, a dictionary, or a list of texts, paths and URLs.

        Raises:
            RunError: If it is something else.
        """
        items = inputs if isinstance(inputs, list) else [inputs]
        made = []
        for item in items:
            if isinstance(item, str):
                item = {"type": "image" if _is_picture(item) else "text", "value": item}
            if not isinstance(item, Mapping) or "value" not in item or item.get("type") not in self.allowed_types:
                raise RunError(f"a message is a list of {{'type': 'image' or 'text', 'value': …}}; it has {item!r:.80}")
            made.append(dict(item))
        return made

    def preproc_turns(self, messages: Any) -> list[dict[str, Any]]:
        """A conversation with all its messages as lists of dictionaries."""
        return [{**turn, "content": self.preproc_content(turn["content"])} for turn in messages]

    def set_dump_image(self, dump_image_func: Callable[[Any], list[str]]) -> None:
        """Takes the function that gives the files of a row's pictures."""
        self.dump_image_func = dump_image_func

    def dump_image(self, line: Any, dataset: str | None = None) -> list[str]:
        """The files of a row's pictures."""
        if self.dump_image_func is None:
            raise RunError("dump_image works while a prompt is being built")
        return self.dump_image_func(line)

    def use_custom_prompt(self, dataset: str | None) -> bool:
        """Checks whether the class has a prompt of its own for a data set."""
        return False

    def build_prompt(self, line: Any, dataset: str | None = None) -> Any:
        """The class's own prompt."""
        raise NotImplementedError(f"{type(self).__name__} has no build_prompt")

    def generate_inner(self, message: Any, dataset: str | None = None) -> Any:
        """The answer to a message."""
        raise NotImplementedError(f"{type(self).__name__} has no generate_inner")

    def message_to_promptimg(self, message: Any, dataset: str | None = None) -> tuple[str, str | None]:
        """The texts, joined by newlines, and the first picture; of BLINK all pictures side by side."""
        texts = "\n".join(item["value"] for item in message if item["type"] == "text")
        images = [item["value"] for item in message if item["type"] == "image"]
        if dataset == "BLINK" and len(images) > 1:
            return texts, concat_images_vlmeval(images, target_size=BLINK_HEIGHT)
        return texts, images[0] if images else None


def _is_picture(text: str) -> bool:
    url = text.startswith(("http://", "https://")) and "." in text and not text.split()[1:]
    return is_picture_file(text) or (url and f".{text.rpartition('.')[2].lower()}" in IMAGE_SUFFIXES)
