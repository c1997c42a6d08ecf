"""A feature extractor: what was chosen, what training texts taught it, rows for any text."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypedDict

from ordinate.errors import BadInput, BadOption, BadStore, MissingExtra, shorten, suggest_names
from ordinate.tuning.experiment.dataset import USUAL_NAMES, Dataset
from ordinate.tuning.experiment.safe_files import compute_digest
from ordinate.tuning.experiment.stored_json import decode, encode

if TYPE_CHECKING:
    from ordinate.tuning.experiment.folder import Experiment

EXTRACTORS = {  # by name: the class in the module of that name
    "tfidf": "Tfidf",
    "lexical": "Lexical",
    "embeddings": "Embeddings",
    "perplexity": "Perplexity",
    "concat": "Concat",
    "external": "External",
}
NAME_PATTERN = re.compile(r"\w[\w.+-]*")
LONGEST_NAME = 100  # characters of a name
ColumnRole = Literal["label", "id", "text"]
ROLE_NOUNS: dict[ColumnRole, str] = {"label": "levels", "id": "ids", "text": "texts"}
ProgressCallback = Callable[[float], None]  # gets the share of the work that is done


@dataclass(frozen=True)
class Items:
    """The rows that features are made for. Levels are not among what an extractor may see.

    `columns` are the further columns that the extractor reads. `dataset` is the data set that the
    rows stand in, the first of them at place `first`; new texts stand in none.
    """

    n: int
    texts: tuple[str, ...]
    ids: tuple[str, ...] | None = None
    columns: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    dataset: str | None = None
    first: int = 0

    def slice_rows(self, start: int, stop: int) -> "Items":
        """Return the rows from one place to before another."""
        return replace(
            self,
            n=stop - start,
            texts=self.texts[start:stop],
            ids=None if self.ids is None else self.ids[start:stop],
            columns={name: column[start:stop] for name, column in self.columns.items()},
            first=self.first + start,
        )


class FeatureNameState(TypedDict):
    """The state of an extractor that learns nothing but the names of its features."""

    names: tuple[str, ...]


class FittedExtractor(ABC):
    """An extractor that has learned what it needs: rows of any text, and a state without pickle."""

    names: tuple[str, ...]  # of the features, each once

    @abstractmethod
    def rows(self, items: Items) -> Any:
        """Return a CSR matrix or a 2-D array, the same row for a text whatever stands beside it."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the state into an empty folder, as JSON and arrays."""

    def count_oddities(self, items: Items) -> dict[str, int]:
        """Count what is odd about the rows, such as groups that training lacks."""
        del items
        return {}

    def notes(self) -> list[str]:
        """Return what is to be said of other sets that rows of new texts are made with."""
        return []


@dataclass(frozen=True)
class FeatureExtractor(ABC):
    """What the user chose, before any text is seen. A frozen dataclass of plain values.

    A new extractor is one such class and one `FittedExtractor` in a module of its own, a line in
    `EXTRACTORS`, and its options on the command line.
    """

    name: ClassVar[str]
    libraries: ClassVar[tuple[str, ...]] = ()  # whose versions are recorded
    batch: ClassVar[int] = 512  # rows that are extracted, and saved, at once
    reads_texts: ClassVar[bool] = True  # else they are only counted, where there are some
    version: ClassVar[int] = 1  # raised where the same choice makes other rows than before

    @property
    @abstractmethod
    def title(self) -> str:
        """The name of the set when nothing else differs from the defaults."""

    @property
    @abstractmethod
    def default_extractor(self) -> "FeatureExtractor":
        """The extractor of the same title with all defaults."""

    @property
    @abstractmethod
    def arguments(self) -> list[str]:
        """What the command line says for this extractor, after its name."""

    @property
    def parameters(self) -> dict[str, Any]:
        """What was chosen, as plain values, and the version where it is not the first."""
        found: dict[str, Any] = encode(self)
        return found if self.version == 1 else found | {"version": self.version}

    @property
    def columns(self) -> tuple[str, ...]:
        """The further columns of the data that it reads."""
        return ()

    def complete(
        self, read_texts: Callable[[], Sequence[str]]
    ) -> "tuple[FeatureExtractor, tuple[str, ...]]":
        """Return it with what training texts decide before it has a name, and notes on that."""
        del read_texts
        return self, ()

    def sources(self) -> dict[str, str]:
        """Return fingerprints of what it reads besides the data, by name."""
        return {}

    def fingerprint_sources(self, stem: str) -> dict[str, str]:
        """Return fingerprints of what it reads for one data set besides the data, by name."""
        del stem
        return {}

    @classmethod
    def of(cls, parameters: dict[str, Any], experiment: "Experiment") -> Self:
        """Return the extractor that stored parameters describe."""
        return decode(parameters, cls, f"The parameters of {cls.name}", experiment=experiment)

    @abstractmethod
    def fit(self, items: Items, progress: ProgressCallback) -> FittedExtractor:
        """Learn from the pooled training rows."""

    @abstractmethod
    def load(self, folder: Path) -> FittedExtractor:
        """Return what `Fitted.save` wrote; the caller has verified the folder."""


def create_extractor(
    name: str, parameters: dict[str, Any], experiment: "Experiment"
) -> FeatureExtractor:
    """Return the extractor that a manifest describes."""
    if name not in EXTRACTORS:
        near = suggest_names(name, list(EXTRACTORS))
        raise BadStore(f"There is no feature extractor {shorten(name)}.{near}")
    found: type[FeatureExtractor] = getattr(
        import_module(f"{__package__}.{name}"), EXTRACTORS[name]
    )
    if parameters.get("version", 1) != found.version:
        raise BadStore(
            f"The features were made by another version of Ordinate, whose {name} made other "
            "rows of the same texts. Make the set again under another name."
        )
    own = {key: value for key, value in parameters.items() if key != "version"}
    return found.of(own, experiment)


