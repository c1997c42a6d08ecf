"""Whether a metric deserves trust: formal properties, and what it captures on real systems."""

from ordinate.meta.search import check

__all__ = ["check"]
