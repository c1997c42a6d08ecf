"""Panels and plain loops for the tests of meta-evaluation."""

import math

from panels import panel_of, sampled
from scipy import stats

NAN = math.nan


NOISES = (0.4, 0.6, 0.8, 1.1, 1.6)


def panel_with_cases(cases=12, size=25, seed=1, **options):
    gold, systems = sampled(4, cases * size, seed, NOISES)
    groups = [f"t{index // size:02}" for index in range(cases * size)]
    return panel_of(gold, systems, 4, groups=groups, **options)


def rank_correlation(first, second):
    one, other = [round(a, 9) for a in first], [round(b, 9) for b in second]
    if len(set(one)) < 2 or len(set(other)) < 2:
        return NAN
    return float(stats.spearmanr(one, other).statistic)
