"""How often each level is given, in charts: side by side for each way of giving it."""

from collections.abc import Iterable, Mapping, Sequence

from ordinate.render.charts import Axis, Bar, Chart, Panel
from ordinate.render.estimates import format_percent

MOST_LEVELS = 60  # whose bars can be seen


def chart_level_shares(
    names: Sequence[str], shares: Mapping[str, Iterable[float]], *, variant: str = ""
) -> list[Chart]:
    """Return the share of each level, in a panel for each way of giving it."""
    if len(names) > MOST_LEVELS:
        return []
    panels = tuple(
        Panel(
            tuple(
                Bar(float(share), level, detail=f"{level}, {way}: {format_percent(float(share))}")
                for level, share in zip(names, column, strict=True)
            ),
            way,
            name=way,
        )
        for way, column in shares.items()
    )
    return [
        Chart(
            "level_shares",
            "How often each level is given",
            "The share of the rows that are given each level; levels lowest first.",
            Axis("share", low=0.0),
            Axis("level", "ordered", tuple(names)),
            panels,
            columns=min(len(panels), 3),
            variant=variant,
            varies_by="data set",
        )
    ]
