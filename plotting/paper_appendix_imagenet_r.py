"""Appendix: the shift to ImageNet-R."""

from testbed.plotting.paper import scatter_picture
from testbed.plotting.scatter import ScatterSpec

SPEC = ScatterSpec(
    "val-on-imagenet-r-classes",
    "imagenet-r",
    title="Distribution shift to ImageNet-R",
    x_label="ImageNet (class-subsampled)",
    y_label="ImageNet-R",
    least=0.75,
    least_on="val-on-imagenet-r-classes",
)
PICTURE = scatter_picture("appendix_imagenet_r", SPEC)

if __name__ == "__main__":
    PICTURE.main()
