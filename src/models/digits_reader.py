"""Two toy models that answer questions about the handwritten digits; the digit is read by `digits-cnn`.

`digits-reader` answers with a letter, or with yes or no. `digits-talker` gives the same answers as models do: in a
sentence, in tags, in the middle of a text. Its answers test the rules that read them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from testbed.data.rows import Picture
from testbed.data.sets.digits import CLASS_NAMES
from testbed.models.base.capability import Generation, GenerationConfig, Message
from testbed.models.base.generator import Generator
from testbed.models.digits import IMAGE_SIZE, DigitsWeights, load, untrained
from testbed.models.model_base import StandardTransform
from testbed.registry import registry

if TYPE_CHECKING:
    import torch

EYE = "digits-cnn"
EVAL_BATCH_SIZE = 64
REVISION = 1  # of the answers; raised when the same question gets another answer
_OPTION = re.compile(r"^([A-Z])\. (\w+)$", re.MULTILINE)
_ASKED = re.compile(r"the digit (\w+)")
# The talker's wordings of "B", where B is the option dog; chosen by the question.
_SAYINGS = (
    "{letter}",
    "({letter})",
    "The answer is {letter}.",
    "<answer>{letter}</answer>",
    '{{"answer": "{letter}"}}',
    "It looks like a {name}.",
    "The answer is a {name}.",
    "A difficult picture. Let me look at it again: the lines are those of a {name}, so I choose {letter}",
)
_YES_NO = ("{word}", "{word}.", "**{word}**", "{word}, as far as I can see.", "Answer:{word}")


class Reader:
    """A network that sees a digit, and reads the question."""

    def __init__(self, network: Any, talks: bool) -> None:
        self.network = network
        self.talks = talks
        self.transform = StandardTransform(IMAGE_SIZE, IMAGE_SIZE)
        self.device = "cpu"

    def eval(self) -> Reader:
        """Switches to evaluation mode."""
        self.network.eval()
        return self

    def to(self, device: str) -> Reader:
        """Moves the network to a device."""
        self.network.to(device)
        self.device = device
        return self

    def generate(self, messages: Sequence[Message], config: GenerationConfig) -> list[Generation | Exception]:
        """An answer to each message, which has one picture and a question about a digit."""
        return [self._answer(message, logits) for message, logits in zip(messages, self._see(messages), strict=True)]

    def _see(self, messages: Sequence[Message]) -> torch.Tensor:
        """The logits [B, 10] of the first picture of each message; zeros where there is none."""
        import torch

        blank = torch.zeros(3, IMAGE_SIZE, IMAGE_SIZE)
        images = torch.stack([self._image(message, blank) for message in messages]).to(self.device)
        logits: torch.Tensor = self.network((images - 0.5) / 0.5).float().cpu()
        return logits

    def _image(self, message: Message, blank: torch.Tensor) -> torch.Tensor:
        for part in message.parts:
            if not isinstance(part, str):
                return self.transform(part.image() if isinstance(part, Picture) else part)
        return blank

    def _answer(self, message: Message, logits: torch.Tensor) -> Generation:
        text = "\n".join(part for part in message.parts if isinstance(part, str))
        options = {letter: name for letter, name in _OPTION.findall(text) if name in CLASS_NAMES}
        seen = CLASS_NAMES[int(logits.argmax())]
        if options:
            letter = max(options, key=lambda each: float(logits[CLASS_NAMES.index(options[each])]))
            return Generation(self._say(_SAYINGS, message, letter=letter, name=options[letter]))
        asked = _ASKED.search(text)
        if asked:
            return Generation(self._say(_YES_NO, message, word="Yes" if asked[1] == seen else "No"))
        return Generation(f"a photo of the digit {seen}")

    def _say(self, sayings: Sequence[str], message: Message, **words: str) -> str:
        drawn = int(hashlib.sha256(message.sample.encode()).hexdigest(), 16) if self.talks else 0
        return sayings[drawn % len(sayings)].format(**words)


def _add(name: str, talks: bool) -> None:
    registry.add_model(
        Generator(
            name,
            lambda: Reader(load(EYE), talks),
            EVAL_BATCH_SIZE,
            arch=EYE,
            architecture={"digits": name, "revision": REVISION},
            weights=DigitsWeights(EYE),
            random_loader=lambda: Reader(untrained(EYE), talks),
            generation={"max_new_tokens": 32},
        )
    )


def _register() -> None:
    _add("digits-reader", talks=False)
    _add("digits-talker", talks=True)
    registry.add_model_collection("digits-vlm", ["digits-reader", "digits-talker"])


_register()
