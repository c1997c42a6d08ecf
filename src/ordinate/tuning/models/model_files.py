"""Safe model files: skops with an own allow-list, trees as plain arrays, tensors.

Pickles execute what they contain, so none is ever opened. Every other file is looked through
before a loader sees it, and nothing is built from a type that is not listed here.
"""

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordinate.errors import BadStore, MissingExtra, shorten
from ordinate.render import atomic_files
from ordinate.tuning.experiment import safe_files
from ordinate.tuning.experiment.stored_json import refuse_duplicate_keys
from ordinate.tuning.models.tree_ensemble import TreeEnsemble

if TYPE_CHECKING:  # which takes seconds to load
    from torch import Tensor

PICKLE_PATTERN = re.compile(rb"\x80[\x00-\x05]|c[\w.]+\n\w+\n|\(dp|\(lp|\(c")  # how pickles begin
SCHEMA = "schema.json"
METADATA_KEY = "ordinate"  # under which name a file of tensors keeps plain values
EPOCH = (1980, 1, 1, 0, 0, 0)  # the first day of zip files: a model's bytes tell no time
RESTORE_HINT = "It is not used. Make the model again, or restore the folder."

# What skops may build, and how. It knows other ways, which call functions that the file names.
ALLOWED_NODES: dict[str, frozenset[str]] = {
    "DictNode": frozenset({"builtins.dict"}),
    "JsonNode": frozenset({"builtins.str"}),
    "ListNode": frozenset({"builtins.list"}),
    "NdArrayNode": frozenset({"numpy.ndarray", "numpy.float32", "numpy.float64", "numpy.int64"}),
    "ObjectNode": frozenset(
        {
            "ordinate.tuning.models.regressors.kernels.KernelExpansion",
            "ordinate.integrations.sklearn.ordinal_regression.FrankHallClassifier",
            "ordinate.integrations.sklearn.ordinal_regression.OrdinalThresholdClassifier",
            "sklearn.linear_model._logistic.LogisticRegression",
            "sklearn.linear_model._ridge.Ridge",
            "sklearn.naive_bayes.ComplementNB",
            "sklearn.naive_bayes.MultinomialNB",
            "sklearn.pipeline.Pipeline",
            "sklearn.preprocessing._data.MinMaxScaler",
            "sklearn.preprocessing._data.StandardScaler",
            "sklearn.preprocessing._polynomial.PolynomialFeatures",
            "sklearn.svm._classes.LinearSVC",
        }
    ),
    "TupleNode": frozenset({"builtins.tuple"}),
    "TypeNode": frozenset({"builtins.str"}),
}
ALLOWED_TYPES = sorted(frozenset().union(*ALLOWED_NODES.values()))


def save_fitted(fitted: Any, folder: Path) -> list[str]:
    """Write what was fitted into a folder, and return the names of the files."""
    if isinstance(fitted, TreeEnsemble):
        name, content = TREES, fitted.to_bytes()
    else:
        name, content = SKOPS, _dump_skops(fitted)
    with atomic_files.replace_file(folder / name) as temporary:
        temporary.write_bytes(content)
    return [name]


def load_fitted(folder: Path) -> Any:
    """Return what was fitted; the caller has verified the manifest."""
    names = sorted(path.name for path in folder.iterdir())
    for name in names:
        if Path(name).suffix.lower() in safe_files.PICKLE_SUFFIXES:
            raise BadStore(
                f"{folder / name} is a pickle, and a pickle executes what it contains. "
                f"{RESTORE_HINT}"
            )
    found = [name for name in names if name in READERS]
    if len(found) != 1:
        known = ", ".join(READERS)
        has = " and ".join(found) if found else "none of them"
        raise BadStore(f"A model's folder has one file of {known}; {folder} has {has}.")
    path = folder / found[0]
    content = path.read_bytes()
    if PICKLE_PATTERN.match(content):
        raise BadStore(
            f"{path} is a pickle by its content, whatever its name, and a pickle executes what it "
            f"contains. {RESTORE_HINT}"
        )
    try:
        return READERS[path.name](content)
    except MissingExtra:
        raise
    except BadStore as reason:
        raise BadStore(f"{path} is refused: {reason}. {RESTORE_HINT}") from None
    except Exception as problem:  # noqa: BLE001 - loaders fail in their own ways on damaged files
        raise BadStore(f"{path} cannot be read: {shorten(str(problem))}. {RESTORE_HINT}") from None


