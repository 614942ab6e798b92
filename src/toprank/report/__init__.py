"""A report on a fitted model as one HTML file, complete in itself.

It needs the extra ``report``: ``pip install 'toprank[report]'``.
"""

from toprank.report.page import build_report, write_report

__all__ = ["build_report", "write_report"]
