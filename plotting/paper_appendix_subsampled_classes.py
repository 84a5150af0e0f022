"""Appendix: models trained on fewer classes; they lie on the line of the others."""

from testbed.plotting.paper import scatter_picture
from testbed.plotting.scatter import ScatterSpec

TRAINED = "resnet50_imagenet_{}_batch64_original_images"
SPEC = ScatterSpec(
    "val_subsampled_class_1_8",
    "imagenetv2-matched-frequency-format-val_subsampled_class_1_8",
    title="Robustness of models trained on fewer classes",
    x_label="ImageNet (class-subsampled)",
    y_label="ImageNetV2 (class-subsampled)",
    least_on="val_subsampled_class_1_8",
    highlighted=(
        (TRAINED.format("100percent"), "1000 classes"),
        *((TRAINED.format(f"subsample_{classes}_classes"), f"{classes} classes") for classes in (500, 250, 125)),
    ),
)
PICTURE = scatter_picture("appendix_subsampled_classes", SPEC)

if __name__ == "__main__":
    PICTURE.main()
