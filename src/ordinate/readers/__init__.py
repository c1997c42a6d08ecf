"""Where it comes from: every reader ends in a summary."""

from ordinate.readers.confusion import ConfusionData, count_files
from ordinate.readers.item_query import LabelColumns
from ordinate.readers.label_cells import read_label_map

__all__ = ["ConfusionData", "LabelColumns", "count_files", "read_label_map"]
