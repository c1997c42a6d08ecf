"""Analysis of a finished search of either task: values, hyperparameters, learning curves."""

import json
import shutil

import pytest
from command import read_values
from regression_tables import smooth

from ordinate.errors import BadInput, BadStore
from ordinate.render import Grid, render
from ordinate.tuning.regress.settings import Settings
from ordinate.tuning.regress.tuning import tune_table
from ordinate.tuning.search.analysis import analyze_search
from ordinate.tuning.search.saved_models import read_tuned_params

FORMS = ["text", "json", "csv", "markdown", "latex"]


@pytest.fixture(scope="module")
def searched(case, tmp_path_factory):
    """A search with enough trials for the importance of hyperparameters."""
    root = case.lay_out(tmp_path_factory.mktemp(f"analyzed-{case.name}"))
    return root, case.tune(root, case.make_settings(trials=5))


@pytest.fixture(scope="module")
def boosted(tmp_path_factory):
    """A search whose fits have learning curves."""
    root = tmp_path_factory.mktemp("boosted")
    settings = Settings(models="lightgbm", trials=5, folds=2)
    return root, tune_table(smooth(), root, settings, unit="kg/m³")


def copy_changed(root, folder, name, change):
    """Copy the results of a search, and change one of its files."""
    shutil.copytree(root / "results", folder / "results")
    path = folder / "results" / name
    stored = json.loads(path.read_text())
    change(stored)
    path.write_text(json.dumps(stored))
    return folder


# --- what is shown -------------------------------------------------------------------------------


def test_values_are_those_of_the_result(searched):
    root, result = searched
    found = analyze_search(root)
    assert found.summary == json.loads(json.dumps(result.summarize()))
    plain = found.to_dict()
    assert (plain["task"], plain["run"]) == ("analyze_search", result.run)
    assert plain["winner"] == result.winner.name
    for one, study in zip(plain["studies"], result.studies, strict=True):
        assert (one["value"], one["params"]) == (study.best.value, study.best.params)
    assert found.document().verdict.startswith(f"The best model is {result.winner.title}: ")


def test_every_study_and_the_ensemble_have_a_row(searched):
    root, result = searched
    grids = [x for x in analyze_search(root).document().blocks if isinstance(x, Grid)]
    (grid,) = [one for one in grids if one.title.startswith("Studies")]
    titles = [study.title for study in result.studies]
    assert [row[0] for row in grid.rows] == titles + (
        [result.ensemble.title] if result.ensemble else []
    )


def test_errors_of_regression_and_the_baseline_stand_in_one_table(boosted):
    root, result = boosted
    found = analyze_search(root)
    grid = next(x for x in found.document().blocks if isinstance(x, Grid) and "pruned" in x.header)
    wanted = ("MAE", "R²", "relative accuracy", "baseline RMSE")
    assert grid.header[2:6] == wanted
    (study,) = found.to_dict()["studies"]
    evaluation = result.studies[0].best.evaluation
    assert study["relative_accuracy"] == evaluation.metrics["relative_accuracy"].value
    assert study["baseline_rmse"] == evaluation.baselines[0].rmse


def render_values(result, form) -> str:
    """Return a report without what it was made of."""
    text = render(result, form)
    return json.dumps(read_values(text)) if form == "json" else text


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_written(searched, form):
    root, result = searched
    for one in (analyze_search(root), result):
        text = render_values(one, form)
        assert result.studies[0].model_type in text.replace("\\_", "_")
        assert "nan" not in text.lower().replace("analy", "")


def test_the_analysis_is_silent_and_the_same_every_time(searched, capfd):
    first, second = (json.dumps(analyze_search(searched[0]).to_dict()) for _ in range(2))
    assert first == second
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("form", FORMS)
def test_what_is_wrong_with_the_data_stands_beside_its_values(boosted, tmp_path, form):
    leak, constant = "6 of 16 test rows also stand in training.", "The feature c is constant."

    def warn(stored):
        stored["data"]["leaks"]["notes"] = [leak]
        stored["data"]["notes"] = [constant, leak]

    found = analyze_search(copy_changed(boosted[0], tmp_path, "results.json", warn))
    text = render_values(found, form)
    assert constant in text
    assert text.count(leak) == (2 if form == "json" else 1)


