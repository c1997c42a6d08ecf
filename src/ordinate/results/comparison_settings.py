"""Settings of a comparison: the level, the family of pairs, the correction, margins."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from ordinate.errors import BadOption, shorten, suggest_names
from ordinate.inference import ConfidenceIntervals
from ordinate.inference.interval_methods import IntervalMethod
from ordinate.results.arguments import check_system_count
from ordinate.settings import Level, Resamples, Seed

Correction = Literal["max_t", "holm", "bh", "by", "none"]
AGAINST_ALL, AGAINST_LEADER = "all", "leader"
MANY_SYSTEMS = 50  # systems, above which each is compared with the leader only


@dataclass(frozen=True)
class ComparisonSettings:
    """How systems are compared; `method` is that of the intervals of each system alone.

    `against` is 'all', 'leader' or the name of a system; `margins` are by metric, in its units;
    `pairs` are those that permutation tests and their like are made for.
    """

    level: Level = 0.95
    resamples: Resamples = 2_000
    seed: Seed = 0
    against: str | None = None
    correction: Correction = "max_t"
    margins: Mapping[str, float] = field(default_factory=dict)
    pairs: Sequence[tuple[str, str]] = ()
    method: IntervalMethod | None = None

    def __post_init__(self) -> None:
        if self.correction not in get_args(Correction):
            known = ", ".join(get_args(Correction))
            raise BadOption(f"There is no correction {self.correction!r}; there are: {known}.")
        for name, margin in self.margins.items():
            if not (isinstance(margin, (int, float)) and 0 < margin < math.inf):
                raise BadOption(f"The margin of {name} must be above 0, not {margin!r}.")

    @property
    def intervals(self) -> ConfidenceIntervals:
        """The intervals of each system alone."""
        return ConfidenceIntervals(self.level, self.method, self.resamples, self.seed)


def resolve_settings(systems: Sequence[str], settings: ComparisonSettings) -> ComparisonSettings:
    """Return the options with everything that was left open, checked against the systems."""
    count = len(systems)
    check_system_count(count)
    pairs = list(settings.pairs)
    if not pairs and count == 2:
        pairs = [(systems[0], systems[1])]
    named = [name for pair in pairs for name in pair]
    if settings.against not in {None, AGAINST_ALL, AGAINST_LEADER}:
        named.append(str(settings.against))
    for name in named:
        if name not in systems:
            hint = suggest_names(name, list(systems))
            raise BadOption(f"There is no system {shorten(name)}.{hint}")
    if any(len(set(pair)) != 2 for pair in pairs):
        raise BadOption("A pair is two different systems.")
    against = settings.against or (AGAINST_ALL if count <= MANY_SYSTEMS else AGAINST_LEADER)
    return replace(settings, against=against, pairs=pairs)
