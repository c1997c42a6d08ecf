"""Shards: items that were counted, as files that merge on another machine and another day."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from ordinate.errors import BadInput, OrdinateError
from ordinate.readers.panels import PanelData
from ordinate.summaries import ConfusionMatrix, Panel
from ordinate.summaries.confusion import ConfusionData

SCHEMA = "ordinate-shard/1"
Data = ConfusionData | PanelData
Named = list[tuple[Any, ConfusionMatrix]]


def write_shard(data: Data, path: Path) -> int:
    """Write what was counted, and return of how many items."""
    kind = "labels" if isinstance(data, ConfusionData) else "systems"
    dump = _dump_labels if isinstance(data, ConfusionData) else _dump_systems
    shard = {"schema": SCHEMA, "kind": kind, **dump(data), "origin": _dump_origin(data)}
    path.write_text(json.dumps(shard) + "\n", encoding="utf-8")
    counted = data.matrix if isinstance(data, ConfusionData) else data.panel
    return int(counted.items.sum())


def merge_shards(paths: Sequence[str]) -> Data:
    """Return the sum of shards of one kind, on one scale."""
    found = [_read_shard(path) for path in paths]
    first = found[0]
    for path, data in zip(paths[1:], found[1:], strict=True):
        if type(data) is not type(first):
            raise BadInput(f"{path} and {paths[0]} are shards of different kinds.")
    try:
        if isinstance(first, PanelData):
            return _merge_systems([x for x in found if isinstance(x, PanelData)])
        return _merge_labels([x for x in found if isinstance(x, ConfusionData)])
    except OrdinateError as problem:
        raise BadInput(f"The shards cannot be merged: {problem}") from None


def _read_shard(path: str) -> Data:
    try:
        shard = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise BadInput(f"The shard {path} cannot be read: {reason}.") from None
    if not isinstance(shard, Mapping) or shard.get("schema") != SCHEMA:
        raise BadInput(f"{path} is no shard: write one with `ordinate count … -o {path}`.")
    try:
        load = {"labels": _load_labels, "systems": _load_systems}[shard["kind"]]
        return replace(load(shard), **_load_origin(shard["origin"]))
    except OrdinateError as problem:
        raise BadInput(f"The shard {path} is damaged: {problem}") from None
    except (KeyError, TypeError, ValueError) as problem:
        raise BadInput(f"The shard {path} is damaged: {problem!r}.") from None


def _dump_origin(data: Data) -> dict[str, Any]:
    return {"gold": data.gold, "files": list(data.files), "notes": list(data.notes)}


def _load_origin(stored: Mapping[str, Any]) -> dict[str, Any]:
    files, notes = (tuple(map(str, stored[name])) for name in ("files", "notes"))
    return {"gold": str(stored["gold"]), "files": files, "notes": notes}


def _join_origins(parts: Sequence[Any]) -> dict[str, Any]:
    """Return the files of all shards, and what was said of any."""
    return {
        name: tuple(dict.fromkeys(text for part in parts for text in getattr(part, name)))
        for name in ("files", "notes")
    }


# --- systems -------------------------------------------------------------------------------------


def _dump_systems(data: Any) -> dict[str, Any]:
    return {"panel": data.panel.to_dict()}


def _load_systems(shard: Mapping[str, Any]) -> Data:
    return PanelData(Panel.from_dict(shard["panel"]), "")


def _merge_systems(parts: list[PanelData]) -> PanelData:
    return replace(parts[0], panel=reduce(add, (x.panel for x in parts)), **_join_origins(parts))


# --- labels --------------------------------------------------------------------------------------

SINGLE, NAMED = ("matrix", "groups", "second_rater"), ("by", "second_rater_by")


def _dump_labels(data: Any) -> dict[str, Any]:
    single = {name: getattr(data, name) for name in SINGLE}
    named = {name: getattr(data, name) for name in NAMED}
    return {
        **{name: None if x is None else x.to_dict() for name, x in single.items()},
        **{name: [[key, x.to_dict()] for key, x in pairs] for name, pairs in named.items()},
        "group_values": list(data.group_values),
        "predicted": data.predicted,
    }


def _load_labels(shard: Mapping[str, Any]) -> Data:
    read = ConfusionMatrix.from_dict
    found: dict[str, Any] = {name: shard[name] and read(shard[name]) for name in SINGLE}
    found |= {name: [(key, read(x)) for key, x in shard[name]] for name in NAMED}
    return ConfusionData(
        **found,
        group_values=tuple(shard["group_values"]),
        predicted=str(shard["predicted"]),
    )


def _merge_labels(parts: list[ConfusionData]) -> ConfusionData:
    """Return the sum: equal subgroups, and equal clusters, are one."""
    clusters = tuple(dict.fromkeys(name for part in parts for name in part.group_values))
    placed = [_place_clusters(part, clusters) for part in parts] if clusters else parts
    found: dict[str, Any] = _join_origins(parts)
    found |= {name: _add_matrices([getattr(part, name) for part in placed]) for name in SINGLE}
    found |= {name: _add_named([getattr(part, name) for part in placed]) for name in NAMED}
    return replace(placed[0], group_values=clusters, **found)


def _place_clusters(data: ConfusionData, clusters: tuple[Any, ...]) -> ConfusionData:
    """Return the batches of clusters with a place for each cluster that any shard has."""
    known = {name: place for place, name in enumerate(clusters)}
    index = np.array([known[name] for name in data.group_values], np.int64)

    def place(batch: ConfusionMatrix | None) -> Any:
        return None if batch is None else batch.compute_sums(index, len(clusters))

    return replace(
        data,
        groups=place(data.groups),
        second_rater=place(data.second_rater),
        by=[(name, place(batch)) for name, batch in data.by],
        second_rater_by=[(name, place(batch)) for name, batch in data.second_rater_by],
    )


def _add_matrices(parts: list[ConfusionMatrix | None]) -> ConfusionMatrix | None:
    there = [part for part in parts if part is not None]
    if 0 < len(there) < len(parts):
        raise BadInput("some of them have clusters or a second rater, and others have not.")
    return reduce(add, there) if there else None


def _add_named(parts: list[Named]) -> Named:
    found: dict[Any, ConfusionMatrix] = {}
    for name, matrix in (pair for part in parts for pair in part):
        found[name] = found[name] + matrix if name in found else matrix
    return sorted(found.items(), key=lambda pair: (pair[0] is None, str(pair[0])))
