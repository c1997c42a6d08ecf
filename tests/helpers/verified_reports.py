"""Small reports: some for each summary that a report is recomputed from, some without any."""

import numpy as np

import ordinate
from ordinate.inference import ConfidenceIntervals
from ordinate.meta.meta_evaluation import evaluate_metrics
from ordinate.meta.property_verdicts import PropertyVerdicts
from ordinate.metrics import find_metric
from ordinate.results.base import Result
from ordinate.results.case_scales import evaluate_cases
from ordinate.results.distribution_shift import evaluate_shift
from ordinate.results.residuals import analyse_residuals
from ordinate.results.verification import read_report
from ordinate.summaries import Panel

LEVELS = ["A1", "A2", "B1", "B2"]
QUICK = ConfidenceIntervals(resamples=100)
RNG = np.random.default_rng(3)
CODES = RNG.integers(0, 4, 60)
GOLD = [LEVELS[k] for k in CODES]
NEAR, FAR = (
    [LEVELS[k] for k in np.clip(CODES + RNG.integers(-s, s + 1, 60), 0, 3)] for s in (1, 2)
)
GROUPS = [f"g{k % 8}" for k in range(60)]
ROWS = RNG.dirichlet(np.ones(4), 60).round(3)
ROWS[:, 3] = 1.0 - ROWS[:, :3].sum(axis=1)
Y = RNG.normal(50.0, 9.0, 60).round(2)
P, Q = (Y + RNG.normal(0.0, s, 60).round(2) for s in (3.0, 5.0))


def evaluate_all():
    return ordinate.evaluate(
        GOLD, NEAR, "A1,A2,B1,B2", "mae,cem_ord,brier", by=["x", "y"] * 30, second_rater=FAR,
        error_attribution="mae", probabilities=ROWS, interval=QUICK,
    )  # fmt: skip


def compare_all():
    return ordinate.compare(
        GOLD, {"near": NEAR, "far": FAR}, "A1,A2,B1,B2", "mae,accuracy", average_over=GROUPS,
        interval=QUICK,
    )  # fmt: skip


def evaluate_regression_all(**options):
    return ordinate.evaluate_regression(
        Y, P, by=GROUPS[:4] * 15, lower=P - 4, upper=P + 4, unit="kg", order=np.arange(60),
        interval=QUICK, **options,
    )  # fmt: skip


def evaluate_shifted():
    inside, shifted = (
        ordinate.evaluate_regression(y, p, interval=QUICK) for y, p in ((Y, P), (Y + 20, Q + 20))
    )
    return evaluate_shift(inside, shifted, {"size": (Y, Y + 3)})


MAKERS = {
    "evaluation": evaluate_all,
    "clusters": lambda: ordinate.evaluate(
        GOLD,
        NEAR,
        "A1,A2,B1,B2",
        "mae",
        by=[None, 2, "2", True] * 15,
        groups=GROUPS,
        interval=QUICK,
    ),
    "cases": lambda: ordinate.evaluate(
        GOLD, NEAR, "A1,A2,B1,B2", "mae,f1_macro", average_over=GROUPS, interval=QUICK
    ),
    "scaled cases": lambda: evaluate_cases(
        [0, 3, 1, 20, 55, 60],
        [0, 2, 1, 30, 50, 60],
        ["p1"] * 3 + ["p2"] * 3,
        {"p1": "0..3", "p2": "0..60"},
        "quadratic_kappa",
    ),
    "comparison": compare_all,
    "calibration": lambda: ordinate.Calibration.of(GOLD, ROWS, scale="A1,A2,B1,B2", bins=5),
    "recalibration": lambda: ordinate.RecalibrationEvaluation.of(
        GOLD, ROWS, ROWS[::-1], scale="A1,A2,B1,B2", metrics="brier,ece"
    ),
    "regression": evaluate_regression_all,
    "clustered regression": lambda: evaluate_regression_all(groups=GROUPS, metrics="rmse,mae"),
    "regression comparison": lambda: ordinate.compare(target=Y, systems={"p": P, "q": Q}),
    "residuals": lambda: analyse_residuals(Y, P, {"q": Q, "group": GROUPS}),
    "shift": evaluate_shifted,
    "plan": lambda: ordinate.power(
        GOLD, {"near": NEAR, "far": FAR}, "mae", scale="A1,A2,B1,B2", difference=0.1, resamples=100
    ),
    "meta-evaluation": lambda: evaluate_metrics(
        Panel.of(GOLD, {"near": NEAR, "far": FAR, "gold": GOLD}, "A1,A2,B1,B2"),
        "mae,accuracy",
        cases=4,
        resamples=100,
    ),
    "properties": lambda: PropertyVerdicts.of([find_metric("mae"), find_metric("cem_ord")]),
}
# Of these, every number is recomputed from a summary.
RECOMPUTED = {
    "evaluation", "clusters", "cases", "scaled cases", "comparison", "calibration",
    "recalibration", "clustered regression", "plan", "meta-evaluation",
}  # fmt: skip
made: dict[str, Result] = {}


def make(kind):
    if kind not in made:
        made[kind] = MAKERS[kind]()
    return made[kind]


def change_digit(text, place):
    """Return a text with another digit at a place."""
    return text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :]


def compare_reports(shown, recomputed):
    return read_report(shown).list_differences(recomputed)
