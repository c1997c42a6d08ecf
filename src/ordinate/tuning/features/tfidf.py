"""TF-IDF of word and character n-grams by scikit-learn, one vectoriser for each group."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadOption, BadStore, MissingExtra
from ordinate.settings import Setting
from ordinate.tuning.experiment.feature_files import READ_ERRORS
from ordinate.tuning.experiment.stored_json import read_json
from ordinate.tuning.features.extractor import (
    FeatureExtractor,
    FittedExtractor,
    Items,
    ProgressCallback,
    slug,
)
from ordinate.tuning.features.tokenization import compose_characters, split_words

Analyzer = Literal["word", "char", "char_wb"]
NGRAMS: dict[str, tuple[int, int]] = {"word": (1, 2), "char": (2, 4), "char_wb": (2, 4)}
LONGEST_NGRAM = 1_000  # characters of an n-gram: longer ones are no words, and no names of features
PROGRESS_STEP = 256  # texts between two reports of progress
STATE, IDF = "state.json", "idf.npz"


class _StoredGroup(TypedDict):
    group: str | None
    terms: tuple[str, ...]


class _TfidfState(TypedDict):
    groups: list[_StoredGroup]


@dataclass(frozen=True)
class Tfidf(FeatureExtractor):
    """TF-IDF of n-grams of words, of characters, or of characters within words (char_wb).

    `min_df` and `max_df` bound the texts that an n-gram occurs in, as numbers if whole and as
    shares otherwise; of more than `max_features` the most frequent stay, of equals the first by
    the alphabet. With `group_by` each value of a column has a vectoriser and features of its own.
    Words are those of `words_of`, and letters stand with their marks, whatever the script.

    Memory grows with the different n-grams of the training texts of a group while they are
    learned, rare ones included (some 150 bytes for each), and with the numbers
    of a data set that are not zero (12 bytes each, a few times over) when its rows are joined.
    """

    analyzer: Annotated[
        Analyzer, Setting("n-grams of words, of characters, or of characters within words")
    ] = "word"
    ngrams: tuple[int, int] | None = None  # None: (1, 2) words or (2, 4) characters
    min_df: int | float = 2  # a count of texts, or a share of them
    max_df: int | float = 1.0
    max_features: int | None = 200_000
    sublinear: bool = True
    lowercase: bool = True
    group_by: Annotated[
        str | None, Setting("a vectoriser of its own for each value of a column", metavar="COL")
    ] = None

    name: ClassVar[str] = "tfidf"
    version: ClassVar[int] = 2
    libraries: ClassVar[tuple[str, ...]] = ("scikit-learn", "scipy", "regex")

    def __post_init__(self) -> None:
        """Refuse what makes no sense, before anything is read."""
        if self.analyzer not in get_args(Analyzer):
            raise BadOption(f"There is no analyzer {self.analyzer!r}: word, char or char_wb.")
        low, high = self.ngrams or NGRAMS[self.analyzer]
        object.__setattr__(self, "ngrams", (low, high))
        if not 1 <= low <= high:
            raise BadOption(f"N-grams run from 1 or more upwards, such as 1..2, not {low}..{high}.")
        for name, bound in (("min_df", self.min_df), ("max_df", self.max_df)):
            if not (bound >= 1 if isinstance(bound, int) else 0.0 <= bound <= 1.0):
                raise BadOption(
                    f"{name} is a number of texts, an integer from 1, or a share of them from 0.0 "
                    f"to 1.0, not {bound}."
                )
        if type(self.min_df) is type(self.max_df) and self.min_df > self.max_df:
            raise BadOption(
                f"No n-gram occurs in {self.min_df} texts at least (min_df) and in {self.max_df} "
                "at most (max_df): lower the one, or raise the other."
            )
        if self.max_features is not None and self.max_features < 1:
            raise BadOption(f"max_features is 1 or more, not {self.max_features}.")

    @property
    def title(self) -> str:
        """The analyzer, and the column of the groups."""
        by = "" if self.group_by is None else f"-by-{slug(self.group_by)}"
        return f"tfidf-{self.analyzer.replace('_', '-')}{by}"

    @property
    def default_extractor(self) -> "Tfidf":
        """The same analyzer and groups with all defaults."""
        return Tfidf(analyzer=self.analyzer, group_by=self.group_by)

    @property
    def arguments(self) -> list[str]:
        """The options that differ from the defaults."""
        low, high = self.ngrams or NGRAMS[self.analyzer]
        said = {
            "--analyzer": self.analyzer,
            "--ngrams": f"{low}..{high}",
            "--min-df": str(self.min_df),
            "--max-df": str(self.max_df),
            "--max-features": "all" if self.max_features is None else str(self.max_features),
        }
        usual = {"--analyzer": "word", "--ngrams": "{}..{}".format(*NGRAMS[self.analyzer])}
        usual |= {"--min-df": "2", "--max-df": "1.0", "--max-features": "200000"}
        found = [
            part for name, text in said.items() if text != usual[name] for part in (name, text)
        ]
        found += [] if self.sublinear else ["--linear"]
        found += [] if self.lowercase else ["--keep-case"]
        return [*found, *(() if self.group_by is None else ("--group-by", self.group_by))]

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of the groups."""
        return () if self.group_by is None else (self.group_by,)

    def fit(self, items: Items, progress: ProgressCallback) -> "FittedTfidf":
        """Choose the n-grams of each group, and weigh them by how rare they are."""
        parts, done = [], 0
        for group, places in self.places(items).items():
            texts = [items.texts[k] for k in places]
            terms, idf = self._learn_terms(texts, _scale_progress(progress, done, items.n))
            parts.append(GroupVocabulary(group, terms, idf))
            done += len(texts)
        if not any(len(part.terms) for part in parts):
            raise BadInput(
                f"No n-gram of the {items.n:,} training texts can be a feature: none occurs in "
                f"enough texts (min_df {self.min_df}) and not in too many (max_df {self.max_df}). "
                "Is this the column of texts? Lower --min-df otherwise."
            )
        return FittedTfidf(self, tuple(parts))

    def load(self, folder: Path) -> "FittedTfidf":
        """Return what was saved."""
        stored = read_json(folder / STATE, _TfidfState)["groups"]
        try:
            with np.load(folder / IDF, allow_pickle=False) as arrays:
                parts = tuple(
                    GroupVocabulary(part["group"], part["terms"], arrays[f"idf_{k}"])
                    for k, part in enumerate(stored)
                )
        except READ_ERRORS as problem:
            raise BadStore(f"{folder / IDF} cannot be read: {problem}") from None
        if any(len(part.terms) != len(part.idf) for part in parts):
            raise BadStore(f"{folder} has other numbers of n-grams in {STATE} and {IDF}.")
        return FittedTfidf(self, parts)

    def places(self, items: Items) -> dict[str | None, Sequence[int]]:
        """Return the rows of each group, groups in the order of the alphabet."""
        if self.group_by is None:
            return {None: range(items.n)}
        found: dict[str, list[int]] = {}
        for k, group in enumerate(items.columns[self.group_by]):
            if group is not None:
                found.setdefault(group, []).append(k)
        return {group: found[group] for group in sorted(found)}

    def create_vectorizer(self, terms: Iterable[str] | None = None) -> Any:
        """Return scikit-learn's vectoriser, with these n-grams for its vocabulary."""
        try:
            from sklearn.feature_extraction.text import TfidfVectorizer
        except ImportError:
            raise MissingExtra("TF-IDF takes scikit-learn: pip install 'ordinate[tune]'") from None
        return TfidfVectorizer(
            analyzer=self.analyzer,
            preprocessor=_lowercase_text if self.lowercase else compose_characters,
            tokenizer=split_words if self.analyzer == "word" else None,
            token_pattern=None,
            ngram_range=self.ngrams,
            sublinear_tf=self.sublinear,
            vocabulary=terms,
        )

    # --- learning ----------------------------------------------------------------------------

    def _learn_terms(
        self, texts: list[str], progress: ProgressCallback
    ) -> tuple[tuple[str, ...], NDArray[Any]]:
        """Return the n-grams in alphabetical order, and their weights.

        Counted text by text: the counts of all n-grams, most of which are no features, would take
        many times the memory of the features.
        """
        analyze, within = self.create_vectorizer().build_analyzer(), Counter[str]()
        for k, text in enumerate(texts):
            within.update(set(analyze(text)))
            if k % PROGRESS_STEP == 0:
                progress(k)
        low, high = _count_bound(self.min_df, len(texts)), _count_bound(self.max_df, len(texts))
        frequent = {
            term: count
            for term, count in within.items()
            if low <= count <= high and len(term) <= LONGEST_NGRAM
        }
        del within
        if self.max_features is not None and len(frequent) > self.max_features:
            largest = self._select_most_frequent(texts, frequent)
            frequent = {term: frequent[term] for term in largest}
        terms = tuple(sorted(frequent))
        counts = np.array([frequent[term] for term in terms], float)
        return terms, np.log((len(texts) + 1.0) / (counts + 1.0)) + 1.0

    def _select_most_frequent(self, texts: list[str], frequent: dict[str, int]) -> list[str]:
        analyze, times = self.create_vectorizer().build_analyzer(), Counter[str]()
        for text in texts:
            times.update(filter(frequent.__contains__, analyze(text)))
        return sorted(times, key=lambda term: (-times[term], term))[: self.max_features]


