"""Surrogates: regression models tuned on a table of numbers, with errors in the target's unit."""
