"""What we keep: frozen values that merge with +."""

from ordinate.summary.confusion import Confusion
from ordinate.summary.paired import Paired
from ordinate.summary.panel import Panel

__all__ = ["Confusion", "Paired", "Panel"]
