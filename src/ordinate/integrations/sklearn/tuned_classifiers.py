"""Classifiers that learn out of fold what the estimator inside them lacks.

Each fits clones of an estimator in cross-validation, learns from what these predict for the items
that they have not seen, and fits the estimator to all items: decision rules that are optimal for a
metric, recalibrated probabilities, prediction sets, cut points of a regressor.
"""

import warnings
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _check_method_params,
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
)

from ordinate.errors import BadOption, shorten
from ordinate.metrics import Metric, find_metric
from ordinate.postprocess import (
    CutPoints,
    Decoder,
    OrdinalConformalSets,
    PredictionSets,
    make_recalibration,
)
from ordinate.postprocess.conformal_sets import RiskControl, SetRule
from ordinate.postprocess.decoding_costs import choose_levels, plan_decoding
from ordinate.postprocess.estimator import encode_gold_levels
from ordinate.postprocess.recalibration import Recalibration
from ordinate.scale import Scale, resolve_scale
from ordinate.scale.labels import convert_to_python
from ordinate.summaries.tabulation import encode_positions

Bools = NDArray[np.bool]
Floats = NDArray[np.float64]
Positions = NDArray[np.intp]
ScaleDeclaration = Scale | str | Iterable[Hashable] | None


class OutOfFold(NamedTuple):
    """What clones of the estimator predict for items that they were not fitted to."""

    outputs: Floats  # [N, L] probabilities of the levels, lowest first, or scores [N]
    labels: NDArray[Any]
    weights: Floats | None
    seen: Bools  # whether the clone had items of this label

    def select(self, rows: Bools) -> "OutOfFold":
        """Return some of the items."""
        parts = (None if part is None else part[rows] for part in self)
        return OutOfFold(*parts)  # type: ignore[arg-type] # only weights may be None


