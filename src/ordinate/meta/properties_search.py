"""The search: every small case of every property, and the smallest one that a metric fails."""

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, NotApplicable, suggest_names
from ordinate.inference.resampling import ProgressCallback
from ordinate.meta.properties import (
    PROPERTIES,
    CasePairs,
    MetricProperty,
    enumerate_matrices,
)
from ordinate.metrics import Metric, find_metric
from ordinate.metrics.catalogue import AXES_HINT
from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]
Verdict = Literal["violated", "tie_only", "not_violated", "undefined"]

ROUNDING_TOLERANCE = (
    1e-9  # relative to the size of values; real differences of so few items are far larger
)
THREADS = 2


@dataclass(frozen=True)
class Counterexample:
    """A case that a person can check: labels are numbers, and stand where they say."""

    scale: tuple[int, ...]
    gold: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    values: tuple[float, float]
    scale_after: tuple[int, ...] | None = None  # where scale or gold are other ones afterwards
    gold_after: tuple[int, ...] | None = None


@dataclass
class CaseTally:
    """Counts of the cases of a property so far, smallest cases first."""

    cases: int = 0
    undefined: int = 0
    ties: int = 0
    violations: int = 0
    low: float = math.inf  # of all values
    high: float = -math.inf
    tie: Counterexample | None = None
    violation: Counterexample | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict of all cases together."""
        if self.violations:
            return "violated"
        if self.ties:
            return "tie_only"
        return "not_violated" if self.cases else "undefined"

    @property
    def example(self) -> Counterexample | None:
        """The smallest case that speaks for the verdict."""
        return self.violation or self.tie


@dataclass
class PropertyFinding:
    """A property of a metric, over gold in which every level occurs, and over any gold."""

    property: MetricProperty
    sizes: dict[int, int]
    full_gold: CaseTally = field(default_factory=CaseTally)
    any_gold: CaseTally = field(default_factory=CaseTally)
    variants: dict[str, CaseTally] = field(default_factory=dict)  # of full gold
    reason: str | None = None  # why it cannot be checked


@dataclass
class PropertyCheck:
    """The findings about one metric."""

    metric: Metric
    findings: dict[str, PropertyFinding]
    matrices: int = 0  # on which the metric was computed
    levels: tuple[int, ...] = ()  # numbers of levels for which it can be computed
    size: float = 1.0  # of its values, for what counts as rounding


def check_properties(
    metrics: "Metric | str | Iterable[Metric | str]",
    properties: Sequence[str] = tuple(PROPERTIES),
    most_items: int | None = None,
    progress: ProgressCallback | None = None,
) -> list[PropertyCheck]:
    """Search all small cases of properties, and return the findings about each metric.

    `most_items` bounds the search further. No violation is no proof: only small cases are tried.
    """
    if most_items is not None and most_items < 1:
        raise BadOption(f"most_items={most_items!r} is not an integer of at least 1.")
    selection = [metrics] if isinstance(metrics, (Metric, str)) else metrics
    laws = [_limit_sizes(find_property(name), most_items) for name in properties]
    checks = [_probe_metric(find_metric(metric), laws) for metric in selection]
    computable = [check for check in checks if check.levels]
    if not computable:
        return checks
    sizes = sorted({(n, k) for _, most in laws for k in most for n in range(1, most[k] + 1)})
    work = np.cumsum([_count_matrices(levels, items) for items, levels in sizes])
    with ThreadPoolExecutor(THREADS) as pool:
        for (items, levels), done in zip(sizes, work, strict=True):
            applicable = [law for law, most in laws if items <= most.get(levels, 0)]
            cases = {law.name: list(law.cases(levels, items)) for law in applicable}
            fitting = [check for check in computable if levels in check.levels]
            list(pool.map(partial(_evaluate_cases, cases_by_property=cases), fitting))
            if progress is not None:
                progress(float(done / work[-1]))
    enumerate_matrices.cache_clear()
    return checks


def find_property(name: str) -> MetricProperty:
    """Return a property by its name, or say which ones there are."""
    plain = str(name).strip().lower().replace(" ", "_")
    if plain not in PROPERTIES:
        raise BadOption(
            f"There is no property {name!r}.{suggest_names(plain, [*PROPERTIES])} There are: "
            f"{', '.join(PROPERTIES)}."
        )
    return PROPERTIES[plain]


def _count_matrices(levels: int, items: int) -> float:
    return float(np.prod([(items + k) / k for k in range(1, levels**2)]))


def _limit_sizes(
    law: MetricProperty, most_items: int | None
) -> tuple[MetricProperty, dict[int, int]]:
    most = most_items or max(law.sizes.values())
    return law, {levels: min(items, most) for levels, items in law.sizes.items()}


def _probe_metric(
    metric: Metric, laws: list[tuple[MetricProperty, dict[int, int]]]
) -> PropertyCheck:
    """Find out for which numbers of levels a metric can be computed, and how large it is."""
    levels, problem, size = [], None, 0.0
    for count in range(2, 2 + max(max(most) for _, most in laws)):
        _, matrices, _ = enumerate_matrices(count, 3)
        sample = matrices[np.linspace(0, len(matrices.weights) - 1, 40).astype(int)]
        try:
            with np.errstate(all="ignore"):
                values = np.asarray(metric(sample), float)
        except (BadOption, NotApplicable) as reason:
            problem = problem or reason
            continue
        _refuse_unbatched(metric, sample, values)
        levels.append(count)
        size = max(size, float(np.abs(values[np.isfinite(values)]).max(initial=0.0)))
    if problem is not None and not levels and not metric.required:
        raise problem
    findings = {
        law.name: PropertyFinding(
            law,
            {k: n for k, n in most.items() if k in levels},
            reason=None if levels else str(problem),
        )
        for law, most in laws
    }
    return PropertyCheck(metric, findings, levels=tuple(levels), size=size or 1.0)


def _refuse_unbatched(metric: Metric, matrices: ConfusionMatrix, together: Array) -> None:
    """Refuse a metric whose values of a batch are not those of each matrix alone."""
    with np.errstate(all="ignore"):
        alone = [float(metric(matrices[index])) for index in range(len(matrices.weights))]
    if not np.allclose(together, alone, equal_nan=True):
        raise BadOption(
            f"{metric.name} gives other values for many matrices at once than for each alone. "
            f"{AXES_HINT}"
        )


def _evaluate_cases(check: PropertyCheck, cases_by_property: dict[str, list[CasePairs]]) -> None:
    values: dict[int, Array] = {}

    def compute_values(matrices: ConfusionMatrix) -> Array:
        if id(matrices) not in values:
            with np.errstate(all="ignore"):
                values[id(matrices)] = np.asarray(check.metric(matrices), float)
            check.matrices += len(matrices.weights)
        return values[id(matrices)]

    for name, pairs in cases_by_property.items():
        for cases in pairs:
            if len(cases.after.scale) in check.levels:
                _tally_cases(check, check.findings[name], cases, compute_values)


def _tally_cases(
    check: PropertyCheck,
    finding: PropertyFinding,
    cases: CasePairs,
    compute_values: Callable[[ConfusionMatrix], Array],
) -> None:
    before, after = (
        compute_values(cases.before)[cases.first],
        compute_values(cases.after)[cases.second],
    )
    finite = np.isfinite(before) & np.isfinite(after)
    sizes = np.where(finite, np.maximum(np.abs(before), np.abs(after)), 0.0)
    tolerance = ROUNDING_TOLERANCE * np.maximum(check.size, sizes)
    with np.errstate(invalid="ignore"):  # infinities of one sign are equal
        old, new = check.metric.merit(before), check.metric.merit(after)
        gain = np.where(before == after, 0.0, new - old)
        apart = np.where(before == after, 0.0, np.abs(after - before))
    undefined = np.isnan(before) | np.isnan(after)
    if finding.property.relation == "better":
        wrong, ties = gain < -tolerance, np.abs(gain) <= tolerance
    else:
        wrong, ties = apart > tolerance, np.zeros(len(before), bool)
    full = _has_every_level(cases)
    scopes = [
        (finding.any_gold, ~undefined, undefined),
        (finding.full_gold, full & ~undefined, full & undefined),
    ]
    if cases.variant:
        tally = finding.variants.setdefault(cases.variant, CaseTally())
        scopes.append((tally, full & ~undefined, full & undefined))
    for tally, selected, excluded in scopes:
        tally.cases += int(selected.sum())
        tally.undefined += int(excluded.sum())
        tally.ties += int((ties & selected).sum())
        tally.violations += int((wrong & selected).sum())
        known = np.concatenate([before[selected & finite], after[selected & finite]])
        tally.low = min(tally.low, float(known.min(initial=math.inf)))
        tally.high = max(tally.high, float(known.max(initial=-math.inf)))
        if tally.violation is None and (wrong & selected).any():
            tally.violation = _make_example(cases, int(np.argmax(wrong & selected)), before, after)
        if tally.tie is None and (ties & selected).any():
            tally.tie = _make_example(cases, int(np.argmax(ties & selected)), before, after)


def _has_every_level(cases: CasePairs) -> NDArray[np.bool_]:
    """Tell in which cases every level occurs in gold, before and after; a new level need not."""
    before = (cases.before.gold[cases.first] > 0).all(axis=-1)
    if len(cases.before.scale) != len(cases.after.scale):
        return np.asarray(before)
    return np.asarray(before & (cases.after.gold[cases.second] > 0).all(axis=-1))


def _make_example(cases: CasePairs, index: int, before: Array, after: Array) -> Counterexample:
    first, second = cases.before[cases.first[index]], cases.after[cases.second[index]]
    gold, old = _list_items(first)
    gold_after, new = _list_items(second)
    values = float(before[index]), float(after[index])
    scale, scale_after = _get_labels(first), _get_labels(second)
    if (gold, scale) == (gold_after, scale_after):
        return Counterexample(scale, gold, *_align_outputs(gold, old, new), values)
    return Counterexample(scale, gold, old, new, values, scale_after, gold_after)


def _get_labels(matrix: ConfusionMatrix) -> tuple[int, ...]:
    return tuple(1 + int(place) for place in matrix.scale.at)


def _list_items(matrix: ConfusionMatrix) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the gold and predicted labels of the items."""
    gold, predicted = np.nonzero(matrix.counts)
    times = matrix.counts[gold, predicted].astype(int)
    labels = np.array(_get_labels(matrix))
    pairs = (labels[np.repeat(side, times)] for side in (gold, predicted))
    first, second = (tuple(side.tolist()) for side in pairs)
    return first, second


def _align_outputs(
    gold: tuple[int, ...], old: tuple[int, ...], new: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return two outputs of the same items such that as few items as possible differ."""
    unmatched = list(zip(gold, new, strict=True))
    aligned: list[int | None] = []
    for pair in zip(gold, old, strict=True):
        aligned.append(pair[1] if pair in unmatched else None)
        if pair in unmatched:
            unmatched.remove(pair)
    for index, (level, label) in enumerate(zip(gold, aligned, strict=True)):
        if label is None:
            pair = next(pair for pair in unmatched if pair[0] == level)
            unmatched.remove(pair)
            aligned[index] = pair[1]
    return old, tuple(label for label in aligned if label is not None)
