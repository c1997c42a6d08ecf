"""The regression task: from a table to models and intervals in the unit of its target."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from ordinate.errors import BadInput
from ordinate.inference.estimates import to_json_number
from ordinate.metrics import find_metric
from ordinate.render.estimates import format_with_unit
from ordinate.render.reserved_paths import MODELS
from ordinate.results.regression import RegressionEvaluation
from ordinate.results.regression_comparison import ModelItems, compare_models
from ordinate.results.regression_sources import evaluate_regression
from ordinate.scale.encoding import factorize_column
from ordinate.summaries.normalization import Normalization
from ordinate.summaries.regression import TRAIN_MEAN, Moments
from ordinate.tuning.experiment.safe_files import compute_digest, resolve_inside
from ordinate.tuning.models.regressors import find_model_type
from ordinate.tuning.regress.blend import Blend, blend_out_of_fold
from ordinate.tuning.regress.fitting import (
    DATA_KEY,
    Floats,
    LatticeFinding,
    RegressorFit,
    Rows,
    TrainingArrays,
    check_targets_vary,
)
from ordinate.tuning.regress.prediction_intervals import (
    IntervalCalibration,
    compute_spread,
    load_calibration,
    select_floor,
    stack_member_spreads,
)
from ordinate.tuning.regress.row_checks import SHIFTED_PART, find_duplicates, find_outliers
from ordinate.tuning.regress.settings import Settings
from ordinate.tuning.regress.splits import (
    LARGE_GROUP_FACTOR,
    Split,
    assign_unit_ids,
    check_folds,
    split_by_shift,
    split_k_fold,
    split_table,
)
from ordinate.tuning.regress.table import Table
from ordinate.tuning.regress.trained_model import load_regression_model
from ordinate.tuning.regress.tuning_report import RegressionReport, TableSummary
from ordinate.tuning.search.fits import Fit, FitOutputs
from ordinate.tuning.search.studies import SearchSpace
from ordinate.tuning.search.task import (
    DISTRIBUTIONS,
    Candidate,
    Ensemble,
    EvaluatedCandidate,
    Score,
    Selected,
    StudyKey,
    Task,
)
from ordinate.tuning.search.tuning_result import Finalist, HeldOutResult

BLEND, TEST_PART = "blend", "test"
CACHE_VERSION = 4  # of what runs cache: raise it when the same settings give other numbers
ENOUGH_VALIDATION_ROWS = 50  # validation rows, or groups of them: fewer are no measure of intervals
EARLY_STOPPING_SHARE = 0.1  # of the rows of a fit, by which it stops early
STORED_ERRORS = ("mae", "r2", "relative_accuracy", "baseline_rmse")  # of trials, beside the RMSE
FEWEST_ROWS = 4  # rows to learn from and to choose by


@dataclass(frozen=True, eq=False, kw_only=True)
class RegressionTask(Task):
    """Where candidates are tried: every one on the same folds of the same rows.

    With folds, rows are held out in turn; without, the validation rows are. Where there are enough
    validation rows, they stay apart from all that: they calibrate the intervals of the saved
    models, which have not seen them, and nothing else. Workers never see the target of a row that
    is for the test, or apart.
    """

    name = "regression"

    settings: Settings
    table: Table
    split: Split
    shift: Split | None = None  # whose test rows are the extreme region
    unit: str | None = None
    find_lattice: Callable[[Self], LatticeFinding | None]  # once rows and workers are known
    lattice: LatticeFinding | None = None

    def __post_init__(self) -> None:
        """Send the workers what they need, without the targets of test rows."""
        targets = np.full(len(self.table), np.nan)
        targets[self.known] = self.table.target[self.known]
        self.workers.keep(DATA_KEY, TrainingArrays(self.table.features, targets))

    def prepare(self) -> Self:
        """Return the task once it is known whether models are told of a lattice."""
        return replace(self, lattice=self.find_lattice(self))

    @property
    def tells_lattice(self) -> bool:
        """Whether models are told which rows lie on a lattice."""
        return self.lattice is not None and self.lattice.used

    # --- rows --------------------------------------------------------------------------------

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
    def fold_splits(self) -> list[Split]:
        """Which rows are fitted on and which are held out, fold by fold."""
        if not self.settings.folds:
            return [self.split]
        nothing = self.split.validation[:0]
        known = replace(self.split, train=self.known, validation=nothing)
        return split_k_fold(self.table, self.settings.folds, self.settings.seed, of=known)

    @cached_property
    def held_out(self) -> Rows:
        """The rows that are held out, fold after fold: the order of all held-out predictions."""
        return np.concatenate([fold.validation for fold in self.fold_splits])

    @cached_property
    def folds(self) -> Sequence[Rows]:
        """Where the rows of each fold stand among those."""
        ends = np.cumsum([len(fold.validation) for fold in self.fold_splits])
        return [
            np.arange(end - len(fold.validation), end)
            for end, fold in zip(ends, self.fold_splits, strict=True)
        ]

    @cached_property
    def targets(self) -> Floats:
        """The targets of the held-out rows."""
        return self.table.target[self.held_out]

    @property
    def groups(self) -> Any:
        """The groups of the held-out rows, if there are any."""
        return None if self.table.groups is None else self.table.groups[self.held_out]

    def get_rows(self, places: Rows) -> Rows:
        """Return the rows of the table at some places among those that are held out."""
        return self.held_out[places]

    def restrict_to_rest(self, fold: Rows, subset: str) -> Self:
        """Return the task without the rows of a fold; what is apart stays away from it."""
        rest = self.known[~np.isin(self.known, self.get_rows(fold))]
        nothing = self.split.test[:0]
        split = replace(self.split, train=rest, validation=nothing, test=nothing)
        return replace(
            self,
            split=split,
            shift=None,
            subset=subset,
            best_trials={},
            lattice=None,
        )

    # --- inputs and fits ---------------------------------------------------------------------

    def describe_input(self, name: str) -> dict[str, Any]:
        """Return what a report says of the table."""
        return {"set": name or "table", "features": len(self.table.names)}

    def get_space(self, model_type: str) -> tuple[SearchSpace, Sequence[dict[str, Any]]]:
        """Return the search space of a regressor, and its defaults."""
        known, options = find_model_type(model_type), self.settings.get_training_options(model_type)
        return lambda trial: known.space(trial) | options, [dict(known.defaults)]

    def make_fold_fits(self, candidate: Candidate) -> Sequence[RegressorFit]:
        """Return the fit of each fold, which predicts its held-out rows."""
        return [
            self.make_fit(candidate, fold.train, fold.validation, number)
            for number, fold in enumerate(self.fold_splits)
        ]

    def make_final_fit(self, candidate: Candidate, folder: str | None, new: Rows | None) -> Fit:
        """Return the last fit of a candidate, on all rows that are known.

        It predicts the rows that are apart, if they are. Without folds it is the fit that was
        evaluated by the validation rows, which calibrate its intervals.
        """
        if not self.settings.folds:
            fit = self.make_fit(candidate, self.split.train, new)
        else:
            rows = self.split.validation if new is None and self.apart else new
            fit = self.make_fit(candidate, np.sort(self.known), rows, len(self.folds))
        return replace(fit, folder=folder)

    def make_fit(
        self, candidate: Candidate, rows: Rows, new: Rows | None, number: int = 0
    ) -> RegressorFit:
        """Return a fit on some rows, a few of which, by its number, only say when to stop."""
        learned, stop = self._split_early_stopping(rows, number)
        return RegressorFit(
            model_type=candidate.model_type,
            params=candidate.params,
            seed=self.settings.seed,
            rows=learned,
            stop=stop,
            new=new,
            lattice=self.tells_lattice,
            checkpoint=self.locate_checkpoint(candidate, number),
        )

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

    # --- values ------------------------------------------------------------------------------

    @property
    def metric(self) -> str:
        """Models are selected by their RMSE."""
        return "RMSE"

    def compute_rmse(self, predictions: Floats) -> float:
        """Return the RMSE of the predictions for the first held-out rows, or for all."""
        moments = Moments.of(self.targets[: len(predictions)], predictions)
        return float(find_metric("rmse", Moments)(moments))

    def compute_interim_objective(self, folds: Sequence[FitOutputs]) -> float:
        """Return the RMSE of the folds that are done."""
        return self.compute_rmse(np.concatenate([one.predictions for one in folds]))

    @property
    def normalization(self) -> Normalization:
        """The mean and the standard deviation of the training targets."""
        return Normalization.fit(self.table.target[self.split.train])

    def score(self, predictions: Floats) -> Score:
        """Return the RMSE, and as attributes other errors, and the RMSE of the training mean."""
        training = self.normalization
        moments = Moments.of(self.targets, predictions, constants={TRAIN_MEAN: training.mean})
        found = {name: find_metric(name, Moments)(moments) for name in STORED_ERRORS}
        rmse = self.compute_rmse(predictions)
        found["normalized_rmse"] = training.normalize_errors(rmse)
        return Score(rmse, {name: to_json_number(float(x)) for name, x in found.items()})

    def evaluate(self, predictions: Floats) -> RegressionEvaluation:
        """Return what predictions for the held-out rows are worth."""
        return self._evaluate_rows(self.targets, predictions, self.groups)

    def _evaluate_rows(
        self, targets: Floats, predictions: Floats, groups: Any, **bounds: Any
    ) -> RegressionEvaluation:
        return evaluate_regression(
            targets,
            predictions,
            unit=self.unit,
            normalization=self.normalization,
            groups=groups,
            **bounds,
        )

    def format_value(self, value: float) -> str:
        """Return a number with the unit of the target."""
        return format_with_unit(value, self.unit)

    # --- the blend ---------------------------------------------------------------------------

    def make_calibration(self, one: Selected) -> IntervalCalibration:
        """Return the held-out rows, with what a model or a blend predicts for them."""
        return IntervalCalibration(self.targets, one.outputs.predictions, one.outputs.spread)

    def combine(self, candidates: Sequence[EvaluatedCandidate]) -> Ensemble | None:
        """Blend the best of each model type; None where the blend would be one of them."""
        if not self.settings.blends or len(candidates) < 2 or len(self.held_out) < 2:
            return None
        blend = self.blend(candidates)
        if self.settings.blend == "auto" and max(blend.weights) == 1.0:
            return None
        return blend

    def blend(self, members: Sequence[EvaluatedCandidate]) -> Ensemble:
        """Blend models; those of no weight are left out.

        The value is that of predictions whose weights were learned on the other folds, so it can
        be compared with those of the members.
        """
        predictions = np.column_stack([one.outputs.predictions for one in members])
        blend = Blend.fit(predictions, self.targets)
        weighty = blend.weights > 0.0
        if weighty.sum() > 1 and not weighty.all():
            return self.blend([one for one, has in zip(members, weighty, strict=True) if has])
        honest = blend_out_of_fold(predictions, self.targets, self.folds)
        own = stack_member_spreads([self.make_calibration(one) for one in members])
        outputs = FitOutputs(honest, compute_spread(predictions, blend.weights, own))
        weights = tuple(blend.weights.tolist())
        evaluation = self.evaluate(honest)
        value = self.get_value(evaluation)
        return Ensemble(BLEND, tuple(members), blend, outputs, value, evaluation, weights)

    def select_winner(
        self, candidates: Sequence[EvaluatedCandidate], ensemble: Ensemble | None
    ) -> Selected:
        """Return the blend, unless one model is better by more than chance.

        Otherwise the blend is the safer choice: it leans on no model type alone, and a few rows
        that nobody can predict do not decide.
        """
        best = super().select_winner(candidates, None)
        if ensemble is None or self._is_better(best, ensemble):
            return best
        return ensemble

    def _is_better(self, one: Selected, blend: Ensemble) -> bool:
        """Tell whether a model is significantly better than the blend, in RMSE and in MAE."""
        if self.settings.blend == "always" or one.value >= blend.value:
            return False
        columns = {"one": one.outputs.predictions, BLEND: blend.outputs.predictions}
        groups = None if self.groups is None else factorize_column(self.groups)
        found = compare_models(ModelItems(self.targets, columns, groups=groups), ["rmse", "mae"])
        pairs = [pair for board in found.leaderboards.values() for pair in board.pairs]
        return all(pair.first == "one" and pair.verdict == "better" for pair in pairs)

    def predict_new(self, selected: Selected, new: Rows) -> Floats:
        """Fit what was selected on all known rows, and return its predictions for other ones."""
        made = [outputs.predictions for outputs in self.fit_again(selected, new)]
        weights = selected.weights if isinstance(selected, Ensemble) else (1.0,)
        return np.column_stack(made) @ np.array(weights)

    # --- saved models ------------------------------------------------------------------------

    @cached_property
    def identity(self) -> dict[str, Any]:
        """All that decides what a candidate is worth: the data, the folds, the seed.

        Targets of rows for a test are left out: nothing that is named by this depends on them. The
        draws of a search depend on it, so that its keys and values stay as they are.
        """
        rows = {name: rows.tolist() for name, rows in self.split.parts.items()}
        return {
            "form": CACHE_VERSION,
            "data": self.table.fingerprint_without_targets(np.sort(self.split.known)),
            "rows": compute_digest(rows),
            "folds": self.settings.folds,
            "seed": self.settings.seed,
            "lattice": self.tells_lattice,
            "apart": self.apart,
        }

    def compute_digest(self, *inputs: str, **further: Any) -> str:
        """Return a short name of that, and of what else is to be named."""
        if inputs:  # a whole run, which has a test
            further |= {"unit": self.unit, "table": self.table.fingerprint}
        return compute_digest(self.identity | further)

    def name_study(self, key: StudyKey) -> str:
        """Return the name of a study: its rows, folds, seed and model type."""
        further: dict[str, Any] = {
            "kind": key.model_type,
            "given": self.settings.get_training_options(key.model_type),
        }
        given = self.settings.params.get(key.model_type)
        if given is not None:
            further["params"] = compute_digest(given)
        return f"{key.model_type}/{self.compute_digest(**further)}"

    def name_model(self, candidate: Candidate) -> str:
        """Return the name of a model: its data and all its settings decide it."""
        facts = {"kind": candidate.model_type, "params": candidate.params}
        stored = {"unit": self.unit, "alpha": self.settings.alpha}  # with it
        return f"{candidate.model_type}-{self.compute_digest(**facts, **stored)}"

    def describe_model(self, selected: Selected, outputs: FitOutputs | None) -> dict[str, Any]:
        """Return what a saved model says of itself."""
        described = {
            "features": list(self.table.names),
            "target": self.table.target_name,
            "unit": self.unit,
            "alpha": self.settings.alpha,
            "rmse": selected.value,
        }
        if outputs is None:
            return described
        return described | outputs.facts | {"notes": list(outputs.notes), "curve": outputs.curve}

    def write_calibration(
        self, folder: Path, selected: Selected, outputs: FitOutputs | None
    ) -> None:
        """Write the rows that calibrate intervals: those apart, or else those held out."""
        held = self.make_calibration(selected)
        if not self.apart:
            held.save(folder)
            return
        floor = select_floor(held, self.settings.alpha)
        targets = self.table.target[self.split.validation]
        if isinstance(selected, Ensemble):
            names = [self.name_model(one.candidate) for one in selected.members]
            members = [load_calibration(resolve_inside(self.root, MODELS, name)) for name in names]
            weights = np.array(selected.weights)
            predicted = np.column_stack([one.predictions for one in members])
            spread = compute_spread(predicted, weights, stack_member_spreads(members))
            IntervalCalibration(targets, predicted @ weights, spread, floor).save(folder)
        elif outputs is not None:
            IntervalCalibration(targets, outputs.predictions, outputs.spread, floor).save(folder)

    def fingerprint(self, inputs: Sequence[str]) -> dict[str, str]:
        """Return the fingerprint of the table."""
        del inputs
        return {self.table.path or "table": self.table.fingerprint}

    def list_libraries(self, model_type: str) -> list[str]:
        """Return the distribution that a regressor is made with."""
        library = find_model_type(model_type).library
        return [DISTRIBUTIONS.get(library, library)]

    # --- the test, and the report ------------------------------------------------------------

    def test(self, finalists: Sequence[Finalist], winner: Finalist) -> tuple[HeldOutResult, ...]:
        """Ask the saved models for the rows that chose nothing, when all is chosen."""
        return tuple(
            self._test_on(name, split, finalists, winner) for name, split in self._list_tests()
        )

    def _list_tests(self) -> Iterator[tuple[str, Split]]:
        if len(self.split.test):
            yield TEST_PART, self.split
        if self.shift is not None:
            yield SHIFTED_PART, self.shift

    def _test_on(
        self, name: str, split: Split, finalists: Sequence[Finalist], winner: Finalist
    ) -> HeldOutResult:
        rows, table = split.test, self.table
        features, targets = table.features[rows], table.target[rows]
        groups = None if table.groups is None else table.groups[rows]
        predicted = {
            one.name: load_regression_model(self.root, one.name).predict(features)
            for one in finalists
        }
        columns = {one: predictions.values for one, predictions in predicted.items()}
        won = predicted[winner.name]
        evaluation = self._evaluate_rows(
            targets,
            won.values,
            groups,
            lower=won.lower,
            upper=won.upper,
            alpha=self.settings.alpha,
        )
        comparison = None
        if len(columns) > 1 and len(rows) > 1:
            clusters = None if groups is None else factorize_column(groups)
            models = ModelItems(targets, columns, groups=clusters)
            comparison = compare_models(models, unit=self.unit)
        return HeldOutResult(
            name=name,
            description=split.name,
            n=len(rows),
            evaluation=evaluation,
            optimism=self.get_value(evaluation) - winner.value,
            notes=won.notes,
            groups=None if groups is None else len(np.unique(groups.astype(str))),
            comparison=comparison,
            columns={
                "rows": (rows + 1).tolist(),
                "groups": None if groups is None else groups.tolist(),
                "targets": targets.tolist(),
                "predictions": {one: column.tolist() for one, column in columns.items()},
                "lower": [to_json_number(x) for x in won.lower.tolist()],
                "upper": [to_json_number(x) for x in won.upper.tolist()],
            },
        )

    def make_run_name(self) -> str:
        """Return how the name of a run begins: with its target."""
        letters = (x if x.isascii() and x.isalnum() else "_" for x in self.table.target_name[:40])
        return "".join(letters)

    @property
    def report(self) -> RegressionReport:
        """What is particular about the report."""
        return RegressionReport(self.settings, self.unit)

    def list_notes(self, selection: Any) -> list[str]:
        """Say what was found of a lattice, and what is to be known of the saved models."""
        notes = [self.lattice.note(self.unit)] if self.lattice else []
        for one in selection.candidates:
            if one is not None:
                name = self.name_model(one.candidate)
                ((model, _),) = load_regression_model(self.root, name).models
                notes += [f"{one.candidate.model_type}: {note}" for note in model.notes]
        return notes

    def summarize_table(self) -> TableSummary:
        """Return what a report says of the table, its split, and what is odd about them."""
        table, split, shift = self.table, self.split, self.shift
        sizes = split.sizes | ({} if shift is None else {SHIFTED_PART: len(shift.test)})
        leaks = find_duplicates(table, split, None if shift is None else shift.test)
        notes = [*table.notes, *split.notes, *leaks.notes]
        notes += [] if shift is None else shift.notes
        notes += [each.note for each in find_outliers(table)]
        return TableSummary(
            table.path,
            table.target_name,
            self.unit,
            table.names,
            len(table),
            split.name if shift is None else f"{split.name}; {shift.name}",
            sizes,
            None if table.groups is None else len(np.unique(table.groups.astype(str))),
            tuple(dict.fromkeys(notes)),
            self.apart,
            leaks,
        )


# --- which rows are for what ---------------------------------------------------------------------


def split_rows(table: Table, split: Split | None, settings: Settings) -> tuple[Split, Split | None]:
    """Return which rows are for what, and what lies beyond the shift, if one is asked for."""
    shift = None if settings.shift is None else _split_shift(table, settings)
    if shift is None:
        found = split or split_table(table, settings.seed)
    elif split is None:
        found = _split_before_shift(table, shift, settings.seed)
    else:
        found = _remove_shifted_rows(split, shift)
    if not settings.folds and not len(found.validation):
        raise BadInput("There are no validation rows to choose by. Pass --folds, or keep some.")
    if not settings.folds and settings.blend == "always" and len(found.validation) < 2:
        raise BadInput("A blend is learned from two validation rows or more. Pass --folds.")
    if len(found.known) < FEWEST_ROWS:
        raise BadInput(f"{len(found.known)} rows are too few to learn from and to choose by.")
    if settings.folds:
        check_folds(table, assign_unit_ids(table, found.known), settings.folds)
    check_targets_vary(table.target[found.train], "the training rows")
    return found, shift


def _split_shift(table: Table, settings: Settings) -> Split:
    named = settings.shift != "target" or "target" in table.names
    by = str(settings.shift) if named else table.target_name
    return split_by_shift(
        table, by, share=settings.shift_share, end=settings.shift_end, seed=settings.seed
    )


def _split_before_shift(table: Table, shift: Split, seed: int) -> Split:
    """Split the rows before the shift as usual."""
    rows = np.sort(shift.known)
    groups = None if table.groups is None else table.groups[rows]
    part = replace(table, features=table.features[rows], target=table.target[rows], groups=groups)
    found = split_table(part, seed)
    own = (rows[found.train], rows[found.validation], rows[found.test])
    return Split(*own, f"{found.name}, before the shift", found.notes)


def _remove_shifted_rows(split: Split, shift: Split) -> Split:
    """Leave the rows beyond the shift out of a split that was given."""
    train, validation, test = (
        rows[~np.isin(rows, shift.test)] for rows in (split.train, split.validation, split.test)
    )
    return Split(train, validation, test, f"{split.name}, before the shift", split.notes)
