"""Every figure of the paper: its numbers, and that it is drawn from a store as it is."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from click.testing import CliRunner
from PIL import Image
from tables import cases

from testbed.errors import TestbedError
from testbed.plotting import (
    effective_robustness,
    paper_appendix_correlations,
    paper_appendix_grid,
    paper_appendix_models,
    paper_appendix_resnet50,
    paper_hypothetical,
    ranking,
)
from testbed.plotting.frame import Grid, load_grid
from testbed.plotting.images import images_problem, write_images
from testbed.plotting.page import drawn
from testbed.plotting.paper_plots import command as paper_plots
from testbed.plotting.paper_plots import draw_all, pictures
from testbed.plotting.paper_shifts import PICTURES, SHIFTS
from testbed.plotting.paper_shifts import command as paper_shifts
from testbed.plotting.picture import Choice, picture_command, write
from testbed.plotting.scatter import ScatterSpec, scatter_data, scatter_object
from testbed.plotting.scatter_figure import scatter_figure
from testbed.plotting.setting_labels import LABELS
from testbed.plotting.stats import transform
from testbed.plotting.style import TYPES, percent_ticks, type_styles
from testbed.registry import registry

V2 = "imagenetv2-matched-frequency-format-val"


@pytest.fixture(scope="module")
def grid(published):
    return load_grid(published)


def logit(percent):
    return np.log(np.asarray(percent) / (100 - np.asarray(percent)))


def standard(table):
    names = [name for name in table if name.startswith(("standard", "vgg19")) or name == "resnet50"]
    return [name for name in names if "aws" not in name and table[name]["val"] >= 55]


def test_the_fit_is_that_of_the_standard_models_on_the_logit_scale(grid, table):
    data = scatter_data(grid, SHIFTS["imagenetv2"])
    names = standard(table)
    expected = scipy.stats.linregress(*(logit([table[name][column] for name in names]) for column in ("val", V2)))
    assert data.fit.n == len(names) == 14
    assert data.fit.slope == pytest.approx(expected.slope)
    assert data.fit.intercept == pytest.approx(expected.intercept)
    assert data.fit.r == pytest.approx(expected.rvalue)
    row = data.models.set_index("model").loc["more1"]
    predicted = 1 / (1 + np.exp(-(expected.slope * logit(table["more1"]["val"]) + expected.intercept)))
    assert row["effective_robustness"] == pytest.approx(table["more1"][V2] / 100 - predicted)
    assert not row["fitted"]


def test_which_models_are_shown_with_which_types(grid):
    models = scatter_data(grid, SHIFTS["imagenetv2"]).models.set_index("model")
    assert "weak" not in models.index  # below 55 %
    assert "lp0" not in models.index
    assert not any("subsample" in name for name in models.index)
    assert models.loc["lp1", "model_type"] == models.loc["resnet50_robust1", "model_type"] == "Robustness intervention"
    apart = scatter_data(grid, PICTURES["corruptions"].data(grid, Choice()).scatter.spec).models.set_index("model")
    assert apart.loc["lp1", "model_type"] == "Lp adversarially robust"
    assert "more1" not in apart.index  # lacks a severity


def test_error_bars_are_clopper_pearsons(grid, table):
    row = scatter_data(grid, SHIFTS["imagenetv2"]).models.set_index("model").loc["more1"]
    for axis, column, n in (("x", "val", 50000), ("y", V2, 10000)):
        right = round(table["more1"][column] / 100 * n)
        expected = scipy.stats.binomtest(right, n).proportion_ci(0.995)
        assert (row[f"{axis}_low"], row[f"{axis}_high"]) == pytest.approx((expected.low, expected.high), abs=1e-4)


def test_the_lines_of_imagenet_a_part_at_the_pivot(grid):
    data = scatter_data(grid, SHIFTS["imagenet_a"])
    assert data.fit.pivot == 0.9186
    assert "resnet50" not in set(data.models["model"])
    fitted = data.models[data.models["fitted"]]
    assert data.fit.below.n == (fitted["x"] < 0.9186).sum()
    assert data.fit.above.n == (fitted["x"] > 0.9186).sum()


def test_two_lines_are_not_joined(grid):
    data = scatter_data(grid, SHIFTS["imagenet_a"])
    lines = [trace for trace in scatter_figure(data).data if trace.legendgroup == "fit"]
    assert [trace.showlegend for trace in lines] == [True, False]
    below, above = (np.asarray(trace.x) for trace in lines)
    assert below.max() < transform(0.9186, "logit") < above.min()


def test_a_line_ends_where_its_models_do(grid):
    data = scatter_data(grid, SHIFTS["appendix_low_accuracy"])
    fitted = data.models.loc[data.models["fitted"], "x"]
    assert fitted.min() > data.models["x"].min()
    assert (data.band["x"].min(), data.band["x"].max()) == pytest.approx((fitted.min(), fitted.max()))


def test_a_model_at_0_percent_stands_at_the_edge_and_changes_nothing_else(grid):
    values = grid.values.copy()
    values.loc["vgg19", V2] = 0.0
    with_it, without = (
        scatter_data(each, SHIFTS["imagenetv2"])
        for each in (grid._replace(values=values), grid._replace(values=values.drop(index="vgg19")))
    )
    assert with_it.fit.slope == without.fit.slope
    assert (with_it.fit.n, with_it.fit.left_out) == (without.fit.n, 1)
    assert scatter_object(with_it)["at_the_edge"] == ["vgg19"]
    figure = scatter_figure(with_it)
    (edge,) = [trace for trace in figure.data if (trace.name or "").startswith("at 0 % or 100 %")]
    assert list(edge.y) == [figure.layout.yaxis.range[0]]
    assert list(edge.x) == pytest.approx([float(transform(values.loc["vgg19", "val"], "logit"))])
    assert any("vgg19" in note.text for note in figure.layout.annotations)
    (standard_ones,) = [trace for trace in figure.data if trace.name == "Standard training"]
    assert min(standard_ones.y) > figure.layout.yaxis.range[0]


def test_a_figure_that_has_too_few_models_for_a_line_says_so(grid):
    few = grid._replace(values=grid.values.loc[["resnet50", "vgg19", "standard1", "more0"]])
    figure = scatter_figure(scatter_data(few, SHIFTS["imagenetv2"]))
    assert "No line: at least 5 models of standard training are needed, 3 match" in figure.layout.title.subtitle.text


@pytest.mark.parametrize("width", [234.0, pytest.param(397.0, marks=pytest.mark.long)])
def test_a_figure_for_print_has_letters_of_6_points_and_more(grid, width):
    for name, picture in PICTURES.items():
        figure = drawn(partial(picture.draw, picture.data(grid, Choice())), width)
        layout, points = figure.layout, 72 / 96
        assert layout.width * points == pytest.approx(width)
        sizes = [
            layout.font.size,
            layout.legend.font.size,
            *(note.font.size for note in layout.annotations if note.text),
        ]
        assert min(sizes) * points >= 5.99, name
        longest = max(map(len, layout.title.text.split("<br>")))
        assert longest * 0.5 * layout.title.font.size <= layout.width, name


def test_what_a_narrow_page_has_no_room_for_stands_below(grid):
    def made(name, width):
        (picture,) = [each for each in pictures() if each.name == name]
        return drawn(partial(picture.draw, picture.data(grid, Choice())), width)

    for width, below in ((234.0, True), (397.0, False), (None, False)):
        first, second = made("corruptions", width).select_yaxes()
        assert (second.domain[1] < first.domain[0]) == below, width
        assert first.domain[1] - first.domain[0] > 0.3
    with pytest.raises(TestbedError, match="needs a wider page, such as --width text"):
        made("appendix_models", 234.0)
    with pytest.raises(TestbedError, match=r"columns needs a page of [0-9]+ pt: choose some columns with --on"):
        made("appendix_grid", 234.0)
    grid_for_print = made("appendix_grid", 600.0)
    for axis in (grid_for_print.layout.xaxis, grid_for_print.layout.yaxis):
        assert len(set(axis.ticktext)) == len(axis.tickvals)
        assert axis.tickfont.size * 72 / 96 >= 5.99
    (table,) = made("appendix_models", 397.0).data
    assert [name.replace("<br>", "") for name in table.cells["values"][0]] == list(
        paper_appendix_models.data(grid, Choice()).index
    )
    letters = sum(max(len(line) for cell in column for line in cell.split("<br>")) for column in table.cells["values"])
    assert letters * 0.5 * table.cells.font.size <= 397 * 96 / 72


def test_a_legend_in_print_has_room_for_all_its_entries(grid):
    figure = drawn(partial(scatter_figure, scatter_data(grid, ScatterSpec("val", V2))), 234.0)
    entries = {trace.name for trace in figure.data if trace.name and trace.showlegend is not False}
    assert len(entries) > 5
    assert figure.layout.margin.b > 19 * len(entries)
    assert figure.layout.legend.maxheight == 1  # plotly hides what is below half of the figure


def test_settings_with_names_in_papers_are_registered():
    known = set(registry.load().eval_setting_names())
    assert {name.partition("_pm")[0] for name in LABELS if not name.startswith("avg_")} <= known


def test_settings_of_papers_have_their_names(grid):
    figure = scatter_figure(scatter_data(grid, ScatterSpec("val", "imagenet-sketch")))
    assert figure.layout.xaxis.title.text == "ImageNet (top-1, %)"
    assert figure.layout.yaxis.title.text == "ImageNet-Sketch (top-1, %)"
    assert figure.layout.title.text == "ImageNet-Sketch against ImageNet"


def test_a_figure_without_a_line_has_none(grid):
    data = scatter_data(grid, SHIFTS["imagenetv2_bare"])
    assert data.fit is None
    assert not len(data.band)
    names = {trace.name for trace in scatter_figure(data).data}
    assert "linear fit" not in names
    assert "y = x" in names


def test_highlighted_models_are_shown_under_their_own_type_and_never_fitted(grid):
    models = scatter_data(grid, SHIFTS["appendix_subsampled_images"]).models.set_index("model")
    row = models.loc["resnet50_imagenet_subsample_1_of_2_batch64_original_images"]
    assert row["model_type"] == "1 of 2 images"
    assert not row["fitted"]


def test_where_nobody_has_stated_types_all_models_are_fitted(grid):
    untyped = grid._replace(types=grid.types.map(lambda _: None))
    data = scatter_data(untyped, ScatterSpec("val", V2))
    assert set(data.models["model_type"]) == {"not stated"}
    assert data.fit.n == len(data.models) - 1  # but those named in the rule: standard_aws


def tagged(seed: int) -> dict[str, tuple[float, float]]:
    """Models by timm's names: those of ImageNet-1k alone near a line, others above it, and one at 0 %."""
    generator = np.random.default_rng(seed)
    rows = {}
    for number in range(40):
        tag = "in1k" if number < 30 else "in22k_ft_in1k"
        x = generator.uniform(0.6, 0.88)
        z = 0.9 * np.log(x / (1 - x)) - 0.6 + generator.normal(0, 0.1) + (0.5 if number >= 30 else 0)
        rows[f"timm/net{number}.{tag}@224"] = (x, 1 / (1 + np.exp(-z)))
    return rows | {"timm/worst.a1_in1k@224": (0.61, 0.0)}


