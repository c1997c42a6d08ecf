"""Extraction of a feature set: fitted on training data, in batches that outlive a kill."""

import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any, TypedDict

from ordinate.errors import BadInput, BadOption, BadOutput, MissingExtra
from ordinate.render.reserved_paths import TRAINING
from ordinate.tuning.experiment.dataset import Dataset
from ordinate.tuning.experiment.folder import Experiment
from ordinate.tuning.experiment.lock import hold_lock
from ordinate.tuning.experiment.manifest import MANIFEST_FILE as MANIFEST
from ordinate.tuning.experiment.manifest import Manifest, collect_versions
from ordinate.tuning.experiment.safe_files import (
    compute_digest,
    create_folder,
    remove_leftovers,
    resolve_inside,
)
from ordinate.tuning.experiment.stored_json import decode
from ordinate.tuning.features.extraction_report import ExtractedDataset, ExtractionResult
from ordinate.tuning.features.extractor import (
    ExtractionRequest,
    FeatureExtractor,
    FittedExtractor,
    Items,
    ProgressCallback,
    check_name,
    create_extractor,
    default_name,
    refuse_groups,
)
from ordinate.tuning.features.feature_store import (
    BatchStore,
    check_rows,
    count_nonzero,
    count_zero_rows,
    write_features,
)
from ordinate.tuning.features.lexical import Lexical
from ordinate.tuning.features.tfidf import Tfidf

EXTRACTOR_FOLDER = "_extractor"  # of the fitted extractor in a set
WORK_PREFIX = ".making-"  # how folders of unfinished work begin


class _RequestConfig(TypedDict):
    """What the manifest of an extractor says of the request."""

    extractor: str
    parameters: dict[str, Any]
    sources: dict[str, str]


def extract_features(
    experiment: Experiment,
    extractor: FeatureExtractor,
    name: str | None = None,
    *,
    batch: int | None = None,
    progress: ProgressCallback | None = None,
) -> ExtractionResult:
    """Make a feature set for all data sets of an experiment, fitted on training data alone.

    What is there already is not made again; what a killed run finished is taken up. A set of the
    same name that was requested differently is never touched. `progress` gets the share done.
    """
    if name is not None:
        check_name(name)
    if batch is not None and batch < 1:
        raise BadOption(f"A batch has 1 row or more, not {batch}.")
    if not experiment.training:
        raise BadInput(f"{experiment.root} has no training data in {TRAINING} to fit on.")
    extractor, found = extractor.complete(partial(_read_training_texts, experiment))
    set_name = name or check_name(default_name(extractor))
    refuse_groups(experiment, extractor.columns)
    command = build_command(experiment, extractor, set_name)
    with _lock_experiment(experiment, command):
        work = _Extraction(experiment, extractor, set_name, command, progress or (lambda _: None))
        made = work.run(batch or extractor.batch)
    return replace(made, notes=(*found, *made.notes))


def _read_training_texts(experiment: Experiment) -> list[str]:
    stems = experiment.training
    return [text for stem in stems for text in experiment.dataset(stem).require_texts()]


def extract_default_features(
    experiment: Experiment,
    progress: ProgressCallback | None = None,
    *,
    lexical: bool = True,
    language: str | None = None,
    explain: Callable[[str], object] = lambda _: None,
) -> list[ExtractionResult]:
    """Make the feature sets that a new experiment begins with: TF-IDF and `lexical` ones.

    TF-IDF is of words and of characters. Where lexical features lack a library, or the `language`
    of the texts is neither named nor sure, there are none, and `explain` gets the reason.
    """
    extract = partial(extract_features, experiment, progress=progress)
    made = [extract(Tfidf()), extract(Tfidf(analyzer="char"))]
    if lexical:
        try:
            made.append(extract(Lexical(language)))
        except (MissingExtra, BadInput) as problem:
            explain(str(problem))
    return made


@contextmanager
def _lock_experiment(experiment: Experiment, command: str) -> Iterator[None]:
    """Hold the experiment and its folder of sets, which others may share, and clear them up."""
    root, sets = experiment.root, experiment.features_dir
    with ExitStack() as held:
        held.enter_context(hold_lock(root, command))
        with suppress(OSError):  # what cannot be made is told by who writes there
            sets.mkdir(exist_ok=True)
        if sets.is_dir() and not sets.samefile(root):
            held.enter_context(hold_lock(sets, command))
        remove_leftovers(root)
        if not sets.resolve().is_relative_to(root.resolve()):
            remove_leftovers(sets)
        yield


