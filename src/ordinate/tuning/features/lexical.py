"""Lexical features: length, frequency and level of the words, their variety, readability."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadOption, BadStore, suggest_names
from ordinate.render.estimates import format_count, format_percent
from ordinate.settings import Setting
from ordinate.tuning.experiment.stored_json import read_json
from ordinate.tuning.features.extractor import (
    FeatureExtractor,
    FeatureNameState,
    FittedExtractor,
    Items,
    ProgressCallback,
    import_library,
)
from ordinate.tuning.features.tokenization import (
    TTR_WINDOW,
    compose_characters,
    compute_lexical_diversity,
    count_letters,
    count_sentences,
    insert_spaces,
    split_words,
)

FEATURE_TITLE = "Lexical features"
STATE = "state.json"
LONGEST_WORD = 100  # letters of a word that is looked up; longer ones are none
LEVEL_CACHE_SIZE = 100_000  # words whose levels are remembered
RARE_ZIPF = 3.0  # on the Zipf scale: one in a million words
LEVELS = ("a1", "a2", "b1", "b2", "c1", "c2")
# Those that count syllables have textstat download a dictionary of pronunciations; these do not.
MEASURES = ("lix", "rix", "automated_readability_index", "coleman_liau_index")
SIZES = ("letters", "words", "sentences", "words_per_sentence", "letters_per_word", "log_words")
VARIETY = ("ttr", "root_ttr", "log_ttr", f"moving_ttr_{TTR_WINDOW}")
FREQUENCY = ("zipf_mean", "zipf_median", "zipf_sd", "zipf_rare", "zipf_unknown")
CEFR = (*(f"cefr_{level}" for level in LEVELS), "cefr_mean", "cefr_unknown")
CONTRACTIONS = {"can't": "can", "won't": "will", "shan't": "shall"}
ENDINGS = ("'s", "'re", "'ve", "'ll", "'d", "'m")
NEGATED_VERBS = frozenset(  # verbs that n't is joined to; ain't is of none of them
    (
        *("are", "could", "dare", "did", "do", "does", "had", "has", "have", "is", "may", "might"),
        *("must", "need", "ought", "should", "was", "were", "would"),
    )
)


@dataclass(frozen=True)
class Lexical(FeatureExtractor):
    """Lexical features of texts in a language that wordfreq knows, such as en, de, ar or zh.

    Only English has CEFR levels of words. Nothing is learned from training data but, unless it is
    named, their language.
    """

    language: Annotated[
        str | None,
        Setting(
            "of the texts, as wordfreq calls it: en, de, fr, ar, zh, …",
            metavar="CODE",
            default="that of the training texts, by the words that wordfreq knows",
        ),
    ] = None

    name: ClassVar[str] = "lexical"
    version: ClassVar[int] = 2
    libraries: ClassVar[tuple[str, ...]] = ("wordfreq", "cefrpy", "textstat", "regex")

    @property
    def title(self) -> str:
        """The name of the extractor, and the language unless it is English."""
        return "lexical" if self.language in {None, "en"} else f"lexical-{self.language}"

    @property
    def default_extractor(self) -> "Lexical":
        """The same: nothing but the language can be chosen."""
        return self

    @property
    def arguments(self) -> list[str]:
        """The language, once it is known."""
        return [] if self.language is None else ["--language", self.language]

    def complete(
        self, read_texts: Callable[[], Sequence[str]]
    ) -> "tuple[Lexical, tuple[str, ...]]":
        """Find the language, unless it was named."""
        if self.language is not None:
            return self, ()
        language, note = detect_language(read_texts())
        return replace(self, language=language), (note,)

    def fit(self, items: Items, progress: ProgressCallback) -> "FittedLexical":
        """Learn nothing, and see that all it takes is there."""
        if self.language is None:
            return self.complete(lambda: items.texts)[0].fit(items, progress)
        known = sorted(import_library("wordfreq", FEATURE_TITLE).available_languages())
        if self.language not in known:
            raise BadOption(
                f"wordfreq has no frequencies for the language {self.language!r}, but for "
                f"{', '.join(known)}.{suggest_names(self.language, known)}"
            )
        fitted = FittedLexical(self)
        fitted.rows(Items(1, ("word",)))
        progress(1.0)
        return fitted

    def load(self, folder: Path) -> "FittedLexical":
        """Return it again, if the features are still the same ones."""
        fitted = FittedLexical(self)
        if read_json(folder / STATE, FeatureNameState)["names"] != fitted.names:
            raise BadStore(
                f"{folder} is of another version of Ordinate, which made other lexical features. "
                "Make the set again under another name."
            )
        return fitted


class FittedLexical(FittedExtractor):
    """Looks words up, and counts. A text without words has a row of zeros."""

    def __init__(self, extractor: Lexical) -> None:
        self.extractor = extractor
        levels = CEFR if extractor.language == "en" else ()
        self.names = (*SIZES, *VARIETY, *FREQUENCY, *MEASURES, *levels)
        self._level = lru_cache(LEVEL_CACHE_SIZE)(self._look_up_level)

    def rows(self, items: Items) -> NDArray[np.float64]:
        """Return one row for each text."""
        found = [self._row(text) for text in items.texts]
        return np.array(found, float).reshape(items.n, len(self.names))

    def save(self, folder: Path) -> None:
        """Write the names: there is nothing else to know."""
        text = json.dumps({"names": self.names})
        (folder / STATE).write_text(text + "\n", "utf-8")

    def _row(self, text: str) -> list[float]:
        text = compose_characters(text)
        words = split_words(text)
        if not words:
            return [0.0] * len(self.names)
        levels = self._levels(words) if self.extractor.language == "en" else []
        return [
            *_measure_sizes(text, words),
            *compute_lexical_diversity([word.casefold() for word in words]),
            *self._measure_frequency(words),
            *self._measure_readability(text),
            *levels,
        ]

    # --- frequency ---------------------------------------------------------------------------

    def _measure_frequency(self, words: Sequence[str]) -> list[float]:
        """Return mean, median and deviation of known words; shares of rare and of unknown ones.

        Unknown words are rare, too.
        """
        types = Counter(words)
        by_type = np.array([self._look_up_zipf(word) for word in types])
        zipf = np.repeat(by_type, list(types.values()))
        shares = [float(np.mean(zipf < RARE_ZIPF)), float(np.mean(zipf == 0.0))]
        known = zipf[zipf > 0.0]
        if not len(known):
            return [0.0, 0.0, 0.0, *shares]
        return [float(known.mean()), float(np.median(known)), float(known.std()), *shares]

    def _look_up_zipf(self, word: str) -> float:
        """Return the frequency on the Zipf scale, 0 for a word that the list lacks."""
        if len(word) > LONGEST_WORD:
            return 0.0
        if self._frequency_list is not None:
            frequency = self._frequency_list.get(word.casefold(), 0.0)
            return self._wordfreq.freq_to_zipf(frequency) if frequency else 0.0
        return self._wordfreq.zipf_frequency(word, self.extractor.language)

    @cached_property
    def _wordfreq(self) -> Any:
        return import_library("wordfreq", FEATURE_TITLE)

    @cached_property
    def _frequency_list(self) -> dict[str, float] | None:
        """The list itself, where wordfreq would split words with an extra that may be missing."""
        info = import_library("wordfreq.language_info", FEATURE_TITLE).get_language_info(
            self.extractor.language
        )
        if info["tokenizer"] == "regex":
            return None
        found: dict[str, float] = self._wordfreq.get_frequency_dict(self.extractor.language)
        return found

    # --- readability -------------------------------------------------------------------------

    def _measure_readability(self, text: str) -> list[float]:
        """Return what textstat says, which counts no sentence of one or two words."""
        plain = insert_spaces(text)
        return [float(getattr(self._textstat, measure)(plain)) for measure in MEASURES]

    @cached_property
    def _textstat(self) -> Any:
        return import_library("textstat", FEATURE_TITLE)

    # --- levels ------------------------------------------------------------------------------

    def _levels(self, words: Sequence[str]) -> list[float]:
        """Return the shares of the levels, the mean of known words, and the share of unknown.

        Numbers have no level, and do not count. Half a level goes up: the nearest even number
        would favour A2, B2 and C2.
        """
        found = np.array([self._level(word) for word in words if not _is_number(word)])
        if not len(found):
            return [0.0] * len(CEFR)
        known = found[found > 0.0]
        shares = np.bincount(np.floor(known + 0.5).astype(int), minlength=7)[1:] / len(found)
        mean = float(known.mean()) if len(known) else 0.0
        return [*map(float, shares), mean, 1.0 - len(known) / len(found)]

    def _look_up_level(self, word: str) -> float:
        """Return the level of a word over its parts of speech from 1, A1, to 6, C2; 0: unknown."""
        try:
            found = self._analyzer.get_average_word_level_float(_strip_contraction(word))
        except LookupError:  # cefrpy looks behind the end of its list for words of 25 letters
            return 0.0
        return found or 0.0

    @cached_property
    def _analyzer(self) -> Any:
        return import_library("cefrpy", FEATURE_TITLE).CEFRAnalyzer()


def _measure_sizes(text: str, words: Sequence[str]) -> list[float]:
    letters, sentences, n = count_letters(text), max(1, count_sentences(text)), len(words)
    return [letters, n, sentences, n / sentences, letters / n, float(np.log(n))]


def _strip_contraction(word: str) -> str:
    """Return an English word without what was contracted with it; others stay whole.

    >>> words = ("Don’t", "won't", "it's", "couldn't've", "o'clock", "ain't")
    >>> [_strip_contraction(word) for word in words]
    ['do', 'will', 'it', 'could', "o'clock", "ain't"]
    """
    lower = word.lower().replace("’", "'")
    stem = next((lower.removesuffix(end) for end in ENDINGS if lower.endswith(end)), lower)
    verb = stem.removesuffix("n't")
    return verb if verb in NEGATED_VERBS else CONTRACTIONS.get(stem, stem)


def _is_number(word: str) -> bool:
    """Return whether no letter is in a word.

    >>> [_is_number(word) for word in ("2020", "٣", "2nd", "two")]
    [True, True, False, False]
    """
    return not any(map(str.isalpha, word))


# --- languages -----------------------------------------------------------------------------------

TITLE = "Lexical features"
SAMPLE_TEXTS = 200  # texts that are looked at, evenly over all
SAMPLE_CHARACTERS = 2_000  # of each of them, from its beginning
LEAST_COVERAGE = 2 / 3  # share of the words that the list of a language has to know
LEAST_LEAD = 0.02  # by which its words are to be more frequent than in the next language


@dataclass(frozen=True)
class _Coverage:
    """How well the word list of a language knows words: their share, and their mean frequency.

    The frequency is on the Zipf scale, 0 for unknown words: many languages know a few words of
    their neighbours, and none has them as often.
    """

    language: str
    share: float
    zipf: float


def detect_language(texts: Sequence[str]) -> tuple[str, str]:
    """Return the language of texts, as wordfreq calls it, and a sentence that says how it is known.

    It is refused where no list knows two thirds of the words, or two know them about equally well.
    """
    words = _sample_words(texts)
    ranked = _rank_languages(words)
    best, second = ranked[:2]
    known = f"knows {format_percent(best.share)} of {format_count(words.total(), 'sampled word')}"
    if best.share < LEAST_COVERAGE or best.zipf * (1 - LEAST_LEAD) < second.zipf:
        codes = ", ".join(sorted(one.language for one in ranked))
        raise BadInput(
            f"The language of the texts is not sure: wordfreq {known} as {best.language!r}, and "
            f"{format_percent(second.share)} as {second.language!r}. If it is one of {codes}, name "
            "it with --language."
        )
    said = f"The language of the texts is {best.language!r}, as wordfreq {known}"
    return best.language, f"{said}. If it is another one, name it with --language."


def _sample_words(texts: Sequence[str]) -> Counter[str]:
    """Count the words of a sample of the texts; what has no letters says nothing."""
    step = max(1, len(texts) // SAMPLE_TEXTS)
    starts = (compose_characters(text[:SAMPLE_CHARACTERS]) for text in texts[::step])
    return Counter(
        word.casefold()
        for text in starts
        for word in split_words(text)
        if any(map(str.isalpha, word))
    )


def _rank_languages(words: Counter[str]) -> list[_Coverage]:
    """Return how well each language knows the words, best first."""
    wordfreq = import_library("wordfreq", TITLE)
    try:
        found = [_measure(wordfreq, code, words) for code in wordfreq.available_languages("small")]
    finally:  # 42 lists of words are not to stay in memory
        for cached in (wordfreq.get_frequency_dict, wordfreq.get_frequency_list):
            cached.cache_clear()
    return sorted(found, key=lambda one: (-one.zipf, one.language))


def _measure(wordfreq: Any, language: str, words: Counter[str]) -> _Coverage:
    frequencies = wordfreq.get_frequency_dict(language, "small")
    zipf = {word: wordfreq.freq_to_zipf(frequencies[word]) for word in words if word in frequencies}
    n = max(1, words.total())
    share = sum(words[word] for word in zipf) / n
    return _Coverage(language, share, sum(words[word] * each for word, each in zipf.items()) / n)
