"""Where it comes from: every reader ends in a summary."""

from ordinate.readers.confusion import Counted, count_files, read_map
from ordinate.readers.query import Columns

__all__ = ["Columns", "Counted", "count_files", "read_map"]
