"""Metrics of gold levels, and tables with items that nobody predicted."""

from hypothesis import strategies as st
from strategies import counts, scales

from ordinate.metrics import list_metrics
from ordinate.summaries import ConfusionMatrix

MEANS = [m.name for m in list_metrics() if m.macro == "mean"]


WORSTS = [m.name for m in list_metrics() if m.macro == "worst"]


RECALLS = {"macro_accuracy", "min_sensitivity"}


@st.composite
def silent_tables(draw, largest=6):
    """Tables on even and uneven scales, of which some have unanswered items."""
    scale = draw(scales())
    size = len(scale)
    silent = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size) | st.just([0] * size))
    return ConfusionMatrix.from_counts(draw(counts(size, largest)), scale, silent)


def cost_of(name, at, gold, answer):
    """What an item counts for in its level; no answer is as bad as the worst one."""
    if name in RECALLS:
        return float(gold == answer)
    gaps = [abs(at[gold] - x) for x in at]
    gap = max(gaps) if answer is None else gaps[answer]
    return gap**2 if name == "macro_mse" else gap
