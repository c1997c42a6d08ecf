"""Arrays of JAX, on the CPU: the metric of training loops reads their memory in place."""

import pytest
from label_tensors import draw_labels

from ordinate.integrations.torch import OrdinalMetric
from ordinate.summaries import ConfusionMatrix

jax = pytest.importorskip("jax.numpy")  # `make test-integrations` has it


@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_arrays_of_jax_are_counted_as_those_of_numpy(dtype):
    gold, predicted = draw_labels(6, 100)
    metric = OrdinalMetric(range(6))
    metric.update(jax.asarray(predicted, dtype), jax.asarray(gold, dtype))
    assert metric.summary() == ConfusionMatrix.of(gold, predicted, range(6))


def test_scores_of_jax_are_decided_by_the_highest():
    gold, predicted = draw_labels(6, 100)
    scores = jax.asarray(predicted)[:, None] == jax.arange(6)
    metric = OrdinalMetric(range(6))
    metric.update(scores.astype("float32"), jax.asarray(gold))
    assert metric.summary() == ConfusionMatrix.of(gold, predicted, range(6))
