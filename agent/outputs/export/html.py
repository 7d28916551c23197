"""The report as one HTML page: `agent.outputs.html.page`."""

from __future__ import annotations

from agent.outputs.html.page import render_html as export

__all__ = ["export"]