# --- skops ---------------------------------------------------------------------------------------


def _dump_skops(fitted: Any) -> bytes:
    from skops.io import dumps

    content = _normalize_skops(dumps(fitted))
    _check_skops(content)  # what could not be loaded again is not written
    return content


def _load_skops(content: bytes) -> Any:
    _check_skops(content)
    from skops.io import loads

    return loads(content, trusted=ALLOWED_TYPES)


def _check_skops(content: bytes) -> None:
    """Refuse every type and every way to build one that is not listed."""
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise BadStore("it is no skops file")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if any(each.compress_type != zipfile.ZIP_STORED for each in archive.infolist()):
            raise BadStore("it is compressed, and could unfold to any size")
        if SCHEMA not in archive.namelist():
            raise BadStore(f"it has no {SCHEMA}, and is no skops file")
        schema = json.loads(archive.read(SCHEMA), object_pairs_hook=refuse_duplicate_keys)
    for node in _walk_nodes(schema):
        builder = node.get("__loader__")
        name = f"{node.get('__module__')}.{node.get('__class__')}"
        if name not in ALLOWED_NODES.get(str(builder), ()):
            raise BadStore(
                f"it builds the type {shorten(name)} by {shorten(builder)}, which is no part of a "
                "model"
            )


def _walk_nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield whatever in a schema names a type or a way to build one."""
    left = [schema]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            if not part.keys().isdisjoint({"__loader__", "__module__", "__class__"}):
                yield part
            left.extend(part.values())
        elif isinstance(part, list):
            left.extend(part)


def _normalize_skops(content: bytes) -> bytes:
    """Return a skops file without times and addresses in memory: equal models, equal bytes."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members.pop(SCHEMA))
    numbers: dict[Any, int] = {}
    names: dict[str, str] = {}
    for node in _walk_nodes(schema):
        if "__id__" in node:
            node["__id__"] = numbers.setdefault(node["__id__"], len(numbers) + 1)
        if "file" in node:
            node["file"] = names.setdefault(node["file"], f"{len(names)}.npy")
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for old, new in names.items():
            archive.writestr(zipfile.ZipInfo(new, EPOCH), members[old])
        archive.writestr(zipfile.ZipInfo(SCHEMA, EPOCH), json.dumps(schema))
    return written.getvalue()


# --- tensors -------------------------------------------------------------------------------------


def write_tensors(path: Path, tensors: Mapping[str, "Tensor"], facts: Mapping[str, Any]) -> None:
    """Write tensors with plain values as safetensors, completely or not at all."""
    metadata = {METADATA_KEY: json.dumps(facts, sort_keys=True, allow_nan=False)}
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    content = _import_safetensors().save(plain, metadata)
    with atomic_files.replace_file(path) as temporary:
        temporary.write_bytes(content)


def read_tensors(path: Path) -> tuple[dict[str, "Tensor"], dict[str, Any]]:
    """Return the tensors and the plain values of a file."""
    try:
        content = path.read_bytes()
        # copies lie where new tensors do: sums may depend on how memory is aligned
        tensors = {
            name: tensor.clone() for name, tensor in _import_safetensors().load(content).items()
        }
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        facts = json.loads(header.get("__metadata__", {}).get(METADATA_KEY, "{}"))
    except MissingExtra:
        raise
    except Exception as problem:  # noqa: BLE001 - the loader fails in its own ways on damaged files
        raise BadStore(
            f"{path} cannot be read: {shorten(str(problem))}. Restore it, or tune again."
        ) from None
    return tensors, facts


def _import_safetensors() -> Any:
    try:
        import safetensors.torch
    except ImportError:
        line = "pip install 'ordinate[regression]'"
        raise MissingExtra(f"Networks are stored by safetensors: {line}") from None
    return safetensors.torch


SKOPS, TREES = "model.skops", "model.trees.npz"
READERS: dict[str, Callable[[bytes], Any]] = {SKOPS: _load_skops, TREES: TreeEnsemble.from_bytes}
