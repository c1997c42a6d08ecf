"""How well a text is read on a colour, as the Web Content Accessibility Guidelines compute it."""

import re


def read_variables(rules):
    """Return the colours of a theme by their names."""
    return dict(re.findall(r"--([\w-]+):(#\w+);", rules))


def read_colour(text):
    """Return red, green and blue of a colour such as #fff or #1d2327, each from 0 to 1."""
    digits = text[1:] if len(text) == 7 else "".join(2 * x for x in text[1:])
    return [int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4)]


def lay_over(colour, opacity, paper):
    """Return the colour that is seen where one that is not opaque lies on another one."""
    pairs = zip(read_colour(colour), read_colour(paper), strict=True)
    return [opacity * x + (1 - opacity) * y for x, y in pairs]


def compute_contrast(first, second):
    """Return the contrast of two colours, which is from 1 to 21."""
    lights = []
    for colour in (first, second):
        parts = read_colour(colour) if isinstance(colour, str) else colour
        red, green, blue = (
            x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts
        )
        lights.append(0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05)
    return max(lights) / min(lights)
