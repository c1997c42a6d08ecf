"""Whether a metric deserves trust: formal properties, and what it captures on real systems."""

from ordinate.meta.judgement import judge
from ordinate.meta.search import check

__all__ = ["check", "judge"]
