"""Making a feature set: fitted on training data, in batches that outlive a kill, whole or not."""

import shlex
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ordinate.errors import BadInput, BadOption, BadOutput, BadStore
from ordinate.experiment.dataset import Dataset
from ordinate.experiment.folder import Experiment
from ordinate.experiment.layout import TRAINING
from ordinate.experiment.lock import locked
from ordinate.experiment.manifest import NAME as MANIFEST
from ordinate.experiment.manifest import Manifest, versions
from ordinate.experiment.safe_files import digest, inside, replacing_folder, sweep
from ordinate.features.extraction_report import Made, MadeFor
from ordinate.features.extractor import (
    Fitted,
    Items,
    Maker,
    Request,
    Tick,
    checked_name,
    default_name,
    maker_of,
)
from ordinate.features.feature_store import (
    Batches,
    check_rows,
    stored_numbers,
    write_features,
    zero_rows,
)
from ordinate.features.label_leaks import refuse_groups

MAKER = "_maker"  # the folder of the fitted maker in a set
WORK = ".making-"  # how folders of unfinished work begin
ASKED = {"maker": str, "parameters": dict, "sources": dict}  # what the manifest of a maker says


def make(
    experiment: Experiment,
    maker: Maker,
    name: str | None = None,
    *,
    batch: int | None = None,
    tick: Tick | None = None,
) -> Made:
    """Make a feature set for all data sets of an experiment, fitted on training data alone.

    What is there already is not made again; what a killed run finished is taken up. A set of the
    same name that was asked for differently is never touched. `tick` is told the share done.
    """
    wanted = checked_name(default_name(maker) if name is None else name)
    if batch is not None and batch < 1:
        raise BadOption(f"A batch has 1 row or more, not {batch}.")
    if not experiment.training:
        raise BadInput(f"{experiment.root} has no training data in {TRAINING} to fit on.")
    refuse_groups(experiment, maker.columns)
    command = command_of(experiment, maker, wanted)
    with _alone(experiment, command):
        work = _Making(experiment, maker, wanted, command, tick or (lambda _: None))
        return work.made(batch or maker.batch)


@contextmanager
def _alone(experiment: Experiment, command: str) -> Iterator[None]:
    """Hold the experiment and its folder of sets, which others may share, and clear them up."""
    root, sets = experiment.root, experiment.features_dir
    with ExitStack() as held:
        held.enter_context(locked(root, command))
        with suppress(OSError):  # what cannot be made is told by who writes there
            sets.mkdir(exist_ok=True)
        if sets.is_dir() and not sets.samefile(root):
            held.enter_context(locked(sets, command))
        sweep(root)
        if not sets.resolve().is_relative_to(root.resolve()):
            sweep(sets)
        yield


def command_of(experiment: Experiment, maker: Maker, name: str) -> str:
    """Return the command that makes a set."""
    parts = ["ordinate", "features", maker.kind, "-e", str(experiment.root)]
    if experiment.features_dir != experiment.root / "features":
        parts += ["--features-base-dir", str(experiment.features_dir)]
    options = {
        f"{role}-column": getattr(experiment.columns, role) for role in ("label", "text", "id")
    }
    options |= {role: getattr(experiment.columns, role) for role in ("delimiter", "encoding")}
    for option, said in options.items():
        parts += [] if said is None else [f"--{option}", said]
    given = [] if name == default_name(maker) else ["--name", name]
    return shlex.join([*parts, *maker.arguments, *given])


def items_of(data: Dataset, maker: Maker) -> Items:
    """Return what a maker may see of a data set: never its levels."""
    texts = data.needed_texts() if maker.reads_texts else data.texts or ()
    columns = {name: tuple(data.extra(name)) for name in maker.columns}  # noqa: S610 - no Django
    return Items(data.n, written(texts), data.ids, columns, data.name)


