"""Figure 1, right: ImageNetV2 without a line."""

from testbed.plotting.paper import scatter_picture
from testbed.plotting.scatter import ScatterSpec

SPEC = ScatterSpec(
    "val",
    "imagenetv2-matched-frequency-format-val",
    title="ImageNet and ImageNetV2",
    x_label="ImageNet",
    y_label="ImageNetV2",
    fitted=False,
)
PICTURE = scatter_picture("imagenetv2_bare", SPEC)

if __name__ == "__main__":
    PICTURE.main()
