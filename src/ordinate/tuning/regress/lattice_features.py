"""Lattice features: whether a row lies on a regular grid of inputs, as one more feature.

Rows often come from two sources, such as a lattice of round values and points between them, and
the sources may differ in more than their inputs. Whether all values of a row are among those that
repeat in training tells them apart. Whether models gain by that, held-out rows decide: a smooth
model is fitted with this feature and without it.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np

from ordinate.tuning.models.regressors import find_model_type
from ordinate.tuning.regress.fitting import Lattice, LatticeFinding, RegressorFit
from ordinate.tuning.regress.splits import assign_unit_ids
from ordinate.tuning.regress.task import RegressionTask
from ordinate.tuning.search.fits import Floats, OutOfTime, Record, load_or_compute, run_fit
from ordinate.tuning.search.task import Candidate

# Smooth, so that it cannot tell a lattice by itself, as trees can; it learns what telling is worth.
LATTICE_MODEL = "gp"
QUICK_PARAMS = {"rows": 300}
# of rows on the lattice: with fewer on either side there is nothing to tell
LEAST_SHARE, MOST_SHARE = 0.05, 0.95
MOST_ROWS = 2_000  # rows on which it is evaluated


# --- whether it is of use ------------------------------------------------------------------------


def detect_lattice(task: RegressionTask) -> LatticeFinding | None:
    """Return what the rows that are not for the test show of a lattice, if there is one.

    It is not used where there was no time to evaluate it.
    """
    option, rows = task.settings.lattice, task.known
    if option == "never":
        return None
    features = task.table.features[rows]
    share = float(Lattice.fit(features).mark_rows(features).mean())
    if option == "always":
        return LatticeFinding(share, used=True)
    if not LEAST_SHARE <= share <= MOST_SHARE:
        return None
    by = {"judge": LATTICE_MODEL, "most": MOST_ROWS} | QUICK_PARAMS
    path = task.locate_result("lattices", f"{task.compute_digest(**by)}.json")
    try:  # once: a search that goes on decides alike, in however little time
        record = load_or_compute(path, bool, lambda: _evaluate_lattice(task, share))
    except OutOfTime:
        return LatticeFinding(share, used=False)
    return LatticeFinding(**record) if record else None


def _evaluate_lattice(task: RegressionTask, share: float) -> Record:
    """Fit a smooth model that is told, and one that is not, on the same folds.

    The one that is told also says what it would predict for each row on the other side. Where too
    few folds are left, nothing is found, nor stored.
    """
    small = _reduce_task(task)
    if small is None:
        return {"final": False}
    aware = replace(small, lattice=LatticeFinding(share, used=True))
    params = dict(find_model_type(LATTICE_MODEL).defaults) | QUICK_PARAMS
    candidate = Candidate("", LATTICE_MODEL, params)
    fits = [small.make_fold_fits(candidate), aware.make_fold_fits(candidate)]
    fits.append([replace(fit, flipped=True) for fit in fits[1]])
    untold, told, other = (_predict_held_out(task, some) for some in fits)
    features = small.table.features
    on = Lattice.fit(features[small.known]).mark_rows(features[small.held_out])
    gap = float(np.median(np.where(on, told - other, other - told)))
    knowing, unknowing = (np.abs(predicted - small.targets) for predicted in (told, untold))
    better = _improves_significantly(small, unknowing, knowing)
    chance = bool(knowing.mean() < unknowing.mean()) and not better
    means = float(knowing.mean()), float(unknowing.mean())
    return asdict(LatticeFinding(share, better, *means, gap, chance))


def _improves_significantly(task: RegressionTask, untold: Floats, told: Floats) -> bool:
    """Tell whether errors shrink by more than the standard error of that; groups stay whole.

    Errors are absolute ones: were they squared, the few rows that nobody can predict would decide.
    """
    gains = untold - told
    units = np.arange(len(gains)) if task.groups is None else task.groups.astype(str)
    sums = np.bincount(np.unique(units, return_inverse=True)[1].reshape(-1), gains)
    if len(sums) < 2:
        return False
    return bool(sums.sum() > np.sqrt(len(sums)) * sums.std(ddof=1))


def _reduce_task(task: RegressionTask) -> RegressionTask | None:
    """Return the task with no more rows than an evaluation needs, if these allow any folds.

    Rows that are apart stay apart.
    """
    split, share = task.split, min(1.0, MOST_ROWS / len(task.known))
    train = split.train[: max(2, int(share * len(split.train)))]
    validation = split.validation
    if not task.apart:
        validation = validation[: max(min(2, len(validation)), int(share * len(validation)))]
    split = replace(split, train=train, validation=validation, test=split.test[:0])
    settings = task.settings
    if settings.folds:
        units = assign_unit_ids(task.table, train if task.apart else split.known)
        folds = min(settings.folds, int(units.max()) + 1)
        if folds < 2:
            return None
        settings = replace(settings, folds=folds)
    return replace(task, split=split, settings=settings, best_trials={})


def _predict_held_out(task: RegressionTask, fits: Sequence[RegressorFit]) -> Floats:
    end = task.budget.end
    made = task.workers.map(run_fit, [replace(fit, end=end, checkpoint=None) for fit in fits])
    return np.concatenate([outputs.predictions for outputs in made])
