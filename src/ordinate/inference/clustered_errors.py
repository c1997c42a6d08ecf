"""Groups: items of one writer, topic or document are not independent of each other."""

import math
from typing import Any

from numpy.typing import NDArray

from ordinate.inference.delta_method import influence
from ordinate.metrics import Metric
from ordinate.summaries import Confusion

Array = NDArray[Any]
FEW, VERY_FEW = 30, 10  # groups


def linearised_error(metric: Metric, batch: Confusion) -> float:
    """Return the standard error of a metric from the sums of influence of each group."""
    whole = batch.pooled
    pulls = (batch.weights * influence(metric, whole)).sum(axis=(-2, -1)) / whole.total
    count = len(pulls)
    return math.sqrt(count / (count - 1) * float(((pulls - pulls.mean()) ** 2).sum()))
