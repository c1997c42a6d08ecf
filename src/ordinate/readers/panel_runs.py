"""Systems as runs: a file for each, joined by an id to a file of gold levels."""

from pathlib import Path
from typing import Any

import numpy as np

from ordinate.errors import BadInput, brief
from ordinate.readers.clusters import clusters, numbered
from ordinate.readers.duckdb_engine import Connection
from ordinate.readers.files import SUFFIXES, Source, read, read_arrays
from ordinate.readers.panel_source import Array, Cells, SystemColumns, Way
from ordinate.readers.query import NTH, WEIGHT, Items, check_ids, column_named, label_of, listed
from ordinate.readers.row_locations import Places
from ordinate.scale import Scale
from ordinate.scale.encoding import OFF, off_scale
from ordinate.summaries.panel import single_items
from ordinate.summaries.tabulation import SHOWN


class Runs(Way):
    """Gold in the first file, and a run in each further one, joined by an id."""

    def __init__(
        self, connection: Connection, sources: list[Source], columns: SystemColumns
    ) -> None:
        gold, *runs = sources
        if not runs:
            raise _which_systems(gold, columns)
        if columns.id is None:
            raise BadInput(
                "Gold levels and runs in several files are joined by an id, whatever the order of "
                "their rows. Name its column with --id; or name columns of one file with --systems."
            )
        super().__init__(connection, gold, columns)
        self.id, self.file = columns.id, gold.name
        self.joined: dict[str, dict[str, int]] = {}
        self.notes.append(f"The gold levels are those of {gold.name}, the first file.")
        self._keep_gold(gold)
        self.systems = run_names([run.name for run in runs])
        self.titles, self.files = [self.gold], [gold.name]
        self.labels = []
        self.codes: list[Array] = []
        self._code("SELECT nth, gold AS label FROM known_items")
        for name, run in zip(self.systems, runs, strict=True):
            self._read(name, run)

    def _keep_gold(self, gold: Source) -> None:
        """Keep the items in the engine: all of them, and those that have a weight."""
        chosen = ", ".join([*self.chosen(gold), f"{label_of(gold, self.id)} AS id", NTH])
        self._run(f"CREATE TEMP TABLE given_items AS SELECT {chosen} FROM {gold.sql}")
        check_ids(self.connection, "SELECT id FROM given_items", gold.name, self.id)
        items = Items("SELECT * FROM given_items", gold.name, (), keyed=True)
        self.places = Places(self.connection, [items], self.spelling, self.columns.weights)
        if self.columns.weights is not None:
            self.places.check_weights(items)
        self._run(
            "CREATE TEMP TABLE known_items AS SELECT * REPLACE (row_number() OVER (ORDER BY nth) "
            f"- 1 AS nth) FROM given_items WHERE {self.alive()}"
        )
        self.n = self._number("SELECT count(*) FROM known_items")
        if not self.n:
            self.places.refuse_nothing("compare")

    def _read(self, name: str, run: Source) -> None:
        """Read one run: its answers to the items of gold."""
        self.file = run.name
        title = column_named("predicted", self.columns.predicted, run, self.notes)
        chosen = f"{label_of(run, self.id)} AS id, {label_of(run, title)} AS label"
        self._run(f"CREATE OR REPLACE TEMP TABLE run_items AS SELECT {chosen} FROM {run.sql}")
        check_ids(self.connection, "SELECT id FROM run_items", run.name, self.id)
        matched = self._code("SELECT nth, label FROM run_items JOIN known_items USING (id)")
        unknown = self._number("SELECT count(*) FROM run_items ANTI JOIN given_items USING (id)")
        self.titles.append(title)
        self.files.append(run.name)
        self._note(name, matched, unknown)

    def _code(self, answers: str) -> int:
        """Keep the answers as codes into their labels, and return how many items have one."""
        self._run(f"CREATE OR REPLACE TEMP TABLE answers AS {answers}")
        labels = "SELECT DISTINCT label FROM answers WHERE label IS NOT NULL"
        self.labels.append([row[0] for row in self._run(f"{labels} ORDER BY 1")])
        codes = f"SELECT label, row_number() OVER (ORDER BY label) - 1 AS code FROM ({labels})"
        none = len(self.labels[-1])
        found = read_arrays(
            self.connection,
            f"SELECT nth, coalesce(code, {none}) AS code FROM answers "
            f"LEFT JOIN ({codes}) USING (label)",
            self.file,
        )
        self.codes.append(np.full(self.n, none, np.min_scalar_type(none)))
        self.codes[-1][found["nth"]] = found["code"]
        return len(found["nth"])

    def why_silent(self, name: str) -> str:
        """Say whether the ids are to blame."""
        return "" if self.joined[name]["matched"] else f": none of its ids is in {self.files[0]}"

    def _note(self, name: str, matched: int, unknown: int) -> None:
        missing = self.n - matched
        self.joined[name] = {"matched": matched, "missing": missing, "unknown": unknown}
        if missing:
            self.notes.append(f"{name} has no row for {missing:,} of {self.n:,} items.")
        if unknown:
            self.notes.append(f"{name} has {unknown:,} rows of unknown items, which are left out.")

    def refuse_strange(self, scale: Scale) -> None:
        """Say which id of which file has a label that is not on the scale."""
        for k, labels in enumerate(self.labels):
            off = self.spelling.levels(scale, labels)[self.codes[k]] == OFF
            if off.any():
                place = int(np.argmax(off))
                label = self.spelling.level(labels[self.codes[k][place]])
                where = f"{self._ids([place])[0]} of {self.files[k]} of column {self.titles[k]!r}"
                raise off_scale(scale, label, where)

    def cells(self) -> Cells:
        """Return the items one by one; equal ones are gathered by the panel."""
        weight = WEIGHT if self.columns.weights else "CAST(1 AS DOUBLE)"
        items, group = "SELECT * FROM known_items", "0 AS number, false AS alone"
        if self.columns.groups is not None:
            items, group = numbered(items), "number, alone"
        query = f"SELECT {weight} AS weight, {group} FROM ({items}) ORDER BY nth"
        found = read_arrays(self.connection, query, self.file)
        return Cells(
            self.codes, single_items(self.n, found["weight"]), found["number"], found["alone"]
        )

    def where(self, column: int, lacking: Array) -> list[str]:
        """Return the first ids without a label."""
        del column
        return self._ids(np.flatnonzero(lacking)[:SHOWN].tolist())

    def groups(self) -> list[str]:
        """Return the groups in the order in which they appear."""
        return clusters(self.connection, "SELECT * FROM known_items", self.file)

    def _ids(self, places: list[int]) -> list[str]:
        wanted = ", ".join(map(str, places))
        found = self._run(f"SELECT id FROM known_items WHERE nth IN ({wanted}) ORDER BY nth")
        return [f"id {row[0]}" for row in found]

    def _run(self, query: str) -> list[Any]:
        return read(self.connection, query, self.file)

    def _number(self, query: str) -> int:
        return int(self._run(query)[0][0])


def _which_systems(source: Source, columns: SystemColumns) -> BadInput:
    taken = {columns.gold, columns.weights, columns.groups, columns.id}
    others = [name for name in source.columns if name not in taken]
    shown = ",".join(others[-2:]) if len(others) > 1 else "a,b"
    return BadInput(
        f"Which columns of {source.name} are systems? Name them, such as --systems "
        f"{brief(shown)}; or name the files of runs after the one of gold. {listed(source)}"
    )


def run_names(files: list[str]) -> tuple[str, ...]:
    """Return a name for each file: its stem, after as many folders as tell it from others."""
    paths = [Path(file) for file in files]
    stems = [_stem(path) for path in paths]
    names = list(stems)
    for depth in range(1, max(len(path.parts) for path in paths)):
        for k in [k for k, name in enumerate(names) if names.count(name) > 1]:
            names[k] = "/".join([*paths[k].parts[:-1][-depth:], stems[k]])
    return tuple(
        file if names.count(name) > 1 else name for file, name in zip(files, names, strict=True)
    )


def _stem(path: Path) -> str:
    name = path.name[:-3] if path.suffix.lower() == ".gz" else path.name
    known = Path(name).suffix.lower() in SUFFIXES
    return Path(name).stem if known else name
