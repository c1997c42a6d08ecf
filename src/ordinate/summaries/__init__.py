"""What we keep: frozen values that merge with +."""

from ordinate.summaries.confusion import Confusion
from ordinate.summaries.paired import Paired
from ordinate.summaries.panel import Panel

__all__ = ["Confusion", "Paired", "Panel"]
