"""The nested estimate: no item has a say in the selection that it evaluates."""

from dataclasses import replace

import numpy as np
import pytest
from experiments import lay_out

from ordinate.classify import nested_estimate as nesting
from ordinate.classify.settings import Settings
from ordinate.classify.tuning import tune_experiment
from ordinate.experiment.folder import Experiment

SETTINGS = Settings(models="logistic,regression", trials=2, folds=3, top_k=1, nested=True)


@pytest.fixture(scope="module")
def nested(tmp_path_factory):
    """A nested run: its folder, its result, and the rows on which models were selected."""
    root = lay_out(tmp_path_factory.mktemp("nested"), n=48, sets=("strong", "noise"))
    select, seen = nesting.select_model, []

    def watched(context):
        seen.append(context.rows)
        return select(context)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nesting, "select_model", watched)
        return root, tune_experiment(Experiment.open(root), SETTINGS), seen


def test_each_fold_selects_and_all_items_are_evaluated_once(nested):
    _, result, _ = nested
    assert len(result.nested.selected) == 3
    assert all(one.startswith("strong/") for one in result.nested.selected)
    assert result.nested.evaluation.bounds[0] < result.nested.evaluation.value
    assert "Nested cross-validation: the whole selection repeated" in str(result)
    assert result.rows()[-1]["stage"] == "nested"


def test_an_outer_fold_is_never_seen_by_its_selection(nested):
    *_, seen = nested
    assert len(seen) == 3
    missing = [np.setdiff1d(np.arange(48), rows) for rows in seen]
    assert sorted(np.concatenate(missing).tolist()) == list(range(48))


def test_the_selection_itself_is_the_same_without_it(nested, tmp_path):
    root = lay_out(tmp_path, n=48, sets=("strong", "noise"))
    plain = tune_experiment(Experiment.open(root), replace(SETTINGS, nested=False))
    assert plain.winner == nested[1].winner
    assert plain.nested is None


def test_what_an_outer_fold_selected_is_cached(nested, monkeypatch):
    root, result, _ = nested
    monkeypatch.setattr(nesting, "_select_and_predict", lambda *_: pytest.fail("chosen again"))
    again = tune_experiment(Experiment.open(root), SETTINGS)
    assert again.to_dict() == result.to_dict()


def test_a_nested_search_that_a_timeout_ended_is_told_of_and_not_cached(tmp_path):
    root = lay_out(tmp_path, n=48, sets=("strong",))
    settings = replace(SETTINGS, models="logistic", trials=6)
    tune_experiment(
        Experiment.open(root), replace(settings, nested=False)
    )  # the choice itself is finished
    cut = tune_experiment(Experiment.open(root), replace(settings, timeout=0.0))
    assert not cut.nested.finished
    assert not (root / "results/nested").exists()
    assert "timeout ended the search" in str(cut)
    whole = tune_experiment(Experiment.open(root), settings)
    assert whole.nested.finished
    assert "timeout" not in str(whole)
