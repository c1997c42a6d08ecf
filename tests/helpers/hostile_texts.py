"""Texts that data may have, and that every report must show as texts."""

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
    "\u202eright to left",
    "x" * 10_000,
]
