"""What we keep: frozen values that merge with +."""

from ordinate.summary.confusion import Confusion

__all__ = ["Confusion"]
