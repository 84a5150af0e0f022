"""Each form of published files: tiny files, and the claims that a person reads in them."""

from __future__ import annotations

import json

import pytest

from testbed.claims.reading import MEAN, NO_MODEL, NO_SETTING, OTHER_MEASURE
from testbed.errors import StoreError

TIMM = "model,img_size,top1,top1_err,top5,top5_err,param_count,crop_pct,interpolation\n"
FLICKR = "retrieval/flickr_1k_test_image_text_retrieval"
NET = "timm/resnet50.a1_in1k"


def told(added):
    return [(c.model, c.eval_setting, c.metric, c.value, c.published, c.row, c.column) for c in added.claims]


def test_timm_at_each_image_size(publish):
    rows = 'resnet50.a1_in1k,288,81.240,18.760,95.108,4.892,"1,025.56",1.000,bicubic\n'
    rows += "resnet50.a1_in1k,224,80.376,19.624,94.598,5.402,25.56,0.950,bicubic\n"
    added = publish("results-imagenet.csv", TIMM + rows)
    assert told(added) == [
        (f"{NET}@288", "val", "top1", 0.8124, "81.240", "row 2", "top1"),
        (f"{NET}@288", "val", "top5", 0.95108, "95.108", "row 2", "top5"),
        (f"{NET}@224", "val", "top1", 0.80376, "80.376", "row 3", "top1"),
        (f"{NET}@224", "val", "top5", 0.94598, "94.598", "row 3", "top5"),
    ]
    assert added.claims[0].protocol == {"image size": "288", "crop": "1.000", "interpolation": "bicubic"}
    assert added.source.left_out == {"param_count": 2, "top1_err": 2, "top5_err": 2}
    assert added.unmapped == {}


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("results-imagenet-real", "imagenet-real"),
        ("results-imagenetv2-matched-frequency", "imagenetv2-matched-frequency-format-val"),
        ("results-imagenet-a", "imagenet-a"),
        ("results-imagenet-a-clean", "val-on-imagenet-a-classes"),
        ("results-imagenet-r", "imagenet-r"),
        ("results-imagenet-r-clean", "val-on-imagenet-r-classes"),
        ("results-sketch", "imagenet-sketch"),
    ],
)
def test_timms_settings_are_told_by_the_files_names(publish, name, setting):
    added = publish(f"{name}.csv", f"{TIMM}resnet50.a1_in1k,224,1.0,99.0,2.0,98.0,25.56,0.950,bicubic\n")
    assert {(c.eval_setting, c.why) for c in added.claims} == {(setting, None)}


def test_a_table_of_timm_whose_name_tells_no_setting_is_kept_with_that_reason(publish):
    added = publish("mine.csv", f"{TIMM}resnet50.a1_in1k,224,1.0,99.0,2.0,98.0,25.56,0.950,bicubic\n")
    assert {(c.eval_setting, c.why) for c in added.claims} == {("mine", "the file's name has no eval setting")}


def test_accuracies_are_not_those_of_a_setting_that_measures_detection(publish):
    metrics = json.dumps({"key": "imagenet-o", "metrics": {"acc1": 0.5}, "dataset": "ImageNet-O"})
    added = publish("ViT-B-32,openai.jsonl", metrics + "\n")
    assert [(c.eval_setting, c.why) for c in added.claims] == [("datacomp/imagenet-o", None)]
    header = "acc1,acc5,mean_per_class_recall,dataset,model,pretrained,task,mean_average_precision,model_fullname\n"
    added = publish("b.csv", f"{header}0.5,,,imagenet-o,ViT-B-32,openai,zeroshot_classification,,ViT-B-32 openai\n")
    assert [(c.eval_setting, c.why) for c in added.claims] == [("imagenet-o", OTHER_MEASURE["imagenet-o"])]


def test_the_model_of_datacomps_results_is_that_of_the_record_or_of_the_folder(publish):
    record = {"key": "mnist", "metrics": {"acc1": 0.5}, "dataset": "MNIST"}
    for name, given in (
        ("results.jsonl", {**record, "model": "RN50,openai"}),
        ("RN50,openai/eval_results.jsonl", record),
    ):
        assert {c.model for c in publish(name, json.dumps(given) + "\n").claims} == {"RN50,openai"}


def test_timms_throughput_is_no_claim(publish):
    header = "model,infer_img_size,infer_samples_per_sec,infer_step_time,infer_batch_size,param_count\n"
    added = publish("benchmark-infer.csv", f"{header}test_vit,160,194812.41,5.235,1024,0.37\n")
    assert (added.source.form, added.claims, sum(added.source.left_out.values())) == ("timm's benchmark", [], 5)


