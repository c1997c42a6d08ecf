"""Decision rules and recalibration: from model outputs to levels and prediction sets.

All of it is learned from out-of-fold outputs, and then frozen as a few numbers. Outputs are
probabilities [N, K] in the order of the scale, or scores [N] that rise with the levels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import (
    BadOption,
    BadProbabilities,
    BadStore,
    NotApplicable,
    shorten,
)
from ordinate.metrics import Metric
from ordinate.postprocess import (
    CutPoints,
    Decoder,
    OrdinalConformalSets,
    PredictionSets,
    TemperatureScaling,
    VectorScaling,
)
from ordinate.postprocess.class_priors import undo_class_weights
from ordinate.postprocess.conformal_sets import compute_nonconformity_scores
from ordinate.postprocess.decoder import make_label_array
from ordinate.postprocess.decoding_costs import choose_levels
from ordinate.postprocess.estimator import read_score_column
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix
from ordinate.tuning.classify.proportional_odds import (
    ProportionalOdds,
    parse_numbers,
    require_numbers,
)
from ordinate.tuning.models.classifiers import MODEL_TYPES

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]
Bools = NDArray[np.bool]
DecisionRule = Literal["metric_optimal", "argmax", "rounded_mean"]
DecodeOption = Literal["metric", "argmax", "rounded_mean"]
RecalibrationMethod = Literal["temperature", "vector"]

DECISION_RULES: tuple[DecisionRule, ...] = get_args(DecisionRule)
METRIC_OPTIMAL: DecisionRule = "metric_optimal"  # the rule by which models are selected
RULE_TITLES: dict[str, str] = {
    "metric_optimal": "metric-optimal",
    "argmax": "argmax",
    "rounded_mean": "rounded mean",
}
ALPHA = 0.1  # the share of new items whose level a prediction set may lack
DISTANCE_DECIMALS = 12  # decimals to which two distances are compared
ARGMAX_FALLBACK_NOTE = "The most probable level is taken instead."


def check_metric(metric: Metric) -> None:
    """Refuse a metric that nothing can be tuned for."""
    if metric.summary is not ConfusionMatrix:
        raise BadOption(f"{metric.name} is no metric of labels, for which models are tuned.")
    if metric.required:
        missing = ", ".join(metric.required)
        raise BadOption(f"{metric.name} needs {missing}: write {metric.name}({missing}=…).")


@dataclass(frozen=True)
class CalibrationPlan:
    """How outputs are to become levels and probabilities, before anything is learned.

    `decode` says what the metric-optimal rule means: the levels that the metric rewards most, or
    simply one of the other two rules. Probabilities are recalibrated: a model that was held back
    by a strong penalty is less sure than it could be, and decoding would take that for doubt. One
    temperature does that; where class weights cannot be undone, or outputs are no probabilities,
    each level has a slope and an offset. Scores become probabilities by their odds, and are `cut`
    where the metric is best if that is requested. `weights` are those of the levels in the metric,
    where it is to be weighted, too.
    """

    scale: Scale
    metric: Metric
    decode: DecodeOption = "metric"
    scores: bool = False  # whether outputs are one number for each item
    recalibration: RecalibrationMethod = "temperature"
    cut: bool = False
    weights: tuple[float, ...] | None = None  # [K]

    def __post_init__(self) -> None:
        if self.decode not in get_args(DecodeOption):
            known = ", ".join(get_args(DecodeOption))
            raise BadOption(f"decode={self.decode!r} is not one of {known}.")
        check_metric(self.metric)

    @classmethod
    def of(
        cls,
        model_type: str,
        scale: Scale,
        metric: Metric,
        *,
        weighted: bool,
        decode: DecodeOption = "metric",
        weights: tuple[float, ...] | None = None,
    ) -> "CalibrationPlan":
        """Return the plan for a model type, fitted with class weights or without."""
        known = MODEL_TYPES[model_type]
        biased = not known.calibrated or (weighted and not known.likelihood)
        return cls(
            scale,
            metric,
            decode,
            scores=known.output_type == "scores",
            recalibration="vector" if biased else "temperature",
            cut=known.cut,
            weights=weights,
        )

    def fit(
        self,
        outputs: Any,
        gold: Positions,
        class_weights: Floats | None = None,
        *,
        seen: Bools | None = None,
    ) -> "OutputCalibration":
        """Learn from out-of-fold outputs, in which class weights are undone already.

        `class_weights` are those of the model whose outputs will be calibrated; they are undone
        first, so pass them for likelihood models only. `seen` tells of which items the level was
        among those that the fit of their fold had seen (all, without it): a probability of 0 for
        any other level says nothing of how sure a model may be. Prediction sets are not learned
        here, as these probabilities have seen their gold: `calibrate_sets` does.
        """
        weights = None if class_weights is None else np.array(class_weights, float)
        plain = OutputCalibration(self.scale, self.decode)
        if self.scores:
            odds = ProportionalOdds.fit(read_score_column(outputs), gold, len(self.scale))
            plain = replace(plain, odds=odds)
        else:
            rows = _normalize_rows(self.scale, outputs)
            learned = slice(None) if seen is None else seen
            scaling = _fit_scaling(self.scale, rows[learned], gold[learned], self.recalibration)
            plain = replace(plain, scaling=scaling)
        return replace(self._add_decoding(plain, outputs, gold), class_weights=weights)

    def _add_decoding(
        self, calibration: "OutputCalibration", outputs: Any, gold: Positions
    ) -> "OutputCalibration":
        """Add what leads to the levels that the metric rewards, or say why nothing does."""
        if self.decode != "metric":
            return calibration
        labels = make_label_array(self.scale)[gold]
        weights = None if self.weights is None else np.array(self.weights)
        items = None if weights is None else weights[gold]
        try:
            if self.cut:
                scores = read_score_column(outputs)
                cuts = CutPoints(self.metric, scale=self.scale).fit(scores, labels, items)
                return replace(calibration, cuts=cuts.cuts_)
            # Among items that count w_k times, levels have the probabilities p_k w_k; and so what
            # a prediction is worth there, times w_k, is what it is worth by p_k.
            rows = undo_class_weights(
                calibration.probabilities(outputs), None if weights is None else 1.0 / weights
            )
            decoder = Decoder(self.metric, self.scale, columns=self.scale.labels)
            decoder.fit(rows, labels, items)
            gain = decoder.gain_ if weights is None else decoder.gain_ * weights[:, None]
            return replace(calibration, gain=gain, notes=(*calibration.notes, *decoder.notes_))
        except (BadOption, NotApplicable) as reason:
            note = f"{reason} {ARGMAX_FALLBACK_NOTE}"
            return replace(calibration, decode="argmax", notes=(*calibration.notes, note))


class ScalingParameters(NamedTuple):
    """What recalibration has learned: a slope and an offset for each level."""

    slopes: Floats
    offsets: Floats


@dataclass(frozen=True, eq=False)
class OutputCalibration:
    """From a model's outputs to levels, probabilities and prediction sets, as learned out of fold.

    Each step that is None is left out. `decode` is 'argmax' where the metric could not be decoded;
    `notes` say why.
    """

    scale: Scale
    decode: DecodeOption
    class_weights: Floats | None = None  # [K], to be undone
    scaling: ScalingParameters | None = None
    odds: ProportionalOdds | None = None  # from scores to probabilities
    gain: Floats | None = None  # [K, K]: what a prediction is worth, rows gold
    cuts: Floats | None = None  # [K - 1], of scores
    threshold: float = np.inf  # of prediction sets
    notes: tuple[str, ...] = ()

    def levels(self, outputs: Any, rule: DecisionRule = METRIC_OPTIMAL) -> Positions:
        """Return the position of the level of each item.

        'argmax' is the most probable level, the lowest of equals; 'rounded_mean' the level nearest
        to the mean of the positions, the lower of two.
        """
        if rule not in DECISION_RULES:
            raise BadOption(f"rule={rule!r} is not one of {', '.join(DECISION_RULES)}.")
        decode = self.decode if rule == METRIC_OPTIMAL else rule
        if decode == "metric" and self.cuts is not None:
            return np.searchsorted(self.cuts, read_score_column(outputs)).astype(np.intp)
        probabilities = self.probabilities(outputs)
        if decode == "metric" and self.gain is not None:
            return choose_levels(probabilities, self.gain)
        if decode == "rounded_mean":
            return _round_mean(self.scale, probabilities)
        return _take_argmax(probabilities)

    def levels_by_rule(self, outputs: Any) -> dict[DecisionRule, Positions]:
        """Return the position of the level of each item, by decision rule."""
        return {rule: self.levels(outputs, rule) for rule in DECISION_RULES}

    def probabilities(self, outputs: Any) -> Floats:
        """Return the probability of each level [N, K]; each row sums to 1."""
        if self.odds is not None:
            return self.odds.probabilities(read_score_column(outputs))
        rows = undo_class_weights(_normalize_rows(self.scale, outputs), self.class_weights)
        if self.scaling is None:
            return rows
        scaling = VectorScaling(self.scale, columns=self.scale.labels)
        scaling.scale_, scaling.columns_ = self.scale, self.scale.labels
        scaling.slopes_, scaling.offsets_ = self.scaling
        return scaling.predict_proba(rows)

    def calibrate_sets(self, probabilities: Floats, gold: Positions) -> "OutputCalibration":
        """Learn prediction sets from probabilities of items whose gold had no part in them."""
        sets = OrdinalConformalSets(ALPHA, scale=self.scale, columns=self.scale.labels)
        sets.fit(probabilities, make_label_array(self.scale)[gold])
        notes = (*self.notes, *sets.notes_)
        return replace(self, threshold=float(sets.thresholds_[0, 0]), notes=notes)

    def sets(self, outputs: Any) -> PredictionSets:
        """Return a set of neighbouring levels for each item, for a coverage of 1 - ALPHA."""
        joined = compute_nonconformity_scores(self.probabilities(outputs)) <= self.threshold
        low = joined.argmax(axis=1)
        high = len(self.scale) - 1 - joined[:, ::-1].argmax(axis=1)
        return PredictionSets(self.scale, low, high)

    # --- plain values --------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, from which `from_dict` makes the same calibration."""
        return {
            "scale": list(self.scale.labels),
            "positions": list(self.scale.at),
            "names": list(self.scale.names),
            "decode": self.decode,
            "class_weights": _convert_to_json(self.class_weights),
            "scaling": None if self.scaling is None else list(map(_convert_to_json, self.scaling)),
            "odds": None if self.odds is None else self.odds.to_dict(),
            "gain": _convert_to_json(self.gain),
            "cuts": _convert_to_json(self.cuts),
            "threshold": _convert_to_json(np.array(self.threshold)),
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "OutputCalibration":
        """Return the calibration that `to_dict` described, or say what is wrong with that."""
        try:
            scale = Scale(data["scale"], positions=data["positions"], names=data["names"])
            decode, odds, notes = data["decode"], data["odds"], tuple(map(str, data["notes"]))
        except KeyError as missing:
            raise BadStore(f"A calibration lacks {missing}.") from None
        except (TypeError, ValueError, OverflowError) as problem:
            raise BadStore(f"A calibration cannot be read: {problem}") from None
        size = len(scale)
        scaling = parse_numbers(data, "scaling", (2, size))
        calibration = cls(
            scale=scale,
            decode=decode,
            class_weights=parse_numbers(data, "class_weights", (size,)),
            scaling=None if scaling is None else ScalingParameters(*scaling),
            odds=None if odds is None else ProportionalOdds.from_dict(odds),
            gain=parse_numbers(data, "gain", (size, size)),
            cuts=parse_numbers(data, "cuts", (size - 1,), finite=False),
            threshold=float(require_numbers(data, "threshold", finite=False)),
            notes=notes,
        )
        calibration._check()
        return calibration

    def _check(self) -> None:
        """Refuse steps that cannot work, or cannot work together."""
        size, decodes = len(self.scale), self.gain is not None or self.cuts is not None
        wrong = {
            f"decode {shorten(self.decode)} is not known": self.decode
            not in get_args(DecodeOption),
            "nothing leads to the levels of its metric": self.decode == "metric" and not decodes,
            "class weights are not above 0": self.class_weights is not None
            and not (self.class_weights > 0).all(),
            "cuts do not rise": self.cuts is not None
            and not (self.cuts[1:] >= self.cuts[:-1]).all(),
            "cuts are of scores, and it has no odds": self.cuts is not None and self.odds is None,
            f"its odds are not of {size} levels": self.odds is not None and self.odds.size != size,
            "the threshold of prediction sets is below 0": self.threshold < 0,
        }
        for problem, is_so in wrong.items():
            if is_so:
                raise BadStore(f"A calibration cannot be used: {problem}.")


def predict_rough_levels(outputs: Floats, gold: Positions, size: int) -> Positions:
    """Return levels without calibration, good enough to prune a trial early."""
    if outputs.ndim == 2:
        return _take_argmax(outputs)
    return _take_argmax(ProportionalOdds.fit(outputs, gold, size).probabilities(outputs))


# --- steps ---------------------------------------------------------------------------------------


def _normalize_rows(scale: Scale, outputs: Any) -> Floats:
    """Return rows that sum to 1 as exactly as they can: single precision sums to 1 only nearly."""
    rows = np.asarray(outputs, float)
    if rows.ndim != 2 or rows.shape[1] != len(scale):
        raise BadProbabilities(
            f"Outputs of the shape {rows.shape} are no probabilities of the {len(scale)} levels "
            f"{scale}: each level needs a column."
        )
    total = rows.sum(axis=1, keepdims=True)
    bad = ~(np.isfinite(rows).all(axis=1) & (rows >= 0).all(axis=1) & (total[:, 0] > 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise BadProbabilities(
            f"The model predicts {rows[row].tolist()} (item {row + 1}), which are no probabilities."
        )
    return rows / total


def _fit_scaling(
    scale: Scale, rows: Floats, gold: Positions, method: RecalibrationMethod
) -> ScalingParameters | None:
    """Recalibrate, unless there is nothing to learn from."""
    labels, columns = make_label_array(scale)[gold], scale.labels
    if not len(labels):
        return None
    if method == "vector":
        scaling = VectorScaling(scale, columns=columns).fit(rows, labels)
        return ScalingParameters(scaling.slopes_, scaling.offsets_)
    slope = 1.0 / TemperatureScaling(scale, columns=columns).fit(rows, labels).temperature_
    return ScalingParameters(np.full(len(scale), slope), np.zeros(len(scale)))


def _take_argmax(probabilities: Floats) -> Positions:
    return probabilities.argmax(axis=1) if len(probabilities) else np.empty(0, np.intp)


def _round_mean(scale: Scale, probabilities: Floats) -> Positions:
    mean = probabilities @ scale.positions
    distances = np.abs(mean[:, None] - scale.positions).round(DISTANCE_DECIMALS)
    return distances.argmin(axis=1)


def _convert_to_json(numbers: Floats | None) -> Any:
    """Return numbers as JSON knows them: the infinities as strings."""
    return None if numbers is None else _spell_infinities(numbers.tolist())


def _spell_infinities(value: float | Sequence[Any]) -> Any:
    if isinstance(value, list):
        return [_spell_infinities(part) for part in value]
    return value if np.isfinite(value) else str(value)
