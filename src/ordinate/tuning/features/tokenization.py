"""Words and sentences in any script, and how much the words of a text vary."""

import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ordinate.tuning.features.extractor import import_library

# Without spaces between words each character stands for one, whatever is installed: a segmenter
# that one machine has and another lacks would give the same text two rows.
SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
WORD_PART = rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{SPACELESS}]]"  # marks: vowels in Arabic and Devanagari
WORD = rf"[{SPACELESS}]\p{{M}}*|{WORD_PART}+(?:['’\u200c\u200d]{WORD_PART}+)*"
LETTER = r"[\p{L}\p{N}]"
# A full stop needs a space after it, for 3.14 is one number; those of other scripts do not. None
# begins within a row of them, or a million dots would be looked at a million times.
FULL_STOP = "[。！？｡؟۔।॥]"
SENTENCE_END = rf"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s|$)|{FULL_STOP}++|\n\s*\n"
TTR_WINDOW = 50  # words over which the moving type-token ratio is taken


@cache
def _compile_pattern(pattern: str) -> Any:
    regex = import_library("regex", "Words of all scripts", "tune")
    return regex.compile(pattern, regex.V1)


def compose_characters(text: str) -> str:
    """Return a text with letters and their marks in one, where there is one for both (NFC).

    >>> len("cafe\u0301"), len(compose_characters("cafe\u0301"))
    (5, 4)
    """
    return unicodedata.normalize("NFC", text)


def split_words(text: str) -> list[str]:
    """Return the words as they stand; in scripts without spaces, the characters.

    >>> split_words("It’s 3 o'clock: 今天 (تَعَلَّمَ)!")
    ['It’s', '3', "o'clock", '今', '天', 'تَعَلَّمَ']
    """
    found: list[str] = _compile_pattern(WORD).findall(text)
    return found


def count_letters(text: str) -> int:
    """Count letters and digits, without the marks on them."""
    return len(_compile_pattern(LETTER).findall(text))


def count_sentences(text: str) -> int:
    r"""Count the parts between full stops or empty lines that have a word in them.

    >>> [count_sentences(text) for text in ("Pi is 3.14! Or so?\n\nYes", "好。很好。", "?")]
    [3, 2, 0]
    """
    word = _compile_pattern(WORD)
    return sum(word.search(part) is not None for part in _compile_pattern(SENTENCE_END).split(text))


def insert_spaces(text: str) -> str:
    """Return a text as those who split at spaces and at . ! ? need it; Latin ones stay as they are.

    >>> insert_spaces("It is so. 好吗？"), insert_spaces("It is so.")
    ('It is so.  好  吗 . ', 'It is so.')
    """
    apart = _compile_pattern(f"[{SPACELESS}]").sub(r" \g<0> ", text)
    found: str = _compile_pattern(FULL_STOP).sub(". ", apart)
    return found


def compute_lexical_diversity(words: Sequence[str]) -> list[float]:
    """Return type-token ratios: plain, by root (Guiraud), by logarithm (Herdan), and moving."""
    types, n = len(set(words)), len(words)
    by_logarithm = np.log(types) / np.log(n) if n > 1 else 1.0
    return [types / n, types / np.sqrt(n), float(by_logarithm), compute_moving_ttr(words)]


def compute_moving_ttr(words: Sequence[str], window: int = TTR_WINDOW) -> float:
    """Return the mean type-token ratio over all windows, or that of a text within one.

    A word counts in each window that it stands in and no equal one before it: those that begin
    after its last occurrence.

    >>> compute_moving_ttr(["a", "b", "a", "a"], window=2)  # ab 1, ba 1, aa 0.5
    0.8333333333333334
    """
    n = len(words)
    window = min(window, n)
    last: dict[str, int] = {}
    before = np.empty(n, np.int64)
    for k, word in enumerate(words):
        before[k] = last.get(word, -1)
        last[word] = k
    at = np.arange(n)
    first = np.maximum(before, at - window) + 1
    counted = np.maximum(np.minimum(at, n - window) - np.maximum(first, 0) + 1, 0)
    return float(counted.sum() / (window * (n - window + 1)))
