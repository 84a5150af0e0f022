"""Appendix: the corruption to which robustness goes most with robustness to ImageNetV2; ``--y`` chooses another."""

from testbed.plotting.paper import two_shifts_picture
from testbed.plotting.paper_imagenetv2 import SPEC as IMAGENETV2
from testbed.plotting.scatter import ScatterSpec

PICTURE = two_shifts_picture(
    "appendix_strongest",
    ScatterSpec("val", "brightness_on-disk", title="Distribution shift to brightness", x_label="ImageNet"),
    IMAGENETV2,
)

if __name__ == "__main__":
    PICTURE.main()
