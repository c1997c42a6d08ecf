"""The declared order: labels lowest to highest, and how columns of labels become codes."""

from ordinate.scale.detection import resolve_scale
from ordinate.scale.levels import PRESETS, Scale

__all__ = ["PRESETS", "Scale", "resolve_scale"]
