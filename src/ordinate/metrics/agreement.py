"""Agreement: exact or near matches, and agreement beyond chance."""

from typing import Literal

import numpy as np

from ordinate.errors import BadOption
from ordinate.metrics.arithmetic import (
    CELL_AXES,
    Array,
    Value,
    average_over_levels,
    diagonal,
    has_several_levels,
    max_over_levels,
    mean_cost,
    mean_credit,
    ratio,
)
from ordinate.metrics.catalogue import metric
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.confusion import sum_between_levels

AgreementWeights = Literal["quadratic", "linear", "identity"]


@metric(
    family="agreement",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\sum_i n_{ii} / N",
    reference="",
    linear=True,
    takes_unanswered=True,
    ordered=False,
    share=True,
)
def accuracy(matrix: ConfusionMatrix) -> Value:
    """Share of items with the right level. Ignores how far off the others are.

    When to use: every mistake is equally bad, as in a lookup that is right or wrong; as a second
    number that everybody understands.

    When not: the levels are ordered and near misses are better than far ones, or one level is much
    more common than the others: always predicting it looks good.

    Elsewhere: scikit-learn `accuracy_score`; yardstick `accuracy`; R irr `agree`; torchmetrics
    `MulticlassAccuracy(average="micro")`, whose default average is `macro_accuracy`.
    """
    return diagonal(matrix.share).sum(axis=-1)


@metric(
    family="agreement",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\sum_{|i-j| \le n} n_{ij} / N",
    reference="gaudette2009",
    equal_steps=True,
    linear=True,
    takes_unanswered=True,
    aliases=("ordinal_accuracy", "adjacent_accuracy"),
    share=True,
)
def accuracy_within(matrix: ConfusionMatrix, *, n: int = 1) -> Value:
    """Share of items at most n levels off.

    It is never below the accuracy; a large difference between the two shows confusion at the
    boundaries of neighbouring levels.

    When to use: neighbouring levels are hard to tell apart for human raters too, and a reader asks
    how often the system is nearly right.

    When not: it stands alone: on a short scale nearly every prediction is near, and always
    predicting a middle level can reach 1. Put `accuracy` beside it.

    Elsewhere: dlordinal `accuracy_off1` and skordinal `accuracy_off1_score` for n=1; R irr
    `agree(tolerance=1)`; essay scoring says exact-plus-adjacent agreement.
    """
    return mean_credit(matrix, matrix.scale.steps <= n)


@metric(
    family="agreement",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\frac{1}{|\{i: g_i>0\}|} \sum_{i: g_i>0} n_{ii} / g_i",
    reference="",
    linear=True,
    takes_unanswered=True,
    ordered=False,
    macro="mean",
    aliases=("avgrec", "average_recall", "maac"),
)
def macro_accuracy(matrix: ConfusionMatrix) -> Value:
    """Mean over gold levels of the share of their items that is right (balanced accuracy).

    When to use: each level should have the same say however rare it is, and being near does not
    count.

    When not: far mistakes are worse than near ones (`macro_mae`), or some gold levels have a
    handful of items, each of which then moves the value a lot.

    Elsewhere: scikit-learn `balanced_accuracy_score`; torchmetrics `MulticlassAccuracy` by default.
    yardstick `bal_accuracy` is the mean of sensitivity and specificity, another number for more
    than two levels.
    """
    recall = ratio(diagonal(matrix.share), matrix.gold_share)
    return average_over_levels(matrix.gold_share > 0, recall)


@metric(
    family="agreement",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\min_{i: g_i>0} n_{ii} / g_i",
    reference="",
    takes_unanswered=True,
    ordered=False,
    macro="worst",
    smooth=False,
)
def min_sensitivity(matrix: ConfusionMatrix) -> Value:
    """The worst gold level's share of right items.

    When to use: no level may be neglected, as in screening: the value is that of the level which is
    served worst.

    When not: systems that differ elsewhere are compared: it ignores all levels but one, and is 0
    for every system that never finds one rare level.

    Elsewhere: dlordinal `minimum_sensitivity` and skordinal `minimum_sensitivity`.
    """
    recall = ratio(diagonal(matrix.share), matrix.gold_share)
    return -max_over_levels(matrix.gold_share > 0, -recall)


def _agreement_beyond_chance(matrix: ConfusionMatrix, cost: Array) -> Value:
    return _agreement_beyond(matrix, cost, (matrix.by_chance * cost).sum(axis=CELL_AXES))


