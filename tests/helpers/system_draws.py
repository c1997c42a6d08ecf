"""What tests of many systems share."""

from panels import panel_of, sampled

from ordinate.metrics import find_metric

NAMES = ("accuracy", "mae", "quadratic_kappa", "macro_mae", "cem_ord", "kendall_tau_b", "bias")


METRICS = [find_metric(name) for name in NAMES]


COUNT = 3000


SIZE = 4


LEVEL = 0.95


def four_systems():
    """Gold, and four systems; the last has most of its answers from the second."""
    gold, systems = sampled(SIZE, 150, 3, [0.5, 0.9, 0.9])
    both = zip(systems["s1"], systems["s0"], strict=True)
    systems["s3"] = [one if k % 3 else other for k, (one, other) in enumerate(both)]
    return gold, systems


GOLD, SYSTEMS = four_systems()


PANEL = panel_of(GOLD, SYSTEMS, SIZE)
