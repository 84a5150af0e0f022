"""Figure 5, bottom: the shift to attacks, and whether robustness to it goes with robustness to ImageNetV2."""

from testbed.plotting.paper import two_shifts_picture
from testbed.plotting.paper_imagenetv2 import SPEC as IMAGENETV2
from testbed.plotting.scatter import ScatterSpec

PICTURE = two_shifts_picture(
    "pgd",
    ScatterSpec(
        "val",
        "avg_pgd",
        title="Distribution shift to Lp attacks",
        x_label="ImageNet",
        y_label="Lp attacks",
        merge_types=False,
    ),
    IMAGENETV2,
)

if __name__ == "__main__":
    PICTURE.main()
