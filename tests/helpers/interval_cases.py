"""A table and settings that tests of intervals share."""

from oracles import confusion, sample

from ordinate.inference import ConfidenceIntervals

TABLE = confusion(sample(5, 200, seed=5))


QUICK = ConfidenceIntervals(resamples=100)
