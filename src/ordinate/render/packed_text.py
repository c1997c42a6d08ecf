"""Texts in few letters: compressed, and written in letters that every file and page may have."""

import base64
import zlib

MOST_UNPACKED = 64_000_000  # bytes; anybody may have written what is unpacked


def pack_text(text: str) -> str:
    """Return a text compressed, in letters.

    >>> len(pack_text("0.0," * 10_000)) < 100
    True
    """
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def unpack_text(packed: str, most: int = MOST_UNPACKED) -> str:
    """Return the text that was packed; a ValueError says why there is none.

    >>> unpack_text(pack_text("0.5"))
    '0.5'
    """
    reader = zlib.decompressobj()
    try:
        content = reader.decompress(base64.b64decode(packed, validate=True), max(most, 1))
    except zlib.error as problem:
        raise ValueError(f"it is damaged: {problem}") from None
    if not reader.eof or reader.unused_data or len(content) > most:
        raise ValueError(f"it is cut off, or has more than {most:,} bytes")
    return content.decode()
