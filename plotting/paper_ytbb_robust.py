"""Figure 2, bottom right: the shift to the anchor frames of YTBB-Robust."""

from testbed.plotting.paper import scatter_picture
from testbed.plotting.scatter import ScatterSpec

SPEC = ScatterSpec(
    "val-on-ytbb-robust-classes",
    "ytbb-robust_pm0",
    title="Distribution shift to YTBB anchors",
    x_label="ImageNet (class-subsampled)",
    y_label="YTBB-Robust pm0",
    least=0.95,
    least_on="val-on-ytbb-robust-classes",
)
PICTURE = scatter_picture("ytbb_robust", SPEC)

if __name__ == "__main__":
    PICTURE.main()
