"""Answers that a judge reads, made replies of judges, and the verdicts of VLMEvalKit's own code on them.

    python tests/assets/published_by_judges.py FOLDER_OF_VLMEVALKIT

The judge is an object that gives prepared replies: as asked for, with other words around them, as JSON, malformed,
empty, and failures. VLMEvalKit at commit e8e78f0 asks it, up to ten times for a verdict. As testbed's prompts are its
own, a reply that states a verdict in the form that VLMEvalKit's prompt asks for has a twin in the form that testbed's
asks for, as have half of those with something around it; all other replies are the same for both. With
latex2sympy2_extended 1.11.0 and sympy 1.14.0. The file was made once; it is not made again.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

from make_published_answers import Empty
from published_by_rubrics import ByRubrics
from published_judge_rows import ATTEMPTS, FAMILIES, Row

PATH = Path(__file__).resolve().parent / "published_by_judges.json.gz"
NUMBER = 300
UTILS = (
    "shortqa simplevqa mathvista mathv mathverse logicvista mmvet ayavision olympiadbench mmbench_video mlvu"
    " tempcompass mmoral_opg"
)
SETS = "dynamath charxiv image_shortqa simplevqa worldvqa sfebench hipho"


class Judge:
    """Says the first prepared reply to the first prompt, as often as it is asked, the second to the second, …"""

    model = fail_msg = "judge"

    def __init__(self, replies: list[str]) -> None:
        self.replies, self.prompts = replies, list[str]()

    def generate(self, prompt: Any, *_: Any, **__: Any) -> str:
        text = prompt if isinstance(prompt, str) else prompt[0]["value"]
        if text not in self.prompts:
            self.prompts.append(text)
        return self.replies[min(self.prompts.index(text), len(self.replies) - 1)]

    def shows(self, line: Row) -> list[bool]:
        """Whether the prompts have all words of the answer, and of the right one."""
        return [words_in(line[name], "\n".join(self.prompts)) for name in ("prediction", "answer")]


def words_in(text: str, prompts: str) -> bool:
    """Whether prompts have all words of a text."""
    return set(re.findall(r"\w+", text)) <= set(re.findall(r"\w+", prompts))


Found = tuple[Any, float | None]  # what was read, where that is told, and the score; None if nothing can be read


class ByJudges(ByRubrics):
    """VLMEvalKit's functions that ask judges; each method is a family's."""

    def __init__(self, folder: Path) -> None:
        for name in ("openai", "rouge_score", "timeout_decorator"):
            sys.modules[name] = Empty(name)
        sys.modules["timeout_decorator"].timeout = lambda *_, **__: lambda function: function  # type: ignore[attr-defined]
        super().__init__(folder)
        for module in [*(f"utils.{name}" for name in UTILS.split()), *SETS.split()]:
            place = f"dataset/{module.replace('.', '/')}.py"
            self.own[module] = self.module(f"vlmeval.dataset.{module}", place)
            self.own[module].print = lambda *_, **__: None
        self.own["mmreason"] = self.module("vlmeval.dataset.utils.mmreason", "dataset/mmreason.py")
        for module in ("utils.mathvista", "utils.mathv"):
            self.own[module].can_infer = sys.modules["vlmeval.utils"].can_infer

    def checked(self, module: str, ask: str, judge: Judge, line: Row) -> Found:
        """By a function that extracts, and `post_check`."""
        found = getattr(self.own[module], ask)(judge, line)
        score = float(bool(self.own[module].post_check({**line, "res": found["res"]}, prefetch=False)))
        return found["res"], score if "Succe" in found["log"] or "succe" in found["log"] else None

    def math_vista(self, judge: Judge, line: Row) -> Found:
        return self.checked("utils.mathvista", "MathVista_auxeval", judge, line)

    def math_vision(self, judge: Judge, line: Row) -> Found:
        return self.checked("utils.mathv", "MATH_V_auxeval", judge, line)

    def math_verse(self, judge: Judge, line: Row) -> Found:
        return self.steps("utils.mathverse", "MathVerse", judge, line)

    def steps(self, module: str, prefix: str, judge: Judge, line: Row) -> Found:
        """By a function that extracts and one that scores."""
        first = getattr(self.own[module], f"{prefix}_auxeval_extract")(judge, line)
        second = getattr(self.own[module], f"{prefix}_auxeval_score")(judge, {**line, **first})
        failed = "failed" in first["log_extract"] + second["log_score"] and not second["log_score"].endswith("Succeed")
        return first["extract"], None if failed else float(second["score"])

    def dyna_math(self, judge: Judge, line: Row) -> Found:
        found = self.own["dynamath"].DynaMath_auxeval(judge, line)
        return found["extracted"], float(found["correct"]) if found["parse"] else None

    def logic_vista(self, judge: Judge, line: Row) -> Found:
        found = self.own["utils.logicvista"].LogicVista_auxeval(judge, line)
        return found["res"], float(found["hit"]) if found["res"] else None

    def multiple_choice(self, judge: Judge, line: Row) -> Found:
        found = self.choice.extract_answer_from_item(judge, self.frame([line]).iloc[0], "MMStar")
        failed = found["log"].startswith("Failed to predict")
        return (None, None) if failed else (found["opt"], float(found["opt"] == line["answer"]))

    def yes_no(self, judge: Judge, line: Row) -> Found:
        read = self.yorn.YOrN_Extraction(line["prediction"])
        read = self.yorn.YOrN_auxeval(judge, line) if read == "Unknown" else read
        failed = read == "Unknown" and judge.replies[0] != read
        return read, None if failed else float(read == line["answer"])

    def charxiv(self, judge: Judge, line: Row) -> Found:
        found = self.own["charxiv"].auxeval(judge, line)
        failed = found["extracted_answer"] == "Failed to parse response"
        return found["extracted_answer"], None if failed else float(found["score"])

    def mmvet(self, judge: Judge, line: Row) -> Found:
        return self.logged(self.own["utils.mmvet"].MMVet_auxeval(judge, line), "score")

    def graded(self, judge: Judge, line: Row) -> Found:
        return self.logged(self.own["utils.mmoral_opg"].MMOral_opg_auxeval(judge, line), "score")

    def logged(self, found: Row, name: str) -> Found:
        """The score in a result with a log."""
        return None, float(found[name]) if found["log"].endswith("Succeed") else None

    def ninths(self, judge: Judge, line: Row) -> Found:
        found = self.own["sfebench"].SFE_auxeval(judge, self.frame([line]).iloc[0])
        return None, found["score"] / 9 if found["log"] == "Success to Judge" else None

    def simple_vqa(self, judge: Judge, line: Row) -> Found:
        module = self.own["simplevqa"]

        def create(messages: Any, **_: Any) -> Any:
            message = types.SimpleNamespace(content=judge.generate(messages[0]["content"]))
            return types.SimpleNamespace(choices=[types.SimpleNamespace(message=message)])

        chat = types.SimpleNamespace(completions=types.SimpleNamespace(create=create))
        module.OpenAI = lambda **_: types.SimpleNamespace(chat=chat)
        module.tqdm = lambda items, **_: items
        module.SimpleVQAEval = self.own["utils.simplevqa"].SimpleVQAEval
        module.file = types.SimpleNamespace(load=lambda _: self.frame([line]))
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = dict(self.instance(module, "SimpleVQA").get_scores(f"{folder}/m.tsv").to_numpy().tolist())
            except KeyError:  # the reply is an empty object, and there is no other row
                return None, None
        names = ("is_correct", "is_incorrect", "is_not_attempted")
        said = next((name for name in names if found[name]), None)
        return said, None if said is None else float(found["is_correct"])

    def world_vqa(self, judge: Judge, line: Row) -> Found:
        label = self.own["worldvqa"].auxeval(judge, dict(line))["extract_answer"]
        return label, None if label.startswith("Failed") else float(label == "Correct")

    def short(self, judge: Judge, line: Row) -> Found:
        module = self.own["image_shortqa"]
        module.eval_vanilla, module.pd = self.choice.eval_vanilla, __import__("pandas")
        module.ShortQA_prompt = self.own["utils.shortqa"].ShortQA_prompt
        found = module.Comprehensive_auxeval(judge, self.frame([line]).iloc[0])
        failed = "Failed to predict" in str(found["log"]) or found["log"] == "Fail to Judge"
        return None, None if failed else float(found["hit"])

    def mm_reason(self, judge: Judge, line: Row) -> Found:
        return self.steps("mmreason", "MMReason", judge, line)

    def olympiad(self, judge: Judge, line: Row) -> Found:
        return self.steps("utils.olympiadbench", "Olympiad", judge, line)

    def aya(self, judge: Judge, line: Row) -> Found:
        found = self.own["utils.ayavision"].AyaVision_auxeval(judge, line)
        return None, float(found["hit"]) if found["res"] else None

    def phyx(self, judge: Judge, line: Row) -> Found:  # type: ignore[override]
        found = self.own["phyx"].PhyX_auxeval(judge, {"index": 0, **line})
        return None, None if found["log"].endswith("failed.\n") else float(found["res"])

    def preference(self, judge: Judge, line: Row) -> Found:
        module = self.own["mmalignbench"]
        module.print = lambda *_: None
        asked = {**line, "A": line["answer"], "B": line["prediction"], "image": ""}
        found = module.MMAlignBench_auxeval(judge, asked)
        return (None, None) if found == "Unknown" else (found[0], (module.MMAlignBench.score_map[found[0]] + 2) / 4)

    def creation(self, judge: Judge, line: Row) -> Found:
        sign = self.own["creation"].extract_subjective(judge.generate("?"), "Creation_MMBench")
        worth = {"A>>B": -2, "A>B": -1, "A=B": 0, "B>A": 1, "B>>A": 2, "B<A": -1, "B<<A": -2, "A<B": 1, "A<<B": 2}
        return sign, None if sign is None else (worth[sign] + 2) / 4

    def safety(self, judge: Judge, line: Row) -> Found:
        label = self.own["mmsafetybench"]._judge_single_prediction(judge, line["prediction"], line["category"])["label"]
        return label, None if label == "unknown" else float(label == "safe")

    def behavior(self, judge: Judge, line: Row) -> Found:  # type: ignore[override]
        label = self.own["mssbench"]._mss_behavior_judge(judge, line["prediction"])
        return label, float(label == line["answer"]) if label in judge.replies[0].lower() else None

    def compliance(self, judge: Judge, line: Row) -> Found:  # type: ignore[override]
        label, _ = self.own["xstest"]._xstest_judge_llm(judge, line["question"], line["prediction"])
        return label, self.passed(line["answer"], label)[1] if label in judge.replies[0].lower() else None

    def effect(self, judge: Judge, line: Row) -> Found:
        module, asked = self.own["siuo_gen"], [line[name] for name in ("question", "safety_warning", "answer")]
        safe, _ = module._siuo_safe_judge(judge, *asked, line["prediction"])
        effective, _ = module._siuo_eff_judge(judge, line["question"], line["prediction"])
        return f"{safe} {effective}", None if min(safe, effective) < 0 else float(safe * effective)

    def harmless(self, judge: Judge, line: Row) -> Found:
        mark, _ = self.own["flames"]._flames_judge(judge, line["category"], line["question"], line["prediction"])
        return mark, None if mark < 0 else float(mark == 3)

    def mmbench_video(self, judge: Judge, line: Row) -> Found:
        said = judge.generate(self.own["utils.mmbench_video"].build_prompt(line))
        return None, int(said) / 3 if sys.modules["vlmeval.smp"].istype(said, int) else None

    def mlvu_open(self, judge: Judge, line: Row) -> Found:
        module = self.own["utils.mlvu"]
        module.np = __import__("numpy")
        table = module.MLVU_OpenEnded_extract({0: module.MLVU_OpenEnded_generate(judge, line)}, self.frame([line]))
        total = float(table["score"].iloc[0])
        return total, total / 10 if total else None

    def caption(self, judge: Judge, line: Row) -> Found:
        found = self.own["utils.tempcompass"].evaluate_tempcompass_captioning(judge, line)
        return found["chatgpt-answer"], None if found["rating"] < 0 else float(found["rating"])

    def points(self, judge: Judge, line: Row) -> Found:
        made = self.instance(self.own["hipho"], "HiPhODataset")
        marking, most = ([part] for part in ("States F = ma: all points", float(line["points"].strip("[]"))))
        try:
            score, told = made._evaluate_fine_grained(line["prediction"], marking, most, judge, line["question"])
        except TypeError:  # it rounds the mark of a request that failed
            return None, None
        return score, None if told[0]["score"] is None else score / most[0]

    # Reports ------------------------------------------------------------------------------------------------------

    def reported(self, family: str, rows: list[Row]) -> list[list[Any]]:
        """Testbed's metric and slice, and VLMEvalKit's number, of a family's rows that have all been read."""
        self.table = table = self.frame([{"index": place, **each} for place, each in enumerate(rows)])
        for module in self.own.values():
            module.load = lambda _: table.copy()
        if family == "MathVista":
            found = self.own["utils.mathvista"].MathVista_acc("file").to_dict("records")
            tasks = set(table["task"])
            return [
                ["accuracy", _part(each["Task&Skill"], tasks, "task", "skill"), each["acc"] / 100] for each in found
            ]
        if family == "MathVision":
            found = self.own["utils.mathv"].MATH_V_acc("file").to_dict("records")
            return [["accuracy", _part(each["Subject"], None, "subject"), each["acc"] / 100] for each in found]
        if family == "MM-Vet":
            capabilities, combinations = self.own["utils.mmvet"].MMVet_acc("file")
            found = [[each, "capability"] for each in capabilities.to_dict("records")]
            found += [
                [each, "combination"] for each in combinations.to_dict("records") if each["Category"] != "Overall"
            ]
            return [["score", _part(each["Category"], None, what), each["acc"] / 100] for each, what in found]
        if family == "LogicVista":
            found = self.own["utils.logicvista"].evaluate_logicvista("file").to_dict("records")
            return [["accuracy", _part(each["Task&Skill"], None, "skill"), each["acc"] / 100] for each in found]
        if family == "CharXiv":
            module = self.own["charxiv"]
            module.file = types.SimpleNamespace(
                load=lambda _: table.assign(inst_category=table["inst_category"].astype(int))
            )
            made = self.instance(module, "CharXiv")
            made.dataset_name = "CharXiv_reasoning_val"
            return [
                ["accuracy", _part(name, None, "kind"), value]
                for name, value in made.get_scores("file").iloc[0].items()
            ]
        if family in ("multiple choice", "kind Short"):
            found = self.choice.report_acc(table.copy()).iloc[0].to_dict()
            return [
                ["accuracy", _part(name, None, "category"), value] for name, value in found.items() if name != "split"
            ]
        if family == "SimpleVQA":
            said = {
                f"is_{name}": word
                for name, word in zip(("correct", "incorrect", "not_attempted"), ATTEMPTS, strict=True)
            }
            found = self.own["utils.simplevqa"].SimpleVQAEval(
                [{"judge_res": {"model_response": said[each["res"]]}} for each in rows]
            )
            names = {"accuracy": "is_correct", "incorrect": "is_incorrect", "not_attempted": "is_not_attempted"}
            names |= {"f1": "f1", "accuracy_given_attempted": "accuracy_given_attempted"}
            return [[name, "overall", found[theirs]] for name, theirs in names.items()]
        if family == "MMReason":
            found = self.own["mmreason"].MMReason_acc("file").to_dict("records")
            whole, *parts = found  # in percent, and fractions
            shares = [["accuracy", f"discipline/{each['discipline']}", each["accuracy"]] for each in parts]
            return [["accuracy", "overall", whole["accuracy"] / 100], *shares]
        if family == "MathVerse":
            found = self.own["utils.mathverse"].MathVerse_acc("file").to_dict("records")
            return [["accuracy", f"problem_version/{each['split']}", each["Overall"] / 100] for each in found]
        if family == "PhyX":
            found = self.own["phyx"].PhyX_acc("file").iloc[0].to_dict()
            return [
                ["accuracy", _part(name.removesuffix(" Acc"), None, "category"), value] for name, value in found.items()
            ]
        return []


