"""Figure 3, right: from the anchor frames of YTBB-Robust to all frames near them."""

from testbed.plotting.paper import scatter_picture
from testbed.plotting.scatter import ScatterSpec

SPEC = ScatterSpec(
    "ytbb-robust_pm0",
    "ytbb-robust_pm10",
    title="Distribution shift to YTBB-Robust",
    x_label="YTBB-Robust pm0",
    y_label="YTBB-Robust pm10",
    least=0.45,
    least_on="ytbb-robust_pm0",
    merge_types=False,
)
PICTURE = scatter_picture("ytbb_robust_pm10", SPEC)

if __name__ == "__main__":
    PICTURE.main()
