"""Appendix: models trained on fewer images; they lie on the line of the others."""

from testbed.plotting.paper import scatter_picture
from testbed.plotting.scatter import ScatterSpec

TRAINED = "resnet50_imagenet_{}_batch64_original_images"
SPEC = ScatterSpec(
    "val",
    "imagenetv2-matched-frequency-format-val",
    title="Robustness of models trained on fewer images",
    x_label="ImageNet",
    y_label="ImageNetV2",
    highlighted=(
        (TRAINED.format("100percent"), "all images"),
        *((TRAINED.format(f"subsample_1_of_{part}"), f"1 of {part} images") for part in (2, 4, 8, 16, 32)),
    ),
)
PICTURE = scatter_picture("appendix_subsampled_images", SPEC)

if __name__ == "__main__":
    PICTURE.main()
