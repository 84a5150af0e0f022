"""The transform that a data set of torch applies to its pictures, found by its results.

A training loop gives its network what the data set returns. To compute the same, and to corrupt pictures before they
are normalized, the pictures from before the transform are needed, and the transform. An attribute is the transform if
the data set without it returns a picture of which the attribute makes exactly what the data set returns.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from testbed.calls import catchable
from testbed.contracts.surroundings import same_random_numbers
from testbed.data.at_hand.pictures import as_numpy, is_array, is_tensor, rgb_of
from testbed.errors import DataError

Reader = Callable[[Any, int], Any]  # the picture of a data set's sample, as it is returned


@dataclass(frozen=True)
class OwnTransform:
    """A data set's transform as a function of RGB pictures.

    Args:
        function: The transform.
        mode: The pictures that it is given: a mode of PIL; None for arrays [H, W, 3] of uint8.
        keyword: The name of its argument, under which its result has the picture as well (albumentations); None if it
            is called with the picture alone.
    """

    function: Callable[..., Any]
    mode: str | None = None
    keyword: str | None = None

    def __call__(self, picture: Any) -> Any:
        """Returns the transform of a picture of PIL."""
        import numpy as np

        given = np.array(picture) if self.mode is None else picture.convert(self.mode)
        return self.function(given) if self.keyword is None else self.function(**{self.keyword: given})[self.keyword]


class _Without:
    """Stands for a transform: returns what it is given, and keeps how it was called."""

    def __init__(self) -> None:
        self.keywords: tuple[str, ...] = ()

    def __call__(self, *given: Any, **named: Any) -> Any:
        self.keywords = tuple(named)
        return named if not given else given[0] if len(given) == 1 else given


def own_transform(dataset: Any, read: Reader) -> tuple[Any, Any] | None:
    """Returns a data set's copy without its transform, and the transform; None if there is none that can be found.

    Args:
        dataset: A map-style data set of torch; it is not changed.
        read: Returns the picture of a data set's sample.
    """
    if not len(dataset):
        return None
    places = sorted({0, len(dataset) - 1})
    with same_random_numbers():
        try:
            with catchable():
                returned = [read(dataset, place) for place in places]
        except Exception:  # reading all samples says which fails, and why
            return None
        if not all(map(_is_prepared, returned)):
            return None
        for plain, attribute, call in _candidates(dataset):
            try:
                raw = [read(plain, place) for place in places]
                transform = _called(attribute, raw[0], call)
                made = [transform(rgb_of(picture, "")[0]) for picture in raw]
                found = all(map(_equal, made, returned))
            except Exception:  # another attribute than the transform
                continue
            if found:
                return plain, transform
    return None


def as_returned(picture: Any, where: str) -> tuple[Any, ...]:
    """Returns the transform to pictures that are tensors, float [C, H, W] in [0, 1]; none for other pictures.

    Raises:
        DataError: If they are arrays of other numbers; it says what to pass.
    """
    if not _is_prepared(picture):
        return ()
    rgb_of(picture, where)
    if picture.ndim != 3 or picture.shape[0] not in (1, 3):
        return ()
    from torchvision import transforms

    steps = [transforms.Grayscale()] if picture.shape[0] == 1 else []
    return (transforms.Compose([*steps, transforms.ToTensor()]),)


def _candidates(dataset: Any) -> Iterator[tuple[Any, Any, _Without]]:
    """Yields copies of a data set, each with one attribute replaced, also of the data sets within it."""
    data = sys.modules["torch.utils.data"]
    for name, held in vars(dataset).items():
        if isinstance(held, data.Dataset):
            for inner, attribute, call in _candidates(held):
                yield _with(dataset, name, inner), attribute, call
        elif callable(held) and not isinstance(held, type):
            call = _Without()
            yield _with(dataset, name, call), held, call


def _with(dataset: Any, name: str, value: Any) -> Any:
    other = copy.copy(dataset)
    vars(other)[name] = value
    return other


def _called(function: Any, raw: Any, call: _Without) -> Any:
    """A transform as a function of RGB pictures, by the picture that it is given."""
    mode = getattr(raw, "mode", None)
    if mode is None and (is_tensor(raw) or str(getattr(raw, "dtype", "")) != "uint8"):
        raise DataError("not a picture")
    keyword = call.keywords[0] if len(call.keywords) == 1 else None
    return function if (mode, keyword) == ("RGB", None) else OwnTransform(function, mode, keyword)


def _is_prepared(picture: Any) -> bool:
    return is_array(picture) and "float" in str(picture.dtype)


def _equal(made: Any, returned: Any) -> bool:
    import numpy as np

    one, other = as_numpy(made), as_numpy(returned)
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=True)
