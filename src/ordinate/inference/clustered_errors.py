"""Groups: items of one writer, topic or document are not independent of each other."""

import math
from typing import Any

from numpy.typing import NDArray

from ordinate.inference.delta_method import compute_influence
from ordinate.metrics import Metric
from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]
FEW_CLUSTERS, VERY_FEW_CLUSTERS = 30, 10  # groups


def linearised_standard_error(metric: Metric, batch: ConfusionMatrix) -> float:
    """Return the standard error of a metric from the sums of influence of each group."""
    whole = batch.pooled
    pulls = (batch.weights * compute_influence(metric, whole)).sum(axis=(-2, -1)) / whole.total
    count = len(pulls)
    return math.sqrt(count / (count - 1) * float(((pulls - pulls.mean()) ** 2).sum()))
