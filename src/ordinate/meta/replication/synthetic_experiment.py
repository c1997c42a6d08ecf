"""The synthetic experiment on metrics: systems whose mistakes are known, and their coverages.

The experiment is that of Amigó et al. (2020), Section 5.3: 100 test cases of 200 documents on 11
levels, and 50 systems: five types of mistakes, each in ten ratios. Where the text leaves something
open, a `Reading` says what is taken. Random numbers are the same for all readings, so that two of
them differ by what they read and by nothing else.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, shorten, suggest_names
from ordinate.meta.coverage import PairOrder, compute_coverage
from ordinate.meta.replication.published_figures import TABLE_3, TABLE_3_COLUMNS
from ordinate.meta.unanimity import (
    Unanimity,
    compute_improvements,
    compute_unanimous_improvement,
)
from ordinate.metrics import Metric, find_metric
from ordinate.metrics.arithmetic import Value, average_over_levels
from ordinate.metrics.per_level import compute_level_metrics
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]
Codes = NDArray[np.int64]  # levels from 1 to LEVELS
EndRule = Literal["clamp", "wrap", "stay"]

CASES, DOCUMENTS, LEVELS = 100, 200, 11
CENTRE, NARROW, WIDE = 4, 1.0, 3.0  # of the normal distributions of gold
RATIOS = tuple(step / 10 for step in range(1, 11))
SCALE = Scale(range(1, LEVELS + 1))


@dataclass(frozen=True)
class Reading:
    """What is taken where the text leaves something open; the defaults are the literal reading.

    `deviation`: standard deviations of the test cases on an even grid, or drawn uniformly.
    `outside`: gold beyond the scale goes to the nearest level, or is resampled.
    `errors`: the ratio of mistakes is exact in each test case, or a probability of each document.
    `majority`: the level of the text (4), or the most frequent one of the test case.
    `random`: a number between the end levels is rounded, as gold is, so that these have half the
    chance of others; or each level has the same chance, or each but the gold one.
    `tag_end`, `ordinal_end`: what displacement does beyond the end: it takes the last level or
    document, begins again at the first, or makes no mistake (for a level that is to take the last).
    `proximity`: half way to a random position in the order of documents, or to a random level,
    with halves rounded down or up. (Half a position makes no difference; it is rounded down.)
    `kendall`: the coefficient that "Tau-a without counting ties" means.
    `f_levels`: the levels that the F-measure is averaged over.
    `undefined`: a correlation with constant predictions is 0, or its test case is left out.
    `values`: a metric of a system is its mean over test cases, or that of the pooled matrix.
    `unanimity`: no metric loses, or every metric gains.
    `pairs`: of systems: each in both orders, or in one.
    """

    deviation: Literal["grid", "drawn"] = "grid"
    outside: Literal["nearest", "redrawn"] = "nearest"
    errors: Literal["exact", "independent"] = "exact"
    majority: Literal["fourth", "most_frequent"] = "fourth"
    random: Literal["rounded", "discrete", "other"] = "rounded"
    tag_end: Literal["clamp", "wrap"] = "clamp"
    ordinal_end: EndRule = "clamp"
    proximity: Literal["position", "level_down", "level_up"] = "position"
    kendall: Literal["tau_a", "tau_b", "gamma"] = "tau_a"
    f_levels: Literal["either", "gold", "all"] = "either"
    undefined: Literal["zero", "left_out"] = "zero"
    values: Literal["mean", "pooled"] = "mean"
    unanimity: Unanimity = "weak"
    pairs: PairOrder = "ordered"

    def __post_init__(self) -> None:
        for name, value in self.options.items():
            if not (isinstance(value, str) and value in CHOICES[name]):
                raise BadOption(
                    f"The option {name} takes {' or '.join(CHOICES[name])}, not {shorten(value)}."
                    + suggest_names(str(value), [*CHOICES[name]])
                )

    @property
    def options(self) -> dict[str, str]:
        """Every option by name."""
        return dict(self.__dict__)

    def changes(self, other: "Reading") -> dict[str, str]:
        """Return the options of this reading in which it differs from another one."""
        return {k: v for k, v in self.options.items() if v != other.options[k]}

    def with_option(self, name: str, value: Any) -> "Reading":
        """Return the reading with one option set."""
        if name not in CHOICES:
            raise BadOption(
                f"A reading has no option {shorten(name)}.{suggest_names(name, [*CHOICES])} "
                f"There are: {', '.join(CHOICES)}."
            )
        return replace(self, **{name: value})

    def list_neighbours(self) -> list["Reading"]:
        """Return the readings that differ from this one in one option."""
        return [
            self.with_option(name, value)
            for name, values in CHOICES.items()
            for value in values
            if value != getattr(self, name)
        ]


CHOICES: dict[str, tuple[Any, ...]] = {
    name: get_args(kind) for name, kind in get_type_hints(Reading).items()
}
LITERAL = Reading()
FITTED = Reading(
    outside="redrawn",
    errors="independent",
    random="other",
    ordinal_end="stay",
    undefined="left_out",
    values="pooled",
    unanimity="strict",
)
SEARCH_SEEDS = (100, 101, 102)  # seeds that FITTED was found with; results are shown for others


def draw_gold_levels(
    seed: int, deviation: str, outside: str, *, cases: int = CASES, documents: int = DOCUMENTS
) -> Codes:
    """Return the gold levels [cases, documents] of a seed, sorted within each test case.

    Documents are drawn alike, so that sorting them loses nothing, and a document's index is its
    position in the order that displacement speaks of.
    """
    rng = np.random.default_rng([seed, 0])
    drawn = np.sort(rng.uniform(NARROW, WIDE, cases))
    spread = drawn if deviation == "drawn" else np.linspace(NARROW, WIDE, cases)
    values = rng.normal(size=(cases, documents)) * spread[:, None] + CENTRE
    if outside == "redrawn":
        while (off := np.abs(values - (LEVELS + 1) / 2) >= LEVELS / 2).any():
            redrawn = rng.normal(size=values.shape) * spread[:, None] + CENTRE
            values = np.where(off, redrawn, values)
    return np.sort(np.clip(np.rint(values), 1, LEVELS).astype(np.int64), axis=-1)


# --- the five types of mistakes: gold [T, N] and uniform numbers [R, T, N] in, predictions out ----


def make_majority_mistakes(gold: Codes, _: Array, reading: Reading) -> Codes:
    """Return the fourth level, or the most frequent one of each test case."""
    if reading.majority == "fourth":
        return np.full_like(gold, CENTRE)
    frequency = (gold[..., None] == np.arange(1, LEVELS + 1)).sum(axis=-2)
    return np.broadcast_to(1 + frequency.argmax(axis=-1)[..., None], gold.shape)


def make_random_mistakes(gold: Codes, chance: Array, reading: Reading) -> Codes:
    """Return random levels; rounding gives the two end levels half the chance of others."""
    if reading.random == "rounded":
        return np.rint(1 + (LEVELS - 1) * chance).astype(np.int64)
    if reading.random == "discrete":
        return _scale_to_level(chance, LEVELS)
    other = _scale_to_level(chance, LEVELS - 1)
    return other + (other >= gold)


def make_tag_mistakes(gold: Codes, _: Array, reading: Reading) -> Codes:
    """Return the level after the gold one."""
    return 1 + _displace_places(gold - 1, 1, LEVELS, reading.tag_end)


def make_ordinal_mistakes(gold: Codes, _: Array, reading: Reading) -> Codes:
    """Return the gold level of the document a tenth of all documents further on."""
    size = gold.shape[-1]
    place = _displace_places(np.arange(size), size // 10, size, reading.ordinal_end)
    return gold[..., place]


def make_proximity_mistakes(gold: Codes, chance: Array, reading: Reading) -> Codes:
    """Return the level of the document half way to a random one, or half way to a random level."""
    if reading.proximity != "position":
        return (gold + _scale_to_level(chance, LEVELS) + (reading.proximity == "level_up")) // 2
    size = gold.shape[-1]
    place = (np.arange(size) + _scale_to_level(chance, size) - 1) // 2
    return np.take_along_axis(np.broadcast_to(gold, place.shape), place, axis=-1)


def _scale_to_level(chance: Array, size: int) -> Codes:
    """Return an integer from 1 to size for each number from 0 to 1."""
    return 1 + np.floor(size * chance).astype(np.int64)


def _displace_places(place: Codes, by: int, size: int, end: EndRule) -> Codes:
    """Return places from 0 to size - 1 moved upwards."""
    moved = place + by
    if end == "clamp":
        return np.minimum(moved, size - 1)
    return moved % size if end == "wrap" else np.where(moved < size, moved, place)


@dataclass(frozen=True)
class MistakeType:
    """A type of mistakes, the option of a reading that it depends on, and its random stream."""

    mistakes: Callable[[Codes, Array, Reading], Codes]
    option: str
    stream: int


MISTAKE_TYPES = {
    "rand": MistakeType(make_random_mistakes, "random", 1),
    "prox": MistakeType(make_proximity_mistakes, "proximity", 2),
    "maj": MistakeType(make_majority_mistakes, "majority", 3),
    "tdisp": MistakeType(make_tag_mistakes, "tag_end", 4),
    "odisp": MistakeType(make_ordinal_mistakes, "ordinal_end", 5),
}


def simulate_predictions(seed: int, mistake_type: str, gold: Codes, reading: Reading) -> Codes:
    """Return the predictions of the ten systems of one type of mistakes: [RATIOS, T, N]."""
    rng = np.random.default_rng([seed, MISTAKE_TYPES[mistake_type].stream])
    luck, chance = rng.random((2, len(RATIOS), *gold.shape))
    wrong = MISTAKE_TYPES[mistake_type].mistakes(gold, chance, reading)
    return np.where(_choose_mistakes(luck, reading.errors), wrong, gold)


def _choose_mistakes(luck: Array, errors: str) -> NDArray[np.bool_]:
    """Tell which documents get a mistake: each by chance, or as many as the ratio says."""
    ratios = np.array(RATIOS)[:, None, None]
    if errors == "independent":
        return luck < ratios
    rank = luck.argsort(axis=-1).argsort(axis=-1)
    return rank < np.rint(ratios * luck.shape[-1])


def count_matrices(gold: Codes, predicted: Codes) -> ConfusionMatrix:
    """Count each system and test case: a batch [S, T] of confusion matrices."""
    count = predicted.shape[0] * predicted.shape[1]
    start = np.arange(count).reshape(*predicted.shape[:2], 1) * LEVELS**2
    cell = start + (gold - 1) * LEVELS + predicted - 1
    counts = np.bincount(cell.ravel(), minlength=count * LEVELS**2)
    return ConfusionMatrix.from_counts(counts.reshape(*predicted.shape[:2], LEVELS, LEVELS), SCALE)


# --- the coverage of each metric ------------------------------------------------------------------

METRICS = tuple(TABLE_3)
REFERENCES = METRICS[:3]  # what unanimous improvement is made of

KENDALL_METRICS = {
    "tau_a": "kendall_tau_a",
    "tau_b": "kendall_tau_b",
    "gamma": "goodman_kruskal_gamma",
}
F_LEVELS = {"either": "f1_macro", "gold": "f1 over gold levels", "all": "f1 over all levels"}


def _make_merit(metric: Metric) -> Callable[[ConfusionMatrix], Value]:
    return lambda matrix: metric.merit(metric(matrix))


def _compute_f1_over_gold(matrix: ConfusionMatrix) -> Value:
    return average_over_levels(matrix.gold > 0, np.nan_to_num(compute_level_metrics(matrix).f1))


def _compute_f1_over_all(matrix: ConfusionMatrix) -> Value:
    return np.nan_to_num(compute_level_metrics(matrix).f1).mean(axis=-1)


MEASURES: dict[str, Callable[[ConfusionMatrix], Value]] = {
    **{
        name: _make_merit(find_metric(name))
        for name in dict.fromkeys([*METRICS, *KENDALL_METRICS.values()])
    },
    F_LEVELS["gold"]: _compute_f1_over_gold,
    F_LEVELS["all"]: _compute_f1_over_all,
}


def _select_measure(name: str, reading: Reading) -> str:
    """Return the measure that a reading takes for a metric of the published table."""
    if name == KENDALL_METRICS["tau_a"]:
        return KENDALL_METRICS[reading.kendall]
    return F_LEVELS[reading.f_levels] if name == F_LEVELS["either"] else name


Block = dict[tuple[str, str], Array]  # by measure: "case" [S, T] and "pooled" [S]


class SyntheticRun:
    """The experiment of one seed. Systems that readings have in common are measured once."""

    def __init__(self, seed: int, *, cases: int = CASES, documents: int = DOCUMENTS) -> None:
        self.seed, self.cases, self.documents = seed, cases, documents
        self._blocks: dict[tuple[str, ...], Block] = {}

    def compute_coverages(self, reading: Reading) -> Array:
        """Return the coverage of each metric for each column: [METRICS, TABLE_3_COLUMNS]."""
        by_case = self._collect_values(METRICS, reading, "case")
        ratios = compute_unanimous_improvement(
            compute_improvements(by_case[: len(REFERENCES)], reading.unanimity)
        )
        if reading.values == "pooled":
            merits = self._collect_values(METRICS, reading, "pooled")
        else:
            merits = average_over_levels(np.isfinite(by_case), by_case)
        mistake_types = np.repeat(list(MISTAKE_TYPES), len(RATIOS))
        columns = []
        for column in TABLE_3_COLUMNS:
            included = mistake_types != column
            part = compute_coverage(
                merits[:, included], ratios[np.ix_(included, included)], reading.pairs
            )
            columns.append(part)
        return np.stack(columns, axis=-1)

    def _collect_values(self, names: Iterable[str], reading: Reading, part: str) -> Array:
        blocks = [self._measure_block(mistake_type, reading) for mistake_type in MISTAKE_TYPES]
        measures = [_select_measure(name, reading) for name in names]
        values = np.stack([np.concatenate([b[m, part] for b in blocks]) for m in measures])
        return np.nan_to_num(values) if reading.undefined == "zero" else values

    def _measure_block(self, mistake_type: str, reading: Reading) -> Block:
        """Return all measures of the ten systems of one type of mistakes."""
        own = getattr(reading, MISTAKE_TYPES[mistake_type].option)
        key = (mistake_type, own, reading.deviation, reading.outside, reading.errors)
        if key not in self._blocks:
            gold = draw_gold_levels(
                self.seed,
                reading.deviation,
                reading.outside,
                cases=self.cases,
                documents=self.documents,
            )
            by_case = count_matrices(
                gold, simulate_predictions(self.seed, mistake_type, gold, reading)
            )
            pooled = ConfusionMatrix.from_counts(by_case.counts.sum(axis=1), by_case.scale)
            self._blocks[key] = {
                (name, part): measure(matrix)
                for name, measure in MEASURES.items()
                for part, matrix in (("case", by_case), ("pooled", pooled))
            }
        return self._blocks[key]
