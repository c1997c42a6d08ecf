"""Pairs of systems for the tests of two systems."""

from panels import panel_of


def pair_of(gold, first, second, size, *, positions=None, groups=None, weights=None):
    panel = panel_of(
        gold,
        {"one": first, "two": second},
        size,
        positions=positions,
        groups=groups,
        weights=weights,
    )
    return panel.pair_systems("one", "two", grouped=groups is not None)
