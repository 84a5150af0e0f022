"""Figure 4: the shift to ImageNet-A, with one line below the accuracy of resnet50 and one above it."""

from testbed.plotting.paper import scatter_picture
from testbed.plotting.scatter import ScatterSpec

SPEC = ScatterSpec(
    "val-on-imagenet-a-classes",
    "imagenet-a",
    title="Distribution shift to ImageNet-A",
    x_label="ImageNet (class-subsampled)",
    y_label="ImageNet-A",
    least=0.75,
    least_on="val-on-imagenet-a-classes",
    # ImageNet-A's images are those that a resnet50 gets wrong.
    pivot=0.9186,
    without=("resnet50",),
)
PICTURE = scatter_picture("imagenet_a", SPEC)

if __name__ == "__main__":
    PICTURE.main()
