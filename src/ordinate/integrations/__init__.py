"""Ordinate inside other libraries: each module serves one of them, and needs it installed."""
