"""What `make` has made: sizes, zeros, and whatever was odd about the texts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ordinate.errors import BadStore
from ordinate.report import Document, Grid
from ordinate.runs.manifest import Manifest

SCHEMA = 1
ODD = {  # what is counted, in words
    "empty_texts": "texts are empty",
    "without_group": "rows have no group",
    "unknown_group": "rows are of groups that the training data lack",
}


@dataclass(frozen=True)
class MadeFor:
    """The features of one data set, as their manifest describes them."""

    dataset: str
    rows: int
    features: int
    nonzero: int
    counts: dict[str, int]
    new: bool

    @classmethod
    def read(cls, folder: Path, *, new: bool = False) -> "MadeFor":
        """Read the manifest of a folder of features."""
        found = Manifest.read(folder).config
        try:
            numbers = (found["rows"], found["features"], found["nonzero"], found["counts"])
        except KeyError as lacking:
            raise BadStore(f"The manifest in {folder} does not say its {lacking}.") from None
        return cls(folder.name, *numbers, new)

    @property
    def zeros(self) -> float:
        """The share of zeros."""
        return 1.0 - self.nonzero / (self.rows * self.features)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "dataset": self.dataset,
            "rows": self.rows,
            "features": self.features,
            "zeros": self.zeros,
            **self.counts,
            "new": self.new,
        }

    @property
    def oddities(self) -> list[str]:
        """What is odd about the rows, as sentences."""
        return [
            f"{self.dataset}: {self.counts[name]:,} of {self.rows:,} {words}."
            for name, words in ODD.items()
            if self.counts.get(name)
        ]


@dataclass(frozen=True)
class Made:
    """A feature set of an experiment; `new` data sets were made just now."""

    name: str
    path: Path
    datasets: tuple[MadeFor, ...]
    command: str

    @property
    def was_there(self) -> bool:
        """Whether nothing was left to do."""
        return not any(one.new for one in self.datasets)

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each data set."""
        return [{"set": self.name} | one.to_dict() for one in self.datasets]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: what `--format json` writes."""
        return {
            "schema": SCHEMA,
            "task": "features",
            "set": self.name,
            "path": str(self.path),
            "was_there": self.was_there,
            "datasets": [one.to_dict() for one in self.datasets],
            "command": self.command,
        }

    def document(self) -> Document:
        """Return the report for people."""
        title = f"Feature set {self.name}"
        said = f"In {self.path}, by: {self.command}"
        if self.was_there:
            said = f"It was there already, made by the same request: nothing to do. {said}"
        header = ("data set", "", "rows", "features", "zeros", "rows of zeros only")
        cells = tuple(
            (
                *(one.dataset, "new" if one.new else "was there"),
                *(one.rows, one.features, f"{one.zeros:.2%}", one.counts["zero_rows"]),
            )
            for one in self.datasets
        )
        odd = [sentence for one in self.datasets for sentence in one.oddities]
        return Document(title, (said, Grid("Data sets", header, cells, left=2), *odd))