@dataclass(frozen=True)
class GroupVocabulary:
    """What the texts of one group taught; the group is None where there are none."""

    group: str | None
    terms: tuple[str, ...]
    idf: NDArray[Any]


class FittedTfidf(FittedExtractor):
    """N-grams with their weights, for each group."""

    def __init__(self, extractor: Tfidf, parts: tuple[GroupVocabulary, ...]) -> None:
        self.extractor, self.parts = extractor, parts
        self.names = tuple(
            _format_feature_name(part.group, term) for part in parts for term in part.terms
        )
        self.known = {part.group for part in parts}

    @cached_property
    def _vectorizers(self) -> dict[str | None, tuple[int, Any]]:
        """The vectoriser of each group that has features, with the place of its first one."""
        found, offset = {}, 0
        for part in self.parts:
            if part.terms:
                vectorizer = self.extractor.create_vectorizer(part.terms)
                vectorizer.idf_ = part.idf
                found[part.group] = offset, vectorizer
            offset += len(part.terms)
        return found

    def rows(self, items: Items) -> Any:
        """Return the rows, empty ones for texts without a known n-gram or group."""
        from scipy.sparse import csr_matrix, vstack

        blocks: list[Any] = []
        order: list[int] = []
        for group, places in self.extractor.places(items).items():
            if places and group in self._vectorizers:
                offset, vectorizer = self._vectorizers[group]
                found = vectorizer.transform([items.texts[k] for k in places])
                arrays = (found.data, found.indices + offset, found.indptr)
                blocks.append(csr_matrix(arrays, shape=(len(places), len(self.names))))
                order += places
        rest = sorted(set(range(items.n)) - set(order))
        blocks.append(csr_matrix((len(rest), len(self.names))))
        back = np.argsort(np.array([*order, *rest], dtype=np.int64))
        return vstack(blocks, format="csr")[back]

    def count_oddities(self, items: Items) -> dict[str, int]:
        """Count the texts whose group training lacks, or that have none."""
        if self.extractor.group_by is None:
            return {}
        groups = items.columns[self.extractor.group_by]
        return {
            "without_group": sum(group is None for group in groups),
            "unknown_group": sum(g is not None and g not in self.known for g in groups),
        }

    def save(self, folder: Path) -> None:
        """Write n-grams as JSON and weights as arrays."""
        groups = [{"group": part.group, "terms": part.terms} for part in self.parts]
        text = json.dumps({"groups": groups}, ensure_ascii=False)
        (folder / STATE).write_text(text + "\n", "utf-8")
        arrays: dict[str, Any] = {f"idf_{k}": part.idf for k, part in enumerate(self.parts)}
        np.savez_compressed(folder / IDF, **arrays)


def _lowercase_text(text: str) -> str:
    return compose_characters(text.lower())


def _format_feature_name(group: str | None, term: str) -> str:
    """Return the name of a feature: a colon in a group is distinguished from the one after it."""
    if group is None:
        return term
    return f"{group.replace(chr(92), chr(92) * 2).replace(':', chr(92) + ':')}:{term}"


def _count_bound(bound: float, n: int) -> float:
    return bound if isinstance(bound, int) else bound * n


def _scale_progress(progress: ProgressCallback, done: int, n: int) -> ProgressCallback:
    return lambda further: progress((done + further) / n)
