"""Names beside points: where they are computed to stand, and where a browser draws them."""

from __future__ import annotations

import re
from itertools import combinations, pairwise

import numpy as np
import plotly.graph_objects as go
import pytest

from testbed.plotting import effective_robustness, paper_shifts
from testbed.plotting.figures import figures
from testbed.plotting.frame import load_grid
from testbed.plotting.images import images_problem, write_images
from testbed.plotting.labels import HEIGHT, LEGEND_TEXT, add_names, extremes, places, text_width
from testbed.plotting.picture import Choice
from testbed.plotting.style import finish

AREA = (790.0, 430.0)


def cloud(seed: int, n: int = 60) -> np.ndarray:
    """Points about a line, in pixels."""
    random = np.random.default_rng(seed)
    x = random.uniform(20, AREA[0] - 20, n)
    return np.column_stack([x, np.clip(0.5 * x + random.normal(0, 25, n), 10, AREA[1] - 10)])


def box(centre, size):
    (x, y), (width, height) = centre, size
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def overlap(one, other) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@pytest.mark.parametrize("seed", range(5))
def test_names_stand_over_nothing_and_those_that_are_asked_for_are_there(seed):
    points = cloud(seed)
    asked = set(range(6))
    order = [*asked, *(each for each in range(40) if each not in asked)]
    sizes = {each: (text_width(f"model-{each}-of-a-family", each in asked), HEIGHT) for each in order}
    found = places(points, np.empty((0, 2)), order, sizes, asked, AREA)
    assert asked <= found.keys()
    assert len(found) > len(asked)
    boxes = {each: box(centre, sizes[each]) for each, centre in found.items()}
    assert not any(overlap(one, other) for one, other in combinations(boxes.values(), 2))
    for place, each in boxes.items():
        assert each[0] >= 0 <= each[1]
        assert each[2] <= AREA[0]
        assert each[3] <= AREA[1]
        if place not in asked:
            assert not any(overlap(each, (x, y, x, y)) for x, y in points)
    assert places(points, np.empty((0, 2)), order, sizes, asked, AREA) == found


def test_names_keep_off_lines_where_they_can():
    line = np.column_stack([np.linspace(0, AREA[0], 200), np.full(200, 190.0)])
    ((_, y),) = places(np.array([[400.0, 205.0]]), line, [0], {0: (90, HEIGHT)}, (), AREA).values()
    assert abs(y - 190) > HEIGHT / 2


def test_the_extreme_points_have_the_best_claim_to_a_name():
    x, y = np.arange(30.0), np.arange(30.0)
    over = np.zeros(30)
    over[[7, 19, 23]] = 5, -5, 3
    there = np.full(30, True)
    chosen = extremes(x, y, over, there)
    assert chosen[:4] == [29, 7, 19, 0]
    assert 23 in chosen
    assert len(chosen) <= 12
    assert extremes(x, y, None, there) == [29, 0]
    assert set(extremes(x[:8], y[:8], None, there[:8])) == set(range(8))


def test_a_pattern_asks_for_names_and_figures_without_room_say_so(published, caplog):
    choice = Choice(labels=["standard1*", "vgg19"])
    found = paper_shifts.PICTURES["imagenetv2"]
    texts = [each.text for each in found.draw(found.data(load_grid(published, "top1"), choice)).layout.annotations]
    asked = {"vgg19", "standard1", "standard10", "standard11"}
    assert {f"<b>{name}</b>" for name in asked} <= set(texts)
    assert not any(text.startswith("<b>") for text in set(texts) - {f"<b>{name}</b>" for name in asked})
    figure = go.Figure(go.Scatter(x=[0.5] * 60, y=[0.5] * 60, mode="markers"))
    figure.update_xaxes(range=[0, 1])
    figure.update_yaxes(range=[0, 1])
    finish(figure, "crowded", width=400, height=300)
    add_names(figure, [0.5] * 60, [0.5] * 60, [f"a very long name {each}" for each in range(60)], pinned=["*"])
    assert "no room in a figure for the labels of a very long name" in caplog.text


def drawn_names(svg: str) -> list[tuple[str, tuple[float, float, float, float]]]:
    """Names with the boxes of their texts, as a browser drew them."""
    pattern = re.compile(
        r'<g class="cursor-pointer" transform="translate\(([\d.]+),([\d.]+)\)"><rect class="bg"[^>]*? width="([\d.]+)"'
        r' height="([\d.]+)".*?<text class="annotation-text"[^>]*>(.*?)</text>'
    )
    return [
        (re.sub("<[^>]*>", "", text), (x, y, x + width, y + height))
        for *numbers, text in pattern.findall(svg)
        for x, y, width, height in [map(float, numbers)]
    ]


@pytest.mark.slow
@pytest.mark.skipif(images_problem() is not None, reason="nothing is there to draw images with")
def test_drawn_names_do_not_overlap_in_any_form(published, tmp_path):
    asked = {"standard3", "resnet50_robust1", "more2"}
    grid, choice = load_grid(published, "top1"), Choice(labels=sorted(asked))
    pictures = {name: paper_shifts.PICTURES[name] for name in ("imagenetv2", "corruptions")}
    pictures["robustness"] = effective_robustness.PICTURE
    drawn = {name: picture.draw(picture.data(grid, choice)) for name, picture in pictures.items()}
    drawn |= figures(published, ["shifts"], eval_settings=["imagenet-r"], clean="val", labels=sorted(asked))[0]
    paths = [tmp_path / f"{name}.svg" for name in drawn]
    write_images([drawn[path.stem] for path in paths], paths)
    assert all(path.stat().st_size > 1000 for path in paths)
    for name, figure in drawn.items():
        names = drawn_names((tmp_path / f"{name}.svg").read_text())
        assert len(names) == len(figure.layout.annotations) > len(asked), name
        assert asked <= {text for text, _ in names}, name
        for (one, box_of_one), (other, box_of_other) in combinations(names, 2):
            assert not overlap(box_of_one, box_of_other), (name, one, other)
        for text, (left, _, right, _) in names:
            assert 0.75 * text_width(text, text in asked) - 4 < right - left <= text_width(text, text in asked), text


@pytest.mark.long
@pytest.mark.skipif(images_problem() is not None, reason="nothing is there to draw images with")
def test_the_room_is_never_less_than_was_reckoned(published, tmp_path):
    """Names keep their distance only if the drawing is not smaller than what their places were computed for."""
    from testbed.plotting.labels import _least_height

    made = {}
    for count in (1, 6, 14):
        figure = go.Figure()
        for number in range(count):
            figure.add_trace(go.Scatter(x=[0, 1], y=[0, 1], name=f"a type of models with a number {number}"))
        finish(figure, "title")
        made[tmp_path / f"{count}.svg"] = figure
    write_images(list(made.values()), list(made))
    heights = []
    for path, figure in made.items():
        width, height = map(
            float, re.search(r'plotclip"><rect width="([\d.]+)" height="([\d.]+)"', path.read_text()).groups()
        )
        assert width == 790
        assert 0.7 * height < _least_height(figure) <= height
        heights.append(height)
    assert all(one > other for one, other in pairwise(heights))
    assert text_width("a type of models", size=LEGEND_TEXT) > 90
