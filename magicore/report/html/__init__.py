"""The report: one HTML file about one or several runs, which needs nothing else."""

from magicore.report.html.data import ReportData, RunReport, report_data
from magicore.report.html.write import render, write_report

__all__ = ["ReportData", "RunReport", "render", "report_data", "write_report"]
