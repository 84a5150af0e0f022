"""Figure 2, top left: the shift to ImageNetV2."""

from testbed.plotting.paper import scatter_picture
from testbed.plotting.scatter import ScatterSpec

SPEC = ScatterSpec(
    "val",
    "imagenetv2-matched-frequency-format-val",
    title="Distribution shift to ImageNetV2",
    x_label="ImageNet",
    y_label="ImageNetV2",
)
PICTURE = scatter_picture("imagenetv2", SPEC)

if __name__ == "__main__":
    PICTURE.main()
