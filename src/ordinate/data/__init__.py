"""Where it comes from: every reader ends in a summary."""

from ordinate.data.files import Counted, count_files, read_map
from ordinate.data.query import Columns

__all__ = ["Columns", "Counted", "count_files", "read_map"]
