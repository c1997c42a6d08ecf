"""System predictions: gold levels of a test set beside what every model and every file predicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadOption, shorten, suggest_names, word_advice
from ordinate.inference import ConfidenceIntervals, Estimate, estimate_metrics
from ordinate.inference.estimates import make_point_estimate
from ordinate.metrics import find_metric
from ordinate.render.reserved_paths import TEST
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.summaries import ConfusionMatrix, Panel
from ordinate.summaries.probabilities import take_labels
from ordinate.summaries.tabulation import (
    ROWS_SHOWN,
    MissingPolicy,
    check_missing_policy,
    make_missing_labels_error,
)
from ordinate.tuning.classify.external_systems import ExternalSystem, PredictionCoverage
from ordinate.tuning.classify.scoring import KAPPA, NO_BETTER_THAN_CHANCE
from ordinate.tuning.classify.trained_model import Predictions, TunedModel
from ordinate.tuning.experiment.dataset import Dataset
from ordinate.tuning.experiment.feature_rows import DatasetFeatures
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.search.saved_models import find_searched_task

Positions = NDArray[Any]
SHOWN_IDS = 3  # ids in an error


@dataclass(frozen=True, eq=False)
class SystemPredictions:
    """The items of a test set that have a gold level, and the predictions of every system.

    Gold and predicted levels are positions on the scale; K says that a system predicts none.
    `coverage` says of systems from files how many items they predict, `unlabelled` how many items
    were left out.
    """

    name: str
    file: str
    scale: Scale
    ids: tuple[str, ...]
    gold: Positions
    levels: Mapping[str, Positions]  # predicted, by system
    groups: NDArray[Any] | None = None
    unlabelled: int = 0
    coverage: Mapping[str, PredictionCoverage] = field(default_factory=dict)
    of_models: Mapping[str, Predictions] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems."""
        return tuple(self.levels)

    @property
    def has_unanswered(self) -> bool:
        """Whether any system left an item unanswered."""
        return any((levels == len(self.scale)).any() for levels in self.levels.values())

    @property
    def report_sentences(self) -> tuple[str, ...]:
        """What a report says of the items and the systems."""
        if not self.unlabelled:
            return self.notes
        left = "1 item has" if self.unlabelled == 1 else f"{self.unlabelled:,} items have"
        return (f"{left} no gold level: left out.", *self.notes)

    def get_labels(self, positions: Positions) -> NDArray[Any]:
        """Return the labels of positions, None where there is no prediction."""
        return take_labels(self.scale, positions)

    @cached_property
    def _groups(self) -> Groups | None:
        return None if self.groups is None else factorize_column(self.groups)

    def count_panel(self, unanswered: MissingPolicy) -> Panel:
        """Count all systems together, by what becomes of unanswered items."""
        check_missing_policy(unanswered, argument="unanswered")
        if unanswered == "error":
            self._refuse_unanswered()
        systems = {name: self.get_labels(levels) for name, levels in self.levels.items()}
        gold = self.get_labels(self.gold)
        return Panel.of(gold, systems, self.scale, None, self._groups, unanswered)

    def _refuse_unanswered(self) -> None:
        for name, levels in self.levels.items():
            lacking = np.flatnonzero(levels == len(self.scale))
            if len(lacking):
                ids = [f"id {self.ids[row]}" for row in lacking[:ROWS_SHOWN]]
                drop, worst = (word_advice("{unanswered}", unanswered=x) for x in ("drop", "worst"))
                hint = (
                    f"Leave these items out for all systems with {drop}, or count them as wrong "
                    f"with {worst}."
                )
                raise make_missing_labels_error(
                    len(lacking), len(levels), f"predictions of {name}", ids, hint
                )

    def count_confusion(self, levels: Positions, missing: MissingPolicy) -> ConfusionMatrix:
        """Count predicted levels against gold: one matrix, or one for each group."""
        gold, predicted = self.get_labels(self.gold), self.get_labels(levels)
        if self._groups is None:
            return ConfusionMatrix.of(gold, predicted, self.scale, missing=missing)
        return ConfusionMatrix.count_by_group(
            gold, predicted, self.scale, self._groups, missing=missing
        )

    def estimate_kappa(self, system: str, intervals: ConfidenceIntervals) -> Estimate:
        """Return the quadratic kappa of the items that a system predicts."""
        levels = self.levels[system]
        if (levels == len(self.scale)).all():
            return make_point_estimate(np.nan, "it predicts no item")
        matrix = self.count_confusion(levels, "drop")
        return estimate_metrics([find_metric(KAPPA)], matrix, intervals)[KAPPA]


