"""Each fault is found by its one rule, on its one subject, and nothing else is said of that machine."""

from __future__ import annotations

import pytest

from tests.machines import FAULTS, scan_faults, scan_machine

EXPECTED: dict[str, tuple[str, tuple[tuple[str, str, str], ...]]] = {  # fault -> verdict, (rule, severity, subject)
    "amd-bridge-of-three": ("warning", (("xgmi-bridge-uneven", "warning", "gpu:0000:63:00.0"),)),
    "amd-gpu-not-offered": ("critical", (("amd-kfd-missing", "critical", "gpu:0000:bd:00.0"),)),
    "amd-gpu-outside-hive": ("critical", (("xgmi-hive-split", "critical", "gpu:0000:5d:00.0"),)),
    "amd-hive-in-two": ("critical", (("xgmi-hive-split", "critical", "node"),)),
    "amd-pair-unlinked": ("critical", (("xgmi-pair-missing", "critical", "pair:0000:45:00.0+0000:a5:00.0"),)),
    "amd-partition-lost": ("warning", (("amd-partition-count", "warning", "gpu:0000:d5:00.0"),)),
    "amd-xgmi-lanes": ("warning", (("xgmi-link-slow", "warning", "gpu:0000:8d:00.0"),)),
    "config-unreadable": ("ok", ()),
    "cxl-link-uneven": ("error", (("cxl-link-uneven", "error", "pci:0000:5b:00.0"),)),
    "cxl-no-driver": ("error", (("cxl-driver-missing", "error", "pci:0000:d3:00.0"),)),
    "cxl-no-memdev": ("error", (("cxl-no-memdev", "error", "pci:0000:d3:00.0"),)),
    "cxl-no-region": (
        "warning",
        tuple(("cxl-unused-capacity", "warning", f"pci:0000:{bus}:00.0") for bus in ("a9", "d3")),
    ),
    "cxl-width-x4": ("error", (("pcie-width-downgraded", "error", "pci:0000:5b:00.0"),)),
    "gaudi-cable-down": ("critical", (("gaudi-internal-port-down", "critical", "pair:0000:4d:00.0+0000:4e:00.0"),)),
    "gaudi2-cable-down": ("critical", (("gaudi-internal-port-down", "critical", "pair:0000:34:00.0+0000:4d:00.0"),)),
    "gaudi-half-the-board": ("critical", (("gaudi-missing", "critical", "node"),)),
    "gaudi-malfunction": ("critical", (("gaudi-status", "critical", "gpu:0000:9a:00.0"),)),
    "gaudi-modules-mixed": ("warning", (("gaudi-modules-mixed", "warning", "node"),)),
    "gaudi-module-twice": ("error", (("gaudi-module-id", "error", "node"),)),
    "gaudi-no-device": ("critical", (("gaudi-missing", "critical", "gpu:0000:34:00.0"),)),
    "gaudi-no-link": ("critical", (("gaudi-internal-port-down", "critical", "node"),)),
    "gaudi-scale-out-down": ("error", (("gaudi-external-port-down", "error", "gpu:0000:4e:00.0"),)),
    "gaudi-scale-out-mtu": ("warning", (("gaudi-external-uneven", "warning", "gpu:0000:b3:00.0"),)),
    "gaudi-scale-out-slow": ("warning", (("gaudi-external-uneven", "warning", "gpu:0000:9a:00.0"),)),
    "gpu-asleep": ("unknown", ()),
    "gpu-far-from-nic": ("warning", (("affinity-gpu-far-from-nic", "warning", "gpu:0000:19:00.0"),)),
    "gpu-gone": ("critical", (("pcie-device-gone", "critical", "pci:0000:19:00.0"),)),
    "gpu-idle-gen1": ("ok", ()),
    "gpu-idle-x8": ("unknown", ()),
    "gpu-link-einval": ("unknown", ()),
    "gpu-lost": ("critical", (("gpu-missing", "critical", "gpu:0000:9b:00.0"),)),
    "gpu-not-in-nvml": ("critical", (("gpu-missing", "critical", "gpu:0000:cb:00.0"),)),
    "gpu-speed-gen3": ("error", (("pcie-speed-downgraded", "error", "pci:0000:bb:00.0"),)),
    "gpu-width-x8": ("error", (("pcie-width-downgraded", "error", "pci:0000:4c:00.0"),)),
    "ib-no-sm": ("critical", (("ib-no-sm", "critical", "node"),)),
    "ib-port-down": ("error", (("ib-port-down", "error", "port:0000:3c:00.0/1"),)),
    "ib-rate-2x": ("error", (("ib-rate-degraded", "error", "port:0000:cc:00.0/1"),)),
    "ib-rate-hdr": ("error", (("ib-rate-degraded", "error", "port:0000:4d:00.0/1"),)),
    "neuron2-ecc": ("error", (("neuron-ecc", "error", "gpu:0000:84:00.0"),)),
    "neuron-ecc": ("error", (("neuron-ecc", "error", "gpu:0000:90:1b.0"),)),
    "neuron-link-lost": ("error", (("neuron-link-asymmetric", "error", "pair:0000:20:1c.0+0000:20:1e.0"),)),
    "netdev-in-container": ("ok", ()),
    "nic-fw-mixed": ("warning", (("nic-fw-mixed", "warning", "pci:0000:dc:00.0"),)),
    "nic-no-driver": ("warning", (("pci-driver-missing", "warning", "pci:0000:bc:00.0"),)),
    "nic-width-x8": ("error", (("pcie-width-downgraded", "error", "pci:0000:5e:00.0"),)),
    "no-peermem": ("error", (("gdr-no-path", "error", "node"),)),
    "npu-address-missing": ("error", (("npu-roce-ip-missing", "error", "gpu:0000:02:00.0"),)),
    "npu-address-twice": ("error", (("npu-roce-ip-duplicate", "error", "gpu:0000:c2:00.0"),)),
    "npu-die-missing": ("critical", (("npu-missing", "critical", "gpu:0000:89:00.0"),)),
    "npu-half-the-board": ("critical", (("npu-missing", "critical", "node"),)),
    "npu-no-device-node": ("critical", (("npu-driver-missing", "critical", "gpu:0000:41:00.0"),)),
    "npu-pfc-other-priority": ("warning", (("npu-pfc-priority", "warning", "gpu:0000:41:00.0"),)),
    "npu-tls-mixed": ("error", (("npu-tls-mixed", "error", "node"),)),
    "numa-minus-one": ("warning", (("numa-unknown", "warning", "node"),)),
    "nvlink-asymmetric": ("error", (("nvlink-asymmetric", "error", "gpu:0000:bb:00.0"),)),
    "nvlink-half-speed": ("error", (("nvlink-speed-low", "error", "gpu:0000:9b:00.0"),)),
    "nvlink-one-inactive": ("error", (("nvlink-inactive", "error", "gpu:0000:4c:00.0"),)),
    "nvml-denied": ("unknown", ()),
    "roce-gid-v1-only": ("error", (("roce-gid-v1-only", "error", "port:0000:45:00.1/1"),)),
    "roce-mtu-1500": ("error", (("roce-mtu-small", "error", "netdev:0000:2e:00.0"),)),
    "slot-narrow": ("warning", (("pcie-slower-than-siblings", "warning", "pci:0000:43:00.0"),)),
    "switch-uplink-x4": ("error", (("pcie-width-downgraded", "error", "pci:0000:38:00.0"),)),
}


