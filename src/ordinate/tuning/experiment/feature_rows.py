"""The features of a data set: its items in rows, each matched to the item that it is of."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadStore, shorten
from ordinate.tuning.experiment.dataset import Dataset
from ordinate.tuning.experiment.feature_files import (
    IDS_FILE,
    NAMES_FILE,
    StoredFeatures,
    find_feature_file,
    read_stored_features,
)
from ordinate.tuning.experiment.manifest import MANIFEST_FILE as MANIFEST
from ordinate.tuning.experiment.manifest import Manifest
from ordinate.tuning.experiment.safe_files import compute_digest, hash_file

MatchMethod = Literal["by id", "by fingerprint", "by row order"]
SHOWN = 3  # ids in an error


@dataclass(frozen=True, eq=False)
class DatasetFeatures:
    """A feature set for a data set; rows are in the order of the data set."""

    set: str
    dataset: str
    matrix: Any = field(repr=False)  # a csr_matrix, or [N, D] numbers
    names: tuple[str, ...] = field(repr=False)
    matched: MatchMethod
    path: Path
    digest: str = field(repr=False)  # of the file, the names, and which row is which item
    manifest: Manifest | None = field(default=None, repr=False)

    @property
    def sparse(self) -> bool:
        """Whether the matrix is a sparse one."""
        return not isinstance(self.matrix, np.ndarray)

    @property
    def constant(self) -> int:
        """How many features are the same for all items, so that no model can use them."""
        low, high = self.matrix.min(axis=0), self.matrix.max(axis=0)
        if self.sparse:
            low, high = low.toarray(), high.toarray()
        return int((low == high).sum())


def read_features(folder: Path, set_name: str, data: Dataset) -> DatasetFeatures:
    """Read the features of a data set from their folder, and match them to its items."""
    manifest = _read_manifest(folder, data)
    path = find_feature_file(folder)
    stored = read_stored_features(folder, data.columns.id)
    order, matched = _match_rows(stored, data, manifest)
    return DatasetFeatures(
        set=set_name,
        dataset=data.name,
        matrix=stored.matrix if order is None else stored.matrix[order],
        names=stored.names,
        matched=matched,
        path=path,
        digest=_hash_features(path, stored, order),
        manifest=manifest,
    )


def _hash_features(path: Path, stored: StoredFeatures, order: NDArray[np.int64] | None) -> str:
    """Return a name for all that decides what stands in which row under which name.

    The file alone does not: names and ids may lie beside it, and be corrected.
    """
    rows = None if order is None else hashlib.sha256(order.astype("<i8").tobytes()).hexdigest()
    names = compute_digest(list(stored.names), length=64)
    return compute_digest({"file": hash_file(path), "names": names, "rows": rows}, length=64)


def _read_manifest(folder: Path, data: Dataset) -> Manifest | None:
    """Return the manifest of features that Ordinate made, if they are of this very data."""
    if not (folder / MANIFEST).exists():
        return None
    manifest = Manifest.read(folder)
    if manifest.artifact != "features" or data.name not in manifest.data:
        of = ", ".join(manifest.data) or "nothing"
        raise BadStore(
            f"{folder / MANIFEST} is of {manifest.artifact} for {of}, not of features for "
            f"{data.name}."
        )
    manifest.verify(folder)
    if (made_of := manifest.data[data.name]) != data.fingerprint:
        raise BadStore(
            f"The data changed since the features in {folder} were made: {data.path} has the "
            f"fingerprint {data.fingerprint[:12]}, the features are of {made_of[:12]}. Ids and "
            "texts count, so other columns of them do, too. "
            f"{_explain_how_to_redo(folder, data, manifest)}"
        )
    return manifest


def _explain_how_to_redo(folder: Path, data: Dataset, manifest: Manifest) -> str:
    """Say how to extract them again: nothing is overwritten, extractors learn from training."""
    if data.role == "test":
        return f"Remove {folder}, and make them again: {manifest.command}"
    return (
        "What was learned from other training data has to be learned again: make a set of another "
        f"name (--name), or remove {folder.parent} and make it again: {manifest.command}"
    )


# --- matching -------------------------------------------------------------------------------------


def _match_rows(
    stored: StoredFeatures, data: Dataset, manifest: Manifest | None
) -> tuple[NDArray[np.int64] | None, MatchMethod]:
    """Return the row of each item, None where they stand in order, and how that is known."""
    if stored.ids is not None and data.ids is not None:
        return _match_rows_by_id(stored, stored.ids, data, data.ids), "by id"
    _check_row_count(stored, data)
    if manifest is not None:
        return None, "by fingerprint"
    if not stored.named:
        raise BadInput(
            f"Nothing says which row of {stored.path} is which item of {data.path}: "
            f"{_explain_missing_ids(stored, data)}, there is no {MANIFEST}, and there is no "
            f"{NAMES_FILE}, which matching by row order takes."
        )
    return None, "by row order"


def _match_rows_by_id(
    stored: StoredFeatures, of_features: Sequence[str], data: Dataset, of_data: Sequence[str]
) -> NDArray[np.int64] | None:
    if of_features == of_data:
        return None
    row_of = {one: row for row, one in enumerate(of_features)}
    lacking = [one for one in of_data if one not in row_of]
    known = set(of_data)
    foreign = [one for one in of_features if one not in known]
    if lacking or foreign:
        raise BadInput(
            f"{data.path} has {data.n:,} ids, {stored.path} has {len(stored):,}, and they are not "
            f"the same: {_format_ids(lacking)} of the data are not in the features, "
            f"{_format_ids(foreign)} of "
            "the features are not in the data. Make the features again, of this data."
        )
    return np.array([row_of[one] for one in of_data], np.int64)


def _format_ids(ids: Sequence[str]) -> str:
    if not ids:
        return "0"
    shown = ", ".join(shorten(one) for one in ids[:SHOWN])
    return f"{len(ids):,} ({shown}{', …' if len(ids) > SHOWN else ''})"


def _check_row_count(stored: StoredFeatures, data: Dataset) -> None:
    if len(stored) == data.n:
        return
    why = {
        1: "That is one row more: the header line of the data was probably taken for an item when "
        "the features were made.",
        -1: "That is one row fewer: the first row was probably taken for a header line, when the "
        "features were made or in a file without one.",
    }.get(len(stored) - data.n, "They are not of the same items.")
    raise BadInput(
        f"{stored.path} has {len(stored):,} rows, and {data.path} has {data.n:,} items; "
        f"{_explain_missing_ids(stored, data)}. {why} Make the features again, or give both ids."
    )


def _explain_missing_ids(stored: StoredFeatures, data: Dataset) -> str:
    if data.ids is None and stored.ids is None:
        return "neither has ids"
    if data.ids is None:
        return "the features have ids and the data have none (--id-column)"
    return f"the data have ids and the features have none (a column 'id', or {IDS_FILE})"
