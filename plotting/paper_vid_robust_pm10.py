"""Figure 3, left: from the anchor frames of ImageNet-Vid-Robust to all frames near them."""

from testbed.plotting.paper import scatter_picture
from testbed.plotting.scatter import ScatterSpec

SPEC = ScatterSpec(
    "imagenet-vid-robust_pm0",
    "imagenet-vid-robust_pm10",
    title="Distribution shift to ImageNet-Vid-Robust",
    x_label="ImageNet-Vid-Robust pm0",
    y_label="ImageNet-Vid-Robust pm10",
    least=0.49,
    least_on="imagenet-vid-robust_pm0",
    merge_types=False,
)
PICTURE = scatter_picture("vid_robust_pm10", SPEC)

if __name__ == "__main__":
    PICTURE.main()
