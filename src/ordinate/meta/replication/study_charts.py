"""The replication in charts: coverage of each metric beside the published numbers."""

import math
from typing import TYPE_CHECKING

from ordinate.meta.replication.published_figures import TABLE_3, TABLE_3_COLUMNS
from ordinate.meta.replication.synthetic_experiment import METRICS
from ordinate.render.charts import Axis, Chart, Mark, Panel, Point
from ordinate.render.document import format_cell

if TYPE_CHECKING:
    from ordinate.meta.replication.study import ReadingOutcome, ReplicationStudy

MEAN, PAPER = "mean over seeds", "paper"


def chart_replication(result: "ReplicationStudy") -> list[Chart]:
    """Return for each reading the coverage of the metrics, beside the published numbers."""
    return [
        Chart(
            "replication",
            f"Coverage under the {name} reading",
            "The mean over seeds, plus and minus one standard deviation, beside the published "
            "number; the panels are all systems, and all but those of one type.",
            Axis("coverage"),
            Axis("metric", "ordered", tuple(METRICS)),
            tuple(
                Panel(_make_marks(outcome, column), _format_column(title))
                for column, title in enumerate(TABLE_3_COLUMNS)
            ),
            series=(MEAN, PAPER),
            columns=3,
            variant=name,
            varies_by="reading",
        )
        for name, outcome in result.outcomes.items()
    ]


def _make_marks(outcome: "ReadingOutcome", column: int) -> tuple[Mark, ...]:
    marks: list[Mark] = []
    for row, metric in enumerate(METRICS):
        mean, spread = float(outcome.mean[row, column]), float(outcome.spread[row, column])
        published = TABLE_3[metric][column]
        around = "" if math.isnan(spread) else f" (sd {format_cell(spread)})"
        detail = f"{metric}: {format_cell(mean)}{around}, paper {published:.2f}"
        marks += [
            Point(mean, metric, mean - spread, mean + spread, series=MEAN, detail=detail),
            Point(published, metric, series=PAPER, detail=detail),
        ]
    return tuple(marks)


def _format_column(title: str) -> str:
    return title if title == "all" else f"no {title}"
