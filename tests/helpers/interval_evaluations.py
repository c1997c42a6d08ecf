"""Evaluations with confidence intervals, and what is equal of two."""

from panels import labels, sampled
from strategies import scale_of

from ordinate.inference import ConfidenceIntervals
from ordinate.results.label_evaluation import evaluate

SIZE, N = 4, 300
SCALE = scale_of(SIZE)
GOLD, SYSTEMS = sampled(SIZE, N, 3, [0.7, 0.4])
ANSWERS, SECOND = SYSTEMS.values()
QUICK = ConfidenceIntervals(resamples=200, seed=4)
SOME = "mae,quadratic_kappa,macro_mae,purity,min_sensitivity,accuracy"


def evaluated(gold=GOLD, answers=ANSWERS, metrics=SOME, **options):
    options = {"scale": SCALE, "interval": QUICK} | options
    return evaluate(labels(gold), labels(answers), metrics=metrics, **options)


def estimates(result):
    return {name: score.estimate for name, score in result.metrics.items()}


def without(column, places):
    return [None if k in places else x for k, x in enumerate(column)]
