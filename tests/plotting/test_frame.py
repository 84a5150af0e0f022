"""The frames that figures are drawn from: what is stored, filled, averaged."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest
from stored_cells import declared
from toy import toy_catalog, toy_model, toy_setting

from testbed.db.parts.results import ReportedResults
from testbed.db.store import Store
from testbed.entities import CellRecord, Metric
from testbed.errors import StoreError, UnknownNameError
from testbed.extensions.published.importing import import_results
from testbed.graph.options import RunOptions
from testbed.plotting.frame import (
    filled,
    grid,
    load_grid,
    model_types,
    require_columns,
    results_frame,
    wide_frame,
    with_averages,
)
from testbed.runner.run import run


def test_a_frame_has_every_number_of_the_table(published, table):
    frame = results_frame(published)
    found = {(row.model, row.column): row.value for row in frame.itertuples()}
    expected = {(model, column): value / 100 for model, row in table.items() for column, value in row.items()}
    assert found == pytest.approx(expected)
    assert set(frame["origin"]) == {"published"}
    pm10 = frame[frame["column"] == "ytbb-robust_pm10"].iloc[0]
    assert (pm10["eval_setting"], pm10["metric"]) == ("ytbb-robust", "pm10")


def test_imported_numbers_get_the_sizes_of_the_registered_settings(published):
    sizes = results_frame(published).set_index("column")["n"].groupby(level=0).first()
    assert sizes["val"] == 50000
    assert sizes["imagenet-a"] == 7500
    assert sizes["val_subsampled_class_1_8"] == 6250
    assert np.isnan(sizes["ytbb-robust_pm0"])  # how many anchors there are, its files say
    assert results_frame(published, sizes=False)["n"].isna().all()


def test_one_may_ask_for_some(published):
    frame = results_frame(published, models=["weak", "more0"], eval_settings=["val", "ytbb-robust"], metrics=["pm0"])
    assert frame[["model", "column"]].to_numpy().tolist() == [["more0", "ytbb-robust_pm0"], ["weak", "ytbb-robust_pm0"]]
    assert results_frame(published, metrics=["top5"]).empty
    with pytest.raises(ValueError, match="origin must be"):
        results_frame(published, origin="mine")


def test_the_main_metric_of_each_setting_is_found_without_reading_the_others(tmp_path, monkeypatch):
    url = str(tmp_path / "testbed.db")
    of = {
        "classes": {"top1": 0.5, "top5": 0.9, "mean_per_class_recall": 0.4},
        "photos": {"image_retrieval_recall@5": 0.3, "text_retrieval_recall@5": 0.2},
        "wide": {"text_retrieval_recall@10": 0.7, "text_retrieval_recall@20": 0.8},
        "sounds": {"loudness": 0.1},
    }
    with Store.create(url) as store:
        for setting, values in of.items():
            record = CellRecord("net", setting, setting)
            metrics = [declared(Metric(name, value, 9, scorer="test@1")) for name, value in values.items()]
            store.evaluations.complete(store.evaluations.begin(record, None, {}, {}).id, [], metrics)
    read = []
    real = ReportedResults.rows

    def watch(self, fields, *wanted):
        rows = real(self, fields, *wanted)
        read.extend(row[list(fields).index("metric")] for row in rows)
        return rows

    monkeypatch.setattr(ReportedResults, "rows", watch)
    found = load_grid(url, None, sizes=False)
    assert found.values.loc["net"].to_dict() == {"classes": 0.5, "photos": 0.3, "wide": 0.7}
    assert found.others == {"photos": "image_retrieval_recall@5", "wide": "text_retrieval_recall@10"}
    assert found.sizes.isna().all(axis=None)
    assert load_grid(url, None).sizes.loc["net"].to_dict() == {"classes": 9, "photos": 9, "wide": 9}
    assert not {"top5", "mean_per_class_recall", "loudness"} & set(read)


def test_ones_own_evaluation_stands_before_a_published_one(tmp_path):
    url = str(tmp_path / "both.db")
    run(toy_catalog(toy_model(), toy_setting()), RunOptions(db_url=url, executor="inline"), ["toy"], ["toy-all"])
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["model", "toy-all", "other"], ["toy", 99.5, 50], ["another", 12.5, ""]])
    with Store.open(url, "write") as store:
        import_results(store, tmp_path / "t.csv")
    by_origin = {each: wide_frame(results_frame(url, origin=each)) for each in ("own", "elsewhere", "any")}
    own = by_origin["own"].loc["toy", "toy-all"]
    assert own != 0.995
    assert by_origin["elsewhere"].to_dict("index")["another"]["toy-all"] == 0.125
    assert np.isnan(by_origin["elsewhere"].loc["toy", "toy-all"])
    assert by_origin["any"].loc["toy"].to_dict() == {"other": 0.5, "toy-all": own}
    assert by_origin["any"].loc["another", "toy-all"] == 0.125
    # The setting is not registered here; its size is known from one's own evaluation.
    assert results_frame(url).set_index(["model", "column"]).loc[("another", "toy-all"), "n"] == 600


def test_a_tenth_fills_the_gap_of_its_parent_and_nothing_else():
    wide = pd.DataFrame(
        {"pgd": [0.5, np.nan], "pgd_10percent": [0.1, 0.2], "new_10percent": [np.nan, 0.3]}, index=["a", "b"]
    )
    found = filled(wide)
    assert found.columns.tolist() == ["pgd", "new"]
    assert found["pgd"].tolist() == [0.5, 0.2]
    assert np.isnan(found.loc["a", "new"])
    assert wide.columns.tolist() == ["pgd", "pgd_10percent", "new_10percent"]


def test_averages_by_hand(published, table):
    found = load_grid(published).values
    row = table["standard3"]
    noise = [row[f"imagenet-c.gaussian_noise.{severity}_on-disk"] / 100 for severity in range(1, 6)]
    assert found.loc["standard3", "gaussian_noise_on-disk"] == pytest.approx(np.mean(noise))
    parts = [column for column in found if column.endswith(("_in-memory", "_on-disk")) and "imagenet-c" not in column]
    assert len(parts) == 6
    over = [*found.loc["standard3", parts], row["greyscale"] / 100, row["stylized_imagenet"] / 100]
    assert found.loc["standard3", "avg_corruptions"] == pytest.approx(np.mean(over))
    attacks = [row[name] / 100 for name in ("pgd.linf.eps0.5", "pgd.linf.eps2", "pgd.l2.eps0.1")]
    assert found.loc["standard3", "avg_pgd"] == pytest.approx(np.mean(attacks))


def test_an_average_that_lacks_a_part_is_missing_and_one_that_was_filled_is_not(published):
    found = load_grid(published).values
    assert np.isnan(found.loc["more1", "brightness_on-disk"])
    assert np.isnan(found.loc["more1", "avg_corruptions"])
    assert not np.isnan(found.loc["more0", "avg_pgd"])
    assert found.loc["more0", "pgd.l2.eps0.1"] == pytest.approx(0.333)


def test_a_corruption_without_all_severities_has_no_average():
    wide = pd.DataFrame({f"imagenet-c.fog.{severity}_on-disk": [0.5] for severity in (1, 2, 3, 4)}, index=["a"])
    assert with_averages(wide).columns.tolist() == wide.columns.tolist()


def test_a_family_of_corruptions_has_an_average_where_all_of_it_is_there():
    kinds = [f"kind{number}" for number in range(10)]
    columns = [f"imagenet-c-bar.{kind}.{level}_on-disk" for kind in kinds for level in range(1, 6)]
    wide = pd.DataFrame([np.arange(50) / 50], columns=columns, index=["a"])
    found = with_averages(wide)
    assert found.loc["a", "avg_imagenet-c-bar_on-disk"] == pytest.approx(0.49)
    assert "avg_corruptions" not in found
    assert with_averages(wide.drop(columns=columns[7])).columns.tolist() == [*columns[:7], *columns[8:]]


def test_sizes_are_those_of_what_a_value_was_filled_from(published):
    sizes = load_grid(published).sizes
    assert sizes.loc["standard3", "pgd.l2.eps0.1"] == 50000
    assert sizes.loc["more0", "pgd.l2.eps0.1"] == 5000
    assert sizes.loc["more0", "avg_pgd"] == 5000
    assert np.isnan(sizes.loc["more1", "avg_corruptions"])
    assert sizes.loc["more1", "gaussian_noise_on-disk"] == 50000


def test_the_size_of_an_average_is_the_smallest_of_its_own_parts():
    columns = [f"imagenet-c.{name}.{severity}_on-disk" for name in ("fog", "snow") for severity in range(1, 6)]
    sizes = pd.DataFrame([[50000.0] * 9 + [5000.0]], columns=columns, index=["a"])
    found = with_averages(sizes, reduce="min").loc["a"]
    assert found[["fog_on-disk", "snow_on-disk", "avg_corruptions"]].tolist() == [50000, 5000, 5000]


def test_types_and_metrics(published):
    assert model_types(results_frame(published))["lp0"] == "Lp adversarially robust"
    assert load_grid(published, "top5").values.empty


def test_an_unknown_column_suggests(published):
    wide = grid(results_frame(published))
    with pytest.raises(UnknownNameError, match=r"unknown column 'imagenet-sketchh'.*did you mean 'imagenet-sketch'"):
        require_columns(wide, ["val", "imagenet-sketchh"])
    with pytest.raises(StoreError, match=r"no results to draw; testbed run"):
        require_columns(wide.iloc[:, :0], ["val"])


def test_a_missing_store_is_said(tmp_path):
    with pytest.raises(StoreError, match="no results store at"):
        results_frame(str(tmp_path / "none.db"))