def import_library(name: str, what: str, extra: str = "features") -> Any:
    """Import a library that `what` takes, or say how to install it."""
    try:
        return import_module(name)
    except ImportError as problem:
        raise MissingExtra(
            f"{what} take {name}, which cannot be imported ({problem}): "
            f"pip install 'ordinate[{extra}]'"
        ) from None


def default_name(extractor: FeatureExtractor) -> str:
    """Return a name by extractor and parameters, hashed where defaults do not say it all."""
    if extractor.parameters == extractor.default_extractor.parameters:
        return extractor.title
    return f"{extractor.title}-{compute_digest(extractor.parameters, 6)}"


def check_name(name: str) -> str:
    """Refuse names that are no plain names of a folder; those with a dot or _ first are ours."""
    if len(name) > LONGEST_NAME:
        raise BadOption(
            f"{shorten(name)} cannot name a feature set: it has {len(name):,} characters, and "
            f"{LONGEST_NAME} can stand in one. Choose a shorter one with --name."
        )
    if not NAME_PATTERN.fullmatch(name) or name.startswith("_"):
        raise BadOption(
            f"{shorten(name)} cannot name a feature set. Letters, digits and _ . + - can, with a "
            "letter or digit first."
        )
    return name


def slug(text: str) -> str:
    """Return a text as part of a name.

    >>> slug("first language")
    'first-language'
    """
    return re.sub(r"[^\w]+", "-", text).strip("-_") or "column"


def expand_path(text: str) -> str:
    """Return the whole path that a user means, ~ included, whether something lies there or not."""
    try:
        path = Path(text).expanduser().absolute()
        path.exists()
    except (OSError, RuntimeError, ValueError) as problem:  # nobody's home, or too long a name
        reason = getattr(problem, "strerror", None) or problem
        said = str(reason).rstrip(".")
        raise BadInput(f"{shorten(text)} is no path of a file or folder: {said}.") from None
    return str(path)


@dataclass(frozen=True)
class ExtractionRequest:
    """What decides the features of a set: extractor, parameters, training data, further sources."""

    extractor: str  # its name
    parameters: dict[str, Any]
    data: dict[str, str]
    sources: dict[str, str]

    @cached_property
    def hash(self) -> str:
        """The hash that the work is addressed by."""
        return compute_digest([self.extractor, self.parameters, self.data, self.sources])

    def differences(self, stored: "ExtractionRequest") -> list[str]:
        """Say how a stored request differs from this one."""
        if stored.extractor != self.extractor:
            return [f"it was made by {stored.extractor}, not by {self.extractor}"]
        found = [
            f"{name} was {shorten(old)} and is {shorten(new)} now"
            for name, old, new in _find_changes(stored.parameters, self.parameters)
        ]
        for stem, old, new in _find_changes(stored.data, self.data):
            how = "is new" if old is None else "is gone" if new is None else "has changed"
            found.append(f"the training file {stem} {how}")
        found += [f"{name} has changed" for name, *_ in _find_changes(stored.sources, self.sources)]
        return found


def _find_changes(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    pairs = ((name, old.get(name), new.get(name)) for name in sorted({*old, *new}))
    return [(name, before, now) for name, before, now in pairs if before != now]


# --- columns that would give the levels away -----------------------------------------------------


def find_column_role(
    column: str, data: Sequence[Dataset], usual: Sequence[ColumnRole]
) -> ColumnRole | None:
    """Return what a column is in one of the data sets, or by a usual name of such columns."""
    bare = column.strip().lower()
    for role in ROLE_NOUNS:
        own = [getattr(one.columns, role) for one in data]
        names = {name.strip().lower() for name in own if name is not None}
        if bare in names or (role in usual and bare in USUAL_NAMES[role]):
            return role
    return None


def refuse_groups(experiment: "Experiment", columns: Sequence[str]) -> None:
    """Refuse columns of groups whose features would give the levels away, or name the items."""
    data = [experiment.dataset(stem) for stem in experiment.files] if columns else []
    for column in columns:
        role = find_column_role(column, data, ("label",))
        if role == "label":
            raise BadOption(
                f"{shorten(column)} is the column of the levels, or called as one: features made "
                "of it would give the levels away. Name another column, or rename it if it holds "
                "something else."
            )
        if role is not None:
            raise BadOption(
                f"{shorten(column)} is the column of the {ROLE_NOUNS[role]}, which differ from "
                "item to item and make no groups. Name another column."
            )
        _refuse_copy(column, [one for one in data if one.role == "training"])


def _refuse_copy(column: str, training: Sequence[Dataset]) -> None:
    """Refuse the levels under other names: one group for each level, and one level for each."""
    pairs = {
        (group.strip(), label.casefold())
        for one in training
        for group, label in zip(one.read_column(column), one.labels, strict=True)
        if group is not None and label is not None
    }
    groups, levels = {group for group, _ in pairs}, {level for _, level in pairs}
    if len(groups) == len(levels) == len(pairs) > 1:
        raise BadOption(
            f"{shorten(column)} has one value for each level in the training data: it says the "
            "levels in other words, and features made of it would give the levels away. Name "
            "another column."
        )
