"""Texts that data may have, and that every report must show as texts."""

JOINERS = "\u200c\u200d"  # which drive nothing, and without which words and emoji fall apart
HOSTILE_TEXTS = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<img src=x onerror=alert(3)>",
    "=cmd|' /C calc'!A0",
    r"\input{x}",
    "\x1b[31mred\x1b[0m",
    "\"double\" and 'single' `quotes`",
    "😀👩‍👩‍👧",
    "עברית مرحبا",
    "می\u200cخواهم क्\u200dष",
    "\u202eright to left",
    "x" * 10_000,
]
# Ids and labels as people have them, of which a file of data loses no letter.
EXACT_TEXTS = [
    "@user1",
    "--",
    "++",
    "=1+1",
    "+1",
    "-B",
    "'q",
    '"q"',
    "a,b",
    "a\nb",
    "a\rb",
    "a\r\nb",
]
EXACT_TEXTS += ["\t=1", "\x01", "\x02", "\x1b[31m", "\x9b"]


def is_harmless(text):
    """Say whether nothing in a text can drive a terminal."""
    return all(letter.isprintable() or letter in JOINERS for letter in text)