def format_chance_flag(kappa: Estimate) -> str | None:
    """Return the warning for a system whose kappa may be 0, or is undefined.

    >>> low, high = Estimate(0.2, -0.1, 0.5, "delta"), Estimate(0.6, 0.4, 0.8, "delta")
    >>> format_chance_flag(low), format_chance_flag(high)
    ('no better than chance', None)
    """
    return None if kappa.low > 0.0 else NO_BETTER_THAN_CHANCE


# --- test sets, models and files brought together ------------------------------------------------


def select_test_sets(experiment: Experiment, requested: Sequence[str] = ()) -> list[str]:
    """Return the stems of all test sets, or of the requested ones."""
    known = experiment.tests
    if not known and find_searched_task(experiment.root) == "tune_regression":
        raise BadInput(
            f"{experiment.root} has regression models, and these are models of levels that are "
            f"wanted. Predict with them: ordinate predict-regression -e {experiment.root} DATA. "
            f"Compare them: ordinate analyze-search -e {experiment.root}."
        )
    if not known:
        raise BadInput(f"{experiment.root} has no test data in {TEST}.")
    for stem in requested:
        if stem not in known:
            near = suggest_names(stem, known)
            raise BadOption(
                f"There is no test set {shorten(stem)} (--test-set): there is "
                f"{', '.join(known)}.{near}"
            )
    return [stem for stem in known if not requested or stem in requested]


def name_items(data: Dataset) -> tuple[str, ...]:
    """Return what items are called: their ids, or the numbers of their rows."""
    return tuple(map(str, range(1, data.n + 1))) if data.ids is None else data.ids


def require_one_scale(models: Sequence[TunedModel], declared: Scale | None) -> Scale | None:
    """Return the scale that all models are on, and refuse models of another one."""
    scale = declared
    for model in models:
        if scale is not None and model.scale != scale:
            raise BadOption(
                f"The model {model.name} is on the scale {model.scale}, and not on {scale}. Name "
                "models of one scale with --model, or the scale of all of them with --scale."
            )
        scale = model.scale
    return scale


