"""Where it comes from: every reader ends in a summary."""

from ordinate.readers.confusion import ConfusionData, count_files, read_label_map
from ordinate.readers.query import LabelColumns

__all__ = ["ConfusionData", "LabelColumns", "count_files", "read_label_map"]
