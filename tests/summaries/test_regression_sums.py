"""Sums of batches: what they merge to, whatever the batches, and what other machines send back."""

import json

import numpy as np
import pytest

from ordinate.errors import BadValues
from ordinate.readers.batches import ColumnBatches, Summarizer
from ordinate.scale.encoding import Groups
from ordinate.summaries.regression import Moments
from ordinate.summaries.regression_sums import ONE_KEY, RegressionKeys, RegressionSums

N = 60
RNG = np.random.default_rng(2)
Y = RNG.normal(5.0, 1.0, N)
P = Y + RNG.normal(0.0, 0.5, N)
COLUMNS = {
    "y": Y,
    "p": P,
    "w": RNG.integers(1, 4, N) / 2.0,
    "low": P - 1.0,
    "high": P + 1.0,
    "subgroup": RNG.integers(0, 2, N),
    "cluster": RNG.integers(0, 9, N),
}
KEYS = RegressionKeys.of(
    Groups(["a", "b"], COLUMNS["subgroup"]),
    Groups(list("rstuvwxyz"), COLUMNS["cluster"]),
    grouped=True,
)


def take(rows):
    return {name: column[rows] for name, column in COLUMNS.items()}


def make(columns):
    return RegressionSums.of(columns, KEYS, {"mean": 5.0})


def test_batches_add_up_to_all_rows_and_come_back_from_json_as_they_were():
    parts = [make(take(slice(start, start + 7))) for start in range(0, N, 7)]
    sent = [RegressionSums.from_dict(json.loads(json.dumps(x.to_dict()))) for x in parts]
    assert sent == parts
    found, usual = (
        x.summarize(KEYS, np.zeros(2, int)) for x in (sum(sent[1:], sent[0]), make(COLUMNS))
    )
    for one, two in ((found.moments, usual.moments), (found.groups[3], usual.groups[3])):
        assert one.plain.sums == pytest.approx(two.plain.sums, rel=1e-12, abs=1e-12)
        assert one.spread["mean"] == pytest.approx(two.spread["mean"], rel=1e-12)
    assert found.bounds.plain == pytest.approx(usual.bounds.plain, rel=1e-12)
    alone = Moments.of(Y, P, COLUMNS["w"], histogram=True)
    assert found.moments.histogram == alone.histogram


def test_a_subgroup_is_its_items():
    whole, own = make(COLUMNS), COLUMNS["subgroup"] == 1
    part = whole.summarize(KEYS, np.array([3, 4]), 1)
    alone = Moments.of(Y[own], P[own], COLUMNS["w"][own], histogram=True)
    assert part.moments.plain.sums == pytest.approx(alone.plain.sums, rel=1e-12, abs=1e-12)
    assert part.moments.histogram == alone.histogram
    assert (part.moments.n, part.moments.dropped, part.groups.dropped.tolist()[:2]) == (
        int(own.sum()),
        4,
        [4, 0],
    )


def test_what_is_wrong_with_a_partition_is_told():
    work = Summarizer(RegressionSums, RegressionSums.of_targets)
    fine, large = ({"y": np.array([1.0, x])} for x in (2.0, 1e90))
    answers = [*work.sum_up_remotely([fine]), *work.sum_up_remotely([])]
    assert work.collect(answers).mean == 1.5
    assert work.collect([]) is None
    with pytest.raises(BadValues, match="too large to be squared twice"):
        work.collect([*answers, *work.sum_up_remotely([large])])


def test_the_median_is_that_of_the_gaps_about_the_mean():
    batches = ColumnBatches({"y": np.array([1.0, 2.0, 6.0])})
    mean = batches.sum_up(Summarizer(RegressionSums, RegressionSums.of_targets)).mean
    gaps = RegressionSums.of_gaps(batches.columns, mean)
    assert (mean, gaps.compute_median(mean)) == (3.0, pytest.approx(2.0, abs=0.01))
    assert len(ONE_KEY) == 1
