"""The bench: the table, its folds and the workers with which candidates are tried alike."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ordinate.experiment.layout import CHECKPOINTS
from ordinate.experiment.safe_files import compute_digest, resolve_inside
from ordinate.experiment.workers import WorkerPool
from ordinate.metrics import find_metric
from ordinate.models.regressors import find_model_type
from ordinate.regress.fitting import DATA_KEY, FitProgress, FitTask, Floats, Rows, TrainingArrays
from ordinate.regress.model_inputs import ExtraFeatureFit
from ordinate.regress.settings import Settings
from ordinate.regress.splits import LARGE_GROUP_FACTOR, Split, assign_unit_ids, split_k_fold
from ordinate.regress.table import Table
from ordinate.render.estimates import format_number
from ordinate.summaries.regression import Moments

ProgressCallback = Callable[
    [str, float, str], None
]  # the stage, its share that is done, what else to say

CACHE_VERSION = (
    4  # of what is kept between runs: raise it when the same settings give other numbers
)
ENOUGH_VALIDATION_ROWS = 50  # validation rows, or groups of them: fewer are no measure of intervals
EARLY_STOPPING_SHARE = 0.1  # of the rows of a fit, by which it stops early


def ignore_progress(stage: str, share: float, detail: str) -> None:
    """Say nothing."""
    del stage, share, detail


class Candidate(NamedTuple):
    """A model type with its parameters."""

    model_type: str
    params: dict[str, Any]


class BestTrial(NamedTuple):
    """The best trial of a study that this run has made itself."""

    value: float
    params: dict[str, Any]
    predictions: Floats
    spread: Floats | None


@dataclass(frozen=True, eq=False)
class Bench:
    """Where candidates are tried: every one on the same folds of the same rows.

    With folds, rows are held out in turn; without, the validation rows are. Where there are enough
    validation rows, they stay apart from all that: they calibrate the intervals of the saved
    models, which have not seen them, and nothing else. Workers never see the target of a row that
    is for the test, or apart.
    """

    root: Path
    table: Table
    split: Split
    settings: Settings
    workers: WorkerPool
    tell: ProgressCallback = ignore_progress
    unit: str | None = None
    shift: Split | None = None  # whose test rows are the extreme region
    extra: ExtraFeatureFit | None = None  # one more feature that models are given
    made: dict[str, BestTrial] = field(default_factory=dict, repr=False)  # by model type

    def __post_init__(self) -> None:
        """Send the workers what they need, without the targets of test rows."""
        targets = np.full(len(self.table), np.nan)
        targets[self.known] = self.table.target[self.known]
        self.workers.keep(DATA_KEY, TrainingArrays(self.table.features, targets))

    @property
    def apart(self) -> bool:
        """Whether validation rows are for the intervals alone."""
        return (
            bool(self.settings.folds)
            and self._count_units(self.split.validation) >= ENOUGH_VALIDATION_ROWS
        )

    def _count_units(self, rows: Rows) -> int:
        """Return how many rows there are, or groups: rows of one group tell the same again."""
        groups = self.table.groups
        return len(rows) if groups is None else len(np.unique(groups[rows].astype(str)))

    @property
    def known(self) -> Rows:
        """The rows that are learned from and chosen by."""
        return self.split.train if self.apart else self.split.known

    @cached_property
    def folds(self) -> list[Split]:
        """Which rows are fitted on and which are held out, fold by fold."""
        if not self.settings.folds:
            return [self.split]
        nothing = self.split.validation[:0]
        known = replace(self.split, train=self.known, validation=nothing)
        return split_k_fold(self.table, self.settings.folds, self.settings.seed, of=known)

    @cached_property
    def held_out(self) -> Rows:
        """The rows that are held out, fold after fold: the order of all held-out predictions."""
        return np.concatenate([fold.validation for fold in self.folds])

    @cached_property
    def places(self) -> list[Rows]:
        """Where the rows of each fold stand among those."""
        ends = np.cumsum([len(fold.validation) for fold in self.folds])
        return [
            np.arange(end - len(fold.validation), end)
            for end, fold in zip(ends, self.folds, strict=True)
        ]

    @cached_property
    def targets(self) -> Floats:
        """The targets of the held-out rows."""
        return self.table.target[self.held_out]

    @property
    def groups(self) -> Any:
        """The groups of the held-out rows, if there are any."""
        return None if self.table.groups is None else self.table.groups[self.held_out]

    def rmse(self, predictions: Floats) -> float:
        """Return the RMSE of the predictions for the first held-out rows, or for all."""
        return float(find_metric("rmse", Moments)(self.moments(predictions)))

    def moments(self, predictions: Floats) -> Moments:
        """Sum up predictions for the first held-out rows, or for all."""
        return Moments.of(self.targets[: len(predictions)], predictions)

    # --- fits --------------------------------------------------------------------------------

    def tasks(self, candidate: Candidate) -> list[FitTask]:
        """Return the fit of each fold, which predicts its held-out rows and those of the test."""
        return [
            self._fit(candidate, fold.train, k, (fold.validation, self.split.test))
            for k, fold in enumerate(self.folds)
        ]

    def make_final_fit(self, candidate: Candidate, folder: str) -> FitTask:
        """Return the last fit of a candidate, on all rows that are known.

        It predicts the rows that are apart, if they are. Without folds it is the fit that was
        evaluated by the validation rows, which calibrate its intervals.
        """
        if not self.settings.folds:
            return self._fit(candidate, self.split.train, 0, (), folder)
        predict_rows = (self.split.validation,) if self.apart else ()
        return self._fit(candidate, np.sort(self.known), len(self.folds), predict_rows, folder)

    def _fit(
        self,
        candidate: Candidate,
        rows: Rows,
        number: int,
        predict_rows: tuple[Rows, ...],
        folder: str | None = None,
    ) -> FitTask:
        learned, stop = self._split_early_stopping(rows, number)
        return FitTask(
            *candidate,
            self.settings.seed,
            learned,
            stop,
            predict_rows,
            self.extra,
            folder,
            checkpoint=self._locate_checkpoint(candidate, number),
        )

    def _locate_checkpoint(self, candidate: Candidate, number: int) -> str | None:
        if not find_model_type(candidate.model_type).resumable:
            return None
        name = f"{self.name_model(candidate)}-{number}.safetensors"
        return str(resolve_inside(self.root, CHECKPOINTS, name))

    def _split_early_stopping(self, rows: Rows, number: int) -> tuple[Rows, Rows]:
        """Return the rows of a fit, and those of them by which it stops early.

        These come from the rows of the fit, so that held-out rows decide nothing in it. Groups
        stay whole, and rows of equal features together; one that is far too large is learned from.
        """
        rng = np.random.default_rng([self.settings.seed, number])
        codes = assign_unit_ids(self.table, rows)
        sizes = np.bincount(codes)
        target_rows = max(1, round(EARLY_STOPPING_SHARE * len(rows)))
        order = rng.permutation(len(sizes))
        order = order[sizes[order] <= max(LARGE_GROUP_FACTOR * target_rows, sizes.min())]
        last = int(np.argmin(np.abs(np.cumsum(sizes[order]) - target_rows)))
        stopping = np.isin(codes, order[: min(last + 1, len(sizes) - 1)])
        return rows[~stopping], rows[stopping]

    def cache_predictions(self, candidate: Candidate, made: BestTrial) -> None:
        """Keep what the best trial of a model type so far predicts, to spare its fits."""
        if (
            candidate.model_type not in self.made
            or made.value < self.made[candidate.model_type].value
        ):
            self.made[candidate.model_type] = made

    def get_cached_predictions(self, candidate: Candidate) -> BestTrial | None:
        """Return what a candidate predicts, if it is at hand."""
        made = self.made.get(candidate.model_type)
        return made if made and made.params == candidate.params else None

    # --- words ---------------------------------------------------------------------------------

    def format_in_unit(self, value: float) -> str:
        """Return a number with the unit of the target."""
        return f"{format_number(value)} {self.unit}" if self.unit else format_number(value)

    def format_step(self, step: FitProgress) -> str:
        """Say how far a fit is."""
        return f"{step.what}: RMSE {self.format_in_unit(step.rmse)}"

    # --- names -------------------------------------------------------------------------------

    @cached_property
    def identity(self) -> dict[str, Any]:
        """All that decides what a candidate is worth: the data, the folds, the seed.

        Targets of rows for a test are left out: nothing that is named by this depends on them.
        """
        rows = {name: rows.tolist() for name, rows in self.split.parts.items()}
        return {
            "form": CACHE_VERSION,
            "data": self.table.fingerprint_without_targets(np.sort(self.split.known)),
            "rows": compute_digest(rows),
            "folds": self.settings.folds,
            "seed": self.settings.seed,
            "lattice": self.extra is not None,
            "apart": self.apart,
        }

    def code(self, further: Mapping[str, Any]) -> str:
        """Return a short name of that, and of what else is to be named."""
        return compute_digest(self.identity | dict(further))

    def name_model(self, candidate: Candidate) -> str:
        """Return the name of a model: its data and all its settings decide it."""
        facts = {"kind": candidate.model_type, "params": candidate.params}
        stored = {"unit": self.unit, "alpha": self.settings.alpha}  # with it
        return f"{candidate.model_type}-{self.code({**facts, **stored})}"
