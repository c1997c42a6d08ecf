"""pytest, and every other test runner: an assertion on a metric that its interval decides."""

import warnings

from ordinate.errors import BadOption
from ordinate.results.base import Result
from ordinate.results.thresholds import compare_with_threshold, find_score

__all__ = ["InconclusiveWarning", "assert_metric"]


class InconclusiveWarning(UserWarning):
    """A confidence interval that has the threshold inside: the items are too few to tell."""


def assert_metric(
    result: Result, metric: str, *, at_least: float | None = None, at_most: float | None = None
) -> None:
    """Fail if the metric of a result is significantly worse than a threshold.

    A threshold inside the confidence interval is inconclusive, which warns. Without an interval the
    value decides; what is undefined fails. Metrics that are better when higher take `at_least`, all
    others `at_most`: one that is best at 0, such as bias, by its distance from 0.

    >>> import ordinate
    >>> result = ordinate.evaluate(["A1"] * 50 + ["B1"] * 50, ["A1"] * 50 + ["B2"] * 50)
    >>> assert_metric(result, "mae", at_most=0.7)
    >>> assert_metric(result, "accuracy", at_least=0.7)
    Traceback (most recent call last):
    ...
    AssertionError: accuracy is 0.5 (95 % CI 0.404 to 0.596), significantly worse than 0.7.
    """
    __tracebackhide__ = True
    score = find_score(result, metric)
    higher = score.metric.direction == "maximize"
    threshold, other = (at_least, at_most) if higher else (at_most, at_least)
    if threshold is None or other is not None:
        right = "at_least" if higher else "at_most"
        better = {"maximize": "higher", "minimize": "lower", "zero": "nearer to 0"}
        raise BadOption(
            f"{metric} is better when {better[score.metric.direction]}: "
            f"assert_metric(result, {metric!r}, {right}=…)."
        )
    found = compare_with_threshold(score, threshold)
    if found.verdict == "worse":
        raise AssertionError(found.sentence)
    if found.verdict == "inconclusive":
        warnings.warn(found.sentence, InconclusiveWarning, stacklevel=2)
