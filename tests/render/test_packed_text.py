"""Packed texts: what comes back is what was packed, and nothing large from anybody's letters."""

import base64
import zlib

import pytest

from ordinate.render.packed_text import pack_text, unpack_text


@pytest.mark.parametrize("text", ["", "0.5", "é" * 1_000, '{"a": [0.0, 0.0]}'])
def test_what_was_packed_comes_back(text):
    assert unpack_text(pack_text(text)) == text
    assert pack_text(text).isascii()


@pytest.mark.parametrize(
    "packed",
    [
        "",
        "é",
        "AAAA",
        pack_text("abc")[:-4],
        base64.b64encode(zlib.compress(b"abc") + b"d").decode(),
    ],
)
def test_what_is_damaged_is_refused(packed):
    with pytest.raises(ValueError, match=r"it is (damaged|cut off)|base64|ASCII|padding"):
        unpack_text(packed)


def test_a_text_is_unpacked_up_to_a_size():
    packed = pack_text("0" * 1_000)
    assert len(unpack_text(packed, 1_000)) == 1_000
    with pytest.raises(ValueError, match="more than 999 bytes"):
        unpack_text(packed, 999)
