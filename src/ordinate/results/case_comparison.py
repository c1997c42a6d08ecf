"""Systems compared by their means over cases: topics, prompts or writers."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference import Estimate
from ordinate.inference.case_averages import CaseValues, average_cases, compute_case_values
from ordinate.inference.case_differences import (
    count_differing_cases,
    randomize_case_means,
    resample_case_means,
)
from ordinate.inference.resampling import ProgressCallback, Resampling
from ordinate.metrics import Metric
from ordinate.render.tables import to_plain
from ordinate.results.base import Record, to_json_label
from ordinate.results.comparison_settings import ComparisonSettings
from ordinate.results.joint_comparison import CASES, JointComparison
from ordinate.results.leaderboard import Leaderboard, LeaderboardBuilder
from ordinate.summaries import Panel

Array = NDArray[Any]


@dataclass(frozen=True)
class CaseComparison:
    """A leaderboard of each metric's mean over cases, and the value of each system and case.

    Systems are paired by case: only those cases count in which all of them have a value.
    """

    panel: Panel  # its groups are the cases
    leaderboards: dict[str, Leaderboard]
    values: dict[str, Array]  # by metric, [S, C]
    column: str | None = None

    @classmethod
    def from_panel(
        cls,
        panel: Panel,
        metrics: list[Metric],
        settings: ComparisonSettings,
        column: str | None = None,
    ) -> "CaseComparison":
        """Compare the systems of a panel by their means over its groups."""
        builder = CaseLeaderboardBuilder(panel, metrics, settings, None)
        found = {name: one.values for name, one in builder.measured.items()}
        return cls(panel, builder.all(), found, column)

    @property
    def cases(self) -> int:
        """The number of cases, with a value or not."""
        return len(self.panel.group_values)

    def to_dict(self) -> Record:
        """Return plain values, nan as None; every case is there."""
        return {
            "column": self.column,
            "cases": self.cases,
            "metrics": {
                name: board.to_dict() | {"cases_compared": self.count_compared(name)}
                for name, board in self.leaderboards.items()
            },
            "by_case": [self._describe_case(place) for place in range(self.cases)],
        }

    def count_compared(self, name: str) -> int:
        """Return the number of cases in which all systems have a value of a metric."""
        return int(find_shared_cases(self.values[name]).sum())

    def _describe_case(self, place: int) -> Record:
        return {
            "case": to_json_label(self.panel.group_values[place]),
            "metrics": {
                name: dict(
                    zip(self.panel.systems, to_plain(values[:, place].tolist()), strict=True)
                )
                for name, values in self.values.items()
            },
        }

    def list_cases(self) -> list[Record]:
        """Return one flat record for each case, system and metric."""
        return [
            {"case": case, "system": system, "metric": name, "value": value}
            for name, values in self.values.items()
            for system, row in zip(self.panel.systems, values.tolist(), strict=True)
            for case, value in zip(map(to_json_label, self.panel.group_values), row, strict=True)
        ]


def find_shared_cases(values: Array) -> Array:
    """Return which cases [C] have a value of all systems [S, C] that have any."""
    known = ~np.isnan(values)
    return np.asarray(known[known.any(axis=1)].all(axis=0) & known.any())


class CaseLeaderboardBuilder(LeaderboardBuilder):
    """The same leaderboards for means over cases: cases are resampled, and swapped whole."""

    unit = "cases"

    @cached_property
    def measured(self) -> dict[str, CaseValues]:
        """Each metric of each system in each case: values [S, C]."""
        by_system = [self.panel.count_by_group(system) for system in self.panel.systems]
        found = {}
        for metric in self.metrics:
            each = [compute_case_values(metric, cases) for cases in by_system]
            values = np.stack([one.values for one in each])
            reason = next((one.reason for one in each if one.reason), None)
            found[metric.expression] = CaseValues(values, np.full_like(values, np.nan), reason)
        return found

    def _measure_systems(self, progress: ProgressCallback | None) -> None:
        del progress  # it takes no time
        resamples = Resampling(self.settings.resamples, self.settings.seed)
        self.estimates: list[dict[str, Estimate]] = [{} for _ in self.panel.systems]
        self.resampled = {}
        for metric in self.metrics:
            name, values = metric.expression, self._select_shared(metric)
            reason = self.measured[name].reason
            for place, row in enumerate(values):
                found = CaseValues(row, np.full_like(row, np.nan), reason)
                average = average_cases(found, self.settings.level, metric.bounds)
                self.estimates[place][name] = average.estimate
            known = ~np.isnan(values).any(axis=1)
            drawn = np.full((resamples.count, len(values)), np.nan)
            drawn[:, known] = resample_case_means(values[known], resamples)
            self.resampled[name] = drawn

    def _select_shared(self, metric: Metric) -> Array:
        values = self.measured[metric.expression].values
        shared = find_shared_cases(values)
        return values[:, shared] if shared.any() else np.full((len(values), 1), np.nan)

    def _count_differing(self, metric: Metric) -> Array:
        return count_differing_cases(self._select_shared(metric))

    def _choose_resampling(self, metric: Metric) -> str:
        del metric
        return CASES

    def _exchange_predictions(self, compared: list[JointComparison]) -> None:
        """Test the pairs of each metric by swaps of whole cases."""
        for joint in compared:
            values = self._select_shared(joint.metric)
            pairs = joint.locate_swapped_pairs()
            swapped = randomize_case_means(joint.metric, values, pairs, self.settings.seed)
            joint.decide({}, swapped)

    def _note_gaps(self, metric: Metric, ranked: Array) -> list[str]:
        """Say how many cases are compared, where not all are."""
        del ranked
        shared = int(find_shared_cases(self.measured[metric.expression].values).sum())
        total = len(self.panel.group_values)
        if shared == total:
            return []
        note = f"The means of {metric.expression} are over the {shared:,} of {total:,} cases in "
        note += "which all systems have a value."
        return [note if shared > 1 else f"{note} Too few to compare."]

    def _measure_baselines(self, metric: Metric) -> None:
        """Return none: constants and chance are of all items."""
