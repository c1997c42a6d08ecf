"""Class priors: class weights undone, and mean probabilities compared with shares of gold."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, shorten
from ordinate.scale import Scale
from ordinate.scale.labels import normalize_label

Floats = NDArray[np.float64]
ClassWeights = Mapping[Any, float] | Sequence[float] | NDArray[Any] | str | None

BALANCED = "balanced"
FAR_SHARE = 0.05  # share of the items that would have to change their level
STANDARD_DEVIATIONS = 3.0  # of chi-squared above its mean
FEWEST_ROWS = 30  # below which shares are too rough to compare
CLASS_WEIGHTS_HINT = (
    "Pass a number above 0 for each level, by label or in the order of the scale, or 'balanced'."
)


def undo_class_weights(probabilities: Floats, weights: Floats | None) -> Floats:
    """Return the probabilities that a model fitted without class weights would have given.

    >>> undo_class_weights(np.array([[0.5, 0.5]]), np.array([1.0, 3.0])).tolist()
    [[0.75, 0.25]]
    """
    if weights is None:
        return probabilities
    parts = probabilities / weights
    total = parts.sum(axis=1, keepdims=True)
    return np.divide(parts, total, out=probabilities.copy(), where=total > 0)


def resolve_class_weights(
    given: ClassWeights, scale: Scale, shares: Floats | None
) -> Floats | None:
    """Return class weights in the order of the scale; 'balanced' is one over the shares of gold."""
    if given is None:
        return None
    if isinstance(given, str):
        return _balance_weights(given, shares)
    try:
        listed = _order_by_level(given, scale) if isinstance(given, Mapping) else given
        weights = np.array(listed, float)
    except (TypeError, ValueError) as problem:
        if isinstance(problem, BadOption):
            raise
        weights = np.empty(0)
    if weights.shape != (len(scale),) or not (np.isfinite(weights) & (weights > 0)).all():
        raise BadOption(
            f"class_weights={shorten(given)} are no weights for {scale}. {CLASS_WEIGHTS_HINT}"
        )
    return weights


def _balance_weights(given: str, shares: Floats | None) -> Floats:
    if given != BALANCED:
        raise BadOption(f"class_weights={shorten(given)} are no weights. {CLASS_WEIGHTS_HINT}")
    if shares is None:
        raise BadOption("class_weights='balanced' are one over the shares of gold: pass gold.")
    return np.divide(1.0, shares, out=np.full(len(shares), np.inf), where=shares > 0)


def _order_by_level(given: Mapping[Any, float], scale: Scale) -> list[float]:
    named = {normalize_label(label): weight for label, weight in given.items()}
    levels = [normalize_label(label) for label in scale.labels]
    for level in levels:
        if level not in named:
            raise BadOption(f"There is no class weight for {level!r}. {CLASS_WEIGHTS_HINT}")
    for label in named:
        if label not in levels:
            raise BadOption(
                f"There is a class weight for {shorten(label)}, which is not on {scale}."
            )
    return [named[level] for level in levels]


def measure_prior_shift(
    rows: Floats,
    shares: Floats,
    fitted_items: int | None = None,
    *,
    weights: Floats | None = None,
) -> float | None:
    """Return how far mean probabilities lie from shares of levels; None if not significant.

    It is the total variation: the share of the items that would have to change their level.
    `fitted_items` other items gave the shares; without it, these rows did. It is significant if it
    is not small and chi-squared is well above what chance gives. Weighted rows stand for
    (Σw)² / Σw² items.
    """
    own = len(rows) if weights is None else weights.sum() ** 2 / (weights**2).sum()
    n = own if fitted_items is None else 1.0 / (1.0 / max(1, own) + 1.0 / fitted_items)
    if n < FEWEST_ROWS:
        return None
    mean = np.average(rows, axis=0, weights=weights)
    difference, freedom = mean - shares, len(shares) - 1
    chi_squared = n * float((difference**2 / np.maximum(shares, 0.5 / n)).sum())
    apart = 0.5 * float(np.abs(difference).sum())
    clear = chi_squared > freedom + STANDARD_DEVIATIONS * np.sqrt(2.0 * freedom)
    return apart if apart > FAR_SHARE and clear else None


def describe_mismatch(apart: float, *, weighted: bool) -> str:
    """Say what it may mean that probabilities and gold differ on the items fitted on."""
    cause = (
        "these class weights are not the ones of a weighted-likelihood fit, which can be undone"
        if weighted
        else "it was fitted with class weights (pass them, and they are undone)"
    )
    return (
        f"The mean probabilities lie {100 * apart:.0f} % away from the shares of gold. The model "
        f"may be badly calibrated, or {cause}. Recalibrate it on held-out items."
    )


def describe_prior_shift(apart: float) -> str:
    """Say what it may mean that probabilities differ from the gold that was fitted on."""
    return (
        f"The mean probabilities of these rows lie {100 * apart:.0f} % away from the shares of the "
        "levels that decoding was fitted on. If the levels have shifted, fit it on items like "
        "these."
    )