@dataclass
class PredictionCollector:
    """Collects what models and files predict for test sets; features are read once."""

    experiment: Experiment
    scale: Scale
    models: Sequence[TunedModel]
    externals: Sequence[ExternalSystem] = ()
    notes: list[str] = field(default_factory=list)
    _features: dict[tuple[str, str], DatasetFeatures] = field(default_factory=dict)

    def collect_predictions(self, stems: Sequence[str]) -> list[SystemPredictions]:
        """Return the predictions for each test set that has gold levels and systems."""
        self._check_names()
        self._refuse_ambiguous(stems)
        collected = [predictions for stem in stems if (predictions := self._collect_test_set(stem))]
        if not collected:
            raise BadInput(f"There is nothing to evaluate. {' '.join(self.notes)}")
        self._refuse_unmatched(collected)
        return collected

    def _collect_test_set(self, stem: str) -> SystemPredictions | None:
        data = self.experiment.dataset(stem)
        gold = data.gold(self.scale, missing="keep")
        labelled = gold < len(self.scale)
        if not labelled.any():
            self.notes.append(f"{stem} has no gold levels and is left out.")
            return None
        notes: list[str] = []
        of_models = self._predict_with_models(data, labelled, notes)
        ids = tuple(np.array(name_items(data), object)[labelled].tolist())
        levels: dict[str, NDArray[Any]] = {name: x.levels for name, x in of_models.items()}
        coverage = {}
        for external in self.externals:
            if (share := self._measure_coverage(external, ids, stem, notes)) is not None:
                levels[external.name] = external.look_up_levels(ids)
                coverage[external.name] = share
        if not levels:
            self.notes.append(" ".join([f"No system predicts {stem}.", *notes]))
            return None
        return SystemPredictions(
            name=stem,
            file=str(data.path),
            scale=self.scale,
            ids=ids,
            gold=gold[labelled],
            levels=levels,
            groups=None if data.groups is None else data.groups[labelled],
            unlabelled=int((~labelled).sum()),
            coverage=coverage,
            of_models=of_models,
            notes=tuple(notes),
        )

    # --- models ------------------------------------------------------------------------------

    def _predict_with_models(
        self, data: Dataset, labelled: NDArray[np.bool_], notes: list[str]
    ) -> dict[str, Predictions]:
        predictions = {}
        for model in self.models:
            lacking = [s for s in model.sets if data.name not in self.experiment.list_stems(s)]
            if lacking:
                notes.append(
                    f"{model.name} is left out: the feature set {lacking[0]!r} has no features for "
                    f"{data.name}."
                )
                continue
            features = {name: self._read_features(name, data.name) for name in model.sets}
            predictions[model.name] = model.predict(features, data.ids).select_rows(labelled)
        return predictions

    def _read_features(self, name: str, stem: str) -> DatasetFeatures:
        if (name, stem) not in self._features:
            self._features = {  # of one data set at a time
                key: x for key, x in self._features.items() if key[1] == stem
            }
            self._features[name, stem] = self.experiment.features(name, stem)
        return self._features[name, stem]

    # --- files -------------------------------------------------------------------------------

    def _measure_coverage(
        self, external: ExternalSystem, ids: Sequence[str], stem: str, notes: list[str]
    ) -> PredictionCoverage | None:
        """Return how many items a file predicts, None where it predicts none."""
        coverage = external.measure_coverage(ids, self._collect_other_ids(ids))
        if not coverage.count:
            notes.append(f"{external.name} predicts no item of {stem} and is left out there.")
            return None
        notes += external.describe_coverage(coverage)
        if self.experiment.dataset(stem).ids is None:
            notes.append(f"{stem} has no ids: {external.name} is matched by the numbers of rows.")
        return coverage

    def _collect_other_ids(self, ids: Sequence[str]) -> set[str]:
        """Return the ids of all data but these, those without a gold level included."""
        stems = self.experiment.files
        every = {one for x in stems for one in name_items(self.experiment.dataset(x))}
        return every - set(ids)

    def _check_names(self) -> None:
        taken = {model.name for model in self.models}
        for external in self.externals:
            if external.name in taken:
                raise BadOption(
                    f"{external.file} would be called {external.name!r} like another system. "
                    "Rename the file."
                )
            taken.add(external.name)

    def _refuse_ambiguous(self, stems: Sequence[str]) -> None:
        """Refuse a file whose ids stand in two test sets: which are meant is unknown."""
        for external in self.externals:
            seen: dict[str, str] = {}
            for stem in stems:
                for one in name_items(self.experiment.dataset(stem)):
                    if one in external.levels and one in seen:
                        raise BadInput(
                            f"The id {shorten(one)} of {external.file} is in {seen[one]} and in "
                            f"{stem}. Say which test set the file is for with --test-set."
                        )
                    seen[one] = stem

    def _refuse_unmatched(self, collected: Sequence[SystemPredictions]) -> None:
        """Refuse a file that predicts no item at all."""
        for external in self.externals:
            if any(external.name in test_set.coverage for test_set in collected):
                continue
            shown = ", ".join(shorten(one) for one in list(external.levels)[:SHOWN_IDS])
            expected = ", ".join(shorten(one) for one in collected[0].ids[:SHOWN_IDS])
            raise BadInput(
                f"{external.file} predicts none of the items: its ids are {shown}, …, and those "
                f"of {collected[0].name} are {expected}, …. Name its column of ids with "
                "--id-column."
            )
