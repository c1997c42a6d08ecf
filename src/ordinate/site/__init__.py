"""Static sites over folders of reports."""

from ordinate.site.report_listing import ReportListing
from ordinate.site.site_folder import write_site

__all__ = ["ReportListing", "write_site"]
