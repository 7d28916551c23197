"""Which systems are virtual machines: the flag, the firmware, and clouds that rent whole machines too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.kernel.system import DMI_FIELDS, VirtualizationSigns, detect_virtualization

X86 = "processor\t: 0\nflags\t\t: fpu vme lm\n"
GUEST = "processor\t: 0\nflags\t\t: fpu vme hypervisor lm\n"
ARM = "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\n"


def firmware(vendor: str, product: str = "", **others: str) -> dict[str, str]:
    return {"sys_vendor": vendor, "product_name": product, **others}


CASES = {
    "bare metal": (VirtualizationSigns(X86, firmware("Dell Inc.", "PowerEdge XE9680")), (None, True)),
    "AWS guest": (
        VirtualizationSigns(GUEST, firmware("Amazon EC2", "p5.48xlarge"), clocks="kvm-clock tsc"),
        ("amazon", True),
    ),
    "AWS metal": (VirtualizationSigns(X86, firmware("Amazon EC2", "p5.metal")), (None, True)),
    "AWS Arm guest": (VirtualizationSigns(ARM, firmware("Amazon EC2", "p6e-gb200.36xlarge")), ("amazon", True)),
    "AWS Arm metal": (VirtualizationSigns(ARM, firmware("Amazon EC2", "c7g.metal")), (None, True)),
    "Azure": (VirtualizationSigns(GUEST, firmware("Microsoft Corporation", "Virtual Machine")), ("microsoft", True)),
    "Microsoft's own hardware": (VirtualizationSigns(X86, firmware("Microsoft Corporation", "C2195")), (None, True)),
    "Google guest": (VirtualizationSigns(GUEST, firmware("Google", "Google Compute Engine")), ("google", True)),
    "Google metal": (VirtualizationSigns(X86, firmware("Google", "Google Compute Engine")), (None, True)),
    "Google Arm, of either kind": (
        VirtualizationSigns(ARM, firmware("Google", "Google Compute Engine")),
        (None, False),
    ),
    "other cloud's Arm, of either kind": (
        VirtualizationSigns(ARM, firmware("Alibaba Cloud", "Alibaba Cloud ECS")),
        (None, False),
    ),
    "QEMU on KVM": (
        VirtualizationSigns(GUEST, firmware("QEMU", "Standard PC (Q35)"), clocks="tsc kvm-clock"),
        ("kvm", True),
    ),
    "QEMU alone": (VirtualizationSigns(GUEST, firmware("QEMU", "Standard PC (Q35)"), clocks="tsc"), ("qemu", True)),
    "QEMU that hides the flag": (VirtualizationSigns(X86, firmware("QEMU", "Standard PC (Q35)")), ("qemu", True)),
    "VMware": (VirtualizationSigns(GUEST, firmware("VMware, Inc.", "VMware7,1")), ("vmware", True)),
    "CloudStack": (
        VirtualizationSigns(GUEST, firmware("Apache Software Foundation", "CloudStack KVM Hypervisor")),
        ("kvm", True),
    ),
    "VirtualBox": (VirtualizationSigns(GUEST, firmware("innotek GmbH", "VirtualBox")), ("oracle", True)),
    "guest without firmware": (VirtualizationSigns(GUEST, clocks="tsc kvm-clock"), ("kvm", True)),
    "guest that says nothing": (VirtualizationSigns(GUEST), ("vm-other", True)),
    "Xen guest": (VirtualizationSigns(GUEST, firmware("Xen", "HVM domU"), hypervisor="xen"), ("xen", True)),
    "Xen's own domain": (VirtualizationSigns(X86, hypervisor="xen", xen_capabilities="control_d\n"), (None, True)),
    "Grace on bare metal": (VirtualizationSigns(ARM, firmware("NVIDIA", "GB200 NVL")), (None, True)),
    "Arm guest by device tree": (VirtualizationSigns(ARM, device_tree="linux,kvm"), ("kvm", True)),
    "Arm that says nothing": (VirtualizationSigns(ARM), (None, False)),
    "POWER9 on bare metal": (
        VirtualizationSigns("cpu : POWER9\nplatform : PowerNV\nmachine : PowerNV 8335-GTW\n"),
        (None, True),
    ),
    "POWER partition": (
        VirtualizationSigns("cpu : POWER9\nplatform : pSeries\nmachine : CHRP IBM,9009\n"),
        ("powervm", True),
    ),
    "no processors' text, only firmware": (VirtualizationSigns(None, firmware("NVIDIA", "DGXA100")), (None, False)),
}


@pytest.mark.parametrize("name", CASES)
def test_each_kind_of_machine(name: str):
    """The hypervisor's name, and whether it is known at all."""
    signs, expected = CASES[name]

    assert expected == detect_virtualization(signs)


@given(
    st.none() | st.text(),
    st.dictionaries(st.sampled_from(DMI_FIELDS), st.text()),
    st.none() | st.text(),
    st.none() | st.sampled_from(["xen", ""]),
)
def test_a_name_is_always_known(cpuinfo: str | None, dmi: dict[str, str], clocks: str | None, hypervisor: str | None):
    """Whatever the texts are: no exception, and no name without knowledge."""
    name, known = detect_virtualization(VirtualizationSigns(cpuinfo, dmi, clocks, hypervisor))

    assert known or name is None
