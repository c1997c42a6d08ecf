"""Manifests: what an artefact is, how it came about, and whether it is still what it was."""

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Self, TypedDict

from ordinate.errors import BadInput, BadStore, shorten
from ordinate.tuning.experiment.safe_files import hash_file, resolve_inside, write_json
from ordinate.tuning.experiment.stored_json import decode, encode, read_json

MANIFEST_FILE = "manifest.json"
SCHEMA = 2


class FileRecord(TypedDict):
    """What a manifest knows of a file."""

    sha256: str
    size: int


@dataclass(frozen=True)
class Manifest:
    """What a folder of files is, which command wrote it from which data, each file's hash."""

    artifact: str  # model, features, extractor
    name: str
    config: dict[str, Any]
    data: dict[str, str]  # fingerprints by name
    seed: int | None
    command: str
    versions: dict[str, str]
    created: str  # UTC
    files: dict[str, FileRecord]

    @classmethod
    def of(
        cls,
        folder: Path,
        artifact: str,
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
        return cls(
            artifact=artifact,
            name=name,
            config=config,
            data=data,
            seed=seed,
            command=command,
            versions=collect_versions(libraries),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            files=files,
        )

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the manifest of a folder; whether the files are as it says is left to `verify`."""
        path = folder / MANIFEST_FILE
        if not path.exists() and folder.is_dir():
            raise BadStore(f"{folder} has no {MANIFEST_FILE}: it was not written by Ordinate.")
        stored = read_json(path, dict[str, Any])
        if (schema := stored.pop("schema", None)) != SCHEMA:
            known = f"this version reads schema {SCHEMA}"
            raise BadStore(f"{path} is no manifest: its schema is {shorten(schema)}, and {known}.")
        return decode(stored, cls, path)

    def write(self, folder: Path) -> None:
        """Write the manifest into its folder."""
        write_json(folder / MANIFEST_FILE, {"schema": SCHEMA} | encode(self))

    def verify(self, folder: Path) -> None:
        """Refuse a folder whose files are not exactly those that the manifest lists."""
        for path, stored in self.files.items():
            try:
                _verify_file(folder, path, stored)
            except OSError as problem:
                raise BadStore(f"{shorten(path)} in {folder}: {problem.strerror}.") from None
        if further := self.list_further_files(folder):
            raise BadStore(
                f"{folder} holds {shorten(further[0])}, which its {MANIFEST_FILE} does not list. "
                "Remove the file, or make the artefact again."
            )

    def list_further_files(self, folder: Path) -> list[str]:
        """Return the files of a folder that the manifest does not list."""
        return sorted(set(_list_files(folder)) - set(self.files))


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