def test_open_clips_columns_have_datacomps_main_metrics(publish):
    header = (
        "name,pretrained,params (M),FLOPs (B),Average perf. on 38 datasets,ImageNet 1k,Oxford-IIIT Pet,Flickr,FMoW\n"
    )
    added = publish("openclip_results.csv", f"{header}ViT-B-32,openai,151.28,14.78,0.5265,0.6332,0.8700,0.6878,\n")
    assert told(added) == [
        ("ViT-B-32,openai", "imagenet1k", "top1", 0.6332, "0.6332", "row 2", "ImageNet 1k"),
        ("ViT-B-32,openai", "vtab/pets", "mean_per_class_recall", 0.87, "0.8700", "row 2", "Oxford-IIIT Pet"),
        ("ViT-B-32,openai", "flickr30k", "mean_recall@1", 0.6878, "0.6878", "row 2", "Flickr"),
    ]
    assert added.source.left_out == {"Average perf. on 38 datasets": 1, "FLOPs (B)": 1, "params (M)": 1}


def test_open_clips_retrieval(publish):
    header = "name,pretrained,params (M),FLOPs (B),Average score,MSCOCO text retr. R@10,WinoGAViL jaccard score 5-6\n"
    added = publish("retrieval.csv", f"{header}ViT-B-32,nobodys,1,2,3,0.7,0.6\n")
    assert [(c.eval_setting, c.metric, c.value, c.why) for c in added.claims] == [
        ("mscoco_captions", "text_retrieval_recall@10", 0.7, NO_MODEL),
        ("misc/winogavil", "jaccard_score_5-6", 0.6, NO_MODEL),
    ]


def test_open_clips_retrieval_in_many_languages(publish):
    columns = ["crossmodal3600 image_retrieval_recall@1 avg", "crossmodal3600 image_retrieval_recall@1 en"]
    columns += ["multilingual_mscoco_captions text_retrieval_recall@5 de"]
    added = publish("multi.csv", f"model,version,avg,{','.join(columns)}\nViT-B-32,openai,0.7,0.6,0.5,0.4\n")
    assert [(c.eval_setting, c.metric, c.value) for c in added.claims] == [
        ("crossmodal3600", "image_retrieval_recall@1", 0.5),
        ("multilingual_mscoco_captions.zeroshot.de", "text_retrieval_recall@5", 0.4),
    ]
    assert added.source.left_out == {"avg": 1, columns[0]: 1}


def test_clip_benchmarks_table(publish):
    header = "acc1,acc5,mean_per_class_recall,dataset,model,pretrained,task,mean_average_precision,model_fullname\n"
    row = "0.5,,0.25,vtab/dtd,ViT-B-32,openai,zeroshot_classification,,ViT-B-32 openai\n"
    added = publish("benchmark.csv", f"{header}{row}0.5,nan,0.2,vtab/pcam,ViT-B-32,openai,zeroshot_classification,,x\n")
    assert told(added)[:2] == [
        ("ViT-B-32,openai", "vtab/dtd", "top1", 0.5, "0.5", "row 2", "acc1"),
        ("ViT-B-32,openai", "vtab/dtd", "mean_per_class_recall", 0.25, "0.25", "row 2", "mean_per_class_recall"),
    ]
    assert len(added.claims) == 4
    assert added.source.left_out == {"not defined (NaN)": 1}


def test_clip_benchmarks_scaling_study(publish):
    header = "model_fullname,arch,samples_seen,gmacs_total,gmacs,upstream_dataset,downstream_dataset,acc1,acc5,"
    header += "mean_per_class_recall,image_retrieval_recall@5,text_retrieval_recall@5,task,samples_seen_pretty\n"
    rows = "ViT-B-32 openai,ViT-B-32,1.0,2.0,3.0,CLIP-WIT,mnist,0.4,0.5,0.6,,,zeroshot_classification,13B\n"
    rows += "ViT-B-32 openai,ViT-B-32,1.0,2.0,3.0,CLIP-WIT,vtab+,0.4,,,,,zeroshot_classification,13B\n"
    rows += "ViT-B-32 Model-B-32.pt,ViT-B-32,1.0,2.0,3.0,LAION-2B,flickr30k,,,,0.7,0.8,zeroshot_retrieval,3B\n"
    added = publish("scaling.csv", header + rows)
    assert [(c.model, c.eval_setting, c.metric, c.value, c.why) for c in added.claims] == [
        ("ViT-B-32,openai", "mnist", "top1", 0.4, None),
        ("ViT-B-32,openai", "mnist", "top5", 0.5, None),
        ("ViT-B-32,openai", "mnist", "mean_per_class_recall", 0.6, None),
        ("ViT-B-32,openai", "vtab+", "top1", 0.4, MEAN),
        ("ViT-B-32,Model-B-32.pt", "flickr30k", "image_retrieval_recall@5", 0.7, NO_MODEL),
        ("ViT-B-32,Model-B-32.pt", "flickr30k", "text_retrieval_recall@5", 0.8, NO_MODEL),
    ]
    assert added.claims[0].protocol == {"samples seen": "13B", "training data": "CLIP-WIT"}


