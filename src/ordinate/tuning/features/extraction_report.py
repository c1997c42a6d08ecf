"""What was extracted: sizes, zeros, and whatever was odd about the texts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

from ordinate.render import Document
from ordinate.render.estimates import format_count, format_percent, join_names
from ordinate.render.tables import NAME, Column, Kind, Table
from ordinate.results.base import SCHEMA, Result
from ordinate.tuning.experiment.manifest import MANIFEST_FILE, Manifest
from ordinate.tuning.experiment.stored_json import Check, at_least, decode

FINE_SHARE = Kind(lambda share: format_percent(share, 2))
WHETHER_NEW = Kind(lambda new: "new" if new else "was there", words=True)
ODDITIES = {  # what is counted, and what is said of one and of many
    "empty_texts": ("text", "is empty", "are empty"),
    "without_group": ("row", "has no group", "have no group"),
    "unknown_group": (
        *("row", "is of a group that the training data lack"),
        "are of groups that the training data lack",
    ),
}


class _StoredSizes(TypedDict):
    """What a manifest counts."""

    rows: Annotated[int, at_least(1)]
    features: Annotated[int, at_least(1)]
    nonzero: Annotated[int, at_least(0)]
    counts: Annotated[
        dict[str, Annotated[int, at_least(0)]],
        Check("that counts 'zero_rows'", lambda counts: "zero_rows" in counts),
    ]


def describe_oddities(counts: Mapping[str, int], rows: int) -> list[str]:
    """Return what is odd about rows, as sentences.

    >>> describe_oddities({"empty_texts": 1, "zero_rows": 2}, 3)
    ['1 of 3 texts is empty.']
    """
    return [
        f"{count:,} of {format_count(rows, noun)} {one if count == 1 else many}."
        for name, (noun, one, many) in ODDITIES.items()
        if (count := counts.get(name))
    ]


@dataclass(frozen=True)
class ExtractedDataset:
    """The features of one data set, as their manifest describes them."""

    dataset: str
    rows: int
    features: int
    nonzero: int
    counts: dict[str, int]
    new: bool

    @classmethod
    def read(cls, folder: Path, *, new: bool = False) -> "ExtractedDataset":
        """Read the manifest of a folder of features."""
        found = decode(Manifest.read(folder).config, _StoredSizes, folder / MANIFEST_FILE)
        return cls(
            dataset=folder.name,
            rows=found["rows"],
            features=found["features"],
            nonzero=found["nonzero"],
            counts=found["counts"],
            new=new,
        )

    @property
    def zeros(self) -> float:
        """The share of zeros."""
        return 1.0 - self.nonzero / (self.rows * self.features)

    @property
    def oddities(self) -> list[str]:
        """What is odd about the rows, as sentences."""
        return [f"{self.dataset}: {said}" for said in describe_oddities(self.counts, self.rows)]


@dataclass(frozen=True, repr=False, eq=False)
class ExtractionResult(Result):
    """A feature set of an experiment; `new` data sets were made just now."""

    name: str
    path: Path
    datasets: tuple[ExtractedDataset, ...]
    command: str
    notes: tuple[str, ...] = ()

    @property
    def already_complete(self) -> bool:
        """Whether nothing was left to do."""
        return not any(one.new for one in self.datasets)

    def tables(self) -> Iterable[Table]:
        """Return the data sets: sizes, zeros, and how many rows are odd."""
        records = [vars(one) | {"zeros": one.zeros} | one.counts for one in self.datasets]
        odd = dict.fromkeys(name for one in self.datasets for name in one.counts)
        columns = (
            Column("dataset", "data set", NAME),
            Column("new", "", WHETHER_NEW),
            Column("rows"),
            Column("features"),
            Column("zeros", kind=FINE_SHARE),
            Column("zero_rows", "rows of zeros only"),
            *(Column(name, shown=False) for name in odd if name != "zero_rows"),
        )
        yield Table("datasets", "Data sets", columns, records, common={"set": self.name})

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: what `--format json` writes."""
        return {
            "schema": SCHEMA,
            "task": "features",
            "set": self.name,
            "path": str(self.path),
            "already_complete": self.already_complete,
            "datasets": self.get_table("datasets").to_list(),
            "command": self.command,
            "notes": list(self.notes),
        }

    def document(self) -> Document:
        """Return the report for people."""
        new = [one for one in self.datasets if one.new]
        verdict = (
            f"{format_count(max(one.features for one in new), 'feature')} extracted for "
            f"{join_names(f'{one.dataset} ({one.rows:,} rows)' for one in new)}."
            if new
            else "It was there already, made by the same request: nothing to do."
        )
        odd = [sentence for one in self.datasets for sentence in one.oddities]
        grids = self.get_table("datasets").grids()
        made = (f"In {self.path}, by: {self.command}",)
        return Document(f"Feature set {self.name}", (*grids, *odd, *self.notes), verdict, made)