def least_squares(points: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Slope, intercept and r² of the logits, by the normal equations and the sums of squares."""
    x, y = (np.log(np.array(each) / (1 - np.array(each))) for each in zip(*points, strict=True))
    design = np.stack([x, np.ones_like(x)], axis=1)
    slope, intercept = np.linalg.solve(design.T @ design, design.T @ y)
    return slope, intercept, 1 - np.sum((y - slope * x - intercept) ** 2) / np.sum((y - y.mean()) ** 2)


@pytest.mark.parametrize("seed", range(3))
def test_the_line_of_models_that_name_imagenet_1k_alone_is_that_of_least_squares(seed):
    rows = tagged(seed)
    values = pd.DataFrame.from_dict(rows, orient="index", columns=["val", V2])
    plain = Grid(values, values * np.nan, pd.Series(None, index=values.index, dtype=object))
    data = scatter_data(plain, ScatterSpec("val", V2))
    points = [point for name, point in rows.items() if "in22k" not in name and point[1] > 0]
    assert (data.baseline, data.fit.n, data.fit.left_out) == ("imagenet-1k", 30, 1)
    assert (data.fit.slope, data.fit.intercept, data.fit.r**2) == pytest.approx(least_squares(points))
    expected = scipy.stats.linregress(*(logit(100 * np.array(each)) for each in zip(*points, strict=True)))
    assert data.fit.r**2 == pytest.approx(expected.rvalue**2)
    shown = f"linear fit to 30 models with only ImageNet-1k in their names<br>(slope {expected.slope:.3f}, r² "
    assert any((trace.name or "").startswith(shown) for trace in scatter_figure(data).data)
    everyone = scatter_data(plain, ScatterSpec("val", V2, baseline="all"))
    assert everyone.fit.slope == pytest.approx(least_squares([each for each in rows.values() if each[1] > 0])[0])


def test_a_baseline_can_be_chosen(published, table):
    words = ["--db-url", published, "--x", "val", "--y", V2, "--json"]
    command = picture_command(effective_robustness.PICTURE)
    found = {
        baseline: json.loads(CliRunner().invoke(command, [*words, "--baseline", baseline]).output)
        for baseline in ("standard", "all")
    }
    usual = json.loads(CliRunner().invoke(command, words).output)
    assert usual["fit"] == found["standard"]["fit"]
    assert usual["baseline"] == "standard"
    assert found["standard"]["fit"]["n"] == len(standard(table)) < found["all"]["fit"]["n"]


def test_two_shifts_correlate_the_effective_robustness_of_models_that_are_not_standard(grid):
    found = PICTURES["corruptions"].data(grid, Choice())
    assert "Standard training" not in set(found.models["model_type"])
    assert "weak" in set(found.models["model"])  # as in the paper, also less accurate ones
    corruptions, natural = (scatter_data(grid, each.spec).fit for each in (found.scatter, found.other))
    row = found.models.set_index("model").loc["more2"]
    values = grid.values.loc["more2"]
    assert row["x"] == pytest.approx(values["avg_corruptions"] - corruptions.predict(values["val"]))
    assert row["y"] == pytest.approx(values[V2] - natural.predict(values["val"]))
    assert found.r == pytest.approx(scipy.stats.pearsonr(found.models["x"], found.models["y"]).statistic)


def test_the_table_of_correlations_holds_those_of_the_figures(grid):
    table = paper_appendix_correlations.PICTURE.data(grid, Choice())
    assert table.loc["avg_corruptions", V2] == pytest.approx(PICTURES["corruptions"].data(grid, Choice()).r)
    assert "imagenet-c.brightness.1_on-disk" not in table.index
    assert "imagenet-a" in table.columns


def test_the_hypothetical_model_stands_above_a_real_one(grid, table):
    found = paper_hypothetical.PICTURE.data(grid, Choice())
    assert found.base == "vgg19"
    assert (found.x, found.before) == pytest.approx((table["vgg19"]["val"] / 100, table["vgg19"][V2] / 100))
    assert found.y == pytest.approx(found.before + 0.08)


def test_the_hypothetical_model_may_differ_from_any_model_on_both_axes(grid, table):
    found = paper_hypothetical.PICTURE.data(grid, Choice(further={"base": "resnet50", "move": (-8.0, -3.0)}))
    real = [table["resnet50"][setting] / 100 for setting in ("val", V2)]
    assert (found.x, found.y) == pytest.approx((real[0] - 0.08, real[1] - 0.03))
    (arrow,) = paper_hypothetical.PICTURE.draw(found).layout.annotations
    assert arrow.ax != arrow.x
    with pytest.raises(ValueError, match="nobody is not among the models"):
        paper_hypothetical.PICTURE.data(grid, Choice(further={"base": "nobody"}))


def test_robustness_to_a_corruption_is_drawn_against_that_to_another_natural_shift(grid):
    found = PICTURES["appendix_strongest"].data(
        grid, Choice(y="gaussian_noise_on-disk", further={"against": "objectnet"})
    )
    assert (found.scatter.spec.y, found.other.spec.y) == ("gaussian_noise_on-disk", "objectnet-1.0-beta")


def test_effective_robustness_by_depth_has_a_line_for_models_whose_names_differ_in_a_number(grid):
    found = effective_robustness.PICTURE.data(grid, Choice(further={"by": "depth"}))
    rows = effective_robustness.PICTURE.numbers(found)["models"]
    families = {row["family"] for row in rows}
    assert "standard*" in families
    assert not families & {"resnet*", "vgg*"}  # one model each
    standard = [row for row in rows if row["family"] == "standard*"]
    assert {f"standard{row['depth']:.0f}" for row in standard} == {row["model"] for row in standard}
    drawn = effective_robustness.PICTURE.draw(found)
    (line,) = (trace for trace in drawn.data if trace.name == "standard*")
    expected = {row["depth"]: row["effective_robustness"] for row in standard}
    assert dict(zip(line.x, line.y, strict=True)) == pytest.approx(expected)


def test_a_part_of_the_grid_is_drawn(grid):
    part = {"models": ["more*", "vgg19"], "columns": ["*_on-disk", "greyscale"]}
    values = paper_appendix_grid.PICTURE.data(grid, Choice(further=part))
    assert all(name.startswith("more") or name == "vgg19" for name in values.index)
    assert all(name == "greyscale" or name.endswith("_on-disk") for name in values.columns)
    assert values.loc["vgg19", "greyscale"] == grid.values.loc["vgg19", "greyscale"]
    with pytest.raises(ValueError, match="the store has no models nobody"):
        paper_appendix_grid.PICTURE.data(grid, Choice(further={"models": ["nobody"]}))


def test_relative_robustness_is_to_resnet50(grid, table):
    models = paper_appendix_resnet50.PICTURE.data(grid, Choice())
    assert models.index.tolist() == [f"resnet50_robust{number}" for number in range(4)]
    expected = (table["resnet50_robust2"][V2] - table["resnet50"][V2]) / 100
    assert models.loc["resnet50_robust2", "relative_robustness"] == pytest.approx(expected)


def test_a_ranking_is_over_the_settings_that_a_pattern_matches(grid, table):
    found = ranking.PICTURE.data(grid, Choice(x="pgd.*"))
    assert sorted(found.settings) == ["pgd.l2.eps0.1", "pgd.linf.eps0.5", "pgd.linf.eps2"]
    assert found.left_out == []
    ranks = grid.values[found.settings].rank(ascending=False).mean(axis=1)
    assert found.table["mean_rank"].to_dict() == pytest.approx(ranks.to_dict())
    assert found.table.index[0] == ranks.idxmin()
    every = ranking.PICTURE.data(grid, Choice())
    assert every.left_out == ["more1"]  # lacks one severity
    assert "avg_pgd" not in every.settings
    assert "brightness_on-disk" not in every.settings
    assert "imagenet-c.brightness.1_on-disk" in every.settings
    shown = ranking.PICTURE.numbers(found)["models"][0]
    assert shown["mean_score"] == pytest.approx(100 * grid.values.loc[shown["model"], found.settings].mean())
    assert ranking.PICTURE.draw(found).data[0].y[0] == shown["model"]
    with pytest.raises(ValueError, match=r"no setting matches 'wds/\*'"):
        ranking.PICTURE.data(grid, Choice(x="wds/*"))


def test_a_ranking_is_by_rank_or_by_score(grid):
    by_rank = ranking.PICTURE.data(grid, Choice())
    by_score = ranking.PICTURE.data(grid, Choice(further={"by": "score"}))
    assert by_rank.table["mean_rank"].is_monotonic_increasing
    assert by_score.table["mean_score"].is_monotonic_decreasing
    assert by_score.table.index[0] == grid.values.loc[by_score.table.index, by_score.settings].mean(axis=1).idxmax()
    drawn = ranking.PICTURE.draw(by_score)
    assert drawn.data[0].x[0] == pytest.approx(100 * by_score.table["mean_score"].iloc[0])
    assert "mean score" in drawn.layout.xaxis.title.text
    shown = ranking.PICTURE.numbers(by_score)
    assert shown["by"] == "score"
    first = shown["models"][0]
    assert first["std_score"] == pytest.approx(100 * by_score.table["std_score"].iloc[0])
    assert first["mean_score_low"] < first["mean_score"] < first["mean_score_high"]


def test_gaps_cost_a_ranking_models_or_settings(grid):
    of_models = ranking.PICTURE.data(grid, Choice())
    of_settings = ranking.PICTURE.data(grid, Choice(further={"complete": "settings"}))
    assert of_settings.left_out == ["imagenet-c.brightness.3_on-disk"]
    assert len(of_settings.table) == len(of_models.table) + 1
    assert sorted([*of_settings.settings, *of_settings.left_out]) == sorted(of_models.settings)
    crossed = grid._replace(values=grid.values[["val", "imagenet-a"]].iloc[:2].where(np.eye(2, dtype=bool)))
    with pytest.raises(ValueError, match="no setting has results of all 2 models"):
        ranking.PICTURE.data(crossed, Choice(further={"complete": "settings"}))


def test_a_ranking_is_printed_as_a_table(grid, published, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(
        picture_command(ranking.PICTURE), ["--table", "--by", "score", "--x", "pgd.*", "--db-url", published]
    )
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    found = ranking.PICTURE.data(grid, Choice(x="pgd.*", further={"by": "score"}))
    assert lines[0].split()[:3] == ["model", "mean", "rank"]
    assert [line.split()[0] for line in lines[2:-1]] == list(found.table.index)
    assert f"{100 * found.table['median_score'].iloc[0]:.2f}" in lines[2]
    assert lines[-1] == "over 3 settings"
    assert not list(tmp_path.iterdir())


def test_the_grid_and_the_table_have_the_best_model_first(grid, table):
    best = max(table, key=lambda name: table[name]["val"])
    values = paper_appendix_grid.PICTURE.data(grid, Choice())
    assert values.index[0] == best
    assert values.columns[0] == "val"
    assert "imagenet-c.brightness.1_on-disk" not in values.columns
    assert paper_appendix_models.PICTURE.data(grid, Choice()).index[0] == best


# Axes -------------------------------------------------------------------------------------------------------------


@cases("scale", ["linear", "logit", "probit"])
@cases(("low", "high"), [(0.55, 0.9), (0.01, 0.99), (0.975, 0.99), (0.001, 0.02), (0.4, 0.42)])
def test_ticks_are_round_within_the_axis_and_apart(scale, low, high):
    limits = float(transform(low, scale)), float(transform(high, scale))
    ticks = percent_ticks(limits, scale)
    places = transform([tick / 100 for tick in ticks], scale)
    assert 3 <= len(ticks) <= 10
    assert (places >= limits[0]).all()
    assert (places <= limits[1]).all()
    assert np.diff(places).min() >= (limits[1] - limits[0]) / 9 - 1e-9


def test_ticks_of_a_logit_scale_reach_down_to_small_shares():
    low, high = transform([0.0007, 0.93], "logit")
    assert percent_ticks((low, high), "logit")[:3] == [0.1, 1, 10]


def test_types_are_told_apart_by_colour_and_by_symbol():
    known = [(colour, symbol) for name, (colour, symbol) in TYPES.items() if name != "Other robustness intervention"]
    assert len({symbol for _, symbol in known}) == len(known)
    assert len({colour for colour, _ in known}) == len(known)
    styles = type_styles(["b 10", "b 9", "Standard training"])
    assert list(styles) == ["Standard training", "b 9", "b 10"]
    assert styles["b 9"]["symbol"] != styles["b 10"]["symbol"]


# Scripts ----------------------------------------------------------------------------------------------------------


def test_every_script_beside_the_others_is_a_figure(root):
    scripts = {path.stem for path in (root / "plotting").glob("paper_*.py")} - {"paper_plots", "paper_shifts"}
    assert len(pictures()) == len(PICTURES) + len(scripts) + 1
    assert len({picture.name for picture in pictures()}) == len(pictures())


def test_one_line_says_which_figures_are_skipped_since_their_settings_are_not_stored(grid, tmp_path, capsys):
    less = grid._replace(values=grid.values[["val", V2]])
    names = {path.stem for _, path in draw_all(less, tmp_path)}
    assert {"imagenetv2", "imagenetv2_bare", "effective_robustness", "appendix_grid"} <= names
    assert "objectnet" not in names
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("skipped: ")
    assert "(unknown column '" in line
    assert line.endswith(" more")


@pytest.mark.parametrize("picture", pictures(), ids=lambda each: each.name)
def test_a_script_prints_the_numbers_behind_its_figure(published, picture):
    done = CliRunner().invoke(picture_command(picture), ["--db-url", published, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert found
    assert "NaN" not in done.output


def test_effective_robustness_as_json(published, table, tmp_path, warm_python):
    script = Path(effective_robustness.__file__)
    words = ["--db-url", published, "--x", "val", "--y", "imagenet-sketch", "--json"]
    done = warm_python.run(script, words, tmp_path, os.environ)
    found = json.loads(done.stdout)
    assert set(found["fit"]) == {"slope", "intercept", "r", "r2", "n"}
    names = standard(table)
    expected = scipy.stats.linregress(
        *(logit([table[name][column] for name in names]) for column in ("val", "imagenet-sketch"))
    )
    assert found["fit"]["slope"] == pytest.approx(expected.slope)
    by_name = {each["model"]: each for each in found["models"]}
    assert set(by_name["more1"]) == {"model", "model_type", "x", "y", "predicted", "effective_robustness"}
    assert by_name["more1"]["x"] == pytest.approx(table["more1"]["val"])
    assert by_name["more1"]["effective_robustness"] == pytest.approx(
        by_name["more1"]["y"] - by_name["more1"]["predicted"]
    )
    assert list(tmp_path.iterdir()) == []


def test_other_axes_and_scales(published, table):
    words = ["imagenetv2", "--db-url", published, "--y", "objectnet-1.0-beta", "--transform", "linear", "--json"]
    found = json.loads(CliRunner().invoke(paper_shifts, words).output)
    assert (found["x"], found["y"], found["transform"]) == ("val", "objectnet-1.0-beta", "linear")
    names = standard(table)
    expected = np.polyfit(*([table[name][c] / 100 for name in names] for c in ("val", "objectnet-1.0-beta")), 1)
    assert (found["fit"]["slope"], found["fit"]["intercept"]) == pytest.approx(tuple(expected))


def test_mistakes_are_one_line(published, tmp_path):
    command = picture_command(PICTURES["imagenetv2"])
    for words, said in (
        (["--y", "imagenet-sketchy"], "did you mean 'imagenet-sketch'"),
        (["--out", str(tmp_path / "f.jpeg")], "unknown suffix '.jpeg'; expected one of .html, .pdf, .png, .svg"),
        (["--metric", "top7"], "no results to draw"),
    ):
        done = CliRunner().invoke(command, ["--db-url", published, *words])
        assert isinstance(done.exception, TestbedError)
        assert said in str(done.exception)
        assert "\n" not in str(done.exception)


def test_all_are_drawn_and_images_say_what_they_need_where_it_is_missing(monkeypatch, tmp_path, published, grid):
    monkeypatch.setitem(sys.modules, "kaleido", None)
    assert "pip install -e '.[figures]'" in images_problem()
    figure = scatter_figure(scatter_data(grid, SHIFTS["imagenetv2"]))
    with pytest.raises(TestbedError, match="images need the package kaleido"):
        write(figure, tmp_path / "f.pdf")
    done = CliRunner().invoke(paper_plots, ["--db-url", published, "--out", str(tmp_path / "figs")])
    assert done.exit_code == 0
    assert f"{len(pictures())} figures" in done.output
    assert "note: no PDF" in done.stderr
    drawn = [path.read_text() for path in (tmp_path / "figs").glob("*.html")]
    assert len(drawn) >= len(pictures())
    assert all('src="plotly.min.js"' in text and "https://cdn" not in text for text in drawn)
    done = CliRunner().invoke(paper_plots, ["--db-url", published, "--formats", "png"])
    assert isinstance(done.exception, TestbedError)


@pytest.mark.slow
@pytest.mark.skipif(images_problem() is not None, reason=str(images_problem()))
def test_images_are_drawn_at_the_figures_size(tmp_path, grid):
    paths = [tmp_path / "f.png", tmp_path / "f.pdf"]
    write_images([scatter_figure(scatter_data(grid, SHIFTS["imagenetv2"]))] * 2, paths)
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    assert Image.open(paths[0]).size == (1800, 1280)
    assert paths[1].read_bytes().startswith(b"%PDF")
