"""Texts for feature sets, some of them odd in every way, and files of them."""

import csv

SENTENCE = "the cat sat on a mat and I saw it again today because rain fell over our old town"
WORDS = SENTENCE.split()
ODD = [
    "",
    " \t ",
    "مرحبا بالعالم مرحبا",
    "你好 世界 你好",
    "a\x07b\x01c the cat",
    'the "cat", the mat\nsat',
]


def text_of(k):
    return " ".join(WORDS[(k * j + j) % len(WORDS)] for j in range(1, 6 + k % 7))


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("id", "level", "topic", "text"), *rows])


def rows_of(start, n, topics=("home", "work: a", "")):
    levels = ("A1", "A2", "B1")
    return [
        (f"t{k}", levels[k // 2 % 3], topics[k % len(topics)], text_of(k))
        for k in range(start, start + n)
    ]
