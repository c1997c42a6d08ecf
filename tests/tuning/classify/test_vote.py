"""The vote: who is a member, how many, and that saved members predict the same."""

from dataclasses import replace

import numpy as np
import pytest
from experiments import lay_out
from tuned_experiments import open_task

from ordinate.tuning.classify.settings import Settings
from ordinate.tuning.classify.task import ClassificationTask
from ordinate.tuning.classify.trained_model import load_model
from ordinate.tuning.classify.tuning import tune_experiment
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.search.fits import FitOutputs
from ordinate.tuning.search.task import Candidate, Ensemble, EvaluatedCandidate

SETTINGS = Settings(models="logistic,threshold,regression,vote", trials=1, folds=3, top_k=2)


@pytest.fixture(scope="module")
def voted(tmp_path_factory):
    root = lay_out(tmp_path_factory.mktemp("voted"), n=48, sets=("strong", "weak"))
    return root, tune_experiment(Experiment.open(root), SETTINGS)


def test_members_are_the_best_models(voted):
    _, result = voted
    ranked = sorted((one.best for one in result.studies), key=lambda one: -one.evaluation.value)
    names = [one.name for one in ranked]
    members = list(result.ensemble.members)
    assert 2 <= len(members) <= 5
    assert members == names[: len(members)]


def test_the_number_of_members_is_the_best_by_cross_validation(voted, monkeypatch):
    root, result = voted
    sizes = {}
    vote = ClassificationTask._evaluate_vote

    def watched(task, members):
        found = vote(task, members)
        sizes[len(members)] = found.value
        return found

    monkeypatch.setattr(ClassificationTask, "_evaluate_vote", watched)
    tune_experiment(Experiment.open(root), SETTINGS)
    assert sizes.keys() == {2, 3, 4, 5}
    assert result.ensemble.value == max(sizes.values())


def test_a_saved_vote_averages_its_saved_members(voted):
    root, result = voted
    experiment = Experiment.open(root)
    vote = load_model(experiment, result.ensemble.name)
    features = {name: experiment.features(name, "test") for name in vote.sets}
    each = [
        member.calibration.probabilities(member.compute_outputs(features))
        for member in (load_model(experiment, name) for name in result.ensemble.members)
    ]
    average = np.mean(each, axis=0)
    np.testing.assert_allclose(vote.compute_outputs(features), average)
    recalibrated = vote.calibration.probabilities(average)
    np.testing.assert_allclose(vote.predict(features).probabilities, recalibrated)
    assert vote.config["members"] == list(result.ensemble.members)


def test_a_vote_stands_in_the_reports_and_may_win(voted):
    _, result = voted
    assert result.ensemble in result.finalists
    assert "vote" in str(result)
    assert "members=" in result.to_markdown()
    assert result.to_dict()["ensemble"]["name"] == result.ensemble.name


def test_one_model_makes_no_vote(tmp_path):
    root = lay_out(tmp_path, n=36, sets=("strong",))
    settings = replace(SETTINGS, models="logistic,vote")
    result = tune_experiment(Experiment.open(root), settings)
    assert result.ensemble is None
    assert "There is no vote" in str(result)


def test_of_equals_a_single_model_wins(voted):
    task = open_task(voted[0])
    candidate = Candidate("strong", "logistic", {})
    alone = EvaluatedCandidate(candidate, FitOutputs(np.ones(1)), 0.5, None)
    vote = Ensemble("vote", (alone, alone), None, alone.outputs, 0.5, None)
    assert task.select_winner([alone], vote) is alone
    assert task.select_winner([alone], replace(vote, value=0.6)).name == "vote"
