"""A benchmark as VLMEvalKit's guide has it written: a table, a prompt with pictures in place, an evaluate."""

# ruff: noqa: B905, C408, F403, F405, RUF012 -- written as users of VLMEvalKit write

from vlmeval.dataset.image_base import ImageBaseDataset
from vlmeval.smp import *

from testbed.eval_settings.eval_setting_base import VLMEvalBenchmark
from testbed.registry import registry


class Colours(ImageBaseDataset):
    TYPE = "VQA"

    DATASET_URL = {"Colours": "https://example.com/Colours.tsv"}
    DATASET_MD5 = {}

    ENDING = "Say the colour."

    def build_prompt(self, line):
        if isinstance(line, int):
            line = self.data.iloc[line]
        tgt_path = self.dump_image(line)
        texts = line["question"].split("<image>")
        msgs = []
        for number, text in enumerate(texts):
            if number:
                msgs.append(dict(type="image", value=tgt_path[number - 1]))
            if text:
                msgs.append(dict(type="text", value=text))
        msgs.append(dict(type="text", value=self.ENDING))
        return msgs

    def evaluate(self, eval_file, **judge_kwargs):
        assert judge_kwargs == {"model": "exact_matching"}
        print(f"Evaluating {osp.basename(eval_file)}")
        data = load(eval_file)
        print(",".join(data.columns))
        data["hit"] = [p.lower() == a for p, a in zip(data["prediction"], data["answer"])]
        res = defaultdict(list)
        for split in sorted(set(data["split"])):
            sub = data[data["split"] == split]
            res["split"].append(split)
            res["Overall"].append(np.mean(sub["hit"]) * 100)
            for category in sorted(set(data["category"])):
                res[category].append(np.mean(sub[sub["category"] == category]["hit"]) * 100)
        res = pd.DataFrame(res)
        dump(res, eval_file.replace(".xlsx", "_acc.csv"))
        return res


registry.add_eval_setting(VLMEvalBenchmark("Colours", Colours))
