"""What a check of an experiment found, and how it is told."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar

from ordinate.errors import OrdinateError
from ordinate.render import Block, Document, Grid
from ordinate.render.document import Cell
from ordinate.render.estimates import format_count, join_names
from ordinate.render.model_names import use_short_names
from ordinate.results.base import SCHEMA, Result
from ordinate.scale import Scale

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
T = TypeVar("T")


@dataclass(frozen=True)
class Finding:
    """Something missing or odd."""

    severity: Severity
    where: str
    what: str


@dataclass
class Findings:
    """A list of findings that grows."""

    found: list[Finding] = field(default_factory=list)

    def add(self, severity: Severity, where: str, what: str) -> None:
        """Add a finding."""
        self.found.append(Finding(severity, where, what))

    def attempt(self, where: str, make: Callable[..., T], *arguments: str) -> T | None:
        """Return what can be made, or None with the reason among the findings."""
        try:
            return make(*arguments)
        except OrdinateError as problem:
            self.add("error", where, str(problem))
        except OSError as problem:
            self.add("error", where, f"It cannot be read: {problem.strerror}.")
        return None


@dataclass(frozen=True)
class DatasetSummary:
    """A data set: how many items, which columns were taken, how many items of each level."""

    name: str
    role: str
    items: int
    label: str | None
    text: str | None
    id: str | None
    levels: dict[str, int]  # in the order of the scale


@dataclass(frozen=True)
class FeatureSetSummary:
    """The features of a data set: how many, and how they were matched to its items."""

    set: str
    dataset: str
    rows: int
    features: int
    form: str  # sparse or dense
    matched: str
    constant: int


@dataclass(frozen=True, repr=False, eq=False)
class CheckReport(Result):
    """An experiment as it was found."""

    root: str
    scale: Scale | None
    data: tuple[DatasetSummary, ...]
    features: tuple[FeatureSetSummary, ...]
    models: tuple[str, ...]  # those whose files are what their manifests say
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """What has to be put right before anything can be tuned."""
        return tuple(one for one in self.findings if one.severity == "error")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: what `--format json` writes."""
        return {
            "schema": SCHEMA,
            "task": "check",
            "experiment": self.root,
            "scale": None if self.scale is None else [str(label) for label in self.scale.labels],
            "data": [asdict(one) for one in self.data],
            "features": [asdict(one) for one in self.features],
            "models": list(self.models),
            "findings": [asdict(one) for one in self.findings],
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each finding, after those of what there is."""
        counted = [(f"{one.role} {one.name}", f"{one.items} items") for one in self.data]
        counted += [
            (f"{one.set}/{one.dataset}", f"{one.features} features, matched {one.matched}")
            for one in self.features
        ]
        counted += [("models", f"{len(self.models)} saved models")]
        records = [{"severity": "counted", "where": a, "what": b} for a, b in counted]
        return records + [asdict(one) for one in self.findings]

    def document(self) -> Document:
        """Return the report for people."""
        blocks: list[Block] = []
        for severity in SEVERITIES:
            found = [one for one in self.findings if one.severity == severity]
            blocks += [f"{severity}: {one.where}: {one.what}" for one in found]
        blocks += [*self._data(), *self._levels(), *self._features()]
        if self.models:
            blocks.append(f"Saved models, as their manifests say: {', '.join(self.models)}.")
        notes = () if self.scale is None else (f"Scale: {self.scale}.",)
        ready = "not ready" if self.errors else "ready"
        title = f"Experiment {self.root}: {ready}"
        document = Document(title, tuple(blocks), self._state_verdict(), notes)
        return use_short_names(document, self.models)

    def _state_verdict(self) -> str:
        if not self.findings:
            return "Nothing is missing or odd."
        counts = {s: sum(one.severity == s for one in self.findings) for s in SEVERITIES}
        parts = join_names(format_count(n, severity) for severity, n in counts.items() if n)
        return f"Not ready to be tuned: {parts}." if self.errors else f"Ready, with {parts}."

    def _data(self) -> Iterable[Grid]:
        if self.data:
            header = ("data set", "role", "levels in", "texts in", "ids in", "items")
            rows = [(d.name, d.role, d.label, d.text, d.id, d.items) for d in self.data]
            yield Grid("Data sets", header, tuple(rows), left=5, optional=("ids in", "texts in"))

    def _levels(self) -> Iterable[Grid]:
        labelled = [one for one in self.data if one.levels]
        if labelled:
            header = ("data set", *labelled[0].levels)
            rows: list[tuple[Cell, ...]] = [(d.name, *d.levels.values()) for d in labelled]
            yield Grid("Items of each level", header, tuple(rows))

    def _features(self) -> Iterable[Grid]:
        if self.features:
            header = ("set", "data set", "form", "matched", "rows", "features", "constant")
            rows = [
                (f.set, f.dataset, f.form, f.matched, f.rows, f.features, f.constant)
                for f in self.features
            ]
            yield Grid("Feature sets", header, tuple(rows), left=4, optional=("constant", "form"))