def _agreement_beyond(matrix: ConfusionMatrix, cost: Array, expected: Value) -> Value:
    """Return 1 - observed / expected cost of disagreement."""
    return 1.0 - ratio((matrix.share * cost).sum(axis=CELL_AXES), expected)


_KAPPA_FORMULA = r"1 - \frac{\sum_{ij} |x_i-x_j|^p\, n_{ij}}{\sum_{ij} |x_i-x_j|^p\, g_i p_j / N}"
_ONE_LABEL = "gold and predictions are one and the same single label"


@metric(
    family="agreement",
    direction="maximize",
    bounds=(-np.inf, 1),
    formula=_KAPPA_FORMULA,
    reference="cohen1968",
    undefined_when=_ONE_LABEL,
    equal_steps=lambda options: options["power"] > 0,
)
def weighted_kappa(matrix: ConfusionMatrix, *, power: float = 2.0) -> Value:
    """Weighted kappa: errors cost their distance on the scale, relative to chance.

    When to use: the cost of an error should grow with its distance at a rate of your choice: power
    1 is `linear_kappa`, power 2 `quadratic_kappa`.

    When not: the distances between the levels are arbitrary, or values of data sets with different
    shares of levels are compared: chance differs between them.

    Elsewhere: scikit-learn `cohen_kappa_score(weights=…)`, statsmodels `cohens_kappa`, R irr
    `kappa2` and yardstick `kap` have powers 1 and 2.

    >>> matrix = ConfusionMatrix.of(["low", "mid", "high"], ["low", "high", "high"], "low,mid,high")
    >>> round(float(weighted_kappa(matrix)), 3)
    0.8
    """
    gaps = matrix.scale.gaps / matrix.scale.span  # whose powers are numbers
    cost = np.where(gaps > 0, gaps**power, 0.0)
    return _agreement_beyond_chance(matrix, cost)


@metric(
    family="agreement",
    direction="maximize",
    bounds=(-1, 1),
    formula=r"1 - \frac{\sum_{i \ne j} n_{ij}}{\sum_{i \ne j} g_i p_j / N}",
    reference="cohen1960",
    undefined_when=_ONE_LABEL,
    ordered=False,
)
def cohen_kappa(matrix: ConfusionMatrix) -> Value:
    """Cohen's kappa: exact agreement beyond chance. Ignores the order.

    When to use: labels are mere names, and agreement by chance should be taken out.

    When not: the levels are ordered: one step off costs as much as five. With one very common level
    it is low even where raters nearly always agree.

    Elsewhere: scikit-learn `cohen_kappa_score`; torchmetrics `CohenKappa`; yardstick `kap`; R irr
    `kappa2(weight="unweighted")`; statsmodels `cohens_kappa`.
    """
    return _agreement_beyond_chance(matrix, matrix.scale.gaps > 0)


@metric(
    family="agreement",
    direction="maximize",
    bounds=(-1, 1),
    formula=_KAPPA_FORMULA.replace("^p", ""),
    reference="cohen1968",
    undefined_when=_ONE_LABEL,
    equal_steps=True,
)
def linear_kappa(matrix: ConfusionMatrix) -> Value:
    """Kappa in which an error costs its distance.

    When to use: ratings are compared where two steps off are twice as bad as one, and chance should
    be taken out.

    When not: the steps are not equally wide, or one number is compared over data sets whose levels
    are filled differently.

    Elsewhere: scikit-learn `cohen_kappa_score(weights="linear")` with `labels=` the full scale;
    torchmetrics `CohenKappa(weights="linear")`; yardstick `kap(weighting="linear")`; R irr
    `kappa2(weight="equal")`; skordinal `weighted_kappa`.
    """
    return _agreement_beyond_chance(matrix, matrix.scale.gaps)


@metric(
    family="agreement",
    direction="maximize",
    bounds=(-1, 1),
    formula=_KAPPA_FORMULA.replace("^p", "^2"),
    reference="cohen1968",
    undefined_when=_ONE_LABEL,
    equal_steps=True,
)
def quadratic_kappa(matrix: ConfusionMatrix) -> Value:
    """Kappa in which an error costs its squared distance (QWK).

    When to use: readers expect it: essay scoring, medical grading and many competitions report it,
    so values can be compared with published ones.

    When not: it stands alone. It nearly ignores exact agreement on long scales, depends on the
    shares of the levels, and moving one prediction nearer to gold can lower it. Add `accuracy` or
    `cem_ord`.

    Elsewhere: QWK; scikit-learn `cohen_kappa_score(weights="quadratic")`, which takes the levels
    seen as the scale unless `labels=` has all; torchmetrics `CohenKappa(weights="quadratic")`;
    yardstick `kap(weighting="quadratic")`; R irr `kappa2(weight="squared")`.
    """
    return _agreement_beyond_chance(matrix, matrix.scale.gaps**2)


