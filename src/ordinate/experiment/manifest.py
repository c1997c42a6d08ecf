"""Manifests: what an artefact is, how it came about, and whether it is still what it was."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Self, TypedDict

from ordinate.errors import BadInput, BadStore, shorten
from ordinate.experiment.safe_files import hash_file, resolve_inside, write_json

MANIFEST_FILE = "manifest.json"
SCHEMA = 1


class FileRecord(TypedDict):
    """What a manifest knows of a file."""

    sha256: str
    size: int


@dataclass(frozen=True)
class Manifest:
    """What a folder of files is, what made it of which data, and the hash of each file."""

    kind: str
    name: str
    config: dict[str, Any]
    data: dict[str, str]  # fingerprints by name
    seed: int | None
    command: str
    versions: dict[str, str]
    made: str  # UTC
    files: dict[str, FileRecord]

    @classmethod
    def of(
        cls,
        folder: Path,
        kind: str,
        name: str,
        *,
        config: dict[str, Any],
        data: dict[str, str],
        seed: int | None,
        command: str,
        libraries: Sequence[str] = (),
    ) -> Self:
        """Describe a folder as it is now, with all its files but the manifest itself."""
        files = {
            path: FileRecord(sha256=hash_file(folder / path), size=(folder / path).stat().st_size)
            for path in _list_files(folder)
        }
        made = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(
            kind, name, config, data, seed, command, collect_versions(libraries), made, files
        )

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the manifest of a folder; whether the files are as it says is left to `verify`."""
        path = folder / MANIFEST_FILE
        try:
            found = json.loads(path.read_bytes())
        except FileNotFoundError:
            raise BadStore(
                f"{folder} has no {MANIFEST_FILE}: it was not written by Ordinate."
            ) from None
        except OSError as problem:
            raise BadStore(f"{path} cannot be read: {problem.strerror}.") from None
        except (ValueError, RecursionError) as problem:
            raise BadStore(f"{path} is no JSON: {shorten(str(problem))}.") from None
        if (wrong := _find_shape_fault(found)) is not None:
            raise BadStore(f"{path} is no manifest: {wrong}.")
        return cls(**{field: found[field] for field in FIELDS})

    def write(self, folder: Path) -> None:
        """Write the manifest into its folder."""
        write_json(folder / MANIFEST_FILE, {"schema": SCHEMA} | asdict(self))

    def verify(self, folder: Path) -> None:
        """Refuse a folder whose files are not exactly those that the manifest lists."""
        for path, stored in self.files.items():
            try:
                _verify_file(folder, path, stored)
            except OSError as problem:
                raise BadStore(f"{shorten(path)} in {folder}: {problem.strerror}.") from None
        if further := sorted(set(_list_files(folder)) - set(self.files)):
            raise BadStore(
                f"{folder} holds {shorten(further[0])}, which its {MANIFEST_FILE} does not list. "
                "Remove the file, or make the artefact again."
            )


def collect_versions(libraries: Sequence[str] = ()) -> dict[str, str]:
    """Return the versions of Python, Ordinate, NumPy and these libraries, without importing any.

    >>> list(collect_versions(["scipy"]))
    ['python', 'ordinate', 'numpy', 'scipy']
    """
    found = {"python": platform.python_version()}
    for library in dict.fromkeys(("ordinate", "numpy", *libraries)):
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            found[library] = "not installed"
    return found


def _verify_file(folder: Path, path: str, stored: FileRecord) -> None:
    try:
        file = resolve_inside(folder, path)
    except BadInput as problem:
        raise BadStore(f"The {MANIFEST_FILE} of {folder} is refused: {problem}") from None
    if not file.is_file():
        raise BadStore(f"{folder} lacks the file {shorten(path)}, which its {MANIFEST_FILE} lists.")
    if (size := file.stat().st_size) != stored["size"]:
        raise _build_changed_error(folder, path, f"{stored['size']} bytes", f"{size} bytes")
    if (found := hash_file(file)) != stored["sha256"]:
        raise _build_changed_error(folder, path, f"sha256 {stored['sha256']}", found)


def _build_changed_error(folder: Path, path: str, listed: str, found: str) -> BadStore:
    return BadStore(
        f"{shorten(path)} in {folder} is not what its {MANIFEST_FILE} lists: {listed}, but the "
        f"file has {found}. It was changed or damaged: it is not opened, and must be made again."
    )


def _list_files(folder: Path) -> list[str]:
    """Return the paths of whatever lies in a folder, links to folders too, but its manifest."""
    found = []
    for where, folders, names in os.walk(folder):
        links = [name for name in folders if Path(where, name).is_symlink()]
        found += [Path(where, name).relative_to(folder).as_posix() for name in (*names, *links)]
    return sorted(path for path in found if path != MANIFEST_FILE)


# --- the shape of what is read -------------------------------------------------------------------

FIELDS: dict[str, tuple[type, ...]] = {
    "kind": (str,),
    "name": (str,),
    "config": (dict,),
    "data": (dict,),
    "seed": (int, type(None)),
    "command": (str,),
    "versions": (dict,),
    "made": (str,),
    "files": (dict,),
}


def _find_shape_fault(found: Any) -> str | None:
    """Say what is wrong with a manifest as it was read, if anything is."""
    if not isinstance(found, dict):
        return "it is no JSON object"
    if found.get("schema") != SCHEMA:
        known = f"this Ordinate reads schema {SCHEMA}"
        return f"its schema is {shorten(found.get('schema'))}, and {known}"
    for field, kinds in FIELDS.items():
        if field not in found:
            return f"it has no {field!r}"
        if not isinstance(found[field], kinds) or isinstance(found[field], bool):
            return f"its {field!r} is {shorten(found[field])}"
    for field in ("data", "versions"):
        if not all(isinstance(value, str) for value in found[field].values()):
            return f"its {field!r} has values that are no texts"
    wrong = [path for path, stored in found["files"].items() if not _is_file_record(stored)]
    return f"what it says of the file {shorten(wrong[0])} is no hash and size" if wrong else None


def _is_file_record(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"sha256", "size"}
        and isinstance(value["sha256"], str)
        and type(value["size"]) is int
    )


def read_verified_manifest(folder: Path) -> Manifest:
    """Return the manifest of a saved model, once its files are as it says; else say what to do."""
    try:
        manifest = Manifest.read(folder)
        manifest.verify(folder)
    except BadStore as problem:
        again = f"To make it again, remove {folder} and repeat the command that made it."
        raise BadStore(f"{problem} {again}") from None
    return manifest


def is_model_saved(folder: Path) -> bool:
    """Tell whether a saved model is there, whole; one that was tampered with is an error."""
    if not folder.exists():
        return False
    read_verified_manifest(folder)
    return True
