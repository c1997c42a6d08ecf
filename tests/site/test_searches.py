"""Searches in a folder: their values, and the items that their systems got most wrong."""

import json
import shutil

import pytest

from ordinate.errors import BadStore
from ordinate.render import Grid
from ordinate.site import write_site
from ordinate.site.wrong_items import MOST_ITEMS, find_wrong_items


def read_test(root):
    stored = json.loads((root / "results" / "test_predictions.json").read_text("utf-8"))
    return stored, stored["tests"][0]


def test_a_search_is_one_report_whose_values_are_those_of_its_results(searches, tmp_path):
    listing = write_site(searches, tmp_path / "site")
    assert listing.broken == ()
    rows = {one["path"]: one for one in listing.rows()}
    assert {*rows} == {"classification", "regression"}
    for name, row in rows.items():
        results = json.loads((searches / name / "results" / "results.json").read_text("utf-8"))
        measured = {one["key"]: one["value"] for one in results["summary"]}
        key = "test_rmse" if name == "regression" else next(x for x in measured if "test_" in x)
        assert row["value"] == measured[key]
        assert (row["kind"], row["metric"]) == ("experiment", results["metric"])
        assert (tmp_path / "site" / row["page"]).is_file()
    items = (tmp_path / "site" / "items.html").read_text("utf-8")
    assert "levels off" in items
    assert "residual" in items


def test_what_an_experiment_keeps_for_itself_is_no_broken_report(searches, tmp_path):
    root = shutil.copytree(searches / "classification", tmp_path / "study")
    (root / "experiment.json").write_text('{"scale": "cefr"}', "utf-8")
    listing = write_site(tmp_path, tmp_path / "site")
    assert listing.broken == ()
    assert [row["path"] for row in listing.rows()] == ["study"]


def test_the_worst_levels_are_first_with_their_texts_and_probabilities(searches):
    root = searches / "classification"
    stored, test = read_test(root)
    (grid,) = [x for x in find_wrong_items(root, "c") if isinstance(x, Grid)]
    (system,) = test["predictions"]
    place = {label: k for k, label in enumerate(stored["data"]["scale"])}
    wrong = []
    for k, (gold, predicted) in enumerate(
        zip(test["gold"], test["predictions"][system], strict=True)
    ):
        p = test["probabilities"][system][k][place[gold]]
        wrong.append((-abs(place[gold] - place[predicted]), p, k))
    expected = sorted(x for x in wrong if x[0])[:MOST_ITEMS]
    assert [row[0] for row in grid.rows] == [test["ids"][k] for _, _, k in expected]
    assert [row[5:] for row in grid.rows] == [(-off, p) for off, p, _ in expected]
    for row, (_, _, k) in zip(grid.rows, expected, strict=True):
        shown = dict(part.rsplit(" ", 1) for part in row[2].split(", "))
        given = zip(place, test["probabilities"][system][k], strict=True)
        assert shown == {str(level): f"{p:.2f}" for level, p in given if p >= 0.005}
    assert all(row[1].startswith("Text ") for row in grid.rows)
    head = ("item", "text", "probabilities", "gold", "predicted", "levels off", "p of gold")
    assert grid.header == head


def test_the_largest_residuals_are_first(searches):
    root = searches / "regression"
    _, test = read_test(root)
    grids = find_wrong_items(root, "r")
    for grid, (system, predictions) in zip(grids, test["predictions"].items(), strict=False):
        assert system in grid.title
        errors = [abs(p - t) for p, t in zip(predictions, test["targets"], strict=True)]
        order = sorted(range(len(errors)), key=lambda k: -errors[k])[:MOST_ITEMS]
        assert [row[0] for row in grid.rows] == [f"row {test['rows'][k]}" for k in order]


@pytest.fixture
def damaged(searches, tmp_path):
    import shutil

    return shutil.copytree(searches, tmp_path / "searches")


def test_damaged_predictions_are_named_and_stop_nothing(damaged, tmp_path):
    path = damaged / "classification" / "results" / "test_predictions.json"
    stored = json.loads(path.read_text("utf-8"))
    stored["tests"][0]["gold"][0] = "<script>alert(1)</script>"
    path.write_text(json.dumps(stored))
    with pytest.raises(BadStore, match="is not on the scale of the search"):
        find_wrong_items(damaged / "classification", "c")
    listing = write_site(damaged, tmp_path / "site")
    assert len(listing.reports) == 2
    items = (tmp_path / "site" / "items.html").read_text("utf-8")
    assert "is not on the scale of the search" in items
    assert "residual" in items
    assert "<script>alert(1)" not in items


def test_of_a_search_that_is_damaged_the_runs_are_shown_that_are_whole(damaged, tmp_path):
    (damaged / "regression" / "results" / "results.json").write_text('{"task": "tune')
    listing = write_site(damaged, tmp_path / "site")
    assert [one.path for one in listing.broken] == ["regression"]
    (run,) = (damaged / "regression" / "results" / "runs").iterdir()
    shown = {one.report.path for one in listing.reports}
    assert shown == {"classification", f"regression/results/runs/{run.name}"}


def test_earlier_runs_have_values_and_no_page(damaged, tmp_path):
    root = damaged / "classification"
    (run,) = (root / "results" / "runs").iterdir()
    earlier = run.with_name("earlier")
    earlier.mkdir()
    stored = json.loads((run / "results.json").read_text("utf-8")) | {"run": "earlier"}
    (earlier / "results.json").write_text(json.dumps(stored))
    rows = {one["path"]: one for one in write_site(damaged, tmp_path / "site").rows()}
    assert rows["classification/results/runs/earlier"]["page"] is None
    assert rows["classification/results/runs/earlier"]["value"] == rows["classification"]["value"]


def test_a_folder_that_is_a_search_has_a_site_too(searches, tmp_path):
    listing = write_site(searches / "classification", tmp_path / "site")
    assert [one.report.path for one in listing.reports] == ["classification"]
    assert "levels off" in (tmp_path / "site" / "items.html").read_text("utf-8")
