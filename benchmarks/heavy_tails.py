"""How well intervals of RMSE, R² and skill cover when errors have heavy tails.

    python benchmarks/heavy_tails.py --write FILE    the study, about a quarter of an hour
    python benchmarks/heavy_tails.py --quick         a smoke test, a few seconds

Each design cell is a distribution of errors and a number of items. All candidates work on
λ = ln MSE, ln(1 - R²) and ln(1 - skill) (ln MAE beside them), where the influence of an item is
e²/MSE - 1, less that of its squared distance from the mean or from the baseline. Replicates that
share a block share their resamples, so that one matrix product makes all sums of a block. A run
that was stopped resumes.
"""

from simulation import parse_options, percent, publish, simulate, standard_error  # isort: skip

import argparse
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ordinate.inference import ConfidenceIntervals
from ordinate.inference.constant_tests import decide_by_gains
from ordinate.inference.regression import (
    FEWEST_RESAMPLED_ITEMS,
    MOST_RESAMPLED_ITEMS,
    estimate_from_items,
    estimate_regression_metrics,
)
from ordinate.inference.regression_resampling import resample_poisson
from ordinate.metrics import find_metric
from ordinate.results.regression_tails import HEAVY_HILL_INDEX, HEAVY_KURTOSIS
from ordinate.summaries.regression import TRAIN_MEAN, Moments
from writing import markdown, wrapped

Array = NDArray[Any]
Generator = np.random.Generator
LEVEL = 0.95
ENOUGH = 0.93  # coverage that is expected
SEED = 1_000
SIZES = (20, 50, 100, 200, 1_000, 10_000)
QUICK_SIZES = (20, 200)
TESTED_SIZES = (50, 200, 1_000)  # of the tests against a constant
LARGE = 50  # items from which on the rule counts
CLOSE = 0.005  # methods this near to the best mean shortfall are equally good
BLOCK = 50  # replicates that share their resamples
CHUNK = 1_000  # items at a time
PART_EXPONENT = 0.75  # m-out-of-n and subsampling draw N to this power, rounded
SIGMA, OFFSET = 2.0, 1.0  # σ of the targets beside an RMSE of 1, and how far the baseline is off
CONTAMINATED, TIMES_LARGER = 0.05, 5.0
TAIL_SHARE, FEWEST_TAIL_ITEMS = 0.05, 10  # of the Hill index
METRICS = ("rmse", "r2", "skill", "mae")
FAMILY = METRICS[:3]  # for which the rule chooses
CANDIDATES = {
    "normal": "standard error from moments up to order four, normal quantile (the old default)",
    "student": "the same with Student's t of N − 1 degrees of freedom",
    "percentile": "the percentile bootstrap (the old Poisson bootstrap)",
    "bca": "the bias-corrected and accelerated bootstrap",
    "studentised": "the studentised bootstrap, t* = (λ* − λ̂)/se*",
    "m-out-of-n": "the same from resamples of N^¾ items",
    "subsampling": (
        "the same from samples of N^¾ items without replacement, corrected by √(1 − m/N)"
    ),
}
FROM_MOMENTS = ("normal", "student")  # the other candidates need the items
GROUPED = ("student", "studentised")  # whose coverage is shown by what a report would show


class Cell(NamedTuple):
    """A cell of the design."""

    errors: str
    items: int


class Row(NamedTuple):
    """How a candidate did on a metric in a design cell, in all samples or in some of them."""

    errors: str
    items: int
    metric: str
    method: str
    among: str  # samples: all, or those of which a flag says something
    samples: int
    covered: float
    left: float  # the true value is below the lower bound
    right: float
    width: float  # the median, on the scale of λ

    @property
    def cell(self) -> Cell:
        """The design cell."""
        return Cell(self.errors, self.items)


# --- the populations ------------------------------------------------------------------------------


def _student(freedom: int) -> Callable[[Generator, tuple[int, int]], Array]:
    return lambda rng, shape: rng.standard_t(freedom, shape) * math.sqrt((freedom - 2) / freedom)


def _contaminated(rng: Generator, shape: tuple[int, int]) -> Array:
    sizes = np.where(rng.random(shape) < CONTAMINATED, TIMES_LARGER, 1.0)
    return sizes * rng.standard_normal(shape) / _contaminated_sigma()


