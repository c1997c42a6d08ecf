"""Shards: items that were counted, as files that merge on another machine and another day."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, OrdinateError, shorten
from ordinate.readers.file_formats import open_sources
from ordinate.readers.panels import PanelData
from ordinate.scale.labels import normalize_label
from ordinate.summaries import ConfusionMatrix, Panel
from ordinate.summaries.confusion import ConfusionData

Array = NDArray[Any]
SCHEMA = "ordinate-shard/1"
Data = ConfusionData | PanelData
Named = list[tuple[Any, ConfusionMatrix]]


def write_shard(data: Data, path: Path) -> int:
    """Write what was counted, and return of how many items."""
    kind = "labels" if isinstance(data, ConfusionData) else "systems"
    dump = _dump_labels if isinstance(data, ConfusionData) else _dump_systems
    shard = {"schema": SCHEMA, "kind": kind, **dump(data), "origin": _dump_origin(data)}
    # Clusters and subgroups of databases may be dates or decimal numbers.
    path.write_text(json.dumps(shard, default=normalize_label) + "\n", encoding="utf-8")
    return int(_get_summary(data).items.sum())


def merge_shards(paths: Sequence[str]) -> Data:
    """Return the sum of shards that were counted alike: of files, patterns, and '-'."""
    with open_sources() as reader:
        files = reader.find_distinct_files(paths)
        found = [_read_shard(name, path) for name, path in files]
    first, (first_name, _) = found[0], files[0]
    for data, (name, _) in zip(found[1:], files[1:], strict=True):
        _require_alike(first, first_name, data, name)
    if isinstance(first, PanelData):
        return _merge_systems([x for x in found if isinstance(x, PanelData)])
    return _merge_labels([x for x in found if isinstance(x, ConfusionData)])


def _read_shard(name: str, path: Path) -> Data:
    try:
        shard = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise BadInput(f"The shard {name} cannot be read: {reason}.") from None
    if not isinstance(shard, Mapping) or shard.get("schema") != SCHEMA:
        raise BadInput(f"{name} is no shard: write one with `ordinate count … -o {name}`.")
    try:
        load = {"labels": _load_labels, "systems": _load_systems}[shard["kind"]]
        return replace(load(shard), **_load_origin(shard["origin"]))
    except OrdinateError as problem:
        raise BadInput(f"The shard {name} is damaged: {problem}") from None
    except (KeyError, TypeError, ValueError) as problem:
        raise BadInput(f"The shard {name} is damaged: {problem!r}.") from None


# --- what shards share ---------------------------------------------------------------------------


def _get_summary(data: Data) -> ConfusionMatrix | Panel:
    return data.matrix if isinstance(data, ConfusionData) else data.panel


def _require_alike(first: Data, first_name: str, data: Data, name: str) -> None:
    """Refuse a shard that was not counted as the first one was."""
    flags, others = _list_flags(data), _list_flags(first)
    for flag in sorted(flags ^ others, reverse=True):  # --systems before what each system has
        there, lacking = (name, first_name) if flag in flags else (first_name, name)
        raise BadInput(
            f"{there} was counted with {flag}, and {lacking} without it. Count both with it, or "
            "both without."
        )
    if isinstance(data, ConfusionData) and isinstance(first, ConfusionData):
        _require_one_system(first, first_name, data, name)
    try:
        _get_summary(first).require_alike(_get_summary(data))  # type: ignore[arg-type] # --systems is a flag of both
    except OrdinateError as problem:
        raise BadInput(f"{name} cannot be merged with {first_name}: {problem}") from None


def _list_flags(data: Data) -> set[str]:
    """Return the flags by which shards differ in more than their items."""
    if isinstance(data, PanelData):
        return {"--systems"} | ({"--groups"} if data.panel.groups is not None else set())
    parts = {"--by": data.by, "--groups": data.groups, "--second-rater": data.second_rater}
    return {flag for flag, part in parts.items() if part}


def _require_one_system(
    first: ConfusionData, first_name: str, data: ConfusionData, name: str
) -> None:
    if data.predicted != first.predicted:
        raise BadInput(
            f"{name} has the predictions of {shorten(data.predicted)}, and {first_name} those of "
            f"{shorten(first.predicted)}. Only shards of one system merge: if it is one, give its "
            "columns one name before you count them."
        )


def _dump_origin(data: Data) -> dict[str, Any]:
    return {"gold": data.gold, "files": list(data.files), "notes": list(data.notes)}


def _load_origin(stored: Mapping[str, Any]) -> dict[str, Any]:
    files, notes = (tuple(map(str, stored[name])) for name in ("files", "notes"))
    return {"gold": str(stored["gold"]), "files": files, "notes": notes}


def _join_origins(parts: Sequence[Any]) -> dict[str, Any]:
    """Return the files of all shards, and what was said of any."""
    joined = {
        name: tuple(dict.fromkeys(text for part in parts for text in getattr(part, name)))
        for name in ("files", "notes")
    }
    if len(gold := dict.fromkeys(part.gold for part in parts)) > 1:
        columns = ", ".join(map(shorten, gold))
        joined["notes"] += (f"The shards have their gold levels in several columns: {columns}.",)
    return joined


def _spell_values(values: Sequence[Any]) -> list[Any]:
    """Return subgroups or clusters in one spelling: 7 of a database is '7' of a file."""
    return [None if value is None else normalize_label(value) for value in values]


# --- systems -------------------------------------------------------------------------------------


def _dump_systems(data: Any) -> dict[str, Any]:
    return {"panel": data.panel.to_dict()}


def _load_systems(shard: Mapping[str, Any]) -> Data:
    panel = Panel.from_dict(shard["panel"])
    spelled = _spell_values(panel.group_values)
    places = {value: place for place, value in enumerate(dict.fromkeys(spelled))}
    if panel.groups is not None:
        groups = np.array([places[value] for value in spelled], np.int64)[panel.groups]
        panel = replace(panel, groups=groups, group_values=tuple(places))
    return PanelData(panel, "")


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
    for name in NAMED:
        keys, stored = zip(*shard[name], strict=True) if shard[name] else ((), ())
        found[name] = list(zip(_spell_values(keys), map(read, stored), strict=True))
    return ConfusionData(
        **found,
        group_values=tuple(_spell_values(shard["group_values"])),
        predicted=str(shard["predicted"]),
    )


def _merge_labels(parts: list[ConfusionData]) -> ConfusionData:
    """Return the sum: equal subgroups, and equal clusters, are one."""
    clusters = dict.fromkeys(value for part in parts for value in part.group_values)
    number = {value: place for place, value in enumerate(clusters)}
    places = [np.array([number[x] for x in part.group_values], np.int64) for part in parts]
    merged = _join_origins(parts)
    for name in SINGLE:
        batches = [getattr(part, name) for part in parts]
        if batches[0] is not None:
            merged[name] = _sum_batches(batches, places, len(clusters))
    for name in NAMED:
        merged[name] = _sum_named([getattr(part, name) for part in parts], places, len(clusters))
    return replace(parts[0], group_values=tuple(clusters), **merged)


def _sum_named(parts: list[Named], places: list[Array], count: int) -> Named:
    """Return the sum of each subgroup, over the shards that have it."""
    found: dict[Any, tuple[list[ConfusionMatrix], list[Array]]] = {}
    for pairs, there in zip(parts, places, strict=True):
        for name, batch in pairs:
            batches, places_of_batches = found.setdefault(name, ([], []))
            batches.append(batch)
            places_of_batches.append(there)
    names = sorted(found, key=lambda name: (name is None, str(name)))
    return [(name, _sum_batches(*found[name], count)) for name in names]


def _sum_batches(
    batches: Sequence[ConfusionMatrix], places: Sequence[Array], count: int
) -> ConfusionMatrix:
    """Return the sum of batches, of which each has its clusters at some of all places."""
    if not batches[0].shape:
        return reduce(add, batches)
    return ConfusionMatrix.concatenate(batches).compute_sums(np.concatenate(places), count)