def written(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return texts, those without a single letter as empty ones."""
    return tuple(text if text.strip() else "" for text in texts)


def request_of(manifest: Manifest) -> Request:
    """Return what the set of a stored maker was asked for with."""
    for field, kind in ASKED.items():
        if not isinstance(manifest.config.get(field), kind):
            raise BadStore(f"The {MANIFEST} of {manifest.name!r} does not say its {field!r}.")
    sources = manifest.config["sources"]
    if not all(isinstance(value, str) for value in sources.values()):
        raise BadStore(f"The {MANIFEST} of {manifest.name!r} has 'sources' that are no hashes.")
    config = manifest.config
    return Request(config["maker"], config["parameters"], manifest.data, sources)


def maker_manifest(experiment: Experiment, set_name: str) -> Manifest | None:
    """Return the manifest of a set's maker, None where Ordinate did not make the set."""
    folder = inside(experiment.features_dir, set_name, MAKER)
    return Manifest.read(folder) if (folder / MANIFEST).exists() else None


def identity_of(maker: Manifest) -> str:
    """Return the hash of what a set was asked for with and of what its maker learned."""
    return digest([request_of(maker).hash, maker.files], 64)


def made_by(manifest: Manifest | None) -> str | None:
    """Return the identity of the maker of features, by its manifest or theirs; None: not known."""
    if manifest is not None and manifest.kind == "maker":
        return identity_of(manifest)
    return None if manifest is None else manifest.config.get("identity")


def other_versions(maker: Manifest) -> list[str]:
    """Say which libraries are not of the versions that a maker was made with."""
    now = versions([library for library in maker.versions if library != "python"])
    changed = [
        f"{library} was {then} and is {now[library]} now"
        for library, then in maker.versions.items()
        if now[library] != then
    ]
    said = (
        f"{maker.name} was made with other versions: {', '.join(changed)}. Numbers may differ a "
        "little from those of its other data sets; where that matters, make a new set."
    )
    return [said] if changed else []


@dataclass(frozen=True)
class _Making:
    """One request on its way to a set."""

    experiment: Experiment
    maker: Maker
    name: str
    command: str
    tick: Tick

    @cached_property
    def folder(self) -> Path:
        return inside(self.experiment.features_dir, self.name)

    @cached_property
    def datasets(self) -> dict[str, Items]:
        data = map(self.experiment.dataset, self.experiment.files)
        return {one.name: items_of(one, self.maker) for one in data}

    @cached_property
    def request(self) -> Request:
        data = {stem: self._fingerprint(stem) for stem in self.experiment.training}
        besides = {
            f"{what} of {stem}": print_
            for stem in data
            for what, print_ in self._besides(stem).items()
        }
        return Request(self.maker.kind, self.maker.parameters, data, self.maker.sources() | besides)

    @cached_property
    def work(self) -> Path:
        """Where finished batches wait: another request, or other libraries, work elsewhere."""
        found = digest([self.request.hash, versions(self.maker.libraries)])
        return self.experiment.features_dir / f"{WORK}{found}"

    def _fingerprint(self, stem: str) -> str:
        return self.experiment.dataset(stem).fingerprint

    def _besides(self, stem: str) -> dict[str, str]:
        """Return fingerprints of what the rows of a data set are made of besides ids and texts."""
        columns = self.datasets[stem].columns.items()
        prints = {f"column {name!r}": digest(list(column)) for name, column in columns}
        return prints | self.maker.besides(stem)

    # --- the way -----------------------------------------------------------------------------

    def made(self, batch: int) -> Made:
        finished, there = self._finished(), self.folder.exists()  # a maker may be there alone
        lacking = [stem for stem in self.datasets if stem not in finished]
        notes = other_versions(Manifest.read(self.folder / MAKER)) if there and lacking else []
        if lacking:
            fitted = self._fitted(there=there)
            self._rows(fitted, lacking, batch, there=there)
            self._publish(fitted, lacking, there=there)
        self._clear()
        found = (MadeFor.read(self.folder / stem, new=stem in lacking) for stem in self.datasets)
        return Made(self.name, self.folder, tuple(found), self.command, tuple(notes))

    def _finished(self) -> list[str]:
        """Return the data sets that are finished, and refuse a set that is another one."""
        if not self.folder.exists():
            return []
        if not (self.folder / MAKER / MANIFEST).exists():
            raise BadOutput(
                f"{self.folder} is there, and `ordinate features` did not make it. Choose another "
                f"name: --name {self._other}"
            )
        stored = Manifest.read(self.folder / MAKER)
        stored.verify(self.folder / MAKER)
        self._refuse(self.request.differences(request_of(stored)))
        found = [stem for stem in self.datasets if (self.folder / stem).exists()]
        for stem in found:
            self._check(stem)
        return found

    def _check(self, stem: str) -> None:
        folder = self.folder / stem
        manifest = Manifest.read(folder)
        manifest.verify(folder)
        changed = str(self.experiment.dataset(stem).path)
        if manifest.data.get(stem) == self._fingerprint(stem):
            known, now = manifest.config.get("besides", {}), self._besides(stem)
            if not isinstance(known, dict):
                raise BadStore(f"The {MANIFEST} in {folder} does not say what it was made of.")
            what = [name for name in sorted({*known, *now}) if known.get(name) != now.get(name)]
            if not what:
                return
            changed = f"{', '.join(what)} of {changed}"
        raise BadOutput(
            f"{changed} has changed since its features in {folder} were made, and nothing is "
            f"overwritten. Remove {folder} to have them made again, or choose another name: "
            f"--name {self._other}"
        )

    def _refuse(self, differences: list[str]) -> None:
        if differences:
            raise BadOutput(
                f"{self.folder} is another feature set, and is not overwritten: "
                f"{'; '.join(differences)}. Choose another name: --name {self._other}"
            )

    @property
    def _other(self) -> str:
        return f"{self.maker.title}-{self.request.hash[:6]}"

    # --- its stations ------------------------------------------------------------------------

    def _fitted(self, *, there: bool) -> Fitted:
        """Return the fitted maker: that of the set, that of a killed run, or a new one."""
        if there:
            return self.maker.load(self.folder / MAKER)
        kept = self.work / MAKER
        if not kept.exists():
            pooled = _pooled([self.datasets[stem] for stem in self.experiment.training])
            share = pooled.n / (pooled.n + sum(items.n for items in self.datasets.values()))
            fitted = self.maker.fit(pooled, lambda done: self.tick(done * share))
            with replacing_folder(kept) as folder:
                fitted.save(folder)
        return self.maker.load(kept)

    def _rows(self, fitted: Fitted, stems: list[str], batch: int, *, there: bool) -> None:
        fit = 0 if there else sum(self.datasets[stem].n for stem in self.experiment.training)
        total = fit + sum(self.datasets[stem].n for stem in stems)
        before = fit
        for stem in stems:
            items = self.datasets[stem]
            batches = self._batches(stem)
            for start, stop in batches.missing(batch):
                self.tick((before + start) / total)
                rows = fitted.rows(items.some(start, stop))
                check_rows(rows, stop - start, fitted.names)
                batches.keep(start, stop, rows)
            before += items.n
        self.tick(1.0)

    def _batches(self, stem: str) -> Batches:
        of = digest([stem, self._fingerprint(stem), self._besides(stem)])
        return Batches(self.work / of, self.datasets[stem].n)

    def _publish(self, fitted: Fitted, stems: list[str], *, there: bool) -> None:
        """Show the set: at once where it is new, else each further data set at once."""
        if there:
            maker = Manifest.read(self.folder / MAKER)
            for stem in stems:
                with replacing_folder(self.folder / stem) as folder:
                    self._write(folder, fitted, stem, maker)
            return
        with replacing_folder(self.folder) as whole:
            (whole / MAKER).mkdir()
            fitted.save(whole / MAKER)
            config = self._config | {"features": len(fitted.names), "columns": self._columns}
            maker = self._describe(whole / MAKER, "maker", config, self.request.data)
            for stem in stems:
                (whole / stem).mkdir()
                self._write(whole / stem, fitted, stem, maker)

    def _write(self, folder: Path, fitted: Fitted, stem: str, maker: Manifest) -> None:
        items, matrix = self.datasets[stem], self._batches(stem).joined()
        write_features(folder, matrix, fitted.names, items.ids)
        config = self._config | {
            "rows": items.n,
            "features": len(fitted.names),
            "nonzero": stored_numbers(matrix),
            "counts": {
                "empty_texts": sum(not text for text in items.texts),
                "zero_rows": zero_rows(matrix),
                **fitted.odd(items),
            },
            "besides": self._besides(stem),
            "identity": identity_of(maker),
        }
        self._describe(folder, "features", config, {stem: self._fingerprint(stem)})

    def _clear(self) -> None:
        """Remove the batches, which the set has now."""
        shutil.rmtree(self.work, ignore_errors=True)

    @property
    def _config(self) -> dict[str, Any]:
        return {
            "maker": self.maker.kind,
            "parameters": self.maker.parameters,
            "sources": self.request.sources,
            "request": self.request.hash,
        }

    @property
    def _columns(self) -> dict[str, str | None]:
        """Where the training texts stood, so that new ones are read alike."""
        asked = self.experiment.columns
        found = {self.experiment.dataset(stem).columns.text for stem in self.experiment.training}
        text = found.pop() if len(found) == 1 else asked.text
        return {"text": text, "delimiter": asked.delimiter, "encoding": asked.encoding}

    def _describe(self, folder: Path, kind: str, config: Any, data: dict[str, str]) -> Manifest:
        manifest = Manifest.of(
            folder,
            kind,
            self.name,
            config=config,
            data=data,
            seed=None,
            command=self.command,
            libraries=self.maker.libraries,
        )
        manifest.write(folder)
        return manifest


def _pooled(parts: list[Items]) -> Items:
    """Return the rows of several data sets as one; ids may repeat from file to file."""
    columns = {
        name: tuple(_chained(part.columns[name] for part in parts)) for name in parts[0].columns
    }
    texts = tuple(_chained(part.texts for part in parts))
    return Items(sum(part.n for part in parts), texts, columns=columns)


def _chained(parts: Any) -> Iterator[Any]:
    return (one for part in parts for one in part)


def changed_parts(experiment: Experiment, folder: Path) -> list[str]:
    """Say what has changed of the sets or tables that the set of a stored maker was made of."""
    stored = Manifest.read(folder)
    asked = request_of(stored)
    maker = maker_of(asked.kind, asked.parameters, experiment)
    if maker.reads_texts:
        return []
    now = _Making(experiment, maker, stored.name, stored.command, lambda _: None)
    return now.request.differences(asked)


def unfinished(experiment: Experiment) -> list[Path]:
    """Return the folders of work that a killed run left to be taken up."""
    return sorted(experiment.features_dir.glob(f"{WORK}*"))
