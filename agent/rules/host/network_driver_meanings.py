"""What sentences about networks mean: those of NICs by what failed (`probes/kernel/network_families.py`), and those of
the kernel's network stack. The words of a family are all that is known of such a line, so its confidence is low.
"""

from agent.rules.host.meaning import Meaning

_NO_PORT = "What it was needed for is missing: a queue, a port or the whole NIC."
_QUEUE = "Connections over that queue end: the job that uses them stops with an error."
_PAUSES = "Traffic over it pauses for a second or more with each reset; connections of jobs can time out."
_WAITS = "Programs that read or write its files wait, and jobs seem to hang."


def _family(severity: str, title: str, impact: str = _NO_PORT, of_start: bool = True) -> Meaning:
    return Meaning(severity, title, impact, of_start, "low", alone=False)


FAMILIES = {  # after all other sentences of a device: what these state of it counts
    "nic-hardware": _family(
        "warning", "its hardware reports an error", "Data was lost, or the port stops until the NIC is reset.", False,
    ),
    "nic-interrupts": _family("warning", "it got no interrupts, or too few"),
    "nic-memory": _family("warning", "memory for it could not be allocated or mapped"),
    "rdma-start": _family("warning", "RDMA could not be set up on it", "No job can use RDMA on this NIC."),
    "firmware-mismatch": _family(
        "info", "its firmware and its driver do not fit each other",
        "Some functions are missing, or it does not start.",
    ),
    "nic-start": _family("warning", "its driver could not initialize a part of it"),
    "reset-incomplete": _family(
        "warning", "a reset of it, or of its firmware, did not end well", "The port may not carry data.", False,
    ),
    "firmware-silent": _family(
        "warning", "its firmware did not answer in time",
        "Where it goes on, the port can stay ACTIVE while nothing passes.", False,
    ),
    "queue-error": _family("warning", "one of its queues went into an error", _QUEUE, False),
    "roce-lag": _family(
        "warning", "RDMA could not be set up over the bond of its ports (LAG)", "RDMA uses one port only, or none.",
        False,
    ),
    "qos-refused": _family(
        "warning", "it did not take a setting of PFC, ETS or buffers", "Traffic that should be lossless may not be.",
        False,
    ),
    "gid-refused": _family(
        "warning", "it did not take an address for RoCE (GID)", "RoCE over that address does not connect.", False,
    ),
    "vf-refused": _family(
        "info", "its virtual functions could not be set up (SR-IOV)", "None, unless virtual functions are to be used.",
    ),
    "rdma-refused": _family("info", "a queue, key or connection for RDMA could not be made or changed", _QUEUE),
    "port-setup": _family("info", "its port could not be read or set up", "The link may be down or at a lower speed."),
    "command-refused": _family("info", "its firmware refused a command", "What the command was for does not work."),
}  # fmt: skip
_STACK = {
    "storage-silent": Meaning(
        "warning", "a storage server did not answer, and no later line states that it does", _WAITS, False, "medium",
    ),
    "storage-link": Meaning("warning", "RDMA to a Lustre server failed or timed out", _WAITS, False, "low"),
    "bond-without-port": Meaning(
        "warning", "a bond had no port with a link, and no later line states that it has",
        "Nothing passes over that bond.", True, "medium",
    ),
    "bond-member-down": Meaning(
        "warning", "a port of a bond lost its link, and no later line states that it is back",
        "The bond carries less, or nothing where it was the last port.", True, "medium",
    ),
    "lacp-silent": Meaning(
        "warning", "the switch does not answer LACP on any port of the bond",
        "The bond uses one port, or the switch drops its packets.", True, "low",
    ),
    "network-loop": Meaning(
        "warning", "the host receives its own packets: a loop, or a bond that the switch does not treat as one",
        "Packets are lost or doubled, and addresses move between ports of the switch.", False, "medium",
    ),
    "address-duplicate": Meaning(
        "warning", "another host uses the same address", "Connections to this address fail or reach the other host.",
        False, "medium",
    ),
    "neighbor-table": Meaning(
        "warning", "the kernel's table of neighbors is full",
        "New connections to other nodes fail or wait, mostly as a job of many nodes starts.", False, "medium",
    ),
    "conntrack-full": Meaning(
        "warning", "the table of tracked connections is full, and packets are dropped",
        "New connections fail or wait.", False, "medium",
    ),
    "checksum-failure": Meaning(
        "info", "a NIC gave a wrong checksum for a packet that it received", "That packet is checked again or dropped.",
        False, "low",
    ),
}  # fmt: skip
OF_THE_STACK = frozenset(_STACK)
NETWORK_MEANINGS = {
    "nic-gone": Meaning(
        "error", "the NIC no longer answers on PCIe", "The NIC cannot be used by jobs.", True, "medium", alone=False
    ),
    "cloud-nic-silent": Meaning(
        "warning", "the provider's side of the virtual NIC gave no sign of life, and its driver resets it", _PAUSES,
        False, "medium",
    ),
    "cloud-nic-stalled": Meaning(
        "warning", "the virtual NIC did not complete packets in time; its driver resets it where many are lost",
        _PAUSES, False, "medium",
    ),
    "cloud-nic-reset": Meaning("info", "its driver reset the virtual NIC", _PAUSES, False, "medium"),
    "malformed-requests": Meaning(
        "warning", "the NIC stopped a queue that sent malformed requests (malicious driver detection)",
        "That queue is reset; traffic of its virtual function or interface pauses.", False, "medium",
    ),
    "port-mtu": Meaning(
        "warning", "the MTU of a port is not what its use requires", "Packets are dropped, or RDMA does not start.",
        False, "low",
    ),
    "interrupt-missed": Meaning(
        "info", "the driver missed an interrupt of the NIC and went on",
        "Traffic or a command waited for that long; a repeat points to interrupts that get lost.", False, "low",
    ),
    **_STACK,
}  # fmt: skip