def _part(label: str, first: set[str] | None, what: str, other: str = "") -> str:
    """Testbed's slice of a label."""
    if label == "Overall":
        return "overall"
    return f"{what if first is None or label in first else other}/{label}"


def main() -> None:
    """Writes the file."""
    if PATH.exists():
        raise SystemExit(f"{PATH} exists; a file is made once")
    import numpy  # noqa: F401
    import pandas  # noqa: F401

    published = ByJudges(Path(sys.argv[1]))
    answers, reports = [], {}
    for family, (scoring, make) in FAMILIES.items():
        draw, kept = random.Random(family), []
        ask = getattr(published, make.__name__ if make.__name__ != "make" else scoring)
        for _ in range(NUMBER):
            made = make(draw)
            judge = Judge([said for said, _ in made["replies"]])
            line = {**made["columns"], "prediction": made["text"]}
            read, score = ask(judge, dict(line))
            shown = judge.shows(line)
            replies = [each if each[1] is None else list(each) for each in made["replies"]]
            answers.append(
                [family, made["columns"], made["text"], replies, made["clean"], score, bool(judge.prompts), shown]
            )
            if made["clean"] and score is not None:
                kept.append(
                    {
                        **line,
                        "res": score if read is None else read,
                        "hit": score,
                        "score": score,
                        "log": "",
                        "place": len(answers) - 1,
                    }
                )
        reports[family] = [[each.pop("place") for each in kept], sorted(published.reported(family, kept))]
    fields = ["family", "columns", "text", "replies", "clean", "score", "asked", "shown"]
    scorings = {family: scoring for family, (scoring, _) in FAMILIES.items()}
    whole = {"note": " ".join(str(__doc__).split()), "scorings": scorings, "fields": fields}
    whole |= {"answers": answers, "reports": reports}
    PATH.write_bytes(gzip.compress(json.dumps(whole, ensure_ascii=False).encode(), mtime=0))
    print(len(answers), PATH.stat().st_size)


if __name__ == "__main__":
    main()