# --- hyperparameters and curves ------------------------------------------------------------------


def test_importance_sums_to_one_and_names_only_what_varied(searched):
    root, result = searched
    importance = analyze_search(root).importance
    assert list(importance) == [study.title for study in result.studies]
    for study in result.studies:
        shares = importance[study.title]
        varied = {
            name
            for name in study.trials[0].params
            if len({str(trial.params[name]) for trial in study.trials}) > 1
        }
        assert set(shares) == varied
        assert sum(shares.values()) == pytest.approx(1.0)


def test_importance_takes_some_trials(finished):
    found = analyze_search(finished[0])
    assert set(found.importance.values()) == {None}
    assert "that takes 4 complete trials" in " ".join(str(found).split())


def test_trials_that_are_all_alike_have_no_importance(searched, tmp_path):
    def level(stored):
        for trial in stored["studies"][0]["trials"]:
            trial["value"] = 0.25

    root = copy_changed(searched[0], tmp_path, "trials.json", level)
    first, *others = analyze_search(root).importance.items()
    assert first[1] is None
    assert all(shares for _, shares in others)
    said = " ".join(str(analyze_search(root)).split())
    assert f"No importance of hyperparameters for {first[0]}" in said


def test_learning_curves_are_data_in_the_unit_of_the_target(boosted):
    curves = analyze_search(boosted[0]).curves
    assert set(curves) == {"lightgbm"}
    assert len(curves["lightgbm"]) == 2
    steps, values = zip(*curves["lightgbm"][0], strict=True)
    assert list(steps) == sorted(steps)
    assert 0.01 < min(values) < 2.0
    trials = boosted[1].studies[0].trials
    best = min(trials, key=lambda trial: trial.value)
    assert curves["lightgbm"] == best.attributes["curves"]


def test_tuned_hyperparameters_are_read_by_model_type(searched):
    root, result = searched
    expected = {study.model_type: study.best.params for study in result.studies}
    assert read_tuned_params(root) == expected


# --- what is refused -----------------------------------------------------------------------------


def test_a_folder_without_a_finished_search_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"no search was finished there\. Make one with: ordinate"):
        analyze_search(tmp_path)


def test_a_file_is_no_folder_of_a_search(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,y\n")
    with pytest.raises(BadInput, match=r"data\.csv is a file, and the folder of a search is"):
        analyze_search(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("no json", "is no JSON"),
        ("[]", "not written by"),
        ('{"task": "evaluate"}', "not written by"),
        ('{"task": "tune"}', "lack 'studies'"),
    ],
)
def test_files_of_others_are_refused(tmp_path, content, said):
    (tmp_path / "results").mkdir()
    for name in ("results.json", "trials.json"):
        (tmp_path / "results" / name).write_text(content)
    with pytest.raises(BadStore, match=said):
        analyze_search(tmp_path)


def test_files_of_two_runs_are_not_mixed(searched, tmp_path):
    root = copy_changed(
        searched[0], tmp_path, "results.json", lambda stored: stored.update(run="y-of-another")
    )
    with pytest.raises(BadStore, match=r"of different runs, .* Run the search again"):
        analyze_search(root)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"summary": None}, "are damaged"),
        ({"summary": [{}]}, "lack 'value'"),
        ({"data": None}, "are damaged"),
        ({"studies": [3]}, "are damaged"),
        ({"notes": 3}, "are damaged"),
        ({"winning": {}}, "lack 'members'"),
    ],
    ids=str,
)
def test_results_that_are_damaged_are_told_in_words(searched, tmp_path, values, said):
    root = copy_changed(searched[0], tmp_path, "results.json", lambda stored: stored.update(values))
    with pytest.raises(BadStore, match=said):
        analyze_search(root)
