"""Reports on a few rows, with every number worked out here, and at the edges of what a set may lack."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from answered_world import WORLDS, answered, pope
from sklearn.metrics import f1_score, precision_score, recall_score
from tables import cases

from testbed.answers.reports.report import REPORTS, extras, report
from testbed.answers.verdict import AnsweredQuestions, Verdict
from testbed.errors import DataError, UnknownNameError


def found(metrics):
    """(metric, slice) → metric."""
    return {(each.name, each.slice): each for each in metrics}


def value(metrics, name, part="overall"):
    return found(metrics)[name, part].value


class TestEveryReport:
    @cases("name", sorted(REPORTS))
    def test_no_rows_have_no_score(self, name):
        metrics = report(name, answered([], []), "test@1")
        primary = found(metrics)[REPORTS[name].primary, "overall"]
        assert (primary.value, primary.stderr, primary.n) == (None, None, 0)
        assert all(each.value is None for each in metrics if each.name != "missing")

    @cases("name", sorted(WORLDS))
    def test_rows_without_answers_have_no_score(self, name):
        world = WORLDS[name]()
        nothing = AnsweredQuestions(world.ids, world.columns, [None] * len(world.ids), [None] * len(world.ids))
        metrics = report(name, nothing, "test@1")
        assert value(metrics, REPORTS[name].primary) is None
        assert value(metrics, "coverage") == 0

    @cases("name", sorted(WORLDS))
    def test_one_row_alone_does_not_fail(self, name):
        world = WORLDS[name]()
        one = AnsweredQuestions(world.ids[:1], world.columns[:1], world.verdicts[:1], world.texts[:1])
        assert all(each.stderr is None for each in report(name, one, "test@1"))

    @cases("name", sorted(WORLDS))
    def test_every_answer_right(self, name):
        world = WORLDS[name]()
        best = [Verdict(row.get("answer", "A"), 1.0, "letter") for row in world.columns]
        metrics = report(name, AnsweredQuestions(world.ids, world.columns, best, world.texts), "test@1")
        full = {"ocrbench": 60, "mme": 2800}.get(name, 1)
        assert value(metrics, REPORTS[name].primary) == pytest.approx(full)

    @cases("name", sorted(WORLDS))
    def test_metrics_are_named_once_and_have_a_scorer(self, name):
        metrics = report(name, WORLDS[name](), "test@1")
        assert len(found(metrics)) == len(metrics)
        assert {each.scorer for each in metrics} == {"test@1"}
        assert all(type(each.value) in (float, type(None)) for each in metrics)
        assert all(type(each.stderr) in (float, type(None)) for each in metrics)

    @cases("name", sorted(REPORTS))
    def test_published_names_belong_to_metrics(self, name):
        metrics = report(name, WORLDS[name]() if name in WORLDS else answered([{}], [1]), "test@1")
        assert set(REPORTS[name].published) <= {each.name for each in metrics}

    def test_an_unknown_report(self):
        with pytest.raises(UnknownNameError, match=r"unknown report 'hallusions'.*did you mean 'hallusion'"):
            report("hallusions", answered([], []), "test@1")


class TestAccuracy:
    COLUMNS = (
        {"category": "a", "split": "dev"},
        {"category": "a", "split": "dev"},
        {"category": "b", "split": "dev"},
        {"split": "dev"},
    )

    def test_by_hand(self):
        metrics = report("accuracy", answered(self.COLUMNS, [1, 0, 1, 1]), "test@1")
        overall = found(metrics)["accuracy", "overall"]
        assert (overall.value, overall.n) == (0.75, 4)
        assert overall.stderr == pytest.approx(math.sqrt(0.75 * 0.25 / 3))
        assert value(metrics, "accuracy", "category/a") == 0.5
        assert value(metrics, "accuracy", "category/b") == 1
        assert value(metrics, "accuracy", "split/dev") == 0.75
        assert ("accuracy", "split/dev/category/a") not in found(metrics)  # there is one split alone

    def test_what_has_no_answer_does_not_count(self):
        metrics = report("accuracy", answered(self.COLUMNS, [1, None, None, 1]), "test@1")
        assert (value(metrics, "accuracy"), found(metrics)["accuracy", "overall"].n) == (1, 2)
        assert (value(metrics, "accuracy", "category/b"), found(metrics)["accuracy", "category/b"].n) == (None, 0)

    def test_rows_of_one_picture_are_a_cluster(self):
        scores = [1, 0, 1, 1, 0, 1, 1, 1, 0, 0]  # the means without a, b, c or d: 5 / 8, 4 / 7, 4 / 8, 5 / 7
        pictures = ["a", "a", "b", "b", "b", "c", "c", "d", "d", "d"]
        by_group = report("accuracy", answered([{}] * 10, scores, groups=pictures), "test@1")
        by_column = report("accuracy", answered([{"image_path": each} for each in pictures], scores), "test@1")
        for metrics in (by_group, by_column):
            stderr = found(metrics)["accuracy", "overall"].stderr
            without = (5 / 8, 4 / 7, 4 / 8, 5 / 7)
            assert stderr == pytest.approx(math.sqrt(3 / 4 * sum((each - 0.6) ** 2 for each in without)))

    def test_rows_without_a_group_stand_alone(self):
        grouped = answered([{}] * 4, [1, 0, 1, 1], groups=[None, None, "a", "a"])
        # The means without {1}, {0} or {1, 1}: 2 / 3, 1, 1 / 2, around 3 / 4.
        expected = math.sqrt(2 / 3 * ((1 / 12) ** 2 + (1 / 4) ** 2 + (1 / 4) ** 2))
        assert found(report("accuracy", grouped, "t"))["accuracy", "overall"].stderr == pytest.approx(expected)


class TestMmmu:
    def test_the_validation_split_is_reported(self):
        columns = [{"split": split, "category": "Art"} for split in ("dev", "dev", "validation", "validation")]
        metrics = report("mmmu", answered(columns, [0, 0, 1, 1]), "t")
        assert value(metrics, "accuracy") == 1
        assert value(metrics, "accuracy", "category/Art") == 1
        assert (value(metrics, "accuracy", "split/dev"), value(metrics, "accuracy", "split/validation")) == (0, 1)

    def test_a_table_of_another_split(self):
        assert value(report("mmmu", answered([{"split": "test"}] * 2, [0, 1]), "t"), "accuracy") == 0.5


class TestCircular:
    IDS = ("1", "2", "1000001", "1000002", "2000001")

    def test_g_index_says_what_belongs_together(self):
        columns = [{"g_index": "7"}, {"g_index": "9"}, {"g_index": "7"}]
        metrics = report("circular", answered(columns, [1, 1, 0], ["7", "9", "8"]), "t")
        assert (value(metrics, "circular"), value(metrics, "vanilla_base")) == (0.5, 1)

    def test_the_order_of_rows_does_not_matter(self):
        own = report("circular", answered([{"category": "a"}] + [{}] * 4, [1, 1, 1, 0, 1], self.IDS), "t")
        columns = [{}] * 4 + [{"category": "a"}]
        turned = report("circular", answered(columns, [1, 0, 1, 1, 1], self.IDS[::-1]), "t")
        assert found(own) == found(turned)

    def test_a_rotation_without_an_answer_leaves_the_question_out(self):
        metrics = report("circular", answered([{}] * 5, [1, 1, None, 0, 1], self.IDS), "t")
        assert (value(metrics, "circular"), found(metrics)["circular", "overall"].n) == (0, 1)

    def test_a_rotation_without_its_base_row(self):
        metrics = report("circular", answered([{}] * 2, [1, 0], ["1", "1000002"]), "t")
        assert (value(metrics, "circular"), value(metrics, "vanilla_all")) == (1, 0.5)

    def test_rotations_of_one_question_are_a_cluster(self):
        metrics = report("circular", answered([{}] * 5, [1, 0, 1, 0, 1], self.IDS), "t")
        # The means without {1, 1, 1} or {0, 0}: 0 and 1, around 3 / 5.
        assert found(metrics)["vanilla_all", "overall"].stderr == pytest.approx(math.sqrt((0.6**2 + 0.4**2) / 2))

    def test_an_index_that_is_no_number(self):
        with pytest.raises(DataError, match="index 'one'; expected a whole number"):
            report("circular", answered([{}], [1], ["one"]), "t")


class TestMme:
    def rows(self, scores, categories, pictures):
        columns = [{"category": c, "image_path": p} for c, p in zip(categories, pictures, strict=True)]
        return report("mme", answered(columns, scores), "t")

    def test_by_hand(self):
        metrics = self.rows([1, 1, 1, 0, 0, 1, 1, 1], ["OCR"] * 4 + ["text_translation"] * 4, list("aabbccdd"))
        assert value(metrics, "accuracy", "category/OCR") == 0.75
        assert value(metrics, "accuracy_plus", "category/OCR") == 0.5
        assert value(metrics, "score", "category/OCR") == 125
        assert (value(metrics, "perception"), value(metrics, "reasoning"), value(metrics, "total")) == (125, 125, 250)
        assert found(metrics)["total", "overall"].unit == "points"
        # The pictures of a category have 200 and 50 points; the two categories are independent.
        one = 150 / math.sqrt(2) / math.sqrt(2)
        assert found(metrics)["score", "category/OCR"].stderr == pytest.approx(one)
        assert found(metrics)["total", "overall"].stderr == pytest.approx(one * math.sqrt(2))

    def test_missing_categories_are_left_out_and_said(self):
        metrics = self.rows([1, 1], ["OCR"] * 2, "aa")
        missing = [each.slice for each in metrics if each.name == "missing"]
        assert (len(missing), "category/color" in missing, "category/OCR" in missing) == (13, True, False)
        assert (value(metrics, "perception"), value(metrics, "reasoning")) == (200, None)

    def test_a_category_that_belongs_to_no_sum(self):
        metrics = self.rows([1, 1], ["taste"] * 2, "aa")
        assert (value(metrics, "score", "category/taste"), value(metrics, "total")) == (200, None)

    def test_a_picture_with_one_question_or_a_missing_answer_has_no_pair(self):
        metrics = self.rows([1, 1, 1, 1, None], ["OCR"] * 5, list("aabcc"))
        plus = found(metrics)["accuracy_plus", "category/OCR"]
        assert (plus.value, plus.n) == (1, 1)
        assert found(metrics)["accuracy", "category/OCR"].n == 4

    def test_a_picture_in_two_categories(self):
        metrics = self.rows([1, 1, 0, 0], ["OCR", "OCR", "color", "color"], "aaaa")
        assert value(metrics, "accuracy_plus") == 0.5

    def test_it_must_be_known_which_rows_share_a_picture(self):
        with pytest.raises(DataError, match="no column image_path"):
            report("mme", answered([{"category": "OCR"}], [1]), "t")
        metrics = report("mme", answered([{"category": "OCR"}] * 2, [1, 1], groups=["a", "a"]), "t")
        assert value(metrics, "perception") == 200


class TestPope:
    def rows(self, answers, said, categories=None):
        columns = [{"answer": each} for each in answers]
        if categories is not None:
            columns = [{**row, "category": each} for row, each in zip(columns, categories, strict=True)]
        scores = [float(own == each) for own, each in zip(said, answers, strict=True)]
        return report("pope", answered(columns, scores, extracted=said), "t")

    def test_by_hand(self):
        # 2 true yes, 1 false yes, 1 missed; one that cannot be read.
        metrics = self.rows(["Yes", "Yes", "No", "Yes", "No"], ["Yes", "Yes", "Yes", "No", None])
        assert value(metrics, "accuracy") == 0.4
        assert value(metrics, "precision") == pytest.approx(2 / 3)
        assert value(metrics, "recall") == pytest.approx(2 / 3)
        assert value(metrics, "f1") == pytest.approx(2 / 3)
        assert value(metrics, "yes_share") == 0.6
        assert value(metrics, "unparsed") == 0.2

    def test_against_scikit_learn(self):
        world = pope()
        pairs = [
            (row["answer"] == "Yes", verdict.extracted == "Yes", category)
            for row, verdict in zip(world.columns, world.verdicts, strict=True)
            for category in row["category"].split(",")
        ]
        metrics = report("pope", world, "t")
        for part in ("overall", "category/random", "category/popular", "category/adversarial"):
            own = [(truth, said) for truth, said, category in pairs if part in ("overall", f"category/{category}")]
            truth, said = zip(*own, strict=True)
            assert value(metrics, "precision", part) == pytest.approx(precision_score(truth, said))
            assert value(metrics, "recall", part) == pytest.approx(recall_score(truth, said))
            assert value(metrics, "f1", part) == pytest.approx(f1_score(truth, said))
            assert found(metrics)["accuracy", part].n == len(own)

    def test_the_standard_error_of_f1_is_that_of_resampling(self):
        world = pope()
        truth = np.array([row["answer"] == "Yes" for row in world.columns])
        said = np.array([verdict.extracted == "Yes" for verdict in world.verdicts])
        times = np.array([len(row["category"].split(",")) for row in world.columns])
        rng = np.random.default_rng(0)
        drawn = []
        for _ in range(2000):
            own = rng.integers(len(truth), size=len(truth))
            both = (times * (truth & said))[own].sum()
            drawn.append(2 * both / ((times * truth)[own].sum() + (times * said)[own].sum()))
        stderr = found(report("pope", world, "t"))["f1", "overall"].stderr
        assert stderr == pytest.approx(np.std(drawn), rel=0.06)

    def test_a_row_of_several_categories_counts_in_each(self):
        metrics = self.rows(["Yes", "No"], ["Yes", "Yes"], ["random,popular", "random"])
        assert value(metrics, "accuracy") == pytest.approx(2 / 3)
        assert (value(metrics, "accuracy", "category/popular"), value(metrics, "accuracy", "category/random")) == (
            1,
            0.5,
        )

    def test_shares_of_nothing_are_undefined(self):
        never = self.rows(["Yes", "No"], ["No", "No"])
        assert (value(never, "precision"), value(never, "recall"), value(never, "f1")) == (None, 0, 0)
        only_no = self.rows(["No", "No"], ["No", "No"])
        assert [value(only_no, name) for name in ("precision", "recall", "f1", "accuracy")] == [None, None, None, 1]


class TestHallusion:
    def rows(self, cells):
        ids = [f"{category}_{topic}_0_{numbers}" for category, topic, numbers, _ in cells]
        columns = [{"category": category, "l2-category": topic} for category, topic, _, _ in cells]
        return report("hallusion", answered(columns, [each[-1] for each in cells], ids), "t")

    def test_figures_of_two_categories_with_the_same_numbers_are_two(self):
        metrics = self.rows([("VD", "ocr", "0_0_0", 1), ("VS", "ocr", "0_0_0", 0)])
        assert (value(metrics, "facc"), found(metrics)["facc", "overall"].n) == (0.5, 2)
        assert (value(metrics, "facc_vlmevalkit"), found(metrics)["facc_vlmevalkit", "overall"].n) == (0, 1)

    def test_a_figure_without_an_answer_does_not_count(self):
        metrics = self.rows([("VD", "map", "0_0_0", 1), ("VD", "map", "0_0_1", None), ("VD", "map", "0_1_0", 0)])
        assert (value(metrics, "facc"), found(metrics)["facc", "overall"].n) == (0, 1)

    def test_an_index_without_numbers(self):
        with pytest.raises(DataError, match="index '17'; expected six parts"):
            report("hallusion", answered([{}], [1], ["17"]), "t")


class TestPairsAndMeans:
    def test_mmvp_pairs_that_ask_the_same(self):
        metrics = report("mmvp", answered([{"question": "p"}] * 4, [1, 1, 0, 1]), "t")
        assert (value(metrics, "both_right"), found(metrics)["both_right", "overall"].n) == (0.5, 2)

    def test_cv_bench_by_hand(self):
        columns = [{"source": each} for each in ("COCO", "COCO", "COCO", "COCO", "ADE20K", "ADE20K")]
        metrics = report("cv_bench_2d", answered(columns, [1, 1, 1, 0, 0, 1]), "t")
        own = found(metrics)["mean_over_sources", "overall"]
        assert (own.value, value(metrics, "accuracy")) == (0.625, pytest.approx(4 / 6))
        # The variances 1/4 of four rows and 1/2 of two, each source with weight 1/2.
        assert own.stderr == pytest.approx(math.sqrt((1 / 4 / 4 + 1 / 2 / 2) / 2**2))

    def test_a_source_with_one_row_has_no_standard_error(self):
        columns = [{"source": each} for each in ("COCO", "COCO", "ADE20K")]
        own = found(report("cv_bench_2d", answered(columns, [1, 0, 1]), "t"))["mean_over_sources", "overall"]
        assert (own.value, own.stderr, own.n) == (0.75, None, 3)

    def test_a_row_without_a_source_is_in_no_mean_of_sources(self):
        metrics = report("cv_bench_2d", answered([{"source": "COCO"}, {}], [1, 0]), "t")
        assert (value(metrics, "mean_over_sources"), value(metrics, "accuracy")) == (1, 0.5)

    def test_hr_bench_by_hand(self):
        columns = [
            {"cycle_category": cycle, "question": question, "category": "single"}
            for cycle in "01"
            for question in ("p", "q")
        ]
        metrics = report("hr_bench", answered(columns, [1, 0, 1, 1]), "t")
        assert value(metrics, "mean_over_cycles") == 0.75
        assert value(metrics, "mean_over_cycles", "category/single") == 0.75
        assert value(metrics, "accuracy", "cycle_category/0") == 0.5
        # Question p deviates by 0.5 and 0, q by −0.5 and 0, each row with weight 1/4.
        stderr = found(metrics)["mean_over_cycles", "overall"].stderr
        assert stderr == pytest.approx(math.sqrt(2 * 2 * (0.5 / 4) ** 2))

    def test_a_cycle_without_a_category_is_no_zero(self):
        columns = [{"cycle_category": "0", "category": "single"}, {"cycle_category": "1", "category": "cross"}]
        metrics = report("hr_bench", answered(columns, [1, 1]), "t")
        assert value(metrics, "mean_over_cycles", "category/single") == 1


class TestFreeText:
    def test_vqa_and_anls_are_means_of_scores(self):
        rows = answered([{"split": "human"}, {"split": "augmented"}, {"category": "a"}], [0.3, 0.6, 0.9])
        assert value(report("vqa", rows, "t"), "accuracy") == pytest.approx(0.6)
        assert value(report("vqa", rows, "t"), "accuracy", "category/a") == 0.9
        assert value(report("anls", rows, "t"), "anls", "split/human") == 0.3

    def test_mtvqa_by_language(self):
        metrics = report(
            "mtvqa", answered([{"category": "AR"}, {"category": "AR"}, {"category": "VI"}], [1, 0, 1]), "t"
        )
        assert (value(metrics, "accuracy"), value(metrics, "accuracy", "language/AR")) == (pytest.approx(2 / 3), 0.5)

    def test_math_vista_skills(self):
        columns = [{"task": "t", "skills": "['a', 'b']"}, {"task": "t", "skills": "b"}, {"task": "t"}]
        rows = answered(columns, [1, 0, 1], method="number")
        judged = AnsweredQuestions(rows.ids, columns, [*rows.verdicts[:2], Verdict("5", 1.0, "judge")], rows.texts)
        metrics = report("math_vista", judged, "t")
        assert value(metrics, "accuracy") == value(metrics, "accuracy", "task/t") == pytest.approx(2 / 3)
        assert (value(metrics, "accuracy", "skill/a"), value(metrics, "accuracy", "skill/b")) == (1, 0.5)
        assert (value(metrics, "prefetch"), value(metrics, "prefetch", "skill/b")) == (pytest.approx(2 / 3), 1)

    @pytest.mark.parametrize("cell", ["__import__('os')", "['a'", "(" * 3000, "7"])
    def test_a_cell_of_skills_is_never_run(self, cell):
        metrics = report("math_vista", answered([{"skills": cell}], [1]), "t")
        assert value(metrics, "accuracy", f"skill/{cell}"[:256]) == 1


class TestWeMath:
    def rows(self, *problems):
        columns, scores = [], []
        for number, (steps, whole) in enumerate(problems):
            keys = [f"{len(steps)}steps_{each + 1}" for each in range(len(steps))] + [f"{len(steps)}steps_multi"]
            columns += [{"key": key, "ID": str(number)} for key in keys]
            scores += [*steps, whole]
        return report("we_math", answered(columns, scores), "t")

    def test_nothing_right_has_no_rote_memorization(self):
        assert value(self.rows(((0, 0), 0)), "rote_memorization_strict") is None

    def test_a_problem_without_all_answers_does_not_count(self):
        metrics = self.rows(((1, None), 1), ((1, 1), 1))
        assert found(metrics)["score_strict", "overall"].n == 1


class TestVideoMme:
    def test_by_hand(self):
        columns = [{"duration": "short", "domain": "a", "video": "1"}] * 2 + [{"duration": "long", "domain": "a"}] * 2
        metrics = report("video_mme", answered(columns, [1, 0, 1, None]), "t")
        assert value(metrics, "accuracy") == pytest.approx(2 / 3)  # no answer does not count
        assert value(metrics, "accuracy", "duration/short") == 0.5
        assert value(metrics, "accuracy", "duration/long/domain/a") == 1
        assert value(metrics, "accuracy", "domain/a") == pytest.approx(2 / 3)


class TestExtras:
    ROWS = answered([{}] * 5, [1, 0, 0, 1, None], extracted=["A", "B", None, "A", None])

    def test_shares_of_what_was_read(self):
        metrics = extras(self.ROWS, "t")
        assert [(each.name, each.value, each.n) for each in metrics] == [("coverage", 0.8, 5), ("unparsed", 0.25, 4)]

    def test_answers_that_were_cut_off(self):
        metrics = extras(self.ROWS, "t", cut_off=[False, True, None, False, True])
        assert (value(metrics, "cut_off"), found(metrics)["cut_off", "overall"].n) == (pytest.approx(1 / 3), 3)

    def test_what_other_rules_say(self):
        others = [Verdict("A", 1.0, "x"), Verdict("A", 1.0, "x"), Verdict("C", 0.0, "x"), None, None]
        metrics = extras(self.ROWS, "t", other_verdicts=others)
        assert (value(metrics, "rules_differ"), found(metrics)["rules_differ", "overall"].n) == (
            pytest.approx(1 / 3),
            3,
        )

    def test_what_a_draw_would_score(self):
        metrics = report("accuracy", self.ROWS, "t", expected=np.array([1, 0, 0.25, 1, 0.25]))
        assert value(metrics, "expected_of_draw") == pytest.approx(2.25 / 4)
        assert value(metrics, "accuracy") == 0.5

    def test_without_rows(self):
        assert [each.value for each in extras(answered([], []), "t")] == [None, None]


class TestReportsByKinds:
    def test_a_question_counts_in_each_kind_of_a_list(self):
        columns = [{"match_type": "[1, 5]", "subject": "a"}, {"match_type": "[5]", "subject": "b"}]
        metrics = report("kinds", answered(columns, [1, 0]), "test@1")
        assert value(metrics, "accuracy") == 0.5
        assert [value(metrics, "accuracy", f"match_type/{label}") for label in "15"] == [1, 0.5]
        assert value(metrics, "accuracy", "subject/a") == 1

    def test_tasks_weigh_the_same(self):
        columns = [{"category": "a", "l2-category": each} for each in "xxxy"] + [{"category": "b", "l2-category": "x"}]
        metrics = report("tasks", answered(columns, [1, 1, 1, 0, 1]), "test@1")
        assert value(metrics, "accuracy") == 0.8
        assert value(metrics, "accuracy", "task/a/y") == 0
        assert value(metrics, "mean_over_tasks") == pytest.approx(2 / 3)
        assert value(metrics, "mean_over_tasks", "category/a") == 0.5

    def test_four_orders_of_a_question_must_be_right(self):
        metrics = report("crpe", answered([{"category": "exist"}] * 8, [1, 1, 1, 1, 1, 1, 0, 1]), "test@1")
        assert value(metrics, "groups_right") == value(metrics, "groups_right", "category/exist") == 0.5
        assert value(metrics, "accuracy") == 7 / 8

    def test_all_rows_of_an_item_must_be_right_and_tests_weigh_the_same(self):
        columns = [{"category_id": "CF1", "eval_index": each} for each in "1122"]
        columns += [{"category_id": "S1", "eval_index": each} for each in "12"]
        metrics = report("visfactor", answered(columns, [1, 1, 1, 0, 1, 1]), "test@1")
        assert value(metrics, "groups_right", "test/CF1") == 0.5
        assert value(metrics, "mean_over_tests") == 0.75

    def test_kinds_of_questions_weigh_the_same(self):
        columns = [{"question_type": each} for each in "aaab"]
        metrics = report("question_types", answered(columns, [1, 1, 1, 0.5]), "test@1")
        assert value(metrics, "score", "question_type/b") == 0.5
        assert value(metrics, "mean_over_kinds") == 0.75

    def test_olympiads_by_source_subject_and_language(self):
        columns = [{"source": each} for each in ("OE_MM_maths_en_COMP", "OE_TO_physics_zh_CEE", "OE_TO_maths_zh_CEE")]
        metrics = report("olympiad", answered(columns, [1, 0, 0]), "test@1")
        assert value(metrics, "accuracy", "source/OE_MM_maths_en_COMP") == 1
        assert value(metrics, "accuracy", "subject/maths") == 0.5
        assert value(metrics, "accuracy", "language_subject/zh_physics") == 0

    def test_each_covered_text_counts_once(self):
        columns = [{"answer": "['a b', 'c d']"}, {"answer": "['e f']"}]
        verdicts = [Verdict("a b", 0.5, "words"), Verdict("e f", 1.0, "words")]
        metrics = report("hidden_words", AnsweredQuestions(["0", "1"], columns, verdicts, ["a b, c", "e f"]), "test@1")
        assert value(metrics, "exact_match") == pytest.approx(2 / 3)
        assert value(metrics, "jaccard") == pytest.approx((1 + 1 / 3 + 1) / 3)

    def test_the_levels_of_spar_bench(self):
        columns = [{"task": each} for each in ("depth_prediction_oc", "depth_prediction_oo", "position_matching")]
        metrics = report("spar_bench", answered(columns, [1, 0, 1]), "test@1")
        assert value(metrics, "mean_over_kinds", "level/Low") == 0.5
        assert value(metrics, "mean_over_kinds", "level/Middle") == 1
        assert value(metrics, "mean_over_kinds") == pytest.approx(2 / 3)

    def test_cc_ocr_is_the_mean_of_its_kinds_of_the_means_of_their_sets(self):
        kinds = (("kie", "a"), ("kie", "a"), ("kie", "b"), ("doc_parsing", "c"))
        columns = [{"category": kind, "l2-category": "x", "split": split} for kind, split in kinds]
        metrics = report("cc_ocr", answered(columns, [1, 0, 1, 0.5]), "test@1")
        assert value(metrics, "mean_over_kinds", "category/kie") == 0.75
        assert value(metrics, "score", "set/kie_x_a") == 0.5
        assert value(metrics, "mean_over_kinds") == pytest.approx((0.75 + 0.5) / 2)

    def test_points_weigh_as_they_are_given(self):
        columns = [{"points": "[1, 2]", "SUB_DATASET": "a"}, {"points": "[1]", "SUB_DATASET": "b"}]
        metrics = report("points", answered(columns, [1, 0.5]), "test@1")
        assert value(metrics, "share_of_points") == pytest.approx(3.5 / 4)
        assert value(metrics, "share_of_points", "competition/b") == 0.5

    def test_flags_of_steps_count_together(self):
        right, said = [[0, 1, 1], [1], [0, 0]], [[0, 1, 0], [1], None]
        columns = [{"answer": str(flags), "category": "a" if len(flags) > 1 else "b"} for flags in right]
        verdicts = [Verdict(flags and " ".join(map(str, flags)), 0.5, "flags") for flags in said]
        metrics = report("steps", replace(answered(columns, [0, 0, 0]), verdicts=verdicts), "test@1")
        flat = [flag for flags in right for flag in flags], [0, 1, 0, 1, 1, 1]  # what is unread is wrong
        ones, zeros = (f1_score(*flat, pos_label=flag) for flag in (1, 0))
        assert value(metrics, "f1_of_ones") == pytest.approx(ones)
        assert value(metrics, "f1_of_zeros") == pytest.approx(zeros)
        assert value(metrics, "f1_weighted") == pytest.approx((zeros + ones) / 2)  # three of each
        assert value(metrics, "f1_weighted", "category/b") == 0  # all of its flags are 1

    def test_the_sums_of_marks_in_both_orders_decide(self):
        columns = [{"order": order} for order in ("front", "back") * 3]
        verdicts = [Verdict(marks, 1.0, "marks") for marks in ("7 6", "5 5", "3 9", "1 2", "9 1")] + [None]
        given = replace(answered(columns, [1] * 6), ids=["2", "3", "10", "11", "20", "21"], verdicts=verdicts)
        metrics = report("solutions", given, "test@1")
        assert value(metrics, "pairs_right") == 0.5  # 7 + 5 > 6 + 5, 3 + 2 < 9 + 1; the last pair has an answer missing
        assert found(metrics)["pairs_right", "overall"].n == 2

    def test_both_forms_of_a_statement_of_vlm2_bench_must_be_right(self):
        categories = ["gc-mat"] * 4 + ["oc-cnt"] * 2
        ids = ["gc-mat_1_p", "gc-mat_1_n", "gc-mat_2_p", "gc-mat_2_n", "oc-cnt_1", "oc-cnt_2"]
        given = answered([{"category": each} for each in categories], [1, 1, 1, 0, 0.5, 1])
        metrics = report("vlm2", replace(given, ids=ids), "test@1")
        assert value(metrics, "score", "category/gc-mat") == 0.5
        assert value(metrics, "mean_over_kinds") == pytest.approx((0.5 + 0.75) / 2)

    def test_the_splits_of_ref_coco_weigh_the_same(self):
        columns = [{"category": each} for each in ("RefCOCO val", "RefCOCO val", "RefCOCO+ val")]
        metrics = report("ref_coco", answered(columns, [1, 0, 1]), "test@1")
        assert value(metrics, "mean_over_kinds") == 0.75
        assert value(metrics, "accuracy", "split/RefCOCO val") == 0.5

    def test_the_overall_scores_of_ocrbench_v2(self):
        kinds = ("text recognition en", "full-page OCR en", "text spotting en", "full-page OCR cn")
        metrics = report("ocrbench_v2", answered([{"category": each} for each in kinds], [1, 0, 0.2, 0.8]), "test@1")
        assert value(metrics, "score", "ability/en_text_recognition") == 0.5
        assert value(metrics, "mean_over_kinds", "language/en") == pytest.approx((0.5 + 0.2) / 2)
        assert value(metrics, "mean_over_kinds", "language/cn") == 0.8
        assert value(metrics, "mean_over_kinds") == pytest.approx((0.5 + 0.2 + 0.8) / 3)
