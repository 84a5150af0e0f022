"""Figure 5, top: the shift to corruptions, and whether robustness to it goes with robustness to ImageNetV2."""

from testbed.plotting.paper import two_shifts_picture
from testbed.plotting.paper_imagenetv2 import SPEC as IMAGENETV2
from testbed.plotting.scatter import ScatterSpec

PICTURE = two_shifts_picture(
    "corruptions",
    ScatterSpec(
        "val",
        "avg_corruptions",
        title="Distribution shift to corruptions, averaged",
        x_label="ImageNet",
        y_label="Corruptions averaged",
        merge_types=False,
    ),
    IMAGENETV2,
)

if __name__ == "__main__":
    PICTURE.main()
