"""Names that are too long for a narrow terminal; `plugins/long_digits.py` defines them."""

MODELS = [f"vit_large_patch14_clip_224.openai_ft_in12k_in1k_with_recipe_{each}_of_2026" for each in ("a", "b", "c")]
SETTINGS = [f"imagenet-validation-center-crop-gaussian_noise.severity.{each}.seed.2026" for each in (1, 2)]
