"""Figure 2, top right: the shift to ObjectNet."""

from testbed.plotting.paper import scatter_picture
from testbed.plotting.scatter import ScatterSpec

SPEC = ScatterSpec(
    "val-on-objectnet-classes",
    "objectnet-1.0-beta",
    title="Distribution shift to ObjectNet",
    x_label="ImageNet (class-subsampled)",
    y_label="ObjectNet",
    least_on="val-on-objectnet-classes",
)
PICTURE = scatter_picture("objectnet", SPEC)

if __name__ == "__main__":
    PICTURE.main()
