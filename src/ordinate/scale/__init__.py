"""The declared order: labels lowest to highest, and how columns of labels become codes."""

from ordinate.scale.detection import resolve
from ordinate.scale.levels import PRESETS, Scale

__all__ = ["PRESETS", "Scale", "resolve"]
