"""What every result can do: name itself in a line, show itself, become a frame, be saved."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, ParamSpec, Self, TypeVar, final

import numpy as np

from ordinate.errors import (
    BadOption,
    BadOutput,
    MissingExtra,
    UnknownMetric,
    shorten,
    suggest_names,
)
from ordinate.render import (
    FORMATS_BY_SUFFIX,
    Document,
    find_terminal_width,
    render,
)
from ordinate.render.document import StoreText
from ordinate.render.tables import Table, to_plain

if TYPE_CHECKING:
    from ordinate.render.charts import Chart
    from ordinate.render.matplotlib_charts import Display

SCHEMA = 1
BETTER_VALUES = {"maximize": "higher", "minimize": "lower", "zero": "near 0"}
LONGEST_TITLE = 80  # characters of a title in a repr
MOST_FILES = 12  # named in a report
NO_GROUP = "(none)"  # how items without a group are shown
Record = dict[str, Any]
T = TypeVar("T")
P = ParamSpec("P")
UNRECORDED = {"cls", "progress"}  # arguments that change nothing of a result
RECORDED: set[str] = set()  # the functions of which results know that they made them


class Call(NamedTuple):
    """How a result was made: a pure function, as "module:name", and its arguments."""

    function: str
    arguments: dict[str, Any]


class NoSuchMetric(UnknownMetric, KeyError):
    """A metric that a report does not have; a KeyError, as of any dictionary."""

    __str__ = Exception.__str__  # not the repr of a key


class ByMetric(dict[str, T]):
    """What a report has of each metric, by name; a missing name proposes near ones.

    >>> ByMetric(accuracy=0.5)["acuracy"]
    Traceback (most recent call last):
    ordinate.results.base.NoSuchMetric: The report has no metric 'acuracy'. Did you mean 'accuracy'?
    """

    def __missing__(self, name: object) -> T:
        near = suggest_names(str(name), [*self]) or f" It has: {', '.join(self)}."
        raise NoSuchMetric(f"The report has no metric {shorten(name)}.{near}")


class Result(ABC):
    """What a function of Ordinate returns: a subclass says what there is, the rest follows.

    Subclasses are data classes with `repr=False`, for a result has thousands of numbers and its
    repr is one line, and with `eq=False`: results are equal that say the same, nan or not.
    """

    table_name: ClassVar[str] = "metrics"  # what the flat records of `rows` are called
    made_by: Call | None = None  # what a report carries, so that it can be made again

    def __post_init__(self) -> None:
        for name in ("metrics", "leaderboards"):
            if isinstance(found := getattr(self, name, None), dict):
                object.__setattr__(self, name, ByMetric(found))

    @abstractmethod
    def document(self) -> Document:
        """Return the report for people."""

    def tables(self) -> Iterable[Table]:
        """Return the tables of the result; the first is what CSV has."""
        return ()

    def rows(self) -> list[Record]:
        """Return the flat records that CSV has."""
        return next(iter(self.tables())).rows()

    @abstractmethod
    def to_dict(self) -> Record:
        """Return everything as plain values, nan as None: what JSON has."""

    def list_tables(self) -> dict[str, list[Record]]:
        """Return flat records by the name of their table."""
        return {x.name: x.rows() for x in self.tables()} or {self.table_name: self.rows()}

    def get_table(self, name: str) -> Table:
        """Return a table by its name."""
        return next(table for table in self.tables() if table.name == name)

    def make_charts(self) -> "Iterable[Chart]":
        """Return the views of the result, best made one by one, as they are asked for."""
        return ()

    @final
    def list_charts(self) -> "list[Chart]":
        """Return the views of the result; those of one name are variants of each other."""
        return list(self.make_charts())

    def get_chart(self, name: str | None = None, variant: str | None = None) -> "Chart":
        """Return a view by its name, and by its variant where there are several.

        Without a name it is the first view.
        """
        for chart in self.make_charts():
            if name in {None, chart.name} and variant in {None, chart.variant}:
                return chart
        charts = self.list_charts()
        named = [x for x in charts if x.name == name]
        known = dict.fromkeys(x.variant if named else x.name for x in named or charts)
        what = f"chart {name!r} of {variant!r}" if named else f"chart {name!r}"
        raise BadOption(f"There is no {what}. There are: {', '.join(known) or 'none'}.")

    def plot(
        self, name: str | None = None, variant: str | None = None, *, ax: Any = None
    ) -> "Display":
        """Draw a view with matplotlib, the first one unless a name is given.

        `ax` is a subplot, or one for each panel; without it the view has a figure of its own. The
        display has `figure_`, `ax_` and `frame()`, as those of scikit-learn, and `save`.
        """
        chart = self.get_chart(name, variant)
        try:
            from ordinate.render import matplotlib_charts
        except ImportError:
            raise MissingExtra("Plotting needs matplotlib: pip install 'ordinate[plot]'") from None
        return matplotlib_charts.draw(chart, ax)

    def __repr__(self) -> str:
        title = self.document().title
        shown = title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1] + "…"
        return f"<{type(self).__name__}: {shown}>"

    def __str__(self) -> str:
        return render(self, width=find_terminal_width())

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self))

    def _repr_html_(self) -> str:
        from ordinate.render.html import render_piece

        return render_piece(self.document(), self.list_charts())

    def to_markdown(self) -> str:
        """Return the report as Markdown."""
        return render(self, "markdown")

    def to_latex(self) -> str:
        """Return the report as LaTeX, for the package booktabs."""
        return render(self, "latex")

    def to_json(self) -> str:
        """Return everything as JSON."""
        return render(self, "json")

    def to_csv(self, table: str | None = None) -> str:
        """Return the flat records as CSV, or those of one table."""
        from ordinate.render.records import render_csv

        return render(self, "csv") if table is None else render_csv(self._get_table(table))

    def to_frame(self, table: str | None = None, backend: str | None = None) -> Any:
        """Return a table as a data frame of pandas, Polars or Arrow.

        Without a name it is the first table; `backend` is 'pandas', 'polars' or 'pyarrow', and
        without one the first of them that is installed. What is undefined is missing.
        """
        from ordinate.render.records import make_frame

        records = self._get_table(next(iter(self.list_tables())) if table is None else table)
        return make_frame(records, backend)

    def replace_fields(self, **changes: Any) -> Self:
        """Return the same with other fields, which knows how it was made."""
        return replace_fields(self, changes)

    def describe_provenance(self, store: StoreText | None = None) -> Record:
        """Return what made the report, and what it is made of, so that it can be made again.

        What is too large for a report is handed to `store`, which returns the name of its file.
        """
        from ordinate.results.provenance import describe_provenance  # noqa: PLC0415 - start-up: text has none

        return describe_provenance(self, store)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the report to a file, in the format that its suffix names, whole or not at all.

        What it is made of stands in a file beside it, where that is too large for the report.
        """
        from ordinate.render.atomic_files import (  # noqa: PLC0415 - start-up: streams need none
            UNLOCKED_PREFIX,
            find_target,
            replace_file,
            store_beside,
        )

        report_format = FORMATS_BY_SUFFIX.get(Path(path).suffix.lower())
        if report_format is None:
            known = ", ".join(FORMATS_BY_SUFFIX)
            raise BadOutput(f"{shorten(str(path))} has no known suffix. There are: {known}.")
        target = find_target(path, force=force)
        with store_beside(target) as store:
            # The same bytes on every machine; labels may have half a character, which no file can.
            content = render(self, report_format, store=store).encode(errors="replace")
            with replace_file(target, prefix=UNLOCKED_PREFIX) as temporary:
                temporary.write_bytes(content)

    def _get_table(self, name: str) -> list[Record]:
        tables = self.list_tables()
        if name not in tables:
            raise BadOption(f"There is no table {name!r}. There are: {', '.join(tables)}.")
        return tables[name]