def build_command(experiment: Experiment, extractor: FeatureExtractor, name: str) -> str:
    """Return the command that makes a set."""
    parts = ["ordinate", "features", extractor.name, "-e", str(experiment.root)]
    if experiment.features_dir != experiment.root / "features":
        parts += ["--features-base-dir", str(experiment.features_dir)]
    options = {
        f"{role}-column": getattr(experiment.columns, role) for role in ("label", "text", "id")
    }
    options |= {
        role: getattr(experiment.columns, role) for role in ("delimiter", "encoding", "sheet")
    }
    for option, said in options.items():
        parts += [] if said is None else [f"--{option}", said]
    given = [] if name == default_name(extractor) else ["--name", name]
    return shlex.join([*parts, *extractor.arguments, *given])


def build_items(data: Dataset, extractor: FeatureExtractor) -> Items:
    """Return what an extractor may see of a data set: never its levels."""
    texts = data.require_texts() if extractor.reads_texts else data.texts or ()
    columns = {name: tuple(data.read_column(name)) for name in extractor.columns}
    return Items(data.n, blank_empty_texts(texts), data.ids, columns, data.name)


def blank_empty_texts(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return texts, those without a single letter as empty ones."""
    return tuple(text if text.strip() else "" for text in texts)


def read_request(manifest: Manifest) -> ExtractionRequest:
    """Return the request of a stored extractor's set."""
    config = decode(manifest.config, _RequestConfig, f"The {MANIFEST} of {manifest.name!r}")
    return ExtractionRequest(
        config["extractor"], config["parameters"], manifest.data, config["sources"]
    )


def locate_extractor(experiment: Experiment, set_name: str) -> Path:
    """Return the folder of a set's fitted extractor, whether it is there or not."""
    return resolve_inside(experiment.features_dir, set_name, EXTRACTOR_FOLDER)


def read_extractor_manifest(experiment: Experiment, set_name: str) -> Manifest | None:
    """Return the manifest of a set's extractor, None where Ordinate did not make the set."""
    folder = locate_extractor(experiment, set_name)
    return Manifest.read(folder) if (folder / MANIFEST).exists() else None


def compute_identity(manifest: Manifest) -> str:
    """Return the hash of a set's request and of what its extractor learned."""
    return compute_digest([read_request(manifest).hash, manifest.files], 64)


def find_extractor_identity(manifest: Manifest | None) -> str | None:
    """Return the identity of an extractor by its manifest or its features'; None: not known."""
    if manifest is not None and manifest.artifact == "extractor":
        return compute_identity(manifest)
    return None if manifest is None else manifest.config.get("identity")


def describe_version_changes(manifest: Manifest) -> list[str]:
    """Say which libraries are not of the versions that an extractor was made with."""
    now = collect_versions([library for library in manifest.versions if library != "python"])
    changed = [
        f"{library} was {then} and is {now[library]} now"
        for library, then in manifest.versions.items()
        if now[library] != then
    ]
    said = (
        f"{manifest.name} was made with other versions: {', '.join(changed)}. Numbers may differ a "
        "little from those of its other data sets; where that matters, make a new set."
    )
    return [said] if changed else []


@dataclass(frozen=True)
class _Extraction:
    """One request on its way to a set."""

    experiment: Experiment
    extractor: FeatureExtractor
    name: str
    command: str
    progress: ProgressCallback

    @cached_property
    def folder(self) -> Path:
        return resolve_inside(self.experiment.features_dir, self.name)

    @cached_property
    def datasets(self) -> dict[str, Items]:
        data = map(self.experiment.dataset, self.experiment.files)
        return {one.name: build_items(one, self.extractor) for one in data}

    @cached_property
    def request(self) -> ExtractionRequest:
        data = {stem: self._get_fingerprint(stem) for stem in self.experiment.training}
        besides = {
            f"{what} of {stem}": print_
            for stem in data
            for what, print_ in self._fingerprint_sources(stem).items()
        }
        return ExtractionRequest(
            self.extractor.name,
            self.extractor.parameters,
            data,
            self.extractor.sources() | besides,
        )

    @cached_property
    def work_folder(self) -> Path:
        """Where finished batches wait: another request, or other libraries, work elsewhere."""
        found = compute_digest([self.request.hash, collect_versions(self.extractor.libraries)])
        return self.experiment.features_dir / f"{WORK_PREFIX}{found}"

    def _get_fingerprint(self, stem: str) -> str:
        return self.experiment.dataset(stem).fingerprint

    def _fingerprint_sources(self, stem: str) -> dict[str, str]:
        """Return fingerprints of what the rows of a data set are made of besides ids and texts."""
        columns = self.datasets[stem].columns.items()
        prints = {f"column {name!r}": compute_digest(list(column)) for name, column in columns}
        return prints | self.extractor.fingerprint_sources(stem)

    # --- the way -----------------------------------------------------------------------------

    def run(self, batch: int) -> ExtractionResult:
        finished = self._list_finished()
        there = self.folder.exists()  # an extractor may be there alone
        lacking = [stem for stem in self.datasets if stem not in finished]
        notes: list[str] = []
        if there and lacking:
            notes = describe_version_changes(Manifest.read(self.folder / EXTRACTOR_FOLDER))
        if lacking:
            fitted = self._fit_or_load(there=there)
            self._extract_rows(fitted, lacking, batch, there=there)
            self._publish_set(fitted, lacking, there=there)
        self._remove_batches()
        found = (
            ExtractedDataset.read(self.folder / stem, new=stem in lacking) for stem in self.datasets
        )
        return ExtractionResult(self.name, self.folder, tuple(found), self.command, tuple(notes))

    def _list_finished(self) -> list[str]:
        """Return the data sets that are finished, and refuse a set that is another one."""
        if not self.folder.exists():
            return []
        if not (locate_extractor(self.experiment, self.name) / MANIFEST).exists():
            raise BadOutput(
                f"{self.folder} is there, and `ordinate features` did not make it. Choose another "
                f"name: --name {self._alternative_name}"
            )
        stored = Manifest.read(self.folder / EXTRACTOR_FOLDER)
        stored.verify(self.folder / EXTRACTOR_FOLDER)
        if differences := self.request.differences(read_request(stored)):
            raise BadOutput(
                f"{self.folder} is another feature set, and is not overwritten: "
                f"{'; '.join(differences)}. Choose another name: --name {self._alternative_name}"
            )
        found = [stem for stem in self.datasets if (self.folder / stem).exists()]
        for stem in found:
            self._check_dataset(stem)
        return found

    def _check_dataset(self, stem: str) -> None:
        folder = self.folder / stem
        manifest = Manifest.read(folder)
        manifest.verify(folder)
        changed = str(self.experiment.dataset(stem).path)
        if manifest.data.get(stem) == self._get_fingerprint(stem):
            where = f"'besides' in {folder / MANIFEST}"
            known = decode(manifest.config.get("besides", {}), dict[str, str], where)
            now = self._fingerprint_sources(stem)
            what = [name for name in sorted({*known, *now}) if known.get(name) != now.get(name)]
            if not what:
                return
            changed = f"{', '.join(what)} of {changed}"
        raise BadOutput(
            f"{changed} has changed since its features in {folder} were made, and nothing is "
            f"overwritten. Remove {folder} to have them made again, or choose another name: "
            f"--name {self._alternative_name}"
        )

    @property
    def _alternative_name(self) -> str:
        return f"{self.extractor.title}-{self.request.hash[:6]}"

    # --- its stations ------------------------------------------------------------------------

    def _fit_or_load(self, *, there: bool) -> FittedExtractor:
        """Return the fitted extractor: that of the set, that of a killed run, or a new one."""
        if there:
            return self.extractor.load(self.folder / EXTRACTOR_FOLDER)
        checkpoint = self.work_folder / EXTRACTOR_FOLDER
        if not checkpoint.exists():
            pooled = _pool_items([self.datasets[stem] for stem in self.experiment.training])
            share = pooled.n / (pooled.n + sum(items.n for items in self.datasets.values()))
            fitted = self.extractor.fit(pooled, lambda done: self.progress(done * share))
            with create_folder(checkpoint) as folder:
                fitted.save(folder)
        return self.extractor.load(checkpoint)

    def _extract_rows(
        self, fitted: FittedExtractor, stems: list[str], batch: int, *, there: bool
    ) -> None:
        fit = 0 if there else sum(self.datasets[stem].n for stem in self.experiment.training)
        total = fit + sum(self.datasets[stem].n for stem in stems)
        before = fit
        for stem in stems:
            items = self.datasets[stem]
            batches = self._open_batches(stem)
            for start, stop in batches.missing(batch):
                self.progress((before + start) / total)
                rows = fitted.rows(items.slice_rows(start, stop))
                check_rows(rows, stop - start, fitted.names)
                batches.save(start, stop, rows)
            before += items.n
        self.progress(1.0)

    def _open_batches(self, stem: str) -> BatchStore:
        of = compute_digest([stem, self._get_fingerprint(stem), self._fingerprint_sources(stem)])
        return BatchStore(self.work_folder / of, self.datasets[stem].n)

    def _publish_set(self, fitted: FittedExtractor, stems: list[str], *, there: bool) -> None:
        """Show the set: at once where it is new, else each further data set at once."""
        if there:
            manifest = Manifest.read(self.folder / EXTRACTOR_FOLDER)
            for stem in stems:
                with create_folder(self.folder / stem) as folder:
                    self._write_dataset(folder, fitted, stem, manifest)
            return
        with create_folder(self.folder) as whole:
            (whole / EXTRACTOR_FOLDER).mkdir()
            fitted.save(whole / EXTRACTOR_FOLDER)
            config = self._config | {"features": len(fitted.names), "columns": self._columns}
            manifest = self._write_manifest(
                whole / EXTRACTOR_FOLDER, "extractor", config, self.request.data
            )
            for stem in stems:
                (whole / stem).mkdir()
                self._write_dataset(whole / stem, fitted, stem, manifest)

    def _write_dataset(
        self, folder: Path, fitted: FittedExtractor, stem: str, extractor: Manifest
    ) -> None:
        items, matrix = self.datasets[stem], self._open_batches(stem).join()
        write_features(folder, matrix, fitted.names, items.ids)
        config = self._config | {
            "rows": items.n,
            "features": len(fitted.names),
            "nonzero": count_nonzero(matrix),
            "counts": {
                "empty_texts": sum(not text for text in items.texts),
                "zero_rows": count_zero_rows(matrix),
                **fitted.count_oddities(items),
            },
            "besides": self._fingerprint_sources(stem),
            "identity": compute_identity(extractor),
        }
        self._write_manifest(folder, "features", config, {stem: self._get_fingerprint(stem)})

    def _remove_batches(self) -> None:
        """Remove the batches, which the set has now."""
        shutil.rmtree(self.work_folder, ignore_errors=True)

    @property
    def _config(self) -> dict[str, Any]:
        return {
            "extractor": self.extractor.name,
            "parameters": self.extractor.parameters,
            "sources": self.request.sources,
            "request": self.request.hash,
        }

    @property
    def _columns(self) -> dict[str, str | None]:
        """Where the training texts stood, so that new ones are read alike."""
        declared = self.experiment.columns
        found = {self.experiment.dataset(stem).columns.text for stem in self.experiment.training}
        text = found.pop() if len(found) == 1 else declared.text
        return {"text": text, "delimiter": declared.delimiter, "encoding": declared.encoding}

    def _write_manifest(
        self, folder: Path, artifact: str, config: Any, data: dict[str, str]
    ) -> Manifest:
        manifest = Manifest.of(
            folder,
            artifact,
            self.name,
            config=config,
            data=data,
            seed=None,
            command=self.command,
            libraries=self.extractor.libraries,
        )
        manifest.write(folder)
        return manifest


def _pool_items(parts: list[Items]) -> Items:
    """Return the rows of several data sets as one; ids may repeat from file to file."""
    columns = {
        name: tuple(chain.from_iterable(part.columns[name] for part in parts))
        for name in parts[0].columns
    }
    texts = tuple(chain.from_iterable(part.texts for part in parts))
    return Items(sum(part.n for part in parts), texts, columns=columns)


def find_changed_parts(experiment: Experiment, folder: Path) -> list[str]:
    """Say what has changed of the sets or tables that the set of a stored extractor was made of."""
    stored = Manifest.read(folder)
    request = read_request(stored)
    extractor = create_extractor(request.extractor, request.parameters, experiment)
    if extractor.reads_texts:
        return []
    now = _Extraction(experiment, extractor, stored.name, stored.command, lambda _: None)
    return now.request.differences(request)


def list_unfinished_work(experiment: Experiment) -> list[Path]:
    """Return the folders of work that a killed run left to be taken up."""
    return sorted(experiment.features_dir.glob(f"{WORK_PREFIX}*"))
