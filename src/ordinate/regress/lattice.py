"""Whether rows on a lattice differ from the others, as rows that were held out tell."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from ordinate.errors import BadStore
from ordinate.experiment.layout import LATTICES
from ordinate.experiment.safe_files import resolve_inside, write_json
from ordinate.experiment.stored_json import read_json
from ordinate.models.regressors import find_model_type
from ordinate.regress.bench import Bench, Candidate
from ordinate.regress.fitting import FitTask, Floats, OutOfTime, fit_model
from ordinate.regress.model_inputs import Lattice
from ordinate.regress.splits import Split, assign_unit_ids
from ordinate.render.estimates import format_number

# Smooth, so that it cannot tell a lattice by itself, as trees can; it learns what telling is worth.
LATTICE_MODEL = "gp"
QUICK_PARAMS = {"rows": 300}
LATTICE_SHARES = (
    0.05,
    0.95,
)  # of rows on the lattice: with fewer on either side there is nothing to tell
MOST_ROWS = 2_000  # rows on which it is judged
REQUESTED_NOTE = "Models are told which, as was asked."
NO_TIME_NOTE = (
    "There was no time to look whether that matters, so models are not told. Give more time, or "
    "decide without looking: --lattice always, or never."
)


@dataclass(frozen=True)
class LatticeFinding:
    """What is known of a lattice: the share of rows on it, and what telling it is worth."""

    share: float
    used: bool
    told: float = float("nan")  # mean absolute error of a smooth model that is told
    untold: float = float("nan")
    gap: float = float("nan")  # the target on the lattice less that beside it, at like inputs
    chance: bool = False  # whether what is gained is no more than its standard error

    def note(self, unit: str | None) -> str:
        """Say what was found, and what was done."""
        of = f" {unit}" if unit else ""
        head = f"{self.share:.0%} of the rows lie on a lattice: each of their values repeats."
        if np.isnan(self.told):
            return f"{head} {REQUESTED_NOTE if self.used else NO_TIME_NOTE}"
        side = "lower" if self.gap < 0 else "higher"
        judged = (
            f"On it the target is {side} by {format_number(abs(self.gap))}{of} at the same inputs "
            f"(median), and a smooth model that is told has MAE {format_number(self.told)} instead "
            f"of {format_number(self.untold)}{of} on held-out rows."
        )
        done = (
            "So models are told which rows these are: it says where rows come from, and is no law."
            if self.used
            else "Models are not told."
            if not self.chance
            else "Models are not told: the gain is no more than its standard error."
        )
        return f"{head} {judged} {done}"


def detect_lattice(bench: Bench, end: float | None = None) -> LatticeFinding | None:
    """Return what the rows that are not for the test show of a lattice, if there is one.

    It is not used where there was no time to judge it.
    """
    asked, rows = bench.settings.lattice, bench.known
    if asked == "never":
        return None
    features = bench.table.features[rows]
    share = float(Lattice.fit(features).contains_rows(features).mean())
    if asked == "always":
        return LatticeFinding(share, used=True)
    if not LATTICE_SHARES[0] <= share <= LATTICE_SHARES[1]:
        return None
    try:
        return _evaluate_once(bench, share, end)
    except OutOfTime:
        return LatticeFinding(share, used=False)


def _evaluate_once(bench: Bench, share: float, end: float | None) -> LatticeFinding | None:
    """Judge, and keep it: whoever goes on with a search decides alike, however little time is left.

    Where there was no time nothing is kept, so the next run looks again.
    """
    by = {"judge": LATTICE_MODEL, "most": MOST_ROWS} | QUICK_PARAMS
    path = resolve_inside(bench.root, LATTICES, f"{bench.code(by)}.json")
    found = _load_finding(path)
    if found is None:
        found = _evaluate_lattice(bench, share, end)
        if found is not None:
            write_json(path, asdict(found))
    return found


def _load_finding(path: Path) -> LatticeFinding | None:
    """Return what an earlier run found, if that is there and whole."""
    try:
        return read_json(path, LatticeFinding)
    except BadStore:
        return None


def _evaluate_lattice(bench: Bench, share: float, end: float | None) -> LatticeFinding | None:
    """Fit a smooth model that is told, and one that is not, on the same parts.

    The one that is told also says what it would predict for each row on the other side.
    """
    small = _reduce_bench(bench)
    if small is None:
        return None
    aware = replace(small, lattice=True)
    candidate = Candidate(
        LATTICE_MODEL, dict(find_model_type(LATTICE_MODEL).defaults) | QUICK_PARAMS
    )
    fits = [small.tasks(candidate), aware.tasks(candidate)]
    fits.append([replace(task, flipped=True) for task in fits[1]])
    untold, told, other = (_predict_held_out(bench, tasks, end) for tasks in fits)
    features = small.table.features
    on = Lattice.fit(features[small.known]).contains_rows(features[small.held])
    gap = float(np.median(np.where(on, told - other, other - told)))
    knowing, unknowing = (np.abs(answer - small.targets) for answer in (told, untold))
    better = _improves_significantly(small, unknowing, knowing)
    chance = bool(knowing.mean() < unknowing.mean()) and not better
    return LatticeFinding(
        share, better, float(knowing.mean()), float(unknowing.mean()), gap, chance
    )


def _improves_significantly(bench: Bench, untold: Floats, told: Floats) -> bool:
    """Tell whether errors shrink by more than the standard error of that; groups stay whole.

    Errors are absolute ones: were they squared, the few rows that nobody can predict would decide.
    """
    gains = untold - told
    units = np.arange(len(gains)) if bench.groups is None else bench.groups.astype(str)
    sums = np.bincount(np.unique(units, return_inverse=True)[1].reshape(-1), gains)
    if len(sums) < 2:
        return False
    return bool(sums.sum() > np.sqrt(len(sums)) * sums.std(ddof=1))


def _reduce_bench(bench: Bench) -> Bench | None:
    """Return the bench with fewer rows, and no more folds than these allow, if they allow any."""
    split = _subsample_split(bench)
    if not bench.settings.folds:
        return replace(bench, split=split, made={})
    rows = split.train if bench.apart else split.known
    folds = min(bench.settings.folds, int(assign_unit_ids(bench.table, rows).max()) + 1)
    if folds < 2:
        return None
    settings = replace(bench.settings, folds=folds)
    return replace(bench, split=split, settings=settings, made={})


def _subsample_split(bench: Bench) -> Split:
    """Return the split with no more rows than a judgement needs; rows apart stay apart."""
    split, room = bench.split, min(1.0, MOST_ROWS / len(bench.known))
    train = split.train[: max(2, int(room * len(split.train)))]
    validation = split.validation
    if not bench.apart:
        validation = validation[: max(min(2, len(validation)), int(room * len(validation)))]
    return replace(split, train=train, validation=validation, test=split.test[:0])


def _predict_held_out(bench: Bench, tasks: list[FitTask], end: float | None) -> Floats:
    found = bench.workers.map(fit_model, [replace(task, end=end) for task in tasks])
    return np.concatenate([one.predictions[0] for one in found])