def _contaminated_sigma() -> float:
    return math.sqrt(1.0 - CONTAMINATED + CONTAMINATED * TIMES_LARGER**2)


ERRORS: dict[str, Callable[[Generator, tuple[int, int]], Array]] = {  # with a mean square of 1
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "laplace": lambda rng, shape: rng.laplace(0.0, math.sqrt(0.5), shape),
    "t5": _student(5),
    "t3": _student(3),
    "contaminated": _contaminated,
    "growing": lambda rng, shape: rng.standard_normal(shape),  # times the target, see draw_items
}
TITLES = {
    "normal": "normal",
    "laplace": "Laplace",
    "t5": "Student's t with 5 degrees of freedom",
    "t3": "Student's t with 3 degrees of freedom, whose fourth moment is infinite",
    "contaminated": f"normal, {100 * CONTAMINATED:g} % of them {TIMES_LARGER:g} times as large",
    "growing": "normal, with a spread in proportion to the target",
}
NO_VARIANCE = "t3"  # of squared errors


def draw_items(errors: str, rng: Generator, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Return targets, less their true mean, and errors, whose true mean square is 1."""
    e = ERRORS[errors](rng, shape)
    if errors == "growing":  # Gamma(4): mean 4, variance 4, mean square 20
        y = rng.gamma(4.0, 1.0, shape)
        return y - 4.0, e * y / math.sqrt(20.0)
    return rng.normal(0.0, SIGMA, shape), e


def true_values(errors: str) -> dict[str, float]:
    """Return λ of the population, by metric."""
    half_normal = math.sqrt(2.0 / math.pi)
    mae = {
        "normal": half_normal,
        "laplace": math.sqrt(0.5),
        "t5": _student_mae(5),
        "t3": _student_mae(3),
        "contaminated": half_normal
        * (1.0 - CONTAMINATED + CONTAMINATED * TIMES_LARGER)
        / _contaminated_sigma(),
        "growing": half_normal * 4.0 / math.sqrt(20.0),
    }
    return {
        "rmse": 0.0,
        "r2": -math.log(SIGMA**2),
        "skill": -math.log(SIGMA**2 + OFFSET**2),
        "mae": math.log(mae[errors]),
    }


def _student_mae(freedom: int) -> float:
    log_ratio = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    mean = 2.0 * math.sqrt(freedom / math.pi) * math.exp(log_ratio) / (freedom - 1)
    return mean * math.sqrt((freedom - 2) / freedom)


# --- λ and its standard error, from sums ---------------------------------------------------------


def powers_of(d: Array, e: Array) -> Array:
    """Return what is summed up [..., 9]: d is the target, e the error."""
    dd, ee = d * d, e * e
    return np.stack([d, dd, dd * d, dd * dd, ee, ee * ee, d * ee, dd * ee, np.abs(e)], axis=-1)


def estimate(n: Array, sums: Array) -> dict[str, tuple[Array, Array]]:
    """Return λ and its standard error, by metric, from sums [..., 9] over n items."""
    with np.errstate(all="ignore"):  # a resample may have no item, or one item many times
        m = sums / n[..., None]
        ee, eeee, mae = m[..., 4], m[..., 5], m[..., 8]
        own = eeee / ee**2 - 1.0
        found = {"rmse": (np.log(ee), own), "mae": (np.log(mae), ee / mae**2 - 1.0)}
        for metric, point in (("r2", m[..., 0]), ("skill", np.asarray(OFFSET))):
            squares, fourth, both = _about(point, m)
            variance = own + fourth / squares**2 - 1.0 - 2.0 * (both / (ee * squares) - 1.0)
            found[metric] = np.log(ee) - np.log(squares), variance
        return {
            metric: (value, np.sqrt(np.maximum(variance, 0.0) / (n - 1.0)))
            for metric, (value, variance) in found.items()
        }


def _about(point: Array, m: Array) -> tuple[Array, Array, Array]:
    """Return the means of (d - c)², (d - c)⁴ and e² (d - c)²."""
    d, dd, ddd, dddd, ee, _, dee, ddee, _ = np.moveaxis(m, -1, 0)
    squares = dd - 2.0 * point * d + point**2
    fourth = dddd - 4.0 * point * ddd + 6.0 * point**2 * dd - 4.0 * point**3 * d + point**4
    return squares, fourth, ddee - 2.0 * point * dee + point**2 * ee


def accelerations(d: Array, e: Array) -> dict[str, Array]:
    """Return BCa's acceleration [R], by metric: the skewness of the influence of items."""
    ee, own = e * e, np.abs(e)
    influence = {"rmse": _relative(ee), "mae": _relative(own)}
    for metric, point in (("r2", d.mean(axis=1, keepdims=True)), ("skill", OFFSET)):
        influence[metric] = influence["rmse"] - _relative((d - point) ** 2)
    return {
        metric: (x**3).sum(axis=1) / (6.0 * (x**2).sum(axis=1) ** 1.5)
        for metric, x in influence.items()
    }


def _relative(sizes: Array) -> Array:
    return sizes / sizes.mean(axis=1, keepdims=True) - 1.0


# --- resamples ------------------------------------------------------------------------------------


def resample(powers: Array, draw: Callable[[tuple[int, int]], Array], count: int) -> Any:
    """Return λ and standard errors [count, R] of resamples of all replicates of a block."""
    size, n = powers.shape[:2]
    total, sums = np.zeros(count), np.zeros((count, size * powers.shape[2]))
    for start in range(0, n, CHUNK):
        part = powers[:, start : start + CHUNK]
        times = draw((count, part.shape[1])).astype(float)
        total += times.sum(axis=1)
        sums += times @ part.transpose(1, 0, 2).reshape(part.shape[1], -1)
    shape = (count, size, powers.shape[2])
    return estimate(np.broadcast_to(total[:, None], shape[:2]), sums.reshape(shape))


def quantiles(values: Array, shares: Any) -> Array:
    """Return quantiles [2, R] along the first axis; those that are no numbers are left out."""
    finite = np.isfinite(values)
    if finite.all():
        return np.quantile(values, shares, axis=0)
    return np.nanquantile(np.where(finite, values, np.nan), shares, axis=0)


def bca(values: Array, value: Array, acceleration: Array) -> tuple[Array, Array]:
    """Return BCa's bounds [R] from values [B, R] of resamples."""
    count = len(values)
    shift = special.ndtri(np.clip((values < value).mean(axis=0), 0.5 / count, 1.0 - 0.5 / count))
    ordered = np.sort(values, axis=0)
    bounds = []
    for tail in ((1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0):
        reach = shift + special.ndtri(tail)
        share = special.ndtr(shift + reach / np.maximum(1.0 - acceleration * reach, 1e-9))
        place = share * (count - 1)
        low = np.clip(np.floor(place).astype(int), 0, count - 2)
        below, above = (np.take_along_axis(ordered, k[None], axis=0)[0] for k in (low, low + 1))
        bounds.append(below + (place - low) * (above - below))
    return bounds[0], bounds[1]


def make_intervals(
    d: Array, e: Array, rng: Generator, resamples: int
) -> dict[tuple[str, str], tuple[Array, Array]]:
    """Return the bounds [R] of λ, by metric and candidate, for replicates [R, N]."""
    n = d.shape[1]
    part = round(n**PART_EXPONENT)
    powers = powers_of(d, e)
    sample = estimate(np.full(len(d), float(n)), powers.sum(axis=1))
    drawn = {
        "studentised": resample(powers, lambda shape: rng.poisson(1.0, shape), resamples),
        "m-out-of-n": resample(powers, lambda shape: rng.poisson(part / n, shape), resamples),
        "subsampling": resample(powers, lambda shape: rng.random(shape) < part / n, resamples),
    }
    tails = [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0]
    reach = {"normal": special.ndtri(tails[1]), "student": special.stdtrit(n - 1, tails[1])}
    skew = accelerations(d, e)
    found = {}
    for metric, (value, error) in sample.items():
        for method, times in reach.items():
            found[metric, method] = value - times * error, value + times * error
        values = drawn["studentised"][metric][0]
        low, high = quantiles(values, tails)
        found[metric, "percentile"] = low, high
        found[metric, "bca"] = bca(values, value, skew[metric])
        for method, by_metric in drawn.items():
            values, errors = by_metric[metric]
            less = math.sqrt(1.0 - part / n) if method == "subsampling" else 1.0
            found[metric, method] = studentise(value, error, values, errors * less)
    return found


def studentise(value: Array, error: Array, values: Array, errors: Array) -> tuple[Array, Array]:
    """Return the studentised bounds [R] from values and standard errors [B, R] of resamples."""
    with np.errstate(all="ignore"):
        ratios = (values - value) / errors
    low, high = quantiles(ratios, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    return value - high * error, value - low * error


# --- what a report could say ----------------------------------------------------------------------


def find_groups(e: Array) -> dict[str, Array]:
    """Return which replicates [R] are in which group, by what their report would show."""
    squares, n = e**2, e.shape[1]
    worst = squares.max(axis=1) / squares.sum(axis=1)
    kurtosis = n * (squares**2).sum(axis=1) / squares.sum(axis=1) ** 2
    groups = {
        "worst item below 2 %": worst < 0.02,
        "worst item 2 to 20 %": (worst >= 0.02) & (worst <= 0.2),
        "worst item above 20 %": worst > 0.2,
        "kurtosis below 4": kurtosis < 4.0,
        "kurtosis 4 to 10": (kurtosis >= 4.0) & (kurtosis <= 10.0),
        "kurtosis above 10": kurtosis > 10.0,
    }
    if n * TAIL_SHARE >= FEWEST_TAIL_ITEMS:
        index = hill_index(np.abs(e))
        groups |= {"hill below 3": index < 3.0, "hill 3 or more": index >= 3.0}
    return groups


def hill_index(sizes: Array) -> Array:
    """Return the Hill index [R] of the largest errors: one over the mean log excess."""
    count = round(sizes.shape[1] * TAIL_SHARE)
    largest = np.partition(sizes, -count - 1, axis=1)[:, -count - 1 :]
    return 1.0 / np.log(largest / largest.min(axis=1, keepdims=True)).sum(axis=1) * count


# --- one design cell -----------------------------------------------------------------------------


def study(cell: Cell, *, replicates: int, resamples: int) -> list[Row]:
    """Simulate a cell: the rows of all samples, and of those that a flag tells apart."""
    rng = np.random.default_rng([SEED, list(ERRORS).index(cell.errors), cell.items])
    truth = true_values(cell.errors)
    bounds: dict[tuple[str, str], list[Any]] = {}
    groups: dict[str, list[Array]] = {}
    for start in range(0, replicates, BLOCK):
        shape = min(BLOCK, replicates - start), cell.items
        d, e = draw_items(cell.errors, rng, shape)
        for key, pair in make_intervals(d, e, rng, resamples).items():
            bounds.setdefault(key, []).append(pair)
        for name, where in find_groups(e).items():
            groups.setdefault(name, []).append(where)
    rows = []
    for (metric, method), pairs in bounds.items():
        low, high = (np.concatenate(side) for side in zip(*pairs, strict=True))
        score = partial(score_bounds, cell, metric, method, truth[metric])
        rows.append(score("all", low, high))
        if metric == "rmse" and method in GROUPED:
            for name, parts in groups.items():
                where = np.concatenate(parts)
                rows.append(score(name, low[where], high[where]))
    return rows


def score_bounds(
    cell: Cell, metric: str, method: str, truth: float, among: str, low: Array, high: Array
) -> Row:
    """Return how often bounds hold the truth."""
    if not len(low):
        return Row(*cell, metric, method, among, 0, 0.0, 0.0, 0.0, 0.0)
    left, right = float((truth < low).mean()), float((truth > high).mean())
    covered = float(((low <= truth) & (truth <= high)).mean())
    width = float(np.median(high - low))
    return Row(*cell, metric, method, among, len(low), covered, left, right, width)


# --- the package ----------------------------------------------------------------------------------

FROM_LAMBDA: dict[str, Callable[[float], float]] = {
    "rmse": lambda x: math.exp(x / 2.0),
    "r2": lambda x: 1.0 - math.exp(x),
    "skill": lambda x: 1.0 - math.exp(x / 2.0),
    "mae": math.exp,
}


def check(items: int, resamples: int) -> None:
    """Refuse to run where the package gives other bounds than the study, on the same resamples."""
    settings = ConfidenceIntervals(level=LEVEL, resamples=resamples, seed=SEED)
    metrics = [find_metric(name, Moments) for name in METRICS]
    for errors in ERRORS:
        d, e = draw_items(errors, np.random.default_rng(SEED), (1, items))
        moments = Moments.of(d[0], (d + e)[0], constants={TRAIN_MEAN: OFFSET})
        drawn = resample_poisson(d[0], (d + e)[0], settings)
        given = {
            "student": estimate_regression_metrics(metrics, moments, settings),
            "m-out-of-n": estimate_from_items(metrics, moments, d[0], (d + e)[0], settings),
        }
        for (metric, method), bounds in _repeat_package(d, e, drawn).items():
            found = given[method][metric]
            wanted = sorted(FROM_LAMBDA[metric](float(bound[0])) for bound in bounds)
            ends = [(ours, x) for ours, x in zip((found.low, found.high), wanted, strict=True)]
            if not all(math.isclose(*x, rel_tol=1e-6) for x in ends if math.isfinite(x[0])):
                raise SystemExit(f"{metric}, {method}, {errors}: {found}, and here {wanted}.")


def _repeat_package(d: Array, e: Array, drawn: Moments) -> dict[tuple[str, str], Any]:
    """Return the bounds of λ, from the resamples that the package has drawn."""
    n, zero = d.shape[1], np.zeros(len(drawn.items))
    raw = drawn.plain.recenter_sums(zero, zero).sums
    sums = [
        raw[:, a, b] for a, b in ((1, 0), (2, 0), (3, 0), (4, 0), (0, 2), (0, 4), (1, 2), (2, 2))
    ]
    resampled = estimate(drawn.total[:, None], np.stack([*sums, drawn.absolute], axis=-1)[:, None])
    reach, found = special.stdtrit(n - 1, (1.0 + LEVEL) / 2.0), {}
    sample = estimate(np.full(1, float(n)), powers_of(d, e).sum(axis=1))
    for metric, (value, error) in sample.items():
        found[metric, "student"] = value - reach * error, value + reach * error
        found[metric, "m-out-of-n"] = studentise(value, error, *resampled[metric])
    return found


# --- tests against a constant ---------------------------------------------------------------------


class Level(NamedTuple):
    """How often a test finds predictions better than a constant that is as good."""

    errors: str
    items: int
    absolute: float  # at equal absolute loss
    squared: float  # at equal squared loss


def measure_level(cell: Cell, *, replicates: int) -> list[Level]:
    """Simulate predictions that are as good as a constant, which is off by normal errors."""
    rng = np.random.default_rng([SEED, 1, list(ERRORS).index(cell.errors), cell.items])
    mae = math.exp(true_values(cell.errors)["mae"]) / math.sqrt(2.0 / math.pi)
    found = np.zeros(2)
    for seed in range(replicates):
        e, away = ERRORS[cell.errors](rng, (1, cell.items))[0], rng.standard_normal(cell.items)
        gains = mae * np.abs(away) - np.abs(e), away**2 - e**2
        tests = [decide_by_gains(x, LEVEL, seed=seed) for x in gains]
        found += [test is not None and test.verdict == "better" for test in tests]
    return [Level(*cell, *(found / replicates).tolist())]


def level_section(levels: Sequence[Level], replicates: int) -> str:
    """Return the section on the level of tests against a constant."""
    table = [[x.errors, f"{x.items:,}", percent(x.absolute), percent(x.squared)] for x in levels]
    absolute = [x.absolute for x in levels]
    error = 100 * standard_error(1.0 - LEVEL, replicates)
    said = (
        "Whether predictions are better than a constant is decided by the losses of each item, "
        "never by an interval of R² or skill: coins turn the signs of what items gain "
        f"(`decide_by_gains`, one-sided, nominal 5 %). How often it says better, in percent of "
        f"{replicates:,} samples in which errors have the distribution and the constant is off by "
        f"normal errors with the same expected loss; the Monte Carlo standard error is {error:.1f} "
        f"points. Absolute loss leads: it is called better in {percent(min(absolute))} to "
        f"{percent(max(absolute))} %; of squared loss ({percent(max(x.squared for x in levels))} % "
        f"at most) reports say “on these items” where kurtosis is above {HEAVY_KURTOSIS:g} or the "
        f"Hill index below {HEAVY_HILL_INDEX:g}."
    )
    head = ["errors", "N", "absolute loss", "squared loss"]
    return f"## Against a constant\n\n{wrapped(said)}\n\n{markdown(head, table)}"


# --- the rule, and the page -----------------------------------------------------------------------

RULE = (
    f"Fixed before the study was run. Counted are the cells with N ≥ {LARGE} of all distributions "
    f"but {NO_VARIANCE}, under which squared errors have no variance and no candidate can hold, "
    "for RMSE, R² and skill. The shortfall of a cell is what its coverage lacks of 95 %, 0 if "
    "nothing. Among the candidates that moments are enough for, the one with the smallest mean "
    "shortfall is chosen; among those that need the items, the shortest of those whose mean "
    f"shortfall is within {100 * CLOSE:g} points of the smallest. A smoke test of 100 replicates "
    "of two sizes, with the same seeds, came first; after it the tolerance was taken away from the "
    "candidates from moments, where it had chosen normal, which is 1 % shorter than student."
)


class Verdict(NamedTuple):
    """How a candidate did over the cells that count."""

    coverage: float
    shortfall: float
    enough: float  # the share of cells with 93 % or more, less two Monte Carlo standard errors
    lowest: float
    width: float  # beside student


def judge(rows: Sequence[Row], method: str) -> Verdict:
    """Return how a candidate did over the cells that count."""
    widths = {(r.cell, r.metric): r.width for r in rows if r.method == "student"}
    own = [r for r in counted(rows) if r.method == method]
    covered = [r.covered for r in own]
    return Verdict(
        statistics.fmean(covered),
        statistics.fmean(max(0.0, LEVEL - x) for x in covered),
        statistics.fmean(
            r.covered >= ENOUGH - 2.0 * standard_error(ENOUGH, r.samples) for r in own
        ),
        min(covered),
        statistics.fmean(r.width / widths[r.cell, r.metric] for r in own),
    )


def counted(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that count for the rule."""
    return [r for r in rows if r.items >= LARGE and r.errors != NO_VARIANCE and r.metric in FAMILY]


def choose(rows: Sequence[Row]) -> tuple[str, str]:
    """Return the candidates that the rule chooses: from moments, and with the items."""
    found = {method: judge(rows, method) for method in CANDIDATES}
    need_items = {method: each for method, each in found.items() if method not in FROM_MOMENTS}
    best = min(each.shortfall for each in need_items.values())
    near = [method for method, each in need_items.items() if each.shortfall <= best + CLOSE]
    return (
        min(FROM_MOMENTS, key=lambda method: found[method].shortfall),
        min(near, key=lambda method: found[method].width),
    )


def page(rows: Sequence[Row], levels: Sequence[Level], replicates: int, resamples: int) -> str:
    """Return the page of the study."""
    whole = [row for row in rows if row.among == "all"]
    chosen = choose(whole)
    parts = [
        "# Intervals of RMSE, R² and skill under heavy tails",
        wrapped(state_verdict(whole, chosen)),
        range_table(whole, chosen),
        wrapped(
            f"Coverage in percent of RMSE, R² and skill, the lowest and the highest of the cells "
            f"with N ≥ {LARGE}."
        ),
        "## Design",
        *map(wrapped, describe_design(replicates, resamples)),
        list_titles(TITLES),
        "Candidates:",
        list_titles(CANDIDATES),
        "## The rule",
        wrapped(RULE),
        verdict_table(whole, chosen),
        wrapped(
            "In percent, over the cells that count. *Enough* is the share of cells with a coverage "
            "of at least 93 % less two Monte Carlo standard errors; that allowance was added after "
            "the results were known, and plays no part in the rule. Without it the share is "
            f"{list_plain_shares(whole, chosen)}. *Width* is the mean ratio to the median width of "
            "student in the same cell. The chosen candidates are bold."
        ),
        "## Coverage in all cells",
        wrapped(
            "In percent; in brackets how often the truth was below the lower and above the upper "
            "bound of λ: the second number is how often the true error was larger than the "
            "interval says."
        ),
        *(f"### {metric}\n\n{coverage_table(whole, metric)}" for metric in METRICS),
        "## Widths in all cells",
        wrapped("The median width of the interval of λ: of student, and of others relative to it."),
        *(f"### {metric}\n\n{width_table(whole, metric)}" for metric in METRICS),
        "## What the flags tell",
        wrapped(
            "Coverage of RMSE in percent, by what the report of the sample shows, with the share "
            "of samples of which it shows that in brackets. A small share in the worst item and a "
            "small kurtosis go with intervals that miss, a large one with intervals that hold: "
            "kurtosis would warn of the wrong samples. A Hill index below 3 tells t3 from normal "
            "errors, not contaminated ones, whose intervals hold, from t3; with 200 items it is "
            "below 3 in a fifth of the Laplace samples, which is why it warns from 1,000 on."
        ),
        *(f"### {method}\n\n{flag_table(rows, method)}" for method in GROUPED),
        level_section(levels, replicates),
    ]
    return "\n\n".join(parts) + "\n"


def state_verdict(rows: Sequence[Row], chosen: tuple[str, str]) -> str:
    """Return what was found and what is used."""
    moments, items = chosen
    found = {method: judge(rows, method) for method in chosen}
    wider = found[items].width / found[moments].width - 1.0
    best = max(
        statistics.fmean(x.covered for x in select(rows, method, NO_VARIANCE))
        for method in CANDIDATES
    )
    return (
        f"Ordinate uses **{items}** (the method `studentized`) for {FEWEST_RESAMPLED_ITEMS} to "
        f"{MOST_RESAMPLED_ITEMS:,} single items without clusters, and **{moments}** (`t`) where "
        f"only moments are known: {items} covered best and is {percent(wider)} % wider. Coverage "
        f"is enough, 93 % less two Monte Carlo standard errors, in {percent(found[moments].enough)}"
        f" % of the cells that count with {moments}, in {percent(found[items].enough)} % with "
        f"{items}; 90 % were expected. The "
        "misses are one-sided: the true error is larger than the interval says. Where few errors "
        "are large (contaminated), all candidates fall short below 200 items, because many samples "
        f"hold hardly any of those. Under {NO_VARIANCE} nothing covers: the best candidate reaches "
        f"{percent(best)} % on average. No flag certifies an interval: the samples that miss have "
        "not met their large error yet."
    )


def select(rows: Sequence[Row], method: str, errors: str) -> list[Row]:
    """Return the rows of a candidate and a distribution, for RMSE, R² and skill of enough items."""
    return [
        row
        for row in rows
        if (row.method, row.errors) == (method, errors)
        and row.items >= LARGE
        and row.metric in FAMILY
    ]


def range_table(rows: Sequence[Row], chosen: tuple[str, str]) -> str:
    """Return between what the coverage of the chosen candidates lies, by distribution."""

    def reach(method: str, errors: str) -> str:
        covered = [row.covered for row in select(rows, method, errors)]
        return f"{percent(min(covered))} to {percent(max(covered))}"

    names = dict.fromkeys(row.errors for row in rows)
    table = [[name, *(reach(method, name) for method in chosen)] for name in names]
    return markdown(["errors", *chosen], table)


def describe_design(replicates: int, resamples: int) -> list[str]:
    """Return what was simulated, in paragraphs."""
    error = 100 * standard_error(LEVEL, replicates)
    sizes = ", ".join(f"{size:,}" for size in SIZES)
    cells = (
        "`make heavy-tails` writes this page. Each design cell is a distribution of errors with a "
        f"mean square of 1 and a number of items N ({sizes}); all cells of this cross are run. "
        f"Targets are normal with σ = {SIGMA:g}, so R² is 0.75 (the influence of items on "
        "ln(1 − R²) does not depend on R²); the baseline of skill is a constant "
        f"{OFFSET:g} off the true mean. Only where the spread grows are targets Gamma(4), with "
        "the same variance."
    )
    replication = (
        f"Each cell has {replicates:,} replicates, and {resamples:,} resamples of each; "
        f"{BLOCK} replicates at a time share the numbers that say which items are drawn. Nominal "
        f"coverage is 95 %, and its Monte Carlo standard error is {error:.1f} points in one "
        f"cell. Seeds begin with {SEED:,}. All candidates work on the log scale: λ = ln MSE, "
        "ln(1 − R²), ln(1 − skill), and ln MAE beside them. MSE and RMSE share their coverage, and "
        "so do R², NRMSE and relative accuracy. Before it runs, the study checks on a sample of "
        "each distribution that the package gives the same bounds. Reports show no bound that asks "
        "for errors larger than any of the sample: an interval that is open there counts as it is "
        "computed."
    )
    return [cells, replication]


def list_titles(titles: dict[str, str]) -> str:
    """Return names with what they mean, as a list."""
    return "\n".join(wrapped(f"- **{name}**: {text}.", "  ") for name, text in titles.items())


def verdict_table(rows: Sequence[Row], chosen: tuple[str, str]) -> str:
    """Return how each candidate did over the cells that count."""
    table = []
    for method in CANDIDATES:
        each = judge(rows, method)
        numbers = map(percent, (each.coverage, each.shortfall, each.enough, each.lowest))
        name = f"**{method}**" if method in chosen else method
        needs = "moments" if method in FROM_MOMENTS else "items"
        table.append([name, needs, *numbers, f"{each.width:.2f}"])
    head = ["candidate", "needs", "coverage", "shortfall", "enough", "lowest", "width"]
    return markdown(head, table)


def list_plain_shares(rows: Sequence[Row], chosen: tuple[str, str]) -> str:
    """Return the share of cells with 93 % or more, without any allowance, by candidate."""
    shares = {
        method: statistics.fmean(r.covered >= ENOUGH for r in counted(rows) if r.method == method)
        for method in chosen
    }
    return " and ".join(f"{percent(share)} % with {method}" for method, share in shares.items())


def coverage_table(rows: Sequence[Row], metric: str) -> str:
    """Return the coverage and the misses of each candidate in each cell."""
    return cell_table(
        rows,
        metric,
        lambda row, _: f"{percent(row.covered)} ({percent(row.left)}, {percent(row.right)})",
    )


def width_table(rows: Sequence[Row], metric: str) -> str:
    """Return the width of each candidate in each cell, relative to student."""

    def show(row: Row, student: Row) -> str:
        return f"{row.width:.3f}" if row is student else f"{row.width / student.width:.2f}"

    return cell_table(rows, metric, show)


def cell_table(rows: Sequence[Row], metric: str, show: Callable[[Row, Row], str]) -> str:
    """Return a table of all cells with one column for each candidate."""
    known = {(row.cell, row.method): row for row in rows if row.metric == metric}
    cells = dict.fromkeys(row.cell for row in rows)
    table = [
        [cell.errors, f"{cell.items:,}"]
        + [show(known[cell, method], known[cell, "student"]) for method in CANDIDATES]
        for cell in cells
    ]
    return markdown(["errors", "N", *CANDIDATES], table)


def flag_table(rows: Sequence[Row], method: str) -> str:
    """Return the coverage of a candidate in samples that flags tell apart."""
    own = [row for row in rows if (row.metric, row.method) == ("rmse", method)]
    known = {(row.cell, row.among): row for row in own}
    names = [name for name in dict.fromkeys(row.among for row in own) if name != "all"]
    table = []
    for cell in dict.fromkeys(row.cell for row in own):
        total = known[cell, "all"].samples
        shown = []
        for name in names:
            row = known.get((cell, name))
            there = row is not None and row.samples
            shown.append(
                f"{percent(row.covered)} ({100 * row.samples / total:.0f} %)"
                if row is not None and there
                else "–"
            )
        table.append([cell.errors, f"{cell.items:,}", *shown])
    return markdown(["errors", "N", *names], table)


def main() -> None:
    """Simulate what is missing, print the page, and write it where asked to."""
    options = parse_options("Study intervals under heavy tails.", "heavy-tails")
    sizes = QUICK_SIZES if options.quick else SIZES
    check(200, options.resamples)
    cells = [Cell(errors, size) for size, errors in product(sizes, ERRORS)]
    work = partial(study, replicates=options.replicates, resamples=options.resamples)
    rows = sorted(simulate(cells, work, Row, options), key=lambda r: list(ERRORS).index(r.errors))
    tested = [cell for cell in cells if cell.errors != "growing" and cell.items in TESTED_SIZES]
    own = argparse.Namespace(**vars(options))
    own.file = options.file.with_stem(f"{options.file.stem}-levels")
    test = partial(measure_level, replicates=options.replicates)
    levels = sorted(simulate(tested, test, Level, own), key=lambda x: list(ERRORS).index(x.errors))
    publish(page(rows, levels, options.replicates, options.resamples), options)


if __name__ == "__main__":
    main()
