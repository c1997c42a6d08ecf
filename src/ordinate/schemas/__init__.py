"""JSON schemas of all reports, by the names of their classes."""

from importlib.resources import files
from pathlib import Path

from ordinate.errors import BadInput

__all__ = ["list_schemas", "locate_schema"]


def list_schemas() -> list[str]:
    """Return the names of the reports that have a schema: all.

    >>> "Evaluation" in list_schemas()
    True
    """
    return sorted(path.stem for path in _get_folder().glob("*.json"))


def locate_schema(name: str) -> Path:
    """Return where the schema of a report's JSON lies on disk.

    >>> locate_schema("Evaluation").name
    'Evaluation.json'
    """
    known = list_schemas()
    if name not in known:
        raise BadInput(f"There is no schema {name!r}. There are: {', '.join(known)}.")
    return _get_folder() / f"{name}.json"


def _get_folder() -> Path:
    return Path(str(files(__package__)))
