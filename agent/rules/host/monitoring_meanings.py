"""What codes mean that monitoring states of a host from outside: alerts, exporters, resources of a BMC."""

from __future__ import annotations

from agent.rules.host.network_tool_meanings import NO_TRAFFIC
from agent.rules.host.tool_meaning import ToolMeaning

_NOW = "What it means depends on what the part shows now, which the source does not have."
MONITORING_MEANINGS = {
    "redfish-critical": ToolMeaning("warning", "the BMC rates a part as critical", _NOW, "redfish", "medium"),
    "redfish-lanes": ToolMeaning(
        "warning",
        "by the BMC, the PCIe link of a part has fewer lanes than it supports",
        "Less bandwidth between the part and the host. A slot may have fewer lanes by design.",
        "redfish",
        "low",
    ),
    "redfish-pcie-errors": ToolMeaning(
        "warning", "the BMC counts fatal PCIe errors of a part", "Jobs end when the link fails.", "redfish", "low"
    ),
    "alert-xid": ToolMeaning("warning", "an alert of monitoring states an Xid", _NOW, "alert", "low"),
    "alert-firing": ToolMeaning("warning", "an alert of monitoring fires", _NOW, "alert", "low"),
    "amd-unhealthy": ToolMeaning("warning", "the exporter of AMD rates the GPU as unhealthy", _NOW, "alert", "medium"),
    "redfish-warning": ToolMeaning("info", "the BMC rates a part with a warning", _NOW, "redfish", "low"),
    "redfish-speed": ToolMeaning(
        "info",
        "by the BMC, the PCIe link of a part is slower than it supports",
        "An idle GPU lowers the speed of its link. Under load it must have the speed that both ends support.",
        "redfish",
        "low",
    ),
    "redfish-link-down": ToolMeaning("info", "by the BMC, a port that is on has no link", NO_TRAFFIC, "wire", "low"),
}