@metric(
    family="agreement",
    direction="maximize",
    bounds=(-1, 1),
    formula=r"\frac{N\sum_i n_{ii} - \sum_i g_i p_i}"
    r"{\sqrt{(N^2-\sum_i g_i^2)(N^2-\sum_i p_i^2)}}",
    reference="gorodkin2004",
    undefined_when="gold or predictions use one level only",
    ordered=False,
)
def mcc(matrix: ConfusionMatrix) -> Value:
    """Matthews correlation of the levels taken as categories. Ignores the order.

    When to use: labels have no order and shares are uneven: a high value needs good predictions in
    all levels.

    When not: the levels are ordered, or a system may answer with one level only: then it is
    undefined.

    Elsewhere: scikit-learn `matthews_corrcoef`, which gives 0 where one side is constant;
    torchmetrics `MatthewsCorrCoef`; yardstick `mcc`.
    """
    apart = matrix.scale.gaps > 0
    beyond_chance = ((matrix.by_chance - matrix.share) * apart).sum(axis=CELL_AXES)
    gold, predicted = matrix.gold_share, matrix.predicted_share
    spread = [np.einsum("...i,ij,...j", side, apart, side) for side in (gold, predicted)]
    both = has_several_levels(gold) & has_several_levels(predicted)
    return np.where(both, ratio(beyond_chance, np.sqrt(spread[0] * spread[1])), np.nan)[()]


@metric(
    family="agreement",
    direction="maximize",
    bounds=(-np.inf, 1),
    formula=r"\frac{P_a - P_e}{1 - P_e},\; P_a = \sum_{ij} w_{ij} n_{ij}/N,\; "
    r"P_e = \frac{\sum_{ij} w_{ij}}{K(K-1)} \sum_k \pi_k (1-\pi_k),\; \pi_k = (g_k+p_k)/2N",
    reference="gwet2014",
    equal_steps=lambda options: options["weights"] != "identity",
)
def gwet_ac2(matrix: ConfusionMatrix, *, weights: AgreementWeights = "quadratic") -> Value:
    """Gwet's AC2: agreement beyond a chance that depends little on the marginal shares.

    When to use: two raters agree nearly always on a very uneven scale, where kappas are low
    although agreement is high.

    When not: systems are chosen by it: predicting the commonest level is rewarded, and unused
    levels of the scale raise the value.

    Elsewhere: R irrCAC `gwet.ac1.raw` with weights, called AC1 without them.
    """
    cost, share = _weigh_disagreement(matrix, weights), _share_of_both(matrix)
    size = len(matrix.scale)
    credit = (1.0 - cost).sum() / (size * (size - 1))
    by_chance = credit * (share * (1.0 - share)).sum(axis=-1)
    return _agreement_beyond(matrix, cost, 1.0 - by_chance)


@metric(
    family="agreement",
    direction="maximize",
    bounds=(-1, 1),
    formula=r"1 - \frac{\sum_{ij} (1-w_{ij})\, n_{ij}/N}{\sum_{ij} (1-w_{ij})\, \pi_i \pi_j},\; "
    r"\pi_k = (g_k+p_k)/2N",
    reference="scott1955",
    undefined_when=_ONE_LABEL,
    equal_steps=lambda options: options["weights"] != "identity",
)
def scott_pi(matrix: ConfusionMatrix, *, weights: AgreementWeights = "quadratic") -> Value:
    """Scott's pi: agreement beyond the chance of two raters with the same shares of levels.

    When to use: two raters are interchangeable, so that chance should come from the levels that
    both use together.

    When not: gold is the truth and only the other side is judged: then the two sides are no draw
    from one distribution. The steps are taken as equally wide.

    Elsewhere: R irrCAC `scott2.table`; with two raters it is what Fleiss' kappa becomes.
    """
    cost, share = _weigh_disagreement(matrix, weights), _share_of_both(matrix)
    return _agreement_beyond(matrix, cost, np.einsum("...i,ij,...j", share, cost, share))


