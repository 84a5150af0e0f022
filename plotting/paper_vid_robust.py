"""Figure 2, bottom left: the shift to the anchor frames of ImageNet-Vid-Robust."""

from testbed.plotting.paper import scatter_picture
from testbed.plotting.scatter import ScatterSpec

SPEC = ScatterSpec(
    "val-on-vid-robust-classes",
    "imagenet-vid-robust_pm0",
    title="Distribution shift to ImageNet-Vid anchors",
    x_label="ImageNet (class-subsampled)",
    y_label="ImageNet-Vid-Robust pm0",
    least=0.92,
    least_on="val-on-vid-robust-classes",
)
PICTURE = scatter_picture("vid_robust", SPEC)

if __name__ == "__main__":
    PICTURE.main()
