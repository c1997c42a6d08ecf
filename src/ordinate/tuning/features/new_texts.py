"""New texts: the features that a stored extractor gives them, with nothing learned anew."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ordinate.errors import BadInput, BadStore, shorten
from ordinate.tuning.experiment.data_columns import DataColumns
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.manifest import MANIFEST_FILE as MANIFEST
from ordinate.tuning.experiment.manifest import Manifest
from ordinate.tuning.experiment.stored_json import decode
from ordinate.tuning.features.extraction import (
    blank_empty_texts,
    describe_version_changes,
    locate_extractor,
    read_request,
)
from ordinate.tuning.features.extractor import (
    FeatureExtractor,
    FittedExtractor,
    Items,
    create_extractor,
)
from ordinate.tuning.features.feature_store import check_rows, stack_batches

ColumnReader = Callable[[str], Sequence[Any]]


@dataclass(frozen=True)
class StoredExtractor:
    """The fitted extractor of a feature set."""

    set: str
    extractor: FeatureExtractor
    fitted: FittedExtractor
    manifest: Manifest
    columns: DataColumns  # where the texts stood that it learned from, as far as that is known

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return self.fitted.names

    def notes(self) -> list[str]:
        """Say which libraries are other ones than those that the extractor was made with."""
        return [*describe_version_changes(self.manifest), *self.fitted.notes()]

    def rows(
        self,
        texts: Sequence[str],
        ids: Sequence[str] | None = None,
        column: ColumnReader | None = None,
    ) -> Any:
        """Return the features of new texts; `column` gives their further columns by name."""
        items = self._items(texts, ids, column)
        size, parts = self.extractor.batch, []
        for start in range(0, max(1, items.n), size):
            batch = items.slice_rows(start, min(start + size, items.n))
            parts.append(self.fitted.rows(batch))
            check_rows(parts[-1], batch.n, self.names)
        return stack_batches(parts)

    def count_oddities(
        self,
        texts: Sequence[str],
        ids: Sequence[str] | None = None,
        column: ColumnReader | None = None,
    ) -> dict[str, int]:
        """Count empty texts, and what else is odd about the rows."""
        items = self._items(texts, ids, column)
        return {
            "empty_texts": sum(not text for text in items.texts),
            **self.fitted.count_oddities(items),
        }

    def _items(
        self, texts: Sequence[str], ids: Sequence[str] | None, column: ColumnReader | None
    ) -> Items:
        if self.extractor.columns and column is None:
            raise BadInput(
                f"The feature set {self.set!r} is made with the column "
                f"{shorten(self.extractor.columns[0])}, which the new texts lack."
            )
        further = {} if column is None else {c: tuple(column(c)) for c in self.extractor.columns}
        names = None if ids is None else tuple(ids)
        return Items(len(texts), blank_empty_texts(tuple(texts)), names, further)


def load_extractor(experiment: Experiment, set_name: str) -> StoredExtractor:
    """Open the fitted extractor of a feature set, verified before anything of it is read."""
    folder = locate_extractor(experiment, set_name)
    if not (folder / MANIFEST).exists():
        raise BadInput(
            f"The feature set {set_name!r} has no extractor in {folder}: it was not made by "
            "`ordinate features`, so no features of new texts can be made. Make them as the others "
            "were made, and pass them with --feature-folder."
        )
    manifest = Manifest.read(folder)
    manifest.verify(folder)
    if manifest.artifact != "extractor":
        raise BadStore(
            f"{folder / MANIFEST} is of {manifest.artifact}, not of a feature extractor."
        )
    where = f"'columns' in {folder / MANIFEST}"
    columns = decode(manifest.config.get("columns", {}), DataColumns, where)
    request = read_request(manifest)
    extractor = create_extractor(request.extractor, request.parameters, experiment)
    return StoredExtractor(set_name, extractor, extractor.load(folder), manifest, columns)


def extract_new_features(
    experiment: Experiment,
    set_name: str,
    texts: Sequence[str],
    ids: Sequence[str] | None = None,
    *,
    column: ColumnReader | None = None,
) -> tuple[Any, tuple[str, ...]]:
    """Return the features of new texts and their names, as the set's own extractor gives them.

    `column` gives the further columns of the new texts by name, which grouped sets need:
    `Dataset.extra` is such a function.
    """
    stored = load_extractor(experiment, set_name)
    return stored.rows(texts, ids, column), stored.names
