"""Language of texts: whichever of wordfreq's word lists knows their words best."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ordinate.errors import BadInput
from ordinate.render.estimates import format_count, format_percent
from ordinate.tuning.features.extractor import import_library
from ordinate.tuning.features.tokenization import compose_characters, split_words

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