@metric(
    family="agreement",
    direction="maximize",
    bounds=(-np.inf, 1),
    formula=r"1 - \frac{\sum_{ij} (1-w_{ij})\, n_{ij}/N}{\sum_{ij} (1-w_{ij}) / K^2}",
    reference="brennan1981",
    linear=True,
    equal_steps=lambda options: options["weights"] != "identity",
)
def brennan_prediger(matrix: ConfusionMatrix, *, weights: AgreementWeights = "quadratic") -> Value:
    """Brennan and Prediger's coefficient: agreement beyond the chance of levels drawn evenly.

    When to use: chance should be the same for every data set on the scale: a level drawn evenly
    from all levels.

    When not: the scale has levels that are hardly used: each of them raises the value, and the
    commonest level alone can score well.

    Elsewhere: R irrCAC `bp2.table` and `bp.coeff.raw`; without weights also called the S
    coefficient or free-marginal kappa.
    """
    cost = _weigh_disagreement(matrix, weights)
    return _agreement_beyond(matrix, cost, cost.mean())


def _weigh_disagreement(matrix: ConfusionMatrix, weights: AgreementWeights) -> Array:
    """Return 1 - w: the cost of two levels as a share of the largest."""
    power = {"identity": 0, "linear": 1, "quadratic": 2}[weights]
    gaps = matrix.scale.gaps
    return np.where(gaps > 0, (gaps / matrix.scale.span) ** power, 0.0)


def _share_of_both(matrix: ConfusionMatrix) -> Array:
    """Return the share of each level among all labels, gold and predicted."""
    return (matrix.gold_share + matrix.predicted_share) / 2.0


@metric(
    family="agreement",
    direction="maximize",
    bounds=(-1, 1),
    formula=r"1 - \frac{(2N-1) \sum_{ck} o_{ck}\delta^2_{ck}}{\sum_{ck} n_c n_k \delta^2_{ck}},\;"
    r" o = n + n^\top,\; n_c = g_c + p_c",
    reference="krippendorff2011",
    undefined_when="only one level occurs",
    equal_steps=lambda options: options["level"] == "interval",
    integer_counts=True,
)
def krippendorff_alpha(
    matrix: ConfusionMatrix, *, level: Literal["ordinal", "nominal", "interval"] = "ordinal"
) -> Value:
    """Krippendorff's alpha of gold and predictions as two coders.

    When to use: annotation is reported as in content analysis, where alpha is the convention, and
    both sides are coders of equal standing.

    When not: a system is scored against gold: it treats both alike. It depends on the number of
    items, so it takes counts and no other weights.

    Elsewhere: The Python package `krippendorff` and R irr `kripp.alpha`, which take more than two
    coders as well; ordinal distances in irrCAC are others.
    """
    values = matrix.gold + matrix.predicted
    apart = matrix.scale.gaps > 0
    if level == "nominal":
        distance = np.broadcast_to(apart, matrix.counts.shape).astype(float)
    elif level == "interval":
        distance = np.broadcast_to(matrix.scale.gaps**2, matrix.counts.shape)
    else:  # the values between two levels, with half of those at each end
        distance = sum_between_levels(values) ** 2 * apart
    observed = 2.0 * (matrix.counts * distance).sum(axis=CELL_AXES)
    expected = np.einsum("...i,...ij,...j", values, distance, values)
    return 1.0 - ratio((2.0 * matrix.total - 1.0) * observed, expected)


@metric(
    family="agreement",
    direction="minimize",
    bounds=(-np.inf, np.inf),
    formula=r"\sum_{ij} c_{ij} n_{ij} / N",
    reference="",
    linear=True,
    takes_unanswered=True,
    ordered=False,
)
def expected_cost(confusion: ConfusionMatrix, *, matrix: list[list[float]]) -> Value:
    """Mean cost by the user's own K x K cost matrix, rows gold.

    An item without a prediction costs the dearest of its row.

    When to use: the cost of each mistake is known, in money or harm: then no other metric decides
    better.

    When not: the costs are guesses that nobody would sign: the order of systems may hang on them.
    """
    size = len(confusion.scale)
    try:
        costs = np.array(matrix, dtype=float)
    except (TypeError, ValueError):
        costs = np.empty(0)
    if costs.shape != (size, size) or not np.isfinite(costs).all():
        raise BadOption(f"expected_cost: matrix must be {size} x {size} finite numbers, rows gold.")
    return mean_cost(confusion, costs)
