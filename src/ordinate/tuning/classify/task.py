"""The ordinal task: feature sets in, recalibrated classifiers and their levels out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from ordinate.errors import BadStore, NotApplicable, OrdinateError
from ordinate.postprocess.class_priors import undo_class_weights
from ordinate.results.base import to_json_label
from ordinate.tuning.classify.class_weights import compute_class_weights
from ordinate.tuning.classify.cross_validation import (
    OutOfFoldPredictions,
    VoteMember,
    calibrate_out_of_fold,
    calibrate_vote_out_of_fold,
    compute_objective,
    compute_value,
    count_confusion,
    fit_calibration,
    fit_vote_calibration,
    split_folds,
)
from ordinate.tuning.classify.decision_rules import (
    DECISION_RULES,
    METRIC_OPTIMAL,
    CalibrationPlan,
    Floats,
    OutputCalibration,
    Positions,
    predict_rough_levels,
)
from ordinate.tuning.classify.scoring import (
    DecisionRuleScores,
    LabelledItems,
    evaluate_decision_rules,
)
from ordinate.tuning.classify.settings import VOTE, Settings
from ordinate.tuning.classify.trained_model import CALIBRATION_FILE, load_model
from ordinate.tuning.classify.training_data import TrainingData, check_same_features
from ordinate.tuning.classify.tuning_report import ClassificationReport
from ordinate.tuning.experiment.safe_files import compute_digest, write_json
from ordinate.tuning.experiment.stored_json import decode
from ordinate.tuning.features.extraction import find_extractor_identity, read_extractor_manifest
from ordinate.tuning.models.classifiers import MODEL_TYPES, create_classifier
from ordinate.tuning.search.fits import Fit, FitOutputs, Rows, join_folds
from ordinate.tuning.search.studies import Direction, SearchSpace
from ordinate.tuning.search.task import (
    DISTRIBUTIONS,
    Candidate,
    Ensemble,
    EvaluatedCandidate,
    Score,
    Selected,
    Task,
)
from ordinate.tuning.search.tuning_result import Finalist, HeldOutResult

LevelsByRule = Mapping[Any, Positions]  # by decision rule

CACHE_VERSION = 2  # of what runs cache: raise it when the same settings give other numbers
# Names by which digests know settings. The seeds of a search follow from them: they never change.
DIGEST_NAMES = {"rounded_mean": "average"}
FEWEST_MEMBERS, MOST_MEMBERS = 2, 5  # of a vote
NO_VOTE_NOTE = "There is no vote: it takes two models, and there were not two."


# --- fits ----------------------------------------------------------------------------------------


class LabelledFeatures(NamedTuple):
    """What workers keep under the name of a feature set."""

    matrix: Any  # [N, d], sparse or dense
    levels: Positions  # on the full scale


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassifierFit(Fit):
    """A classifier to be fitted on some rows of a feature set, with class weights of these rows."""

    input: str
    model_type: str
    params: Mapping[str, Any]
    size: int  # levels of the scale
    seed: int
    strategy: str
    alpha: float
    train: Rows
    new: Rows | None = None  # to be predicted

    def run(self, kept: Mapping[str, Any]) -> FitOutputs:
        """Return outputs for the new rows, class weights undone where that is possible."""
        data: LabelledFeatures = kept[self.input]
        levels = data.levels[self.train]
        weights = None
        if self.strategy != "equal" and self.alpha > 0.0:
            weights = compute_class_weights(levels, self.size, self.strategy, self.alpha)
        params = dict(self.params)
        model = create_classifier(self.model_type, params, size=self.size, seed=self.seed)
        model.fit(data.matrix[self.train], levels, None if weights is None else weights[levels])
        if self.folder is not None:
            folder = Path(self.folder)
            folder.mkdir()
            model.save(folder)
        reversible = self._select_reversible_weights(weights)
        outputs = np.empty(0)
        if self.new is not None:
            predicted = np.asarray(model.predict(data.matrix[self.new]), float)
            outputs = undo_class_weights(predicted, reversible)
        plain = None if reversible is None else reversible.tolist()
        return FitOutputs(outputs, facts={"class_weights": plain})

    def _select_reversible_weights(self, weights: Floats | None) -> Floats | None:
        """Return the class weights that division undoes: those of likelihood fits, or None."""
        known = MODEL_TYPES[self.model_type]
        return weights if known.likelihood and known.output_type == "probabilities" else None


# --- the task ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassificationTask(Task):
    """What classifiers are fitted and evaluated with: all training items, or some of the rows.

    Every candidate gets the same folds.
    """

    name = "classification"
    screening_model = "logistic"

    settings: Settings
    training: TrainingData
    rows: Positions | None = None
    loaded: dict[str, LabelledFeatures] = field(default_factory=dict, repr=False)  # by workers, too

    # --- rows --------------------------------------------------------------------------------

    @cached_property
    def levels(self) -> Positions:
        """The level of each item."""
        return self._select_rows(self.training.levels)

    @cached_property
    def folds(self) -> Sequence[Rows]:
        """The held-out items of each fold; those of a group, and copies of a text, in one."""
        units, settings = self._select_rows(self.training.units), self.settings
        return split_folds(self.levels, units, settings.folds or 0, settings.seed)

    def restrict_to_rest(self, fold: Rows, subset: str) -> Self:
        """Return the task without the items of a fold."""
        rest = np.setdiff1d(np.arange(len(self.levels)), fold)
        return replace(self, rows=self.get_rows(rest), subset=subset, best_trials={})

    def get_rows(self, places: Rows) -> Rows:
        """Return the rows of the training data at some places."""
        return places if self.rows is None else self.rows[places]

    def _select_rows(self, values: Any) -> Any:
        return values if self.rows is None or values is None else values[self.rows]

    # --- inputs ------------------------------------------------------------------------------

    @property
    def inputs(self) -> Sequence[str]:
        """The names of the feature sets."""
        return list(self.training.sets)

    def load_input(self, name: str) -> None:
        """Read a feature set, and send it to the workers with the levels of all items."""
        if name not in self.loaded:
            data = LabelledFeatures(self.training.matrix(name), self.training.levels)
            self.loaded[name] = data
            self.workers.keep(name, data)

    def drop_input(self, name: str) -> None:
        """Drop a feature set, which is read again where it is needed."""
        if self.loaded.pop(name, None) is not None:
            self.workers.drop(name)

    def describe_input(self, name: str) -> dict[str, Any]:
        """Return what a report says of a feature set."""
        known = self.training.sets[name]
        return {"set": name, "features": len(known.names), "matched": known.matched}

    # --- fits --------------------------------------------------------------------------------

    def get_space(self, model_type: str) -> tuple[SearchSpace, Sequence[dict[str, Any]]]:
        """Return the search space of a classifier, and its defaults."""
        known = MODEL_TYPES[model_type]
        return known.space, [known.defaults]

    def get_output_shape(self, model_type: str) -> tuple[int, ...]:
        """Return the shape of what a classifier says of one item: probabilities, or a number."""
        probable = MODEL_TYPES[model_type].output_type == "probabilities"
        return (len(self.training.scale),) if probable else ()

    def make_fit(self, candidate: Candidate, rows: Rows, new: Rows | None) -> ClassifierFit:
        """Return a fit on some rows of the training data."""
        return ClassifierFit(
            **candidate._asdict(),
            size=len(self.training.scale),
            seed=self.settings.seed,
            strategy=self.settings.weight_strategy,
            alpha=self.settings.weight_alpha,
            train=rows,
            new=new,
        )

    # --- values ------------------------------------------------------------------------------

    @property
    def metric(self) -> str:
        """The metric that is tuned for."""
        return self.settings.metric

    @property
    def direction(self) -> Direction:
        """Where better objectives lie."""
        return self.settings.direction

    def compute_merit(self, value: float) -> float:
        """Return a number of which the larger are better, by the catalogue of metrics."""
        return self.settings.merit(value)

    @cached_property
    def class_weights(self) -> Floats:
        """The weight of each level, as all these items give it."""
        strategy, alpha = self.settings.weight_strategy, self.settings.weight_alpha
        return compute_class_weights(self.levels, len(self.training.scale), strategy, alpha)

    @property
    def level_weights(self) -> tuple[float, ...] | None:
        """The weight of each level in the metric; None where it is not weighted."""
        return tuple(self.class_weights.tolist()) if self.settings.weight_metric else None

    @cached_property
    def items(self) -> LabelledItems:
        """The items to evaluate predictions on."""
        return self.label_items(self.levels, self._select_rows(self.training.groups))

    def label_items(self, gold: Positions, groups: Any = None) -> LabelledItems:
        """Return items to evaluate predictions on, weighted where the metric is."""
        weights = None if self.level_weights is None else np.array(self.level_weights)[gold]
        return LabelledItems(self.training.scale, gold, groups, weights)

    def compute_interim_objective(self, folds: Sequence[FitOutputs]) -> float:
        """Return the objective of the folds that are done, uncalibrated: that needs all of them."""
        size, metric = len(self.training.scale), self.settings.measure
        gold, weights, done = self.items.gold, self.items.weights, self.folds[: len(folds)]
        rows = np.concatenate(done)
        try:
            levels = [
                predict_rough_levels(outputs.predictions, gold[fold], size)
                for fold, outputs in zip(done, folds, strict=True)
            ]
        except OrdinateError:  # one fold alone may be too little
            return math.nan
        matrix = count_confusion(
            self.training.scale,
            gold[rows],
            np.concatenate(levels),
            weights=None if weights is None else weights[rows],
        )
        return compute_objective(metric, compute_value(metric, matrix)[0])

    def plan_calibration(self, model_type: str) -> CalibrationPlan:
        """Return how the outputs of a model type become levels."""
        settings = self.settings
        return CalibrationPlan.of(
            model_type,
            self.training.scale,
            settings.measure,
            weighted=settings.weight_strategy != "equal" and settings.weight_alpha > 0.0,
            decode=settings.decode,
            weights=self.level_weights,
        )

    def predict_out_of_fold(
        self, candidate: Candidate, outputs: FitOutputs
    ) -> tuple[LevelsByRule, tuple[str, ...]]:
        """Calibrate each fold by what is learned from the others, and return levels by rule."""
        plan = self.plan_calibration(candidate.model_type)
        found = calibrate_out_of_fold(plan, outputs.predictions, self.levels, self.folds)
        return found.levels, found.notes

    def score(self, predictions: LevelsByRule) -> Score:
        """Count all folds as one confusion matrix, and take the value of the metric."""
        metric = self.settings.measure
        matrix = self.items.count_confusion(predictions[METRIC_OPTIMAL])
        value, undefined = compute_value(metric, matrix)
        if undefined is not None:
            raise NotApplicable(f"{metric.expression} is undefined: {undefined}.")
        # Where 0 is best, the objective has lost the sign, and with it which way the model errs.
        signed = {"signed_value": value} if metric.direction == "zero" else {}
        return Score(compute_objective(metric, value), signed)

    def evaluate(self, predictions: LevelsByRule) -> DecisionRuleScores:
        """Evaluate levels of all items, by decision rule."""
        return evaluate_decision_rules(
            self.items, predictions, self.settings.measure, seed=self.settings.seed
        )

    def get_value(self, evaluation: DecisionRuleScores) -> float:
        """Return the value of the metric-optimal levels."""
        return evaluation.value

    def join_predictions(self, folds: Sequence[LevelsByRule]) -> LevelsByRule:
        """Return the levels of all folds as one."""
        return {
            rule: join_folds([one[rule] for one in folds], self.folds) for rule in DECISION_RULES
        }

    def encode_predictions(self, predictions: LevelsByRule) -> Any:
        """Return levels by decision rule as plain values."""
        return {rule: predictions[rule].tolist() for rule in DECISION_RULES}

    def decode_predictions(self, stored: Any, n: int) -> LevelsByRule | None:
        """Return cached levels; None where they are no levels of n items."""
        try:
            levels = decode(stored, dict[str, list[int]], "levels")
        except BadStore:
            return None
        size = len(self.training.scale)
        sound = all(len(x) == n and all(0 <= level < size for level in x) for x in levels.values())
        if not sound or levels.keys() != set(DECISION_RULES):
            return None
        return {rule: np.array(levels[rule], np.intp) for rule in DECISION_RULES}

    # --- the vote ----------------------------------------------------------------------------

    def combine(self, candidates: Sequence[EvaluatedCandidate]) -> Ensemble | None:
        """Return the best vote of two to five candidates: the mean of their probabilities.

        The members are always the best ones, so that their number is all that is selected.
        """
        if not self.settings.includes_vote or len(candidates) < FEWEST_MEMBERS:
            return None
        ranked = sorted(candidates, key=lambda one: -self.compute_merit(one.value))
        sizes = range(FEWEST_MEMBERS, min(MOST_MEMBERS, len(ranked)) + 1)
        votes = [self._evaluate_vote(ranked[:size]) for size in sizes]
        return max(votes, key=lambda one: self.compute_merit(one.value))

    def _evaluate_vote(self, members: Sequence[EvaluatedCandidate]) -> Ensemble:
        settings = self.settings
        plan = CalibrationPlan(
            self.training.scale, settings.measure, settings.decode, weights=self.level_weights
        )
        found: OutOfFoldPredictions = calibrate_vote_out_of_fold(
            plan, self._pair_plans_with_outputs(members), self.levels, self.folds
        )
        evaluation = self.evaluate(found.levels)
        outputs = FitOutputs(found.probabilities)
        value = self.get_value(evaluation)
        return Ensemble(VOTE, tuple(members), plan, outputs, value, evaluation, notes=found.notes)

    def _pair_plans_with_outputs(self, members: Sequence[EvaluatedCandidate]) -> list[VoteMember]:
        return [
            (self.plan_calibration(one.candidate.model_type), one.outputs.predictions)
            for one in members
        ]

    # --- fitted on all items -----------------------------------------------------------------

    def fit_calibration(
        self, selected: Selected, class_weights: Floats | None = None
    ) -> OutputCalibration:
        """Learn how outputs become levels, from all out-of-fold outputs."""
        if isinstance(selected, Ensemble):
            members = self._pair_plans_with_outputs(selected.members)
            return fit_vote_calibration(selected.rule, members, self.levels, self.folds)
        return fit_calibration(
            self.plan_calibration(selected.candidate.model_type),
            selected.outputs.predictions,
            self.levels,
            self.folds,
            class_weights,
        )

    def predict_new(self, selected: Selected, new: Rows) -> LevelsByRule:
        """Fit what was selected on all items, and return its levels for other ones."""
        made = [outputs.predictions for outputs in self.fit_again(selected, new)]
        calibrations = [self.fit_calibration(one) for one in selected.members]
        if not isinstance(selected, Ensemble):
            return calibrations[0].levels_by_rule(made[0])
        pairs = zip(calibrations, made, strict=True)
        each = [calibration.probabilities(outputs) for calibration, outputs in pairs]
        return self.fit_calibration(selected).levels_by_rule(np.mean(each, axis=0))

    # --- saved models ------------------------------------------------------------------------

    def compute_digest(self, *inputs: str, **further: Any) -> str:
        """Return a short name of all that decides a result: data, features, evaluation settings.

        The draws of a search depend on it, so that its keys and values stay as they are.
        """
        settings = self.settings.evaluation_settings
        decode = DIGEST_NAMES.get(settings["decode"], settings["decode"])
        identity = {
            "form": CACHE_VERSION,
            "data": self.training.fingerprint,
            "part": self.subset,
            "features": {name: self.training.sets[name].files for name in inputs},
            "judging": settings | {"decode": decode},
            **further,
        }
        return compute_digest(identity)

    def name_model(self, candidate: Candidate) -> str:
        """Return the name of a model: its data and all its settings decide it."""
        extractor = self._identify_extractor(candidate.input)
        further = {} if extractor is None else {"extractor": extractor}
        digest = self.compute_digest(
            candidate.input, model_type=candidate.model_type, params=candidate.params, **further
        )
        return f"{candidate.input}-{candidate.model_type}-{digest}"

    def _identify_extractor(self, name: str) -> str | None:
        """Return the identity of a set's extractor: new texts have to get their features by it."""
        return find_extractor_identity(read_extractor_manifest(self.training.experiment, name))

    def describe_model(self, selected: Selected, outputs: FitOutputs | None) -> dict[str, Any]:
        """Return what a saved model says of itself."""
        del outputs
        settings, scale = self.settings, self.training.scale
        described = {
            "metric": settings.metric,
            "decode": settings.decode,
            "weight_strategy": settings.weight_strategy,
            "weight_alpha": settings.weight_alpha,
            "weight_metric": settings.weight_metric,
            "scale": [to_json_label(label) for label in scale.labels],
            "positions": list(scale.at),
            "no_better_than_chance": selected.evaluation.by_chance,
        }
        if isinstance(selected, Ensemble):
            return described
        name = selected.candidate.input
        known = self.training.sets[name]
        return described | {
            "features": len(known.names),
            "feature_names": known.names_digest,
            "extractor": self._identify_extractor(name),
            "class_weights": self.class_weights.tolist(),
        }

    def write_calibration(
        self, folder: Path, selected: Selected, outputs: FitOutputs | None
    ) -> None:
        """Write how outputs become levels, probabilities and prediction sets."""
        weights = None if outputs is None else outputs.facts["class_weights"]
        calibration = self.fit_calibration(
            selected, None if weights is None else np.array(weights, float)
        )
        write_json(folder / CALIBRATION_FILE, calibration.to_dict())

    def fingerprint(self, inputs: Sequence[str]) -> dict[str, str]:
        """Return the fingerprints of the data and of feature sets."""
        return self.training.fingerprints(*inputs)

    def list_libraries(self, model_type: str) -> list[str]:
        """Return the distribution that a classifier is made with."""
        library = MODEL_TYPES[model_type].library
        return [DISTRIBUTIONS.get(library, library)]

    # --- the test, and the report ------------------------------------------------------------

    def check_tests(self) -> None:
        """Refuse now, and not after hours, test data on which nothing could be tested."""
        experiment = self.training.experiment
        for stem in experiment.tests:
            experiment.dataset(stem).gold(self.training.scale, missing="keep")
            for name in self.training.sets:
                if stem in experiment.list_stems(name):
                    first = experiment.features(name, self.training.stems[0])
                    check_same_features(first, experiment.features(name, stem))

    def test(self, finalists: Sequence[Finalist], winner: Finalist) -> tuple[HeldOutResult, ...]:
        """Evaluate the saved winner on each test set; `rank` tests the others."""
        del finalists
        return tuple(self._test_on(stem, winner) for stem in self.training.experiment.tests)

    def _test_on(self, stem: str, winner: Finalist) -> HeldOutResult:
        experiment, scale = self.training.experiment, self.training.scale
        data = experiment.dataset(stem)
        gold = data.gold(scale, missing="keep")
        labelled = np.flatnonzero(gold < len(scale))
        lacking = [name for name in winner.sets if stem not in experiment.list_stems(name)]
        if not len(labelled):
            return _skip_test(stem, "it has no levels, so nothing was tested on it.")
        if lacking:
            reason = f"it has no features of {', '.join(lacking)}, so nothing was tested on it."
            return _skip_test(stem, reason)
        features = {name: experiment.features(name, stem) for name in winner.sets}
        predicted = load_model(experiment, winner.name).predict(features).select_rows(labelled)
        groups = None if data.groups is None else data.groups[labelled]
        evaluation = evaluate_decision_rules(
            self.label_items(gold[labelled], groups),
            predicted.by_decision_rule,
            self.settings.measure,
            seed=self.settings.seed,
        )
        merit, missing = self.settings.measure.merit, len(gold) - len(labelled)
        notes = [f"{missing:,} items without a level were left out."] if missing else []
        known, texts = set(self.training.texts), data.texts
        seen = 0 if texts is None else sum(texts[k] in known for k in labelled)
        if seen:
            notes.append(
                f"{seen:,} of its {len(labelled):,} texts are training texts, too, so its values "
                "are optimistically biased."
            )
        labels = [to_json_label(label) for label in scale.labels]
        return HeldOutResult(
            name=stem,
            description=str(data.path.name),
            n=len(labelled),
            evaluation=evaluation,
            optimism=float(merit(winner.value) - merit(evaluation.value)),
            notes=tuple(notes),
            groups=None if groups is None else len(np.unique(groups.astype(str))),
            seen=seen,
            columns={
                "rows": (labelled + 1).tolist(),
                "ids": None if data.ids is None else [data.ids[k] for k in labelled],
                "groups": None if groups is None else groups.tolist(),
                "gold": [labels[k] for k in gold[labelled]],
                "predictions": {winner.name: [labels[k] for k in predicted.levels]},
                "probabilities": {winner.name: predicted.probabilities.tolist()},
                "fingerprint": data.fingerprint,
            },
        )

    def make_run_name(self) -> str:
        """Return how the name of a run begins."""
        return self.settings.measure.name

    @property
    def report(self) -> ClassificationReport:
        """What is particular about the report."""
        return ClassificationReport(self.settings, self.training.scale)

    def list_notes(self, selection: Any) -> list[str]:
        """Say where a vote was asked for, and could not be."""
        lacking = self.settings.includes_vote and selection.ensemble is None
        return [NO_VOTE_NOTE] if lacking else []


def _skip_test(stem: str, reason: str) -> HeldOutResult:
    return HeldOutResult(stem, "", 0, None, math.nan, (reason,))
