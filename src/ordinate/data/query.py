"""From files and columns to SQL: the items with their labels, side by side or joined."""

from dataclasses import dataclass, field

from ordinate.data.engine import Connection
from ordinate.data.sources import Source, quoted, read
from ordinate.errors import BadInput, UnequalLengths, suggest

USUAL = {
    "gold": ("gold", "gold_label", "gold_level", "y_true", "true_label", "true", "truth"),
    "predicted": ("predicted", "predicted_label", "predicted_level", "prediction", "y_pred"),
}
G, P, WEIGHT, GROUP = "__gold", "__predicted", "__weight", "__group"
IN_GOLD, IN_PREDICTED, ID = "__in_gold", "__in_predicted", "__id"


@dataclass(frozen=True)
class Columns:
    """Which columns to read, and how."""

    gold: str | None = None
    predicted: str | None = None
    weights: str | None = None
    by: str | None = None
    gold_file: str | None = None
    id: str | None = None
    row_order: bool = False
    delimiter: str | None = None
    encoding: str | None = None
    renamed: dict[str, str] = field(default_factory=dict)

    @property
    def extras(self) -> dict[str, str]:
        """The further columns that are read, by the names that they get."""
        return {n: c for n, c in ((WEIGHT, self.weights), (GROUP, self.by)) if c is not None}


@dataclass(frozen=True)
class Items:
    """A query for items: their own columns, and those above. `keyed` items are known by an id."""

    sql: str
    name: str
    keyed: bool = False