def test_every_fault_is_expected_to_be_found_or_to_stay_silent() -> None:
    """A new overlay is not forgotten here."""
    assert FAULTS == sorted(EXPECTED)


@pytest.mark.parametrize("fault", EXPECTED)
def test_a_fault_is_found_once_and_by_name(fault: str) -> None:
    """One fault, one rule, one finding."""
    report = scan_machine("", fault)
    verdict, findings = EXPECTED[fault]

    output = tuple((f.rule, f.severity, f.subject) for f in report.findings if f.severity != "info")
    assert findings == output
    assert verdict == report.summary.verdict


def test_links_that_are_down_are_found_where_their_wiring_is_not_known() -> None:
    """Two cards have one module id, so that no port has a far end."""
    findings = scan_faults("gaudi-no-link", "gaudi-module-twice").findings

    assert ["gaudi-internal-port-down", "gaudi-module-id"] == [finding.rule for finding in findings]
    assert "critical" == findings[0].severity


def test_a_gpu_that_is_lost_hides_none_that_is_not_listed() -> None:
    """Each is found, by its place among those that work; and the page counts the GPUs of the node, not of the lists."""
    missing = [
        finding for finding in scan_faults("gpu-lost", "gpu-not-in-nvml").findings if finding.rule == "gpu-missing"
    ]

    assert ["gpu:0000:9b:00.0", "gpu:0000:cb:00.0"] == sorted(finding.subject for finding in missing)
    assert ["6 of 8 GPUs can be used; jobs that ask for all do not start."] * 2 == [f.impact for f in missing]
