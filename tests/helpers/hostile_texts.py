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
# Cells that begin as formulas do, and whether a spreadsheet may have them as they are.
SPREADSHEET_CELLS = {
    **dict.fromkeys(
        ["=1+1", "-1+cmd()", "@sum(1)", "+x", "-,1", "-1e", "-infe5", "-1 to =2"], False
    ),
    **dict.fromkeys(
        ["-0.027 to 0.185", "-0.267 (B1)", "-1,000", "-1.", "-.5", "-1E5", "+1e-05"], True
    ),
    **dict.fromkeys(["-inf", "-Infinity", "-NaN", "-1.5e3 to -Inf", "-2 a", "a"], True),
}


def list_long_cells(size):
    """Return formulas that begin as long numbers: a pattern must not read them again and again."""
    starts = ["1", "1,", ".1", "1.", "e1", "1e1", " ", "inf", "- to ", "1 to "]
    cells = ["-" + (start * size)[:size] + "x|" for start in starts]
    return [*cells, "-1." + "1" * size + "|", "-1e" + "1" * size + "|", "-1 (" + "a" * size + "|"]


def is_harmless(text):
    """Say whether nothing in a text can drive a terminal."""
    return all(letter.isprintable() or letter in JOINERS for letter in text)