class Planner:
    """Finds the columns in the files, and writes the queries."""

    def __init__(self, connection: Connection, files: list[Source], columns: Columns) -> None:
        self.connection, self.columns = connection, columns
        self.gold_file = files[0] if columns.gold_file else None
        self.files = files[1:] if columns.gold_file else files
        self.notes: list[str] = []
        self.gold = self._named("gold", columns.gold, self.gold_file or self.files[0])
        self.predicted = self._named("predicted", columns.predicted, self.files[0])

    def items(self) -> list[Items]:
        """Return a query for each file, or one for files that are joined."""
        if self.gold_file is None:
            return [self._plain(source) for source in self.files]
        if self.columns.row_order:
            return [self._side_by_side(self.gold_file)]
        return [self._joined(self.gold_file)]

    # --- columns -----------------------------------------------------------------------------

    def _named(self, role: str, named: str | None, source: Source) -> str:
        """Return the column of a role: the one named, or the only one with a usual name."""
        if named is not None:
            return named
        found = [column for column in source.columns if column.lower() in USUAL[role]]
        if len(found) != 1:
            raise BadInput(
                f"Which column of {source.name} holds the {role} levels? Name it with --{role}. "
                + _listed(source)
            )
        self.notes.append(f"The {role} column was not named; {found[0]!r} was taken.")
        return found[0]

    def _column(self, source: Source, column: str) -> str:
        if column not in source.columns:
            hint = suggest(column, source.columns) or " " + _listed(source)
            raise BadInput(f"{source.name} has no column {column!r}.{hint}")
        return quoted(column)

    def _label(self, source: Source, column: str) -> str:
        """Return SQL for a label as text, NULL where it is missing; NaN is a missing number."""
        text = f"nullif(CAST({self._column(source, column)} AS VARCHAR), '')"
        return f"nullif({text}, 'nan')" if source.types.get(column) in {"FLOAT", "DOUBLE"} else text

    # --- queries -----------------------------------------------------------------------------

    def _plain(self, source: Source) -> Items:
        extras = [f", {self._column(source, c)} AS {n}" for n, c in self.columns.extras.items()]
        return Items(
            f"SELECT *, {self._label(source, self.gold)} AS {G}, "  # noqa: S608 - names are quoted
            f"{self._label(source, self.predicted)} AS {P}{''.join(extras)}, "
            f"true AS {IN_GOLD}, true AS {IN_PREDICTED} FROM {source.sql}",
            source.name,
        )

    def _side(self, sources: list[Source], label: str, name: str) -> str:
        """Return SQL for one side of a join: label, id, and the further columns that it has."""
        parts = []
        for source in sources:
            chosen = [f"{self._label(source, label)} AS {name}"]
            if not self.columns.row_order:
                chosen.append(f"{self._label(source, self._id)} AS {ID}")
            for extra, column in self.columns.extras.items():
                here = quoted(column) if column in source.columns else "NULL"
                chosen.append(f"CAST({here} AS VARCHAR) AS {extra}")
            parts.append(f"SELECT {', '.join(chosen)} FROM {source.sql}")  # noqa: S608
        return " UNION ALL ".join(parts)

    def _sides(self, gold_file: Source) -> tuple[str, str, str]:
        for column in self.columns.extras.values():
            if not any(column in source.columns for source in (gold_file, *self.files)):
                self._column(gold_file, column)  # says what is there
        merged = [f", coalesce(a.{n}, b.{n}) AS {n}" for n in self.columns.extras]
        left = self._side([gold_file], self.gold, G)
        return left, self._side(self.files, self.predicted, P), "".join(merged)

    def _joined(self, gold_file: Source) -> Items:
        self._check_ids([gold_file])
        self._check_ids(self.files)
        left, right, extras = self._sides(gold_file)
        own = f"coalesce(a.{ID}, b.{ID}) AS {quoted(self._id)}, {G} AS gold, {P} AS predicted"
        return Items(
            f"SELECT {own}, {G}, {P}, coalesce(a.{ID}, b.{ID}) AS {ID}{extras}, "  # noqa: S608
            f"a.{ID} IS NOT NULL AS {IN_GOLD}, b.{ID} IS NOT NULL AS {IN_PREDICTED} "
            f"FROM ({left}) a FULL JOIN ({right}) b ON a.{ID} = b.{ID}",
            gold_file.name,
            keyed=True,
        )

    def _side_by_side(self, gold_file: Source) -> Items:
        rows = [self._rows(side) for side in ([gold_file], self.files)]
        if rows[0] != rows[1]:
            raise UnequalLengths(
                f"{gold_file.name} has {rows[0]:,} rows and the predictions have {rows[1]:,}, so "
                "they are not in the same order. Join them by an id column with --id."
            )
        self.notes.append("Gold and predictions were matched by row order, as asked.")
        left, right, extras = self._sides(gold_file)
        return Items(
            f"SELECT {G} AS gold, {P} AS predicted, {G}, {P}{extras}, "  # noqa: S608
            f"true AS {IN_GOLD}, true AS {IN_PREDICTED} "
            f"FROM ({left}) a POSITIONAL JOIN ({right}) b",
            gold_file.name,
        )

    # --- ids ---------------------------------------------------------------------------------

    @property
    def _id(self) -> str:
        if self.columns.id is None:
            raise BadInput(
                "Gold and predictions in two files are joined by an id. Name its column with --id, "
                "or pass --row-order if the rows of both files are in the same order."
            )
        return self.columns.id

    def _check_ids(self, sources: list[Source]) -> None:
        ids = [f"SELECT {self._label(s, self._id)} AS {ID} FROM {s.sql}" for s in sources]  # noqa: S608
        query = (
            f"SELECT {ID}, count(*) FROM ({' UNION ALL '.join(ids)}) GROUP BY {ID} "  # noqa: S608
            f"HAVING {ID} IS NULL OR count(*) > 1 ORDER BY {ID} NULLS FIRST LIMIT 1"
        )
        names = ", ".join(source.name for source in sources)
        for found, times in read(self.connection, query, names):
            if found is None:
                raise BadInput(f"{names}: {times:,} rows have no id in column {self._id!r}.")
            raise BadInput(f"{names}: the id {found!r} occurs {times:,} times; it must be unique.")

    def _rows(self, sources: list[Source]) -> int:
        counts = (
            read(self.connection, f"SELECT count(*) FROM {s.sql}", s.name)[0][0]  # noqa: S608
            for s in sources
        )
        return sum(counts)


def _listed(source: Source) -> str:
    names = ", ".join(map(repr, source.columns[:20]))
    return f"Its columns are: {names}{', …' if len(source.columns) > 20 else ''}."
