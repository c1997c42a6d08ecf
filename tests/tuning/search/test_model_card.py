"""The card of a tuned model has the numbers of its run, its hashes, and what others fill in."""

import hashlib
import json

import numpy as np
import pytest
from rendered_reports import drop_code, words
from search_cases import TABLE_FILE, one_quick_task

from ordinate.errors import BadInput, BadOption, BadStore
from ordinate.render import RENDERERS, Grid, render
from ordinate.results.verification import verify
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.search.model_card import make_model_card
from ordinate.tuning.search.model_card_text import PLACEHOLDER

HOSTILE = "<script>alert(1)</script> \\input{x} =cmd|' /C calc'!A0 \x1b[31m \u202e עברית 😀"


def get_grid(card, title):
    (grid,) = [x for x in card.document().list_body() if isinstance(x, Grid) and x.title == title]
    return grid


def change_results(root, change, *names):
    """Change results of a search, in all files or in those of some names."""
    for path in (root / "results").glob("*.json"):
        if not names or path.name in names:
            stored = json.loads(path.read_text())
            change(stored)
            path.write_text(json.dumps(stored))


def add_column(case, root, items=None):
    """Give test data a column of subgroups; return what `data` is then."""
    if case.name == "classification":
        path = root / "ml-test-data/test.csv"
        head, *lines = path.read_text().splitlines()
        lines = [f"{line},{'even' if k % 2 else 'odd'}" for k, line in enumerate(lines, 1)]
        path.write_text("\n".join([f"{head},side", *lines]) + "\n")
        return None
    values = np.load(root / TABLE_FILE)[:items]
    sides = ["odd" if k % 2 else "even" for k in range(1, len(values) + 1)]
    return dict(zip("abcy", values.T, strict=True)) | {"side": sides}


# --- numbers -------------------------------------------------------------------------------------


def test_the_evaluation_is_that_of_the_run(finished):
    root, result = finished
    card = make_model_card(root)
    (test,) = result.tests
    assert [*card.evaluations] == [test.name]
    found = card.evaluations[test.name].metrics[result.report.metric.lower()]
    expected = result.report.get_estimate(test.evaluation)
    found = getattr(found, "estimate", found)
    assert (found.value, found.low, found.high) == (expected.value, expected.low, expected.high)
    assert make_model_card(result) == card


@one_quick_task
@pytest.mark.parametrize("suffix", ["html", "json"])
def test_a_saved_card_is_recomputed_from_its_summaries(finished, case, suffix, tmp_path):
    root, _ = finished
    path = tmp_path / f"card.{suffix}"
    make_model_card(root).save(path)
    found = verify(path)
    assert found.agrees
    expected = {
        "classification": ("confusion matrices", "sums over predicted probabilities"),
        "regression": ("moments of targets and predictions", "sums over prediction intervals"),
    }
    assert found.summaries == expected[case.name]


def test_one_number_of_a_card_has_one_interval(finished, case):
    root, _ = finished
    (evaluation,) = make_model_card(root).evaluations.values()
    if case.name == "regression":
        (part,) = evaluation.parts
        assert part.result.bias == evaluation.metrics["bias"]


def test_the_verdict_names_the_test_and_the_baselines(finished):
    verdict = make_model_card(finished[0]).document().verdict
    assert verdict.startswith("On test, by which nothing was selected: ")
    assert "always predicting" in verdict


def test_a_test_that_was_learned_from_is_called_so(copied):
    def mark(seen):
        return lambda stored: stored["tests"][0].update(seen=seen)

    for seen in (0, 2):
        change_results(copied, mark(seen), "results.json")
        verdict = make_model_card(copied).document().verdict
        assert ("On test, by which nothing was selected: " in verdict) == (seen == 0)
        assert ("On test, optimistically biased: it has learned from 2 of its" in verdict) == (
            seen == 2
        )
    change_results(copied, lambda stored: stored["tests"][0].pop("seen"), "results.json")
    assert "On test, by which nothing was selected: " in make_model_card(copied).document().verdict


def test_levels_have_their_table_and_probabilities_their_calibration(finished, case):
    root, result = finished
    evaluation = make_model_card(root).evaluations["test"]
    if case.name == "regression":
        assert "interval_coverage" in evaluation.prediction_intervals
        assert evaluation.parts[0].result.summary.n == result.tests[0].n
        return
    assert [row["name"] for row in evaluation.per_level] == result.source.to_dict()["scale"]
    assert evaluation.probabilities.summary.n == result.tests[0].n
    (stored,) = json.loads((root / "results/test_predictions.json").read_text())["tests"]
    experiment, model = Experiment.open(root), case.load(root)
    features = {name: experiment.features(name, "test") for name in model.sets}
    (probabilities,) = stored["probabilities"].values()
    assert np.array_equal(probabilities, model.predict(features).probabilities)


def test_training_and_tests_have_their_sizes(finished, case):
    root, result = finished
    rows = {row[0]: row[2] for row in get_grid(make_model_card(root), "Data").rows}
    assert rows["test"] == result.tests[0].n
    if case.name == "classification":
        counts = get_grid(make_model_card(root), "Items of each level").rows
        assert sum(counts[0][1:]) == result.source.n
        assert sum(counts[1][1:]) == result.tests[0].n
    else:
        assert rows["training"] == len(case.open_task(root).split.train)
        assert rows["table"] == result.source.n