class _OutOfFoldClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc] # - untyped
    """Cross-validation of the estimator inside, and the levels that it was fitted to."""

    estimator: Any
    scale: ScaleDeclaration
    cv: Any
    n_jobs: int | None
    estimator_: Any
    classes_: NDArray[Any]  # sorted, as everywhere in scikit-learn
    scale_: Scale
    level_places_: Positions  # on the scale, of the levels that occur, lowest first
    level_columns_: Positions  # of these levels among `classes_`
    _method = "predict_proba"  # of the estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:  # noqa: N803 - scikit-learn's name
        """Fit the estimator to all items, and learn from its out-of-fold outputs.

        Weights are those of the estimator, if it takes any, and of what is learned, but for
        prediction sets. `fit_params` go to the estimator or, with metadata routing, where they were
        requested.
        """
        features, labels = indexable(X, y)
        scale = resolve_scale(self.scale, labels)
        labels = column_or_1d(labels, warn=True)
        check_classification_targets(labels)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, features, dtype=float, ensure_non_negative=True
            )
        to_fit, to_split = self._route_parameters(weights, fit_params)
        targets = self._make_targets(encode_gold_levels(scale, labels), scale, labels)
        self.estimator_ = clone(self.estimator).fit(features, targets, **to_fit)
        self._set_attributes(scale, labels)
        splitter = check_cv(self.cv, labels, classifier=True)
        splits = list(splitter.split(features, labels, **to_split))
        folds = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_and_predict)(
                clone(self.estimator), features, targets, split, to_fit, self._method
            )
            for split in splits
        )
        self._learn(self._collect_outputs(folds, splits, labels, weights))
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Return what is routed to the estimator and to the splitter."""
        fitting = MethodMapping().add(caller="fit", callee="fit")
        splitting = MethodMapping().add(caller="fit", callee="split")
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=fitting)
            .add(splitter=self.cv, method_mapping=splitting)
        )

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator).input_tags
        tags.input_tags.sparse = inner.sparse
        tags.input_tags.allow_nan = inner.allow_nan
        tags.input_tags.pairwise = inner.pairwise
        return tags

    # --- what a classifier of this kind says -----------------------------------------------------

    def _learn(self, items: OutOfFold) -> None:
        """Learn from out-of-fold outputs."""
        raise NotImplementedError

    def _make_targets(self, levels: Positions, scale: Scale, labels: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002 - what a regressor is fitted to
        """Return what the estimator is fitted to."""
        return labels

    def _arrange_outputs(self, outputs: Any, classes: NDArray[Any]) -> Floats:
        """Return the probabilities of the levels, lowest first; a level that is no class has 0."""
        rows = np.asarray(outputs, float)
        placed = np.zeros((len(rows), len(self.classes_)))
        placed[:, np.searchsorted(self.classes_, classes)] = rows
        return placed[:, self.level_columns_] / rows.sum(axis=1, keepdims=True)

    # --- parts of fitting ------------------------------------------------------------------------

    def _collect_outputs(
        self,
        folds: list[tuple[Any, Any]],
        splits: list[tuple[Any, Any]],
        labels: NDArray[Any],
        weights: Floats | None,
    ) -> OutOfFold:
        """Return the items of all folds, one after the other, whatever the splitter leaves out."""
        tested = [np.arange(len(labels))[test] for _, test in splits]
        rows = np.concatenate(tested)
        seen = [
            np.isin(labels[test], labels if classes is None else classes)
            for test, (_, classes) in zip(tested, folds, strict=True)
        ]
        return OutOfFold(
            np.concatenate([self._arrange_outputs(*fold) for fold in folds]),
            labels[rows],
            None if weights is None else weights[rows],
            np.concatenate(seen),
        )

    def _route_parameters(
        self, weights: Floats | None, given: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the parameters of the estimator's fit, and those of the splitter."""
        weighted = given if weights is None else {"sample_weight": weights, **given}
        if _routing_enabled():
            routed = process_routing(self, "fit", **weighted)
            return routed.estimator.fit, routed.splitter.split
        if weights is None or has_fit_parameter(self.estimator, "sample_weight"):
            return weighted, {}
        warnings.warn(
            f"{type(self.estimator).__name__} takes no sample_weight: it is fitted without. "
            "Metadata routing reaches the steps of pipelines.",
            stacklevel=3,
        )
        return given, {}

    def _set_attributes(self, scale: Scale, labels: NDArray[Any]) -> None:
        """Keep the labels that occur, in their sorted order and in that of the scale."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        known = getattr(self.estimator_, "classes_", labels)  # a frozen one may know others
        self.classes_ = np.unique(np.append(labels, known))
        if len(self.classes_) < 2:
            only = shorten(convert_to_python(self.classes_[0]))
            raise ValueError(
                f"{type(self).__name__} cannot learn from one class only: {only}. Pass items of "
                "two classes or more."
            )
        places = encode_positions(scale, self.classes_, "the classes of the estimator")
        self.scale_ = scale
        self.level_columns_ = places.argsort()
        self.level_places_ = places[self.level_columns_].astype(np.intp)

    def _list_levels(self) -> Scale:
        """Return the levels that occur, as far apart as they are on the scale."""
        labels = [convert_to_python(self.classes_[column]) for column in self.level_columns_]
        return Scale(labels, positions=self.scale_.positions[self.level_places_].tolist())

    def _name_levels(self, levels: Positions) -> NDArray[Any]:
        """Return the labels of levels that are numbered among those that occur."""
        return self.classes_[self.level_columns_[levels]]


class _ProbabilisticClassifier(_OutOfFoldClassifier):
    """Probabilities of the levels, by the sorted labels, and the most probable one."""

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803 - scikit-learn's name
        """Return the most probable label of each row, the lowest of equals."""
        return self._name_levels(self._compute_level_probabilities(X).argmax(axis=1))

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803 - scikit-learn's name
        """Return the probability of each label of `classes_`."""
        rows = self._compute_level_probabilities(X)
        placed = np.empty_like(rows)
        placed[:, self.level_columns_] = rows
        return placed

    def _compute_level_probabilities(self, features: Any) -> Floats:
        """Return the probability of each level, lowest first."""
        check_is_fitted(self, "estimator_")
        outputs = self.estimator_.predict_proba(features)
        return self._arrange_outputs(outputs, self.estimator_.classes_)


class RecalibratedClassifierCV(_ProbabilisticClassifier):
    """Probabilities of a classifier, recalibrated on its out-of-fold probabilities.

    `method` is 'temperature' (one for all levels), 'vector' (a slope and an offset for each) or
    'isotonic' (a rising curve for each of the events "at most this level"). `recalibration_` is
    what was fitted: an estimator of `ordinate.postprocess`. A classifier that is fitted already is
    recalibrated on held-out items as `FrozenEstimator(classifier)`.

    >>> from sklearn.linear_model import LogisticRegression
    >>> features, labels = [[k / 10] for k in range(30)], ["low"] * 9 + ["mid"] * 12 + ["high"] * 9
    >>> model = RecalibratedClassifierCV(LogisticRegression(), scale="low,mid,high")
    >>> model.fit(features, labels).classes_.tolist()
    ['high', 'low', 'mid']
    >>> model.predict_proba([[0.0]]).round(1).tolist()
    [[0.0, 1.0, 0.0]]
    """

    recalibration_: Recalibration

    def __init__(
        self,
        estimator: Any,
        method: str = "temperature",
        *,
        scale: ScaleDeclaration = None,
        cv: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.scale = scale
        self.cv = cv
        self.n_jobs = n_jobs

    def _learn(self, items: OutOfFold) -> None:
        self.recalibration_ = _fit_recalibration(self.method, self._list_levels(), items)

    def _compute_level_probabilities(self, features: Any) -> Floats:
        rows = super()._compute_level_probabilities(features)
        return self.recalibration_.predict_proba(rows)


class MetricTunedClassifierCV(_ProbabilisticClassifier):
    """The labels that a metric rewards most, by a decision rule that is learned out of fold.

    It is to metrics of ordered labels what `TunedThresholdClassifierCV` is to those of two classes.
    The estimator's out-of-fold probabilities are decoded for the `metric`: a name, an expression
    such as 'weighted_kappa(power=1)' or a metric. For sums over the items and for kappas no other
    rule has a better expected value. `recalibration` comes before that where it is 'temperature',
    'vector' or 'isotonic'; a temperature does harm to forests, whose probabilities are often 0.

    `recalibration_` and `decoder_` are what was fitted: estimators of `ordinate.postprocess`.
    `predict_proba` has the recalibrated probabilities, of which `predict` need not take the
    highest. A label that `y` lacks is never predicted. Where no rule is expected to beat chance,
    the most probable label is predicted, with a warning.

    >>> from sklearn.linear_model import LogisticRegression
    >>> features, labels = [[k / 10] for k in range(30)], ["low"] * 9 + ["mid"] * 12 + ["high"] * 9
    >>> model = MetricTunedClassifierCV(LogisticRegression(), "mae", scale="low,mid,high")
    >>> model.fit(features, labels).predict([[0.2], [1.5], [2.8]]).tolist()
    ['low', 'mid', 'high']
    """

    recalibration_: Recalibration | None
    decoder_: Decoder

    def __init__(
        self,
        estimator: Any,
        metric: str | Metric = "quadratic_kappa",
        *,
        scale: ScaleDeclaration = None,
        recalibration: str | None = None,
        cv: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.scale = scale
        self.recalibration = recalibration
        self.cv = cv
        self.n_jobs = n_jobs

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803 - scikit-learn's name
        """Return the label of each row that the metric rewards most."""
        rows = self._compute_level_probabilities(X)
        occurring = np.ix_(self.level_places_, self.level_places_)
        return self._name_levels(choose_levels(rows, self.decoder_.gain_[occurring]))

    def _learn(self, items: OutOfFold) -> None:
        self.recalibration_, rows = None, items.outputs
        if self.recalibration is not None:
            levels = self._list_levels()
            self.recalibration_ = _fit_recalibration(self.recalibration, levels, items)
            rows = self.recalibration_.predict_proba(rows)
        placed = np.zeros((len(rows), len(self.scale_)))
        placed[:, self.level_places_] = rows
        self.decoder_ = self._fit_decoder(placed, items)

    def _fit_decoder(self, rows: Floats, items: OutOfFold) -> Decoder:
        """Return the decoder of the metric, or argmax where none is expected to beat chance."""
        plan_decoding(find_metric(self.metric), self.scale_)  # refuses what has no decision rule
        decoder = Decoder(self.metric, self.scale_, columns=self.scale_.labels)
        try:
            return decoder.fit(rows, items.labels, items.weights)
        except BadOption as reason:
            warnings.warn(f"{reason} The most probable label is predicted instead.", stacklevel=5)
        return Decoder("accuracy", self.scale_).fit()

    def _compute_level_probabilities(self, features: Any) -> Floats:
        rows = super()._compute_level_probabilities(features)
        return rows if self.recalibration_ is None else self.recalibration_.predict_proba(rows)


class ConformalClassifierCV(_ProbabilisticClassifier):
    """Prediction sets of neighbouring levels, with conformal thresholds learned out of fold.

    `predict_sets` returns sets that hold the label for a share 1 - alpha of new items; `predict`
    and `predict_proba` are the estimator's. `rule`, `control` and `per_level` are those of
    `OrdinalConformalSets`, which is fitted as `sets_`. The guarantee is exact for a classifier that
    was fitted to other items: `FrozenEstimator(classifier)`. Otherwise the thresholds are those of
    clones that were fitted to fewer items, and coverage is usually a little higher. It is a share
    of items: a `sample_weight` is passed on to the estimator and plays no other part.

    >>> from sklearn.linear_model import LogisticRegression
    >>> features, labels = [[k / 10] for k in range(30)], ["low"] * 9 + ["mid"] * 12 + ["high"] * 9
    >>> model = ConformalClassifierCV(LogisticRegression(), alpha=0.05, scale="low,mid,high")
    >>> sets = model.fit(features, labels).predict_sets([[0.0], [0.8]])
    >>> sets.low.tolist(), sets.high.tolist()
    (['low', 'low'], ['low', 'mid'])
    """

    sets_: OrdinalConformalSets

    def __init__(
        self,
        estimator: Any,
        alpha: float = 0.1,
        *,
        scale: ScaleDeclaration = None,
        rule: SetRule = "greedy",
        control: RiskControl = "coverage",
        per_level: bool = False,
        cv: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.scale = scale
        self.rule = rule
        self.control = control
        self.per_level = per_level
        self.cv = cv
        self.n_jobs = n_jobs

    def predict_sets(self, X: Any) -> PredictionSets:  # noqa: N803 - scikit-learn's name
        """Return the prediction set of each row."""
        return self.sets_.predict(self._compute_level_probabilities(X))

    def _learn(self, items: OutOfFold) -> None:
        levels = self._list_levels()
        sets = OrdinalConformalSets(
            self.alpha,
            scale=levels,
            rule=self.rule,
            control=self.control,
            per_level=self.per_level,
            columns=levels.labels,
        )
        self.sets_ = sets.fit(items.outputs, items.labels)


class CutPointClassifierCV(_OutOfFoldClassifier):
    """A classifier made of a regressor: its predictions, cut where a metric is best out of fold.

    The regressor is fitted to the positions of the levels on the scale. `cuts_` are the K - 1 cuts
    between the levels that occur, found by `CutPoints`, which is fitted as `cut_points_`.

    >>> from sklearn.linear_model import Ridge
    >>> features, labels = [[k / 10] for k in range(30)], ["low"] * 9 + ["mid"] * 12 + ["high"] * 9
    >>> model = CutPointClassifierCV(Ridge(), "quadratic_kappa", scale="low,mid,high")
    >>> model.fit(features, labels).predict([[0.2], [1.5], [2.8]]).tolist()
    ['low', 'mid', 'high']
    """

    cut_points_: CutPoints
    cuts_: Floats
    _method = "predict"

    def __init__(
        self,
        estimator: Any,
        metric: str | Metric = "quadratic_kappa",
        *,
        scale: ScaleDeclaration = None,
        cv: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.scale = scale
        self.cv = cv
        self.n_jobs = n_jobs

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803 - scikit-learn's name
        """Return the label of the level between whose cuts each prediction lies."""
        check_is_fitted(self, "estimator_")
        scores = self._arrange_outputs(self.estimator_.predict(X))
        return self._name_levels(np.searchsorted(self.cuts_, scores))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on classes without an order, which checks use
        return tags

    def _learn(self, items: OutOfFold) -> None:
        self.cut_points_ = CutPoints(self.metric, scale=self._list_levels())
        self.cut_points_.fit(items.outputs, items.labels, items.weights)
        self.cuts_ = self.cut_points_.cuts_

    def _make_targets(self, levels: Positions, scale: Scale, labels: NDArray[Any]) -> Floats:  # noqa: ARG002 - what a classifier is fitted to
        return scale.positions[levels]

    def _arrange_outputs(self, outputs: Any, classes: Any = None) -> Floats:  # noqa: ARG002 - a classifier's
        return np.asarray(outputs, float).reshape(len(outputs))


def _fit_recalibration(method: str, levels: Scale, items: OutOfFold) -> Recalibration:
    """Return the recalibration of the levels that occur, learned from labels that were seen."""
    recalibration = make_recalibration(method, levels, columns=levels.labels)
    known = items.select(items.seen)  # the others have 0, which says nothing of how sure it is
    return recalibration.fit(known.outputs, known.labels, known.weights)


def _fit_and_predict(
    estimator: Any,
    features: Any,
    targets: Any,
    split: tuple[Any, Any],
    fit_params: dict[str, Any],
    method: str,
) -> tuple[Any, Any]:
    """Return what an estimator predicts for the rest of the items, and its classes."""
    train, test = split
    part, learned = _safe_split(estimator, features, targets, train)
    rest, _ = _safe_split(estimator, features, targets, test, train)
    estimator.fit(part, learned, **_check_method_params(features, fit_params, indices=train))
    return getattr(estimator, method)(rest), getattr(estimator, "classes_", None)
