"""Appendix: the shift to ImageNet-Sketch."""

from testbed.plotting.paper import scatter_picture
from testbed.plotting.scatter import ScatterSpec

SPEC = ScatterSpec(
    "val",
    "imagenet-sketch",
    title="Distribution shift to ImageNet-Sketch",
    x_label="ImageNet",
    y_label="ImageNet-Sketch",
)
PICTURE = scatter_picture("appendix_imagenet_sketch", SPEC)

if __name__ == "__main__":
    PICTURE.main()
