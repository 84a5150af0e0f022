"""Appendix: ImageNetV2 with models of any accuracy, down to random features and nearest neighbours."""

from testbed.plotting.paper import scatter_picture
from testbed.plotting.scatter import ScatterSpec

SPEC = ScatterSpec(
    "val",
    "imagenetv2-matched-frequency-format-val",
    title="Distribution shift to ImageNetV2, models of any accuracy",
    x_label="ImageNet",
    y_label="ImageNetV2",
    least=0.0,
)
PICTURE = scatter_picture("appendix_low_accuracy", SPEC)

if __name__ == "__main__":
    PICTURE.main()
