"""`digits-coca`: a tiny CoCa of open_clip that describes the handwritten digits, trained on first use, within seconds.

It answers "a handwritten seven with straight lines." (see `testbed.data.sets.digit_tasks.description`), on the setting
``digits-captioning``.
"""

from __future__ import annotations

from testbed.models.digits import load, shared
from testbed.models.model_base import DualEncoder, StandardNormalization
from testbed.models.open_clip_coca import CocaCaptioner
from testbed.registry import registry

NAME = "digits-coca"
LONGEST = 9  # tokens of a caption, with those of its start and end

registry.add_model(
    CocaCaptioner(
        NAME,
        DualEncoder(
            encoder_loader=lambda: load(NAME),
            normalization=StandardNormalization([0.5] * 3, [0.5] * 3),
            **shared(NAME),
        ),
        LONGEST,
    )
)