def test_clip_benchmarks_probes_and_types(publish):
    record = {"k": 10, "lr": 0.1, "bs": 256, "epochs": 20, "model": "ViT-B-32", "pretrained": "openai", "seed": 0}
    record |= {"dataset": "vtab_svhn", "fewshot_k": 10, "lp_acc1": 0.58496, "lp_acc5": float("nan"), "macts": 5.01}
    added = publish("probes.json", json.dumps([{**record, "model_short": "ViT-B-32 openai"}]))
    assert told(added) == [
        *[("ViT-B-32,openai", "vtab/svhn.linear_probe.k10.epochs20", "top1", 0.58496, "0.58496", "record 1", "lp_acc1")]
    ]
    protocol = {"learning rate": "0.1", "batch size": "256", "weights": "ViT-B-32 openai"}
    assert (added.claims[0].protocol, added.claims[0].why) == (protocol, None)
    assert publish("types.csv", "dataset,type\nmnist,specialized\n").source.left_out == {"type": 1}


def test_datacomps_results_with_groups_of_samples(publish):
    records = [
        {"key": "vtab/caltech101", "dataset": "Caltech-101", "metrics": {"acc1": 0.83, "main_metric": 0.9}},
        {
            "key": "retrieval/flickr_1k_test_image_text_retrieval",
            "dataset": "Flickr",
            "metrics": {"mean_recall@1": 0.5},
        },
        {
            "key": "fairness/geode",
            "dataset": "GeoDE",
            "metrics": {"acc_region:0": 0.75, "count_region:0": 2395.0, "acc_wg": 0.25, "main_metric": None},
        },
        {"key": "comp/sugarcrepe_add_att", "dataset": "SugarCrepe", "metrics": {"text_acc": 0.125}},
    ]
    added = publish("mobileclip_s1.jsonl", "".join(f"{json.dumps(each)}\n" for each in records))
    assert {c.model for c in added.claims} == {"MobileCLIP-S1,datacompdr"}
    assert [(c.eval_setting, c.metric, c.slice, c.value, c.n, c.why) for c in added.claims] == [
        ("vtab/caltech101", "top1", "overall", 0.83, None, None),
        ("flickr30k", "mean_recall@1", "overall", 0.5, None, None),
        ("fairness/geode", "acc_region", "0", 0.75, 2395, None),
        ("fairness/geode", "acc_wg", "overall", 0.25, None, None),
        ("sugar_crepe/add_att", "text_acc", "overall", 0.125, None, None),
    ]
    assert added.source.left_out == {"count_region": 1, "main_metric": 1}
    other = publish("nobodys-model.jsonl", json.dumps(records[0]) + "\n")
    assert [(c.model, c.why) for c in other.claims] == [("nobodys-model", NO_MODEL)]


ENTRY = {"link": "x", "name": "y", "authors": "z", "additional_data": False, "number_forward_passes": 1}
ENTRY |= {"venue": "v", "architecture": "ViT-B"}


def test_robustbenchs_reported_verified_and_external_values(publish):
    entry = {**ENTRY, "dataset": "imagenet", "eps": "4/255", "clean_acc": "68.38", "reported": "34.40"}
    entry |= {"autoattack_acc": "34.30", "external": "33.9", "unreliable": True}
    added = publish("model_info/imagenet/Linf/Mo2022When_ViT-B.json", json.dumps(entry))
    assert {c.model for c in added.claims} == {"robustbench/imagenet/Linf/Mo2022When_ViT-B"}
    assert [(c.eval_setting, c.value, c.protocol.get("standing"), c.why) for c in added.claims] == [
        ("val", 0.6838, None, None),
        ("autoattack.linf.eps4", 0.344, "claimed", None),
        ("autoattack.linf.eps4", 0.343, "verified", None),
        ("autoattack.linf.eps4", 0.339, "disputed", None),
    ]
    assert [each.protocol["attack"] for each in added.claims[1:]] == [
        *("the authors' own attack", "AutoAttack, by RobustBench", "an adaptive attack, by others")
    ]
    about = added.claims[1].protocol
    assert (about["eps"], about["norm"], about["unreliable"]) == ("4/255", "Linf", "True")


