"""Tensors and plain values in one file that executes nothing: safetensors, with JSON inside."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from ordinate.errors import BadStore, MissingExtra, shorten
from ordinate.render import atomic_files

METADATA_KEY = "ordinate"  # under which name the file keeps plain values


def write_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors with plain values, completely or not at all."""
    metadata = {METADATA_KEY: json.dumps(facts, sort_keys=True, allow_nan=False)}
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    content = _import_safetensors().save(plain, metadata)
    with atomic_files.replace_file(path) as temporary:
        temporary.write_bytes(content)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
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
            f"{path} cannot be read: {shorten(str(problem))}. Restore it, or train again."
        ) from None
    return tensors, facts


def _import_safetensors() -> Any:
    try:
        import safetensors.torch  # noqa: PLC0415 - optional
    except ImportError:
        line = "pip install 'ordinate[surrogate]'"
        raise MissingExtra(f"Networks are stored by safetensors: {line}") from None
    return safetensors.torch
