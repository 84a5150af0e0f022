"""Models whose network is an object of the user's program, and those whose program lies in a file."""

from __future__ import annotations

import logging
from typing import Any

import torch
from PIL import Image

from testbed.contracts.borrowed import Loan
from testbed.contracts.surroundings import configured, same_random_numbers
from testbed.errors import WeightsError
from testbed.identity.describe import describe_fields, digest
from testbed.models.at_hand.preprocessing import Preparation
from testbed.models.base.classifier import Model
from testbed.models.base.definition import LoadOptions
from testbed.models.base.weights import Weights, loading, of_network

log = logging.getLogger("testbed")

EVAL_BATCH_SIZE = 64
_DIGITS = 6  # of the digest in a name that nobody chose


class ModelAtHand(Model):
    """A classifier whose network is an object in memory.

    Its weights are what the object holds when it is asked: one that was trained further is another model.

    Args:
        name: Its name; ending with ``-`` to be completed by a digest of its content.
        network: A module of torch, or any function from a batch of images to logits.
        prepared: Its preparation of pictures.
        one_by_one: True if images may have different sizes, so that they make no batches.
        **options: See `Model`.
    """

    def __init__(
        self, name: str, network: Any, prepared: Preparation, *, one_by_one: bool = False, **options: Any
    ) -> None:
        super().__init__(
            name,
            prepared.transform,
            lambda: network,
            EVAL_BATCH_SIZE,
            normalization=prepared.normalization,
            **{"architecture": {"at hand": type(network).__qualname__}, **options},
        )
        self.one_by_one = one_by_one
        self.preprocessing_from = prepared.where
        self._network_at_hand = network
        self._content: str | None = None
        if name.endswith("-"):
            weights = self.weights()
            assert weights is not None
            self._content = weights.id
            self.name = f"{name}{digest([weights.id, describe_fields(self.spec())])[:_DIGITS]}"
        if self.num_classes is None:
            self.num_classes = self._outputs()

    def _outputs(self) -> int | None:
        """The number of logits of one picture; None if that fails, since the run then says why."""
        own = [str(tensor.device) for tensor in getattr(self._network_at_hand, "parameters", list)()][:1]
        for device in own or ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]:
            loan = Loan()
            try:
                with loan.taking(), same_random_numbers(), configured(device, torch.get_num_threads()):
                    images = self.transform(Image.new("RGB", (256, 256), "gray"))[None].to(device)
                    return self.load(LoadOptions(device)).logits(images).shape[1]
            except Exception:  # the user's code may raise anything
                log.debug("%s: one picture gave no logits on %s", self.name, device, exc_info=True)
            finally:
                loan.end()
        return None

    def batch_size(self, adversarial: bool, override: int | None = None) -> int:
        """The batch size: 1 where images may have different sizes."""
        return 1 if self.one_by_one else super().batch_size(adversarial, override)

    def weights(self, random_seed: int | None = None, fetch: bool = True) -> Weights | None:
        """The weights that the object has now; raises WeightsError if the name has the digest of other content."""
        if random_seed is not None:
            return super().weights(random_seed, fetch)
        with loading(self.name):
            weights = of_network(self._network_at_hand)
        if self._content is not None and self._content != weights.id:
            raise WeightsError(
                f"{self.name} is the name of a network that has changed since; give the network itself, or name=NAME"
            )
        return weights
