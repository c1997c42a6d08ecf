"""Models of a quantity on the same items."""

import numpy as np
from scipy import stats

Z = stats.norm.ppf(0.975)
N = 300


def sampled(n=N, seed=0, scales=(10.0, 12.0), shared=5.0, bias=0.0):
    """Targets, and predictions of models whose heavy-tailed errors have a part in common."""
    rng = np.random.default_rng(seed)
    y = rng.normal(600, 50, n)
    common = rng.standard_t(5, n) * shared
    names = "abcdef"
    models = {
        name: y + bias + common + rng.standard_t(5, n) * scale
        for name, scale in zip(names, scales, strict=False)
    }
    return y, models