def test_robustbenchs_entries_on_other_sets_and_under_corruptions(publish):
    entry = {**ENTRY, "dataset": "cifar10", "eps": "0.5", "clean_acc": "90", "reported": "null", "autoattack_acc": "70"}
    added = publish("cifar10/L2/Net.json", json.dumps(entry))
    assert [(c.eval_setting, c.value, c.why) for c in added.claims] == [
        ("cifar10", 0.9, None),
        ("cifar10 under attack, L2 0.5", 0.7, NO_SETTING),
    ]
    entry = {
        **ENTRY,
        "dataset": "imagenet",
        "eps": None,
        "clean_acc": "76.86",
        "reported": "",
        "corruptions_acc": "52.9",
    }
    added = publish("imagenet/corruptions/Net.json", json.dumps({**entry, "corruptions_mce": "60.04"}))
    assert [(c.eval_setting, c.metric, c.value, c.unit, c.why) for c in added.claims] == [
        ("val", "top1", 0.7686, "fraction", None),
        ("imagenet corruptions", "top1", 0.529, "fraction", MEAN),
        ("imagenet corruptions", "mce", 60.04, "points", MEAN),
    ]


def test_imagenet_hards_table_of_open_clips_models(publish):
    added = publish("openclip_results.csv", "Model,Pretrained,Top-1 Accuracy\nViT-B-32,laion400m_e32,5.41\n")
    assert [(c.model, c.eval_setting, c.metric, c.value, c.why) for c in added.claims] == [
        ("ViT-B-32,laion400m_e32", "imagenet-hard", "top1", pytest.approx(0.0541), None)
    ]


def test_robustbenchs_corruptions_one_by_one(publish):
    text = ",shot_noise,shot_noise,fog\n,1,2,1\nNet,0.5,0.25,0.0539999\n"
    added = publish("imagenet/corruptions/unaggregated_results.csv", text)
    assert told(added) == [
        ("robustbench/imagenet/corruptions/Net", f"imagenet-c.{setting}_on-disk", "top1", value, text, "row 3", column)
        for setting, value, text, column in [
            ("shot_noise.1", 0.5, "0.5", "shot_noise 1"),
            ("shot_noise.2", 0.25, "0.25", "shot_noise 2"),
            ("fog.1", 0.0539999, "0.0539999", "fog 1"),
        ]
    ]
    assert added.source.rows == 1
    in_3d = publish("imagenet/corruptions/unaggregated_results_3d.csv", ",fog_3d\n,2\nNet,0.5\n")
    assert [(c.eval_setting, c.value) for c in in_3d.claims] == [("imagenet-3dcc.fog_3d.2", 0.5)]
    other = publish("cifar10/corruptions/unaggregated_results.csv", text)
    assert {c.why for c in other.claims} == {NO_SETTING}


def test_mtebs_tasks_keep_the_repositories_names(publish):
    header = "model,model_revision,task,dataset_revision,mteb_version,split,subset,accuracy,path\n"
    rows = "openai/clip-vit-base-patch32,57c2,DTDZeroShot,b24c,1.14.15,test,default,0.4425531914893617,results/x.json\n"
    rows += "openai/clip-vit-base-patch32,57c2,UCF101ZeroShot,b24c,1.14.15,test,default,0.5,results/y.json\n"
    added = publish("mteb.csv", header + rows)
    assert told(added)[0] == (
        *("openai/clip-vit-base-patch32", "vtab/dtd", "top1", 0.4425531914893617, "0.4425531914893617"),
        *("row 2", "accuracy"),
    )
    told_of = {"split": "test", "model revision": "57c2", "data revision": "b24c", "mteb": "1.14.15"}
    told_of |= {"file": "results/x.json"}
    assert (added.claims[0].protocol, added.claims[0].why) == (told_of, None)
    assert (added.claims[1].eval_setting, added.claims[1].why) == ("ucf101", NO_SETTING)


def test_mtebs_probes_are_not_its_zero_shot_tasks(publish):
    header = "model,model_revision,task,dataset_revision,mteb_version,split,subset,accuracy,path\n"
    added = publish("mteb.csv", f"{header}openai/clip-vit-base-patch32,57c2,CIFAR10,b24c,1.14.15,test,default,0.9,x\n")
    assert [(c.eval_setting, c.why) for c in added.claims] == [("CIFAR10", NO_SETTING)]


