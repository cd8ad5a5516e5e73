"""Event logs in other programs' formats: CSV, XES, OCEL 2.0, Ciw's records; and back from CSV and XES."""

from queueing_ucrl.data.formats.export import export as export
from queueing_ucrl.data.formats.export import export_log as export_log
from queueing_ucrl.data.formats.read import read_log as read_log
from queueing_ucrl.data.formats.xes_import import xes_jobs as xes_jobs
