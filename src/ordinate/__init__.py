"""Evaluate, compare and tune models whose outcomes are ordered."""

__version__ = "0.1.0"