def test_imagenet_testbeds_table(publish):
    added = publish("top1s.csv", "model,val,imagenet-vid-robust_pm0\nresnet50,76.13000183105469,\nownnet,50,25\n")
    assert [(c.model, c.eval_setting, c.metric, c.value, c.why) for c in added.claims] == [
        ("resnet50", "val", "top1", 0.7613000183105469, None),
        ("ownnet", "val", "top1", 0.5, NO_MODEL),
        ("ownnet", "imagenet-vid-robust", "pm0", 0.25, NO_MODEL),
    ]


def test_clip_cc_benchs_board(publish):
    added = publish("aggregated_results.csv", "Model Name,minilm_coarse,minilm_hm_cf\ncaptioner,0.5,-0.25\n")
    assert [(c.model, c.eval_setting, c.metric, c.value, c.published) for c in added.claims] == [
        ("captioner", "clip-cc-bench@minilm", "coarse_similarity_raw", 0.5, "0.5"),
        ("captioner", "clip-cc-bench@minilm", "hm_cf_raw", -0.25, "-0.25"),
    ]


def test_any_other_table_by_its_columns(publish):
    text = "net,where,acc,size,note\nresnet50,val,76.13,50000,their own crop\nresnet18,val,69.76,,\n"
    words = ("model=net", "setting=where", "value=acc", "unit=percent", "n=size")
    added = publish("blog.csv", text, *words)
    assert [(c.model, c.eval_setting, c.metric, c.value, c.n, c.protocol) for c in added.claims] == [
        ("resnet50", "val", "top1", 0.7613, 50000, {"note": "their own crop"}),
        ("resnet18", "val", "top1", 0.6976, None, {}),
    ]
    words = ("model=net", "setting=imagenet-a", "value=acc", "metric=loss", "unit=nats")
    again = publish("blog.csv", text, *words)
    assert [(c.eval_setting, c.metric, c.value, c.unit) for c in again.claims[:1]] == [
        ("imagenet-a", "loss", 76.13, "nats")
    ]


def record(**fields):
    config = {"lower_is_better": False, "score_type": "continuous", "min_score": 0, "max_score": 1.0}
    return {
        "schema_version": "0.2.1",
        "evaluation_id": "vision/openai_clip/1",
        "retrieved_timestamp": "1770570009",
        "source_metadata": {"source_organization_name": "us", "evaluator_relationship": "third_party"},
        "eval_library": {"name": "lab", "version": "2"},
        "model_info": {"name": "CLIP", "id": "openai/clip-vit-base-patch32"},
        "evaluation_results": [
            {
                "evaluation_name": "imagenet1k",
                "source_data": {"source_type": "hf_dataset", "hf_repo": "org/imagenet", "hf_split": "validation"},
                "metric_config": {**config, "metric_id": "top1"},
                "score_details": {"score": 0.6332, "uncertainty": {"num_samples": 50000}},
                "generation_config": {"generation_args": {"temperature": 0}},
            },
            {
                "evaluation_name": "A quiz",
                "metric_config": {**config, "evaluation_description": "accuracy", "max_score": 100},
                "score_details": {"score": 71.50},
            },
            {
                "evaluation_name": "A quiz",
                "metric_config": {"lower_is_better": True, "evaluation_description": "long " * 20},
                "score_details": {"score": -3.25},
            },
        ],
        **fields,
    }


def test_records_of_every_eval_ever(publish):
    added = publish("eee.json", json.dumps(record()))
    model, row = "openai/clip-vit-base-patch32", "record 1, result"
    assert told(added) == [
        (model, "imagenet1k", "top1", 0.6332, "0.6332", f"{row} 1", "score"),
        (model, "A quiz", "accuracy", 0.715, "71.5", f"{row} 2", "score"),
        (model, "A quiz", "score", -3.25, "-3.25", f"{row} 3", "score"),
    ]
    assert [each.unit for each in added.claims] == ["fraction", "fraction", ""]
    assert (added.claims[0].n, added.claims[0].why, added.claims[1].why) == (50_000, None, NO_SETTING)
    assert added.claims[0].protocol == {
        "data": "org/imagenet",
        "split": "validation",
        "library": "lab 2",
        "evaluated by": "us",
        "relationship": "third_party",
        "temperature": "0",
    }
    assert added.source.form == "Every Eval Ever's record"


def test_a_record_with_keys_that_are_not_known_is_refused(publish):
    with pytest.raises(StoreError, match="what the columns 'mood' hold is not known"):
        publish("eee.json", json.dumps(record(mood="good")))
