"""Sample size and power: how many items a difference takes, how wide an interval will be."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral, Real
from statistics import NormalDist
from typing import Annotated, Any

import numpy as np

from ordinate.errors import BadOption, NotApplicable
from ordinate.inference.delta_method import normal_quantile
from ordinate.inference.resampling import Resampling
from ordinate.inference.sample_size import NO_SPREAD, Spreads, count_items, estimate_spreads
from ordinate.inference.small_samples import RARE_ITEMS, RARE_SHARE
from ordinate.metrics import Metric, find_metric
from ordinate.render import Document, charts
from ordinate.render.charts import Axis, Chart, Line, Mark, Point, Rule
from ordinate.render.document import format_cell
from ordinate.render.estimates import format_count, format_interval_head, format_percent, join_names
from ordinate.render.tables import COUNT, SHARE, Column, Table, to_plain
from ordinate.results.arguments import ScaleDeclaration, count_panel
from ordinate.results.base import SCHEMA, Origin, Record, Result, record_call
from ordinate.scale.label_maps import LabelMap
from ordinate.settings import Level, Resamples, Seed, Setting
from ordinate.summaries import ConfusionMatrix, Panel
from ordinate.summaries.tabulation import MissingPolicy

LEAST_DIFFERENCE = 1e-9  # a difference that more than all items of the world would be needed for
# How often such intervals have the true number, from pilots of so many items or clusters on; the
# first number is the smallest studied: docs/studies/symmetry-and-power.md.
COVERAGE_BY_ITEMS = {100: "87 to 96 %", 200: "92 to 95 %", 800: "93 to 95 %"}
COVERAGE_BY_CLUSTERS = {20: "86 to 94 %", 40: "90 to 93 %"}
COVERAGE_OF_RARE_LEVELS = "55 to 94 %, the lower the rarer"
SCARCE_ITEMS = 50  # of a gold level that is rare beside others, below which averages suffer
ASK_FOR_DIFFERENCE = (
    "How many items it takes depends on the smallest difference that matters to you: name it with "
    "difference=… (--difference). The one seen here is as unsure as the pilot, and no guide."
)
POWER, WANTED, NEEDED = "power", "wanted power", "needed items"
DIFFERENCE = "difference"
CURVE_POINTS = 60
ITEMS = Axis("items", "log")
PILOT_MULTIPLES = (0.5, 1, 2, 5, 10)  # times the items of the pilot


@dataclass(frozen=True)
class SampleSizeSettings:
    """What a plan is for: a difference to be seen, the power, the level, numbers of items."""

    difference: Annotated[
        float | None,
        Setting("the smallest difference that matters, which shall be seen", metavar="D"),
    ] = None
    power: Annotated[float, Setting("power: the chance to see it")] = 0.8
    level: Level = 0.95
    items: Sequence[int] = ()
    resamples: Resamples = 2_000
    seed: Seed = 0

    def __post_init__(self) -> None:
        difference = self.difference
        if difference is not None and not (
            isinstance(difference, Real) and LEAST_DIFFERENCE <= difference < math.inf
        ):
            raise BadOption(f"The difference to be seen must be above 0, not {difference!r}.")
        for name, share in (("power", self.power), ("level", self.level)):
            if not (isinstance(share, Real) and 0.5 <= share < 1.0):
                raise BadOption(f"The {name} is 0.5 to below 1, not {share!r}.")
        if not all(isinstance(count, Integral) and count >= 1 for count in self.items):
            raise BadOption("Numbers of items are integers, 1 or more.")
        Resampling(self.resamples, self.seed)


@dataclass(frozen=True)
class SampleSizeOutlook:
    """What so many items would give: widths of intervals, and the power to see the difference."""

    items: int
    widths: dict[str, float]  # by system: from the lower to the upper bound
    difference_width: float | None
    power: float | None


@dataclass(frozen=True, repr=False, eq=False)
class SampleSizePlan(Result):
    """A plan from a pilot: systems like these, on more or fewer items.

    `spread` is the standard deviation of what one item adds to the difference: the standard error
    for N items is spread / sqrt(N). `needed` are the items to see the difference of the settings,
    with their confidence interval; the pilot's own difference has no part in it.
    """

    metric: Metric
    panel: Panel
    settings: SampleSizeSettings
    values: dict[str, float]
    spread: float | None
    needed: int | None
    needed_low: int | None  # of the interval of the needed items
    needed_high: int | None
    outlooks: tuple[SampleSizeOutlook, ...]
    notes: tuple[str, ...] = ()  # how far the needed items can be trusted
    origin: Origin = field(default_factory=Origin)

    @classmethod
    @record_call
    def from_panel(
        cls,
        panel: Panel,
        metric: str | Metric = "cem_ord",
        settings: SampleSizeSettings | None = None,
        *,
        origin: Origin | None = None,
    ) -> "SampleSizePlan":
        """Plan from one or two systems of a panel that is already counted."""
        settings, named = settings or SampleSizeSettings(), find_metric(metric)
        check_system_count(len(panel.systems))
        if settings.difference is not None and len(panel.systems) < 2:
            raise BadOption("A difference is between two systems: name both.")
        values = {system: _compute_value(named, panel, system) for system in panel.systems}
        resampling = Resampling(settings.resamples, settings.seed)
        spreads, n = estimate_spreads(panel, named, resampling), count_items(panel)
        spread = spreads.difference
        if (spreads.systems.max() if spread is None else spread) < NO_SPREAD:
            raise NotApplicable("The pilot shows no variation that a plan could rest on.")
        needed = compute_needed_items(spread, settings)
        low, high = compute_needed_interval(spreads, settings) or (None, None)
        sizes = (
            {max(1, round(times * n)) for times in PILOT_MULTIPLES}
            if not settings.items
            else settings.items
        )
        more = () if needed is None or settings.items else (needed,)
        by_system = dict(zip(panel.systems, spreads.systems.tolist(), strict=True))
        outlooks = tuple(
            _compute_outlook(n, by_system, spread, settings) for n in sorted({*sizes, *more})
        )
        return cls(
            metric=named,
            panel=panel,
            settings=settings,
            values=values,
            spread=spread,
            needed=needed,
            needed_low=low,
            needed_high=high,
            outlooks=outlooks,
            notes=_state_trust(panel, named, spreads) if needed is not None else (),
            origin=origin or Origin(),
        )

    @property
    def observed_difference(self) -> float | None:
        """The difference between the two systems in the pilot."""
        if self.spread is None:
            return None
        first, second = self.metric.size(np.array(list(self.values.values())))
        return float(first - second)

    def to_dict(self) -> Record:
        """Return plain values: what `--format json` writes."""
        return {
            "schema": SCHEMA,
            "task": "power",
            "metric": self.metric.expression,
            "n": self.panel.n,
            "values": to_plain(self.values),
            "observed_difference": self.observed_difference,
            "difference": self.settings.difference,
            "power": self.settings.power,
            "level": self.settings.level,
            "spread": self.spread,
            "needed": self.needed,
            "needed_low": self.needed_low,
            "needed_high": self.needed_high,
            "outlooks": to_plain(self.outlooks),
            "notes": list(self.notes),
            "source": self.origin.to_dict(),
        }

    def make_charts(self) -> Iterable[Chart]:
        """Return the power and the width of intervals over the number of items."""
        return [*chart_power(self), chart_widths(self)]

    def tables(self) -> Iterable[Table]:
        """Return what each number of items would give."""
        columns = [
            Column("items", get=lambda x: x.items, kind=COUNT),
            *(
                Column(f"width_{name}", f"width, {name}", get=partial(_get_width, name))
                for name in self.values
            ),
            Column("difference_width", "width, difference", shown=self.spread is not None),
            Column("power", kind=SHARE, shown=self.settings.difference is not None),
        ]
        title = f"Width of {100 * self.settings.level:g} % confidence intervals"
        yield Table("outlooks", title, columns, self.outlooks)

    def document(self) -> Document:
        """Return the report for people."""
        title = f"A plan for {self.metric.expression}, from {self.panel.n:,} items"
        notes = (*self.notes, *self.origin.notes)
        return Document(
            title, tuple(self.get_table("outlooks").grids()), _state_answer(self), notes
        )


def power(
    data: Any = None,
    systems: Any = None,
    metric: str | Metric = "cem_ord",
    difference: float | None = None,
    *,
    gold: Any = None,
    predicted: Any = None,
    scale: ScaleDeclaration = None,
    power: float = 0.8,
    interval: float = 0.95,
    items: Sequence[int] = (),
    groups: Any = None,
    weights: Any = None,
    missing: MissingPolicy = "error",
    label_map: Mapping[str, str | None] | None = None,
    tidy_labels: bool = False,
    edges: Iterable[float] = (),
    resamples: int = 2_000,
    seed: int = 0,
) -> SampleSizePlan:
    """Plan how many items it takes to see a difference between two systems like these.

    The data of the pilot are those of `compare`: columns, a table or files. `difference` is the
    smallest one that matters to you; the pilot's own is no guide. One system is enough to learn how
    wide its interval will be for `items`. With groups, the numbers hold for items in clusters like
    these.

    >>> gold, good = ["low", "mid", "high"] * 30, ["low", "mid", "mid"] * 30
    >>> flat = ["mid"] * 90
    >>> power(gold, {"a": good, "b": flat}, "mae", 0.1, scale="low,mid,high").needed > 90
    True
    """
    named = find_metric(metric)
    settings = SampleSizeSettings(
        difference=difference,
        power=power,
        level=interval,
        items=tuple(items) if isinstance(items, Iterable) else (items,),
        resamples=resamples,
        seed=seed,
    )
    panel, origin = count_panel(
        data,
        systems,
        gold=gold,
        predicted=predicted,
        scale=scale,
        weights=weights,
        groups=groups,
        missing=missing,
        label_map=LabelMap(label_map, tidy=tidy_labels, edges=edges),
        check_count=check_system_count,
    )
    return SampleSizePlan.from_panel(panel, named, settings, origin=origin)


def _get_width(name: str, outlook: SampleSizeOutlook) -> float:
    return outlook.widths[name]


def compute_needed_items(spread: float | None, settings: SampleSizeSettings) -> int | None:
    """Return N so that z(level) + z(power) standard errors of the difference fit into it."""
    if spread is None or settings.difference is None:
        return None
    reach = normal_quantile(settings.level) + NormalDist().inv_cdf(settings.power)
    return max(1, math.ceil((reach * spread / settings.difference) ** 2))


def compute_needed_interval(
    spreads: Spreads, settings: SampleSizeSettings
) -> tuple[int, int] | None:
    """Return the confidence interval of N, which is as unsure as the variance of the difference."""
    if spreads.difference is None or spreads.log_variances is None:
        return None
    half = normal_quantile(settings.level) * float(spreads.log_variances.std(ddof=1)) / 2.0
    bounds = [
        compute_needed_items(spreads.difference * math.exp(side * half), settings)
        for side in (-1.0, 1.0)
    ]
    return None if bounds[0] is None or bounds[1] is None else (bounds[0], bounds[1])


def check_system_count(systems: int) -> None:
    """Refuse any number of systems but one and two."""
    if systems not in {1, 2}:
        raise BadOption(
            f"A plan takes one system or two, not {systems}. Name those to plan for (--systems)."
        )


def _compute_value(metric: Metric, panel: Panel, system: str) -> float:
    try:
        value = float(metric(panel.confusion_matrix(system)))
    except NotApplicable as reason:
        raise NotApplicable(f"{metric.expression} has no value for {system}: {reason}.") from None
    if math.isnan(value):
        raise NotApplicable(f"{metric.expression} of {system} is undefined: nothing to plan from.")
    return value


def _compute_outlook(
    items: int, spreads: dict[str, float], spread: float | None, settings: SampleSizeSettings
) -> SampleSizeOutlook:
    reach, root = normal_quantile(settings.level), math.sqrt(items)
    widths = {name: 2.0 * reach * x / root for name, x in spreads.items()}
    apart = None if spread is None else 2.0 * reach * spread / root
    chance = None
    if settings.difference is not None and spread is not None:
        chance = compute_power(settings.difference, spread / root, reach)
    return SampleSizeOutlook(int(items), widths, apart, chance)


def compute_power(difference: float, error: float, reach: float) -> float:
    """Return how often a difference is seen: the estimate lies beyond `reach` standard errors."""
    if error == 0.0:
        return 1.0
    normal = NormalDist()
    return normal.cdf(difference / error - reach) + normal.cdf(-difference / error - reach)


# --- in words ------------------------------------------------------------------------------------


def _state_answer(plan: SampleSizePlan) -> str:
    parts = []
    if plan.needed is not None:
        parts.append(
            f"To see a difference of {plan.settings.difference:g} between two systems like these "
            f"in {100 * plan.settings.power:g} % of all samples takes about {plan.needed:,} items"
            f"{_format_needed_interval(plan)}."
        )
    parts += [f"{name} has {format_cell(value)}." for name, value in plan.values.items()]
    if plan.spread is None:
        first = plan.outlooks[0]
        width = format_cell(next(iter(first.widths.values())))
        level = format_interval_head(plan.settings.level)
        parts.append(f"With {format_count(first.items)} its {level} is about {width} wide.")
    if plan.spread is not None:
        parts.append(f"They differ by {format_cell(plan.observed_difference)} here.")
        if plan.settings.difference is None and not plan.settings.items:
            parts.append(ASK_FOR_DIFFERENCE)
    if plan.panel.group_values:
        parts.append("Items are taken to come in clusters like these.")
    return " ".join(parts)


def _format_needed_interval(plan: SampleSizePlan) -> str:
    if plan.needed_low is None or plan.needed_high is None:
        return ""
    level = format_interval_head(plan.settings.level)
    return f" ({level} {plan.needed_low:,} to {plan.needed_high:,})"


def _state_trust(panel: Panel, metric: Metric, spreads: Spreads) -> tuple[str, ...]:
    """Say how far the needed items can be trusted."""
    if spreads.log_variances is None:
        return (f"The number of items has no interval: {spreads.note}.",)
    sentences = [_state_coverage(panel, _find_levels_to_warn_of(panel, metric), metric)]
    if spreads.note is not None:
        sentences.append(f"The levels are many: {spreads.note}, and the interval may be too short.")
    return tuple(sentences)


def _state_coverage(panel: Panel, rare: list[str], metric: Metric) -> str:
    size, noun, studied = count_items(panel), "item", COVERAGE_BY_ITEMS
    if panel.groups is not None:
        size, noun, studied = len(panel.group_values), "cluster", COVERAGE_BY_CLUSTERS
    pilot = (
        f"The interval says how sure a pilot of {format_count(size, noun)} is of the spread, for "
        "systems and items like these."
    )
    if rare:
        return (
            f"{pilot} It has few items of {join_names(rare)}, and {metric.expression} averages "
            "over levels: the number is likely too low (in a study, 95 % intervals from such "
            f"pilots had the true one in {COVERAGE_OF_RARE_LEVELS}). Plan from a pilot with more "
            "of them."
        )
    least = min(studied)
    if size < least:
        return (
            f"{pilot} It is smaller than any studied ({format_count(least, noun)}, where 95 % "
            f"intervals had the true number in {studied[least]} of the cases): the number may be "
            "far off, and is then mostly larger."
        )
    covered = studied[max(start for start in studied if start <= size)]
    return (
        f"{pilot} In a study, 95 % intervals from such pilots had the true number in {covered} of "
        "the cases; where they missed, it was mostly larger."
    )


def _find_levels_to_warn_of(panel: Panel, metric: Metric) -> list[str]:
    return _find_scarce_levels(panel.confusion_matrix(panel.systems[0])) if metric.macro else []


def _find_scarce_levels(matrix: ConfusionMatrix) -> list[str]:
    """Return the gold levels whose few items make up much of an average over levels."""
    counts = matrix.gold if matrix.has_integer_weights else matrix.items.sum(axis=-1)
    enough = max(RARE_ITEMS, min(SCARCE_ITEMS, RARE_SHARE * counts.max()))
    scarce = (counts > 0) & (counts < enough)
    return [name for name, few in zip(matrix.scale.names, scarce, strict=True) if few]


# --- charts --------------------------------------------------------------------------------------


def chart_power(plan: SampleSizePlan) -> list[Chart]:
    """Return the power to see the difference over the number of items, and those needed."""
    points: list[Mark] = [
        Point(
            float(x.items),
            x.power,
            series=POWER,
            detail=f"{format_count(x.items)}: power {format_percent(x.power)}",
        )
        for x in plan.outlooks
        if x.power is not None
    ]
    if not points:
        return []
    power = plan.settings.power
    wanted = Rule(y=power, series=WANTED, detail=f"{WANTED}: {format_percent(power)}")
    return [
        Chart(
            "power",
            f"Power to see a difference of {plan.settings.difference:g} in "
            f"{plan.metric.expression}",
            "How often a difference of this size is significant, over the number of items; the "
            "band crosses the power that is wanted at the ends of the interval of needed items.",
            ITEMS,
            Axis("power", low=0.0, high=1.0),
            (charts.Panel((_make_power_curve(plan), *points, wanted, *_make_needed(plan))),),
            series=(POWER, WANTED, NEEDED),
        )
    ]


def _make_power_curve(plan: SampleSizePlan) -> Line:
    """Return the curve; its band is where the power lies if the pilot's spread is off.

    The needed items go with the square of the spread, and so do the ends of their interval.
    """
    sizes = [x.items for x in plan.outlooks]
    items = tuple(np.geomspace(min(sizes) / 2.0, max(sizes) * 2.0, CURVE_POINTS).tolist())
    bounds = (plan.needed_high, plan.needed_low)
    needed = [plan.needed, *(x for x in bounds if x is not None)]
    middle, *band = [
        tuple(_compute_power(plan, n, math.sqrt(x / plan.needed)) for n in items)
        for x in needed
        if x is not None and plan.needed
    ]
    low, high = band or ((), ())
    return Line(items, middle, low, high, series=POWER)


def _compute_power(plan: SampleSizePlan, items: float, factor: float) -> float:
    difference, spread = plan.settings.difference or math.nan, plan.spread or math.nan
    error = factor * spread / math.sqrt(items)
    return compute_power(difference, error, normal_quantile(plan.settings.level))


def _make_needed(plan: SampleSizePlan) -> list[Mark]:
    if plan.needed is None:
        return []
    detail = f"needed: {format_count(plan.needed)}"
    if plan.needed_low is not None and plan.needed_high is not None:
        level = format_interval_head(plan.settings.level)
        detail += f" ({level} {plan.needed_low:,} to {plan.needed_high:,})"
    return [Point(float(plan.needed), plan.settings.power, series=NEEDED, detail=detail)]


def chart_widths(plan: SampleSizePlan) -> Chart:
    """Return how wide the intervals of the systems and of their difference will be."""
    widths = {name: [x.widths[name] for x in plan.outlooks] for name in plan.values}
    apart = [x.difference_width for x in plan.outlooks if x.difference_width is not None]
    if apart:
        name = DIFFERENCE
        while name in widths:
            name += " of the two"
        widths[name] = apart
    items = tuple(float(x.items) for x in plan.outlooks)
    marks: list[Mark] = []
    for name, column in widths.items():
        marks.append(Line(items, tuple(column), series=name))
        marks += [
            Point(n, width, series=name, detail=f"{name}, {format_count(int(n))}: {text} wide")
            for n, width in zip(items, column, strict=True)
            for text in [format_cell(width)]
        ]
    level = format_interval_head(plan.settings.level)
    return Chart(
        "interval_widths",
        f"Width of the {level} of {plan.metric.expression}",
        "How wide the confidence intervals will be, over the number of items.",
        ITEMS,
        Axis(f"width of the {level}", low=0.0),
        (charts.Panel(tuple(marks)),),
        series=tuple(widths),
    )
