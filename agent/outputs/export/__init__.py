"""One report in the form that a neighbour reads: monitoring, Kubernetes, Slurm, NCCL, CI, Ansible, people.

Every form is a module here with `export(report) -> str`, a pure function. What is not known is left out, or marked as
unknown in the form's own way; it is never 0. Names, labels and firmware strings are untrusted: each form escapes them.
"""

from __future__ import annotations

from importlib import import_module
from typing import cast

from agent.model.report import Report


def export_report(form: str, report: Report) -> str:
    """The report in a form of this package. Only the module of that form is imported."""
    module = import_module(f"{__name__}.{form.replace('-', '_')}")
    return cast(str, module.export(report))
