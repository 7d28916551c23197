"""One module per form of `export`, each with a pure function `export(report) -> str`. The page for browsers itself is
in `outputs/html`, the inventory of a node in `outputs/inventory`; several reports at once do not belong here.

Unknown values are omitted, or marked as unknown in the form's own way; never 0. Names, labels and firmware strings are
untrusted: every form escapes them.
"""

from __future__ import annotations

from importlib import import_module
from typing import cast

from agent.model.report import Report


def export_report(form: str, report: Report) -> str:
    """The report in a form of this package. Only the module of that form is imported."""
    module = import_module(f"{__name__}.{form.replace('-', '_')}")
    return cast(str, module.export(report))
