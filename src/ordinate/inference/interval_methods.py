"""Which method the confidence interval of each metric gets: what the coverage studies chose."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption
from ordinate.inference.clusters import (
    describe_cluster_doubts,
    list_item_trials,
    list_level_trials,
)
from ordinate.inference.small_samples import (
    RARE_ITEMS,
    aggregates_levels,
    are_rare,
    describe_undercoverage,
    find_studied_case,
)
from ordinate.metrics import Metric
from ordinate.metrics.catalogue import Macro
from ordinate.summaries import ConfusionMatrix

IntervalMethod = Literal[
    "delta",
    "percentile",
    "bca",
    "wilson",
    "mover",
    "simultaneous",
    "dirichlet",
    "jeffreys",
    "jackknife",
    "t",
    "studentized",
]
# Methods whose intervals always have a width.
NONDEGENERATE_METHODS = {"wilson", "mover", "simultaneous", "dirichlet", "jeffreys"}
MISFITS_OF_LEVELS = {
    "wilson": "it is no plain share of the items",
    "mover": "it is no mean over gold levels",
    "simultaneous": "it is not the worst of gold levels",
}
MOST_RESAMPLED = 50  # matrices of one report that are resampled one by one
MANY_NOTE = f"of more than {MOST_RESAMPLED} tables none is resampled"
NO_DERIVATIVE_NOTE = "it has no derivative where levels or paths tie"

# The shortest method that covers well in the coverage study, by family of metrics.
METHOD_BY_FAMILY: dict[str, IntervalMethod] = {
    "agreement": "delta",
    "closeness": "delta",
    "clustering": "jeffreys",
    "distance": "delta",
    "per level": "delta",
    "ranking": "delta",
}
# For metrics without a derivative, and for families of other people.
METHOD_WITHOUT_DERIVATIVE: IntervalMethod = "bca"
METHOD_OVER_LEVELS: dict[Macro, IntervalMethod] = {
    "mean": "mover",
    "worst": "simultaneous",
    "other": "percentile",
}


def choose_interval_method(metric: Metric) -> IntervalMethod:
    """Return the method of a metric for plain counts: what the coverage study chose."""
    if metric.share:
        return "wilson"
    if metric.macro:
        return METHOD_OVER_LEVELS[metric.macro]
    return (
        METHOD_BY_FAMILY.get(metric.family, METHOD_WITHOUT_DERIVATIVE)
        if metric.smooth
        else METHOD_WITHOUT_DERIVATIVE
    )


def choose_cluster_method(metric: Metric, clusters: ConfusionMatrix) -> IntervalMethod:
    """Return the method of a metric for items in clusters: what the study of clusters chose."""
    if list_level_trials(metric, clusters) is None:
        return "jackknife"
    if metric.share:
        return "wilson"
    return "simultaneous" if metric.macro == "worst" else "mover"


@dataclass(frozen=True)
class MethodChoice:
    """The methods for the metrics of matrices [T] that are alike, or of the clusters of one.

    `many` says that there are too many matrices to resample each.
    """

    matrices: ConfusionMatrix
    clusters: ConfusionMatrix | None  # a batch of them
    requested: IntervalMethod | None = None
    stratified: bool = False
    many: bool = False

    def plan(self, metric: Metric) -> tuple[IntervalMethod, list[str | None]]:
        """Return the method for a metric, and why for each matrix, where it is not the usual."""
        requested = self.requested
        misfit = None if requested is None else self._explain_misfit(metric, requested)
        method = requested if requested and misfit is None else self.choose(metric)
        count = len(self.matrices.weights)
        if self.clusters is not None:
            return method, [join_notes(misfit, describe_cluster_doubts(metric, self.clusters))]
        if requested is not None:
            return method, [misfit] * count
        if self._has_many_ratios(metric):
            return method, [MANY_NOTE] * count
        whole = self.matrices.has_integer_weights
        parts: list[list[str | None]] = [[None if whole else "fractional weights"] * count]
        if metric.macro and method not in {"mover", "simultaneous"}:
            parts.append(self._rare_notes)
        if whole:
            parts.append(self._describe_undercoverage(metric))
        return method, [join_notes(*each) for each in zip(*parts, strict=True)]

    def choose(self, metric: Metric) -> IntervalMethod:
        """Return the method for a metric that is used where none is requested."""
        if self.clusters is not None:
            return choose_cluster_method(metric, self.clusters)
        if aggregates_levels(metric, self.matrices):
            return METHOD_OVER_LEVELS[metric.macro]
        if metric.macro:
            return "mover" if self._has_many_ratios(metric) else "percentile"
        if not self.matrices.has_integer_weights:
            return "delta" if metric.smooth else "percentile"
        if metric.share and self.stratified:
            return "delta"
        return choose_interval_method(metric)

    def refuse_misfits(self, metrics: Sequence[Metric]) -> None:
        """Refuse a requested method that fits none of the metrics."""
        requested = self.requested
        misfits = [] if requested is None else [self._explain_misfit(m, requested) for m in metrics]
        if misfits and all(misfits):
            name = metrics[0].expression
            raise BadOption(
                f"The method {requested!r} does not fit {name}: {misfits[0]}. Leave it out, and "
                f"the method is {self.choose(metrics[0])!r}."
            )

    def _explain_misfit(self, metric: Metric, method: IntervalMethod) -> str | None:
        """Return why a method makes no sense for a metric here, if it makes none."""
        clustered, counted = self.clusters is not None, self.matrices.has_integer_weights
        if self.clusters is not None and method in MISFITS_OF_LEVELS:
            fits = choose_cluster_method(metric, self.clusters) == method
            return None if fits else MISFITS_OF_LEVELS[method]
        levels = method in {"mover", "simultaneous"}  # they know what weights say
        plain = not clustered and (counted or levels)
        reasons: dict[str, list[tuple[bool, str]]] = {
            "delta": [(not metric.smooth, NO_DERIVATIVE_NOTE)],
            "studentized": [(True, "it is for the metrics of a regression")],
            "wilson": [(not metric.share, MISFITS_OF_LEVELS["wilson"])],
            "mover": [(metric.macro != "mean", MISFITS_OF_LEVELS["mover"])],
            "simultaneous": [(metric.macro != "worst", MISFITS_OF_LEVELS["simultaneous"])],
            "jackknife": [(not clustered, "there are no clusters")],
            "t": [
                (not clustered, "there are no clusters"),
                (not metric.smooth, NO_DERIVATIVE_NOTE),
            ],
            "bca": [(not (clustered or counted), "the weights are no counts")],
        }
        wrong = [
            *reasons.get(method, []),
            (
                levels and not aggregates_levels(metric, self.matrices),
                "the scale has too many levels",
            ),
            (method in NONDEGENERATE_METHODS and not plain, "the items are no plain counts"),
        ]
        return next((why for is_wrong, why in wrong if is_wrong), None)

    def _has_many_ratios(self, metric: Metric) -> bool:
        """Tell whether a metric of ratios of levels has too many matrices to resample each."""
        return (
            self.many
            and metric.macro == "other"
            and not self.stratified
            and list_item_trials(metric, self.matrices[:1]) is not None
        )

    @cached_property
    def _rare_notes(self) -> list[str | None]:
        """Which levels of each matrix are rare, None where none is."""
        names = np.array(self.matrices.scale.names, object)
        named = [", ".join(names[rare]) for rare in are_rare(self.matrices)]
        return [f"fewer than {RARE_ITEMS} items of {x}" if x else None for x in named]

    @cached_property
    def _studied_cases(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """One matrix of each case that the coverage study tells apart, and the case of each."""
        cases = np.stack(find_studied_case(self.matrices), axis=-1)
        _, first, case = np.unique(cases, axis=0, return_index=True, return_inverse=True)
        return first, case.reshape(-1)

    def _describe_undercoverage(self, metric: Metric) -> list[str | None]:
        first, case = self._studied_cases
        notes = [describe_undercoverage(metric, self.matrices[place]) for place in first]
        return [notes[index] for index in case]


def join_notes(*notes: str | None) -> str | None:
    """Return notes as one, None where there are none."""
    return "; ".join(filter(None, notes)) or None
