"""One module per form of `export`, each with a pure function `export(report) -> str`. The page for browsers is in
`outputs/html`, the inventory of a node in `outputs/inventory`; several reports at once belong to `agent/fleet`.

Unknown values are omitted, or marked as unknown in the form's own way; never 0. Names, labels and firmware strings are
untrusted: every form escapes them.
"""

from __future__ import annotations

from importlib import import_module
from typing import cast

from agent.model.report import Report

FORMS = {  # form -> module and function; only the requested module is imported
    "ansible": ("agent.outputs.export.ansible", "export"),
    "html": ("agent.outputs.html.page", "render_html"),
    "junit": ("agent.outputs.export.junit", "export"),
    "nccl-topo": ("agent.outputs.export.nccl_topo", "export"),
    "netbox": ("agent.outputs.inventory.node", "export"),
    "nfd": ("agent.outputs.export.nfd", "export"),
    "prometheus": ("agent.outputs.export.prometheus", "export"),
    "slurm": ("agent.outputs.export.slurm", "export"),
    "svg": ("agent.outputs.export.svg", "export"),
}


def export_report(form: str, report: Report) -> str:
    """The report in one of FORMS."""
    module, function = FORMS[form]
    return cast(str, getattr(import_module(module), function)(report))