def test_the_search_is_told_with_its_trials(finished):
    root, result = finished
    card = make_model_card(root)
    said, trials = words(card), sum(len(study.trials) for study in result.studies)
    assert f"{trials} trials in {len(result.studies)} studies" in said
    assert f"{result.settings.folds} folds, seed {result.settings.seed}" in said
    assert card.get_chart("history") == result.get_chart("history")


def test_the_views_are_those_of_the_evaluation(finished, case):
    names = {chart.name for chart in make_model_card(finished[0]).list_charts()}
    expected = {"metrics", "history"}
    expected |= (
        {"confusion", "cell_costs", "levels", "reliability"}
        if case.name == "classification"
        else {"predicted", "prediction_intervals"}
    )
    assert expected <= names


# --- hashes --------------------------------------------------------------------------------------


def test_every_file_of_the_model_has_its_hash(finished):
    root, _ = finished
    card = make_model_card(root)
    rows = get_grid(card, "Files of the saved model").rows
    files = [x for m in card.models for x in (root / "models" / m.name).rglob("*") if x.is_file()]
    assert len(rows) == len([x for x in files if x.name != "manifest.json"])
    for name, digest in rows:
        content = (root / "models" / name).read_bytes()
        assert digest == hashlib.sha256(content).hexdigest()


def test_a_changed_model_has_no_card(copied):
    name = make_model_card(copied).models[0].name
    path = copied / "models" / name / "description.json"
    path.write_text(path.read_text() + " ")
    with pytest.raises(BadStore, match=r"description\.json.* is not what"):
        make_model_card(copied)


def test_an_unfinished_search_has_no_card(root):
    with pytest.raises(BadInput, match="no search was finished there"):
        make_model_card(root)


def test_damaged_results_are_named(copied):
    change_results(copied, lambda stored: stored.pop("tests"), "test_predictions.json")
    with pytest.raises(BadStore, match=r"lack 'tests'\. Run the search again"):
        make_model_card(copied)


# --- what others give ----------------------------------------------------------------------------


def test_the_intended_use_is_to_be_filled_in(finished):
    root, _ = finished
    assert PLACEHOLDER in words(make_model_card(root))
    text = "Drafts of\nlearners.\n\nNever for exams."
    card = make_model_card(root, intended_use=text)
    assert [*card.document().list_body()][1:3] == [
        "Intended use: Drafts of learners.",
        "Never for exams.",
    ]
    assert "TO FILL IN" not in words(card)
    assert card.to_dict()["intended_use"] == text


def test_subgroups_are_those_of_a_column(copied, case):
    data = add_column(case, copied)
    card = make_model_card(copied, by="side", table=data)
    (evaluation,) = card.evaluations.values()
    (test,) = json.loads((copied / "results/test_predictions.json").read_text())["tests"]
    odd = sum(row % 2 for row in test["rows"])
    count = {
        name: part.confusion_matrix.n if case.name == "classification" else part.summary.n
        for name, part in evaluation.list_subgroups()
    }
    assert count == {"odd": odd, "even": len(test["rows"]) - odd}


def test_subgroups_of_other_data_are_refused(copied, case):
    data = add_column(case, copied, items=59)
    if case.name == "classification":
        path = copied / "ml-test-data/test.csv"
        path.write_text(path.read_text().replace(",even", "x,even", 1).replace("t", "T", 9))
    with pytest.raises(BadInput, match=r"is not what the model was tested on|There is no"):
        make_model_card(copied, by="side", table=data)


def test_data_are_asked_for_where_they_are_not_known(finished, case):
    if case.name == "classification":
        with pytest.raises(BadOption, match="leave out --table"):
            make_model_card(finished[0], by="side", table={"side": [1]})
    else:
        with pytest.raises(BadInput, match=r"A data frame was learned from.*name the table"):
            make_model_card(finished[0], by="side")


def test_without_test_data_cross_validation_speaks(copied):
    def drop(stored):
        stored["tests"] = []

    change_results(copied, drop)
    card = make_model_card(copied)
    assert card.document().verdict.startswith("Nothing was tested: by cross-validation")
    assert (card.evaluations, card.rows()) == ({}, [])


def test_two_tests_are_told_apart(copied):
    def double(stored):
        stored["tests"] += [json.loads(json.dumps(stored["tests"][0])) | {"data": "second"}]

    change_results(copied, double, "results.json", "test_predictions.json")
    card = make_model_card(copied)
    assert "On second, by which nothing was selected" in card.document().verdict
    views = [(chart.name, chart.variant) for chart in card.list_charts()]
    assert len(set(views)) == len(views)
    assert {row["test"] for row in card.rows()} == {"test", "second"}


@pytest.mark.parametrize("form", RENDERERS)
def test_names_are_text_in_every_form(copied, case, form):
    def rename(stored):
        for test in stored["tests"]:
            test["data"] = HOSTILE
        if case.name == "regression":
            stored["data"]["target"] = HOSTILE

    change_results(copied, rename, "results.json", "test_predictions.json")
    text = render(make_model_card(copied, intended_use=HOSTILE), form)
    if form == "html":
        text = drop_code(text)
    if form in {"html", "markdown"}:
        assert "&lt;script&gt;alert" in text
        assert "<script>alert" not in text
    elif form == "latex":
        lines = [line for line in text.splitlines() if not line.startswith("%")]
        assert "textless{}script" in text
        assert "\\input{x}" not in "\n".join(lines)
    else:
        assert "<script>alert(1)</script>" in text
    assert "\x1b" not in text or form == "csv"  # whose cells are data
