"""How confidence intervals were found, in words: each method, and each doubt, once."""

import math
import re
from collections.abc import Mapping

from ordinate.inference.estimates import Estimate

METHOD_NAMES = {
    "delta": "the delta method",
    "percentile": "percentile bootstrap",
    "bca": "BCa bootstrap",
    "wilson": "Wilson",
    "mover": "MOVER over the levels",
    "simultaneous": "intervals of all levels at once",
    "dirichlet": "Dirichlet posterior",
    "jeffreys": "Dirichlet posterior with Jeffreys' prior",
    "jackknife": "the jackknife over clusters",
    "t": "Student's t over clusters",
}
COVERED = re.compile(r"(cover|covered as little as) (\d+) %")  # in notes, of nominally 95 %


def describe_interval_methods(
    found: Mapping[str, Estimate], titles: Mapping[str, str] = METHOD_NAMES
) -> list[str]:
    """Say how the intervals of metrics were found, why there are none, and what was left out.

    >>> found = {"mae": Estimate(0.5, 0.4, 0.6, "delta"), "bias": Estimate(0, -1, 1, "jackknife")}
    >>> describe_interval_methods(found)
    ['Intervals by the delta method: mae; by the jackknife over clusters: bias.']
    """
    computed = {name: one for name, one in found.items() if one.method is not None}
    parts = [*_describe_methods(computed, len(found), titles), *_describe_doubts(computed)]
    parts += [
        f"No interval for {name}: {one.note}."
        for name, one in found.items()
        if one.method is None and not math.isnan(one.value)
    ]
    parts += [
        f"{name} was undefined in {100 * one.undefined_share:.1f} % of the resamples, which are "
        "left out."
        for name, one in found.items()
        if one.undefined_share
    ]
    return parts


def _describe_methods(
    computed: Mapping[str, Estimate], most: int, titles: Mapping[str, str]
) -> list[str]:
    methods: dict[str, list[str]] = {}
    for name, one in computed.items():
        methods.setdefault(titles[one.method or ""], []).append(name)
    lines = [
        title if len(names) == most else f"{title}: {', '.join(names)}"
        for title, names in methods.items()
    ]
    return [f"Intervals by {'; by '.join(lines)}."] if lines else []


def _describe_doubts(computed: Mapping[str, Estimate]) -> list[str]:
    """Return what the notes of intervals say: each reason once, with those it is about, if not all.

    Reasons that differ in how much intervals covered are one.
    """
    names: dict[str, list[str]] = {}
    shares: dict[str, list[int]] = {}
    for name, one in computed.items():
        for reason in (one.note or "").removeprefix("unsure: ").split("; "):
            covered = COVERED.search(reason)
            key = COVERED.sub(r"\1 {} %", reason) if covered else reason
            names.setdefault(key, []).append(name)
            shares.setdefault(key, []).extend([int(covered[2])] if covered else [])
    names.pop("", None)
    lines = []
    for reason, whose in names.items():
        least, most = min(shares[reason], default=0), max(shares[reason], default=0)
        said = reason.replace("{}", f"{least}" if least == most else f"{least} to {most}")
        lines.append(said if len(whose) == len(computed) else f"{said} ({', '.join(whose)})")
    return [f"Keep in mind: {'; '.join(lines)}."] if lines else []
