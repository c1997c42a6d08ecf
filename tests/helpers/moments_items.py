"""Targets and predictions with moments in long doubles, and how tests compare moments."""

import numpy as np
import pytest
from hypothesis import strategies as st

ORDERS = [(a, b) for a in range(5) for b in range(5 - a) if a + b >= 2]
RNG = np.random.default_rng(4)
quantities = st.floats(-1e6, 1e6).map(lambda x: round(x, 4))


@st.composite
def columns(draw, min_size=1, max_size=30):
    size = draw(st.integers(min_size, max_size))
    column = st.lists(quantities, min_size=size, max_size=size)
    return np.array(draw(column)), np.array(draw(column))


def reference(y, p, w, about):
    """Return Σw, means, sums about a point and the sums of their sizes, in long doubles.

    The point is where the summary says that it is: no double is nearer to the mean.
    """
    y, p = (np.asarray(x, np.longdouble) for x in (y, p))
    w = np.ones(len(y), np.longdouble) if w is None else np.asarray(w, np.longdouble)
    e, whole = p - y, w.sum()
    means = (w @ y) / whole, (w @ e) / whole
    d, f = (x - np.longdouble(float(at)) for x, at in zip((y, e), about, strict=True))
    sums = {(a, b): float(w @ (d**a * f**b)) for a, b in ORDERS}
    scale = {(a, b): float(w @ np.abs(d**a * f**b)) for a, b in ORDERS}
    return float(whole), tuple(map(float, means)), sums, scale


def assert_sums(table, y, p, w=None, tolerance=1e-12, orders=ORDERS):
    for part, weight in ((table.plain, w), (table.squared, None if w is None else w**2)):
        whole, means, sums, scale = reference(y, p, weight, (part.y, part.e))
        assert float(part.weight) == pytest.approx(whole, rel=1e-12)
        assert float(part.y) == pytest.approx(means[0], rel=1e-14, abs=1e-300)
        size = np.abs(np.subtract(p, y, dtype=np.longdouble)).max()
        assert float(part.e) == pytest.approx(means[1], rel=1e-11, abs=1e-15 * float(size))
        for a, b in orders:
            found = float(part.sums[a, b])
            assert abs(found - sums[a, b]) <= tolerance * scale[a, b], (a, b)


def assert_same(first, second, tolerance=1e-12):
    assert first.shape == second.shape
    assert np.array_equal(first.items, second.items)
    assert first.counted == second.counted
    assert first.order == second.order
    known = [(a, b) for a, b in ORDERS if a + b <= first.order]
    for mine, theirs in ((first.plain, second.plain), (first.squared, second.squared)):
        # a mean near 0 of large values is known as well as these are, and no better
        size = np.sqrt(mine.sums[..., 2, 0] / np.maximum(mine.weight, 1e-300)) + np.abs(mine.y)
        assert np.all(np.abs(mine.y - theirs.y) <= 1e-14 * size)
        assert np.allclose(mine.e, theirs.e, rtol=1e-11, atol=1e-9)
        for a, b in known:
            scale = np.sqrt(np.abs(mine.sums[..., 2, 0] ** a * mine.sums[..., 0, 2] ** b))
            found, other = mine.sums[..., a, b], theirs.sums[..., a, b]
            assert np.all(np.abs(found - other) <= tolerance * np.maximum(scale, 1e-9)), (a, b)
    for name in ("absolute", "absolute_squared", "squares"):
        assert np.allclose(getattr(first, name), getattr(second, name), rtol=1e-12)
    assert np.array_equal(first.largest, second.largest)
    assert first.constants == second.constants
    for name, part in first.spread.items():
        assert np.allclose(part, second.spread[name], rtol=1e-12)
    assert (first.histogram is None) == (second.histogram is None)
    if first.histogram is not None:
        bins = first.histogram.keys() | second.histogram.keys()
        for k in bins:
            mine, theirs = (np.asarray(h.get(k, 0.0)) for h in (first.histogram, second.histogram))
            assert np.allclose(mine, theirs, rtol=1e-12)


def heavy(n, rng=RNG):
    """Return targets and predictions whose errors have heavy tails and a bias."""
    y = rng.normal(670, 104, n)
    return y, y + 3 + 40 * rng.standard_t(5, n)
