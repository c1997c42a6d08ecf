"""The declared order: labels lowest to highest, and how columns of labels become codes."""

from ordinate.scale.levels import PRESETS, Scale
from ordinate.scale.resolve import resolve

__all__ = ["PRESETS", "Scale", "resolve"]
