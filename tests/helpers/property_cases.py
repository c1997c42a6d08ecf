"""Examples of properties that tests share."""

from naive import NAIVE

from ordinate.metrics import list_metrics

NAMES = [metric.name for metric in list_metrics()]


def naive_value(name, scale, gold, output):
    """The value by the definition over items; labels stand where they say."""
    places = [scale.index(label) for label in gold], [scale.index(label) for label in output]
    return NAIVE[name](*places, [label - 1 for label in scale])