R = TypeVar("R", bound=Result)


def record_call(make: Callable[P, R]) -> Callable[P, R]:
    """Make a result know by which call it was made, so that its report can be made again.

    The function is pure: its result depends on its arguments alone.
    """
    signature = inspect.signature(make)
    function = f"{make.__module__.removeprefix('ordinate.')}:{make.__qualname__}"
    RECORDED.add(function)

    @wraps(make)
    def make_and_record(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = signature.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            if isinstance(value, Iterator):  # which can be read only once
                bound.arguments[name] = list(value)
        made = make(*bound.args, **bound.kwargs)
        known = {name: x for name, x in bound.arguments.items() if name not in UNRECORDED}
        object.__setattr__(made, "made_by", Call(function, known))
        return made

    return make_and_record


@record_call
def replace_fields(result: R, changes: Mapping[str, Any]) -> R:
    """Return a result with other fields."""
    return replace(result, **changes)  # type: ignore[type-var] # subclasses are data classes


# --- records and plain values --------------------------------------------------------------------


def align_columns(rows: list[Record]) -> list[Record]:
    """Return records of several tables with the same columns.

    >>> align_columns([{"metric": "mae", "chance": 1.5}, {"metric": "brier", "p": 0.1}])[1]
    {'metric': 'brier', 'chance': None, 'p': 0.1}
    """
    columns = dict.fromkeys(key for row in rows for key in row)
    return [columns | row for row in rows]


def name_subgroups(parts: Mapping[Hashable, T]) -> list[tuple[str, T]]:
    """Return subgroups by their names as strings, made distinct where they look alike."""
    found: dict[str, T] = {}
    for group, part in parts.items():
        name = NO_GROUP if group is None else str(group)
        while name in found:
            name += f" ({type(group).__name__})"
        found[name] = part
    return list(found.items())


def to_json_label(label: Hashable) -> str | int | float | bool:
    """Return a label that JSON knows: itself, or its text."""
    label = label.item() if isinstance(label, np.generic) else label
    return label if isinstance(label, (str, int, float)) else str(label)


class Serializable:
    """A data class whose dictionary is its fields."""

    def to_dict(self) -> Record:
        """Return plain values, nan as None."""
        return {x.name: to_plain(getattr(self, x.name)) for x in fields(self)}  # type: ignore[arg-type] # subclasses are data classes


@dataclass(frozen=True)
class Origin(Serializable):
    """Where the labels came from, for the head of a report."""

    gold: str = "gold"
    predicted: str = "predicted"
    files: tuple[str, ...] = ()
    match_counts: dict[str, Any] | None = None  # counts of ids; of many runs, by name
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: Any) -> "Origin":
        """Return what data that a reader counted say of where they came from."""
        return cls(data.gold, data.predicted, data.files, data.match_counts, data.notes)

    def name_files(self) -> str:
        """Return a sentence that names the files, with a space after it, or nothing."""
        more = len(self.files) - MOST_FILES
        named = ", ".join(self.files[:MOST_FILES]) + (f" and {more} more" if more > 0 else "")
        return f"Read from {named}. " if named else ""

    def name_tab(self, column: str = "") -> str:
        """Return the column and the file as a browser shows them on a tab, or nothing.

        The column is that of predictions, whose files stand behind a file of gold.
        """
        if not self.files:
            return ""
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        return f"{column} in {Path(self.files[-1]).name}{more}".removeprefix(" in ")

    def describe_join(self, side: str) -> list[str]:
        """Return a sentence on the ids that were matched with those of gold or of the targets."""
        if not self.match_counts:
            return []
        matched, missing, unknown = (f"{n:,}" for n in self.match_counts.values())
        joined = (
            f"Joined by id: {matched} matched, {missing} {side} without a prediction, {unknown}"
        )
        return [f"{joined} predictions unknown to the {side} and left out."]
