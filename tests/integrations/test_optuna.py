"""Optuna studies of a metric: their direction, their values, and their end."""

import numpy as np
import optuna
import pytest

import ordinate
from ordinate.integrations.optuna import Objective, StopAtBound, create_study

GOLD = ["low", "mid", "high", "mid"]
LEVELS = ["low", "mid", "high"]


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def predict_level(trial):
    return [trial.suggest_categorical("level", LEVELS)] * 4


@pytest.mark.parametrize("metric", ["mae", "cem_ord", "bias"])
def test_a_study_finds_the_best_constant(metric):
    study = create_study(metric, sampler=optuna.samplers.GridSampler({"level": LEVELS}))
    study.optimize(Objective(predict_level, GOLD, metric, LEVELS))
    assert study.best_params == {"level": "mid"}
    assert len(study.trials) == 3
    expected = ordinate.score(metric, GOLD, ["mid"] * 4, scale=LEVELS)
    assert study.best_value == pytest.approx(float(expected))


def test_bias_counts_by_its_distance_from_0():
    objective = Objective(lambda _: ["low"] * 4, GOLD, "bias", LEVELS)
    assert objective(create_study("bias").ask()) == 1.0


def test_rows_of_probabilities_are_scored():
    rows = np.eye(3)[[0, 1, 1, 1]]
    objective = Objective(lambda _: rows, GOLD, "brier", LEVELS, columns="scale")
    assert objective(create_study("brier").ask()) == pytest.approx(0.5)  # 2 / 4


def test_columns_that_an_iterator_names_are_those_of_every_trial():
    rows, study = np.eye(3)[[1, 2, 0, 2]], create_study("brier")
    objective = Objective(lambda _: rows, GOLD, "brier", LEVELS, columns=iter(sorted(LEVELS)))
    assert [objective(study.ask()) for _ in range(2)] == [0.0, 0.0]


def test_an_undefined_trial_fails_and_says_why():
    study = create_study("kendall_tau_b")
    study.optimize(Objective(lambda _: ["mid"] * 4, GOLD, "kendall_tau_b", LEVELS), n_trials=1)
    (trial,) = study.trials
    assert trial.state.name == "FAIL"
    assert trial.user_attrs["undefined"]


def test_a_study_stops_at_the_best_possible_value():
    study = create_study("mae")
    answers = iter([["low"] * 4, GOLD, GOLD])
    objective = Objective(lambda _: next(answers), GOLD, "mae", LEVELS)
    study.optimize(objective, n_trials=3, callbacks=[StopAtBound("mae")])
    assert [trial.value for trial in study.trials] == [1.0, 0.0]
