"""Which method the confidence interval of each metric gets: what the coverage studies chose."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ordinate.errors import BadOption
from ordinate.inference.clusters import describe_cluster_doubts, list_level_trials
from ordinate.inference.small_samples import (
    RARE_ITEMS,
    aggregates_levels,
    describe_undercoverage,
    find_rare_levels,
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
    """The methods for the metrics of one confusion matrix, or of the clusters that make it up."""

    matrix: ConfusionMatrix
    clusters: ConfusionMatrix | None  # a batch of them
    requested: IntervalMethod | None = None
    stratified: bool = False

    def plan(self, metric: Metric) -> tuple[IntervalMethod, str | None]:
        """Return the method for a metric, and why, where it is not the usual one."""
        requested = self.requested
        misfit = None if requested is None else self._explain_misfit(metric, requested)
        method = requested if requested and misfit is None else self.choose(metric)
        if self.clusters is not None:
            doubts = describe_cluster_doubts(metric, self.clusters)
            return method, "; ".join(filter(None, (misfit, doubts))) or None
        if requested is not None:
            return method, misfit
        notes = [None if self.matrix.has_integer_weights else "fractional weights"]
        if metric.macro and self._rare_levels and method not in {"mover", "simultaneous"}:
            notes.append(f"fewer than {RARE_ITEMS} items of {', '.join(self._rare_levels)}")
        if self.matrix.has_integer_weights:
            notes.append(describe_undercoverage(metric, self.matrix))
        return method, "; ".join(filter(None, notes)) or None

    def choose(self, metric: Metric) -> IntervalMethod:
        """Return the method for a metric that is used where none is requested."""
        if self.clusters is not None:
            return choose_cluster_method(metric, self.clusters)
        if aggregates_levels(metric, self.matrix):
            return METHOD_OVER_LEVELS[metric.macro]
        if metric.macro:
            return "percentile"
        if not self.matrix.has_integer_weights:
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
        clustered, counted = self.clusters is not None, self.matrix.has_integer_weights
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
                levels and not aggregates_levels(metric, self.matrix),
                "the scale has too many levels",
            ),
            (method in NONDEGENERATE_METHODS and not plain, "the items are no plain counts"),
        ]
        return next((why for is_wrong, why in wrong if is_wrong), None)

    @cached_property
    def _rare_levels(self) -> list[str]:
        return find_rare_levels(self.matrix)
