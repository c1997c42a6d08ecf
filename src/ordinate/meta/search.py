"""The search: every small case of every property, and the smallest one that a metric fails."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, NotApplicable
from ordinate.meta.cases import every_table
from ordinate.meta.properties import PROPERTIES, Cases, Property
from ordinate.metrics import Metric
from ordinate.metrics.catalogue import AXES
from ordinate.summary import Confusion

Array = NDArray[Any]
Verdict = Literal["violated", "tie_only", "not_violated", "undefined"]
Tick = Callable[[float], None]

ROUNDING = 1e-9  # relative to values over 1; real differences of so few items are far larger
THREADS = 2


@dataclass(frozen=True)
class Example:
    """A case that a person can check: labels are numbers, and stand where they say."""

    scale: tuple[int, ...]
    gold: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    values: tuple[float, float]
    scale_after: tuple[int, ...] | None = None  # where scale or gold are other ones afterwards
    gold_after: tuple[int, ...] | None = None


@dataclass
class Tally:
    """What the cases of a property had to say so far, smallest cases first."""

    cases: int = 0
    undefined: int = 0
    ties: int = 0
    violations: int = 0
    tie: Example | None = None
    violation: Example | None = None

    @property
    def verdict(self) -> Verdict:
        """What all cases say together."""
        if self.violations:
            return "violated"
        if self.ties:
            return "tie_only"
        return "not_violated" if self.cases else "undefined"

    @property
    def example(self) -> Example | None:
        """The smallest case that speaks for the verdict."""
        return self.violation or self.tie


@dataclass
class Finding:
    """A property of a metric, over gold in which every level occurs, and over any gold."""

    property: Property
    sizes: dict[int, int]
    full: Tally = field(default_factory=Tally)
    any: Tally = field(default_factory=Tally)
    reason: str | None = None  # why there is nothing to say


@dataclass
class Checked:
    """All that was found about one metric."""

    metric: Metric
    findings: dict[str, Finding]
    tables: int = 0  # on which the metric was computed


def check(
    metrics: Iterable[Metric],
    properties: Sequence[str] = tuple(PROPERTIES),
    most_items: int | None = None,
    tick: Tick = lambda _: None,
) -> list[Checked]:
    """Search all small cases of properties, and return what was found about each metric.

    `most_items` bounds the search further. Nothing found is no proof: only small cases are tried.
    """
    laws = [_limited(PROPERTIES[name], most_items) for name in properties]
    checked = [
        Checked(metric, {law.name: Finding(law, sizes) for law, sizes in laws})
        for metric in metrics
    ]
    able = [one for one in checked if _is_able(one)]
    if not able:
        return checked
    sizes = sorted({(n, k) for _, most in laws for k in most for n in range(1, most[k] + 1)})
    work = np.cumsum([_tables(levels, items) for items, levels in sizes])
    with ThreadPoolExecutor(THREADS) as pool:
        for (items, levels), done in zip(sizes, work, strict=True):
            asked = [law for law, most in laws if items <= most.get(levels, 0)]
            found = {law.name: list(law.cases(levels, items)) for law in asked}
            list(pool.map(partial(_judge, found=found), able))
            tick(float(done / work[-1]))
    every_table.cache_clear()
    return checked


def _tables(levels: int, items: int) -> float:
    return float(np.prod([(items + k) / k for k in range(1, levels**2)]))


def _limited(law: Property, most_items: int | None) -> tuple[Property, dict[int, int]]:
    most = most_items or max(law.sizes.values())
    return law, {levels: min(items, most) for levels, items in law.sizes.items()}


def _is_able(one: Checked) -> bool:
    """Tell whether a metric can be checked; if not, say why in its findings."""
    try:
        refuse_unbatched(one.metric)
    except (BadOption, NotApplicable) as problem:
        if not one.metric.required:
            raise
        for finding in one.findings.values():
            finding.reason = str(problem)
        return False
    return True


def refuse_unbatched(metric: Metric) -> None:
    """Refuse a metric that does not take many tables at once as it takes each alone."""
    _, tables, _ = every_table(3, 3)
    some = tables[:: len(tables.weights) // 20]
    together = metric(some)
    alone = [metric(some[index]) for index in range(len(some.weights))]
    if not np.allclose(together, alone, equal_nan=True):
        raise BadOption(
            f"{metric.name} gives other values for many tables at once than for each alone. {AXES}"
        )


def _judge(one: Checked, found: dict[str, list[Cases]]) -> None:
    values: dict[int, Array] = {}

    def valued(tables: Confusion) -> Array:
        if id(tables) not in values:
            values[id(tables)] = np.asarray(one.metric(tables), float)
            one.tables += len(tables.weights)
        return values[id(tables)]

    for name, parts in found.items():
        for cases in parts:
            _count(one, one.findings[name], cases, valued)


def _count(
    one: Checked, finding: Finding, cases: Cases, valued: Callable[[Confusion], Array]
) -> None:
    before, after = valued(cases.before)[cases.first], valued(cases.after)[cases.second]
    room = ROUNDING * np.maximum(1.0, np.maximum(np.abs(before), np.abs(after)))
    if finding.property.relation == "better":
        gain = one.metric.merit(after) - one.metric.merit(before)
        wrong, ties = gain < -room, np.abs(gain) <= room
    else:
        wrong, ties = np.abs(after - before) > room, np.zeros(len(before), bool)
    undefined = np.isnan(before) | np.isnan(after)
    full = (cases.before.gold[cases.first] > 0).all(axis=-1)
    for tally, chosen in ((finding.any, slice(None)), (finding.full, full)):
        tally.cases += int((~undefined[chosen]).sum())
        tally.undefined += int(undefined[chosen].sum())
        tally.ties += int(ties[chosen].sum())
        tally.violations += int(wrong[chosen].sum())
    for tally, kept in ((finding.any, np.ones_like(full)), (finding.full, full)):
        if tally.violation is None and (wrong & kept).any():
            tally.violation = _example(cases, int(np.argmax(wrong & kept)), before, after)
        if tally.tie is None and (ties & kept).any():
            tally.tie = _example(cases, int(np.argmax(ties & kept)), before, after)


def _example(cases: Cases, index: int, before: Array, after: Array) -> Example:
    first, second = cases.before[cases.first[index]], cases.after[cases.second[index]]
    gold, old = _items(first)
    gold_after, new = _items(second)
    values = float(before[index]), float(after[index])
    scale, scale_after = _labels(first), _labels(second)
    if (gold, scale) == (gold_after, scale_after):
        return Example(scale, gold, *_aligned(gold, old, new), values)
    return Example(scale, gold, old, new, values, scale_after, gold_after)


def _labels(table: Confusion) -> tuple[int, ...]:
    return tuple(1 + int(place) for place in table.scale.at)


def _items(table: Confusion) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the gold and predicted labels of the items."""
    gold, predicted = np.nonzero(table.counts)
    times = table.counts[gold, predicted].astype(int)
    labels = np.array(_labels(table))
    pairs = (labels[np.repeat(side, times)] for side in (gold, predicted))
    first, second = (tuple(side.tolist()) for side in pairs)
    return first, second


def _aligned(
    gold: tuple[int, ...], old: tuple[int, ...], new: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return two outputs of the same items such that as few items as possible differ."""
    left = list(zip(gold, new, strict=True))
    answers: list[int | None] = []
    for pair in zip(gold, old, strict=True):
        answers.append(pair[1] if pair in left else None)
        if pair in left:
            left.remove(pair)
    for index, (level, answer) in enumerate(zip(gold, answers, strict=True)):
        if answer is None:
            pair = next(pair for pair in left if pair[0] == level)
            left.remove(pair)
            answers[index] = pair[1]
    return old, tuple(answer for answer in answers if answer is not None)
