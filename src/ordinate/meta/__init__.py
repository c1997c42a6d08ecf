"""Whether a metric deserves trust: formal properties, and what it captures on real systems."""

from ordinate.meta.meta_evaluation import judge
from ordinate.meta.properties_search import check

__all__ = ["check", "judge"]
