"""The title of the page, and the node: its hardware, software, and the source of the evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agent.model.nic import Nic
from agent.model.report import Report
from agent.outputs.names import format_duration, short_model, visible_nics
from agent.outputs.text.lines import Line, join_known, wrap_paragraph
from agent.outputs.verdict import explain_unread_devices

HOSTS_SHOWN = 8  # of a source of several
INDENT = 12  # columns before the text of a row


def render_title(report: Report, width: int) -> list[Line]:
    """The machine's name, vendor and product; of several the names."""
    node = report.node
    names = sorted(host.name for host in report.source.hosts or [] if host.name)
    more = f" and {len(names) - HOSTS_SHOWN} more" if len(names) > HOSTS_SHOWN else ""
    several = f"{len(names)} hosts: {', '.join(names[:HOSTS_SHOWN])}{more}" if len(set(names)) > 1 else None
    name = node.hostname or several or "(host name not known)"
    title = join_known((name, join_known((node.vendor, node.product), " ")))
    return wrap_paragraph(title, width, indent="", style="bold")


def render_hosts(report: Report, width: int) -> list[Line]:
    """Of outputs that contradict each other: which belong together, by what they differ, and what to do."""
    hosts = report.source.hosts
    if hosts is None:
        return []
    text = f"These outputs are of {len(hosts)} hosts, or of one host at several times; each is checked alone:"
    if len(hosts) < 2:
        text = "This output holds lines of several hosts, or of several times:"
    lines = wrap_paragraph(text, width, indent="  ", style="warning")
    for host in hosts[:HOSTS_SHOWN]:
        hint = " (by the prompt)" if host.named_by == "prompt" else ""
        name = f"{host.name}{hint}" if host.name else "host not named"
        facts = [fact for fact in host.facts if not (host.name and fact.endswith(f": {host.name}"))]
        row = ": ".join(filter(None, (name, ", ".join(host.files), "; ".join(facts))))
        lines += wrap_paragraph(row, width, indent="      ", first="    ")
    if len(hosts) > HOSTS_SHOWN:
        lines += wrap_paragraph(f"and {len(hosts) - HOSTS_SHOWN} more (--format json)", width, indent="    ")
    return lines + wrap_paragraph(
        "Save the outputs of each host in a folder of its own, and scan each folder.", width, indent="  "
    )


def render_facts(report: Report, width: int) -> list[Line]:
    """One row per known fact."""
    lines: list[Line] = []
    for name, text, style in list_facts(report):
        first = f"  {name}".ljust(INDENT)
        lines += wrap_paragraph(text, width, indent=" " * INDENT, style=style, first=first)
    return lines


def list_facts(report: Report) -> list[tuple[str, str, str]]:
    """The known facts of the node: name, text, style."""
    every = (
        ("platform", _platform(report), ""),
        *_list_devices(report),
        ("CPUs", _processors(report), ""),
        ("system", _system(report), ""),
        ("software", _software(report), ""),
        ("source", _source(report), "dim"),
        ("counters", _window(report), "dim"),
        ("changed", "; ".join(report.config.changed), "warning"),
    )
    return [fact for fact in every if fact[1]]


def _list_devices(report: Report) -> list[tuple[str, str, str]]:
    """GPUs and NICs; one row where a list of devices is missing and neither is known."""
    gpus, nics = _gpus(report), count_names(map(_nic, _cards(report)))
    switches = f"{len(report.topology.nvswitches)}x NVSwitch" if report.topology.nvswitches else ""
    unread = explain_unread_devices(report)
    if unread and not (gpus or nics or switches):
        return [("devices", f"GPUs and NICs are not known ({unread})", "")]
    missing = f"not known ({unread})" if unread else ""
    return [
        ("GPUs", join_known((gpus or missing or "none", switches), ", "), ""),
        ("NICs", nics or missing or "none with RDMA", ""),
    ]


def _cards(report: Report) -> list[Nic]:
    """Each NIC once: if a function has no RDMA device, a device without a location may be its own."""
    nics = visible_nics(report)
    return [nic for nic in nics if nic.pci] if any(nic.pci and not nic.rdma_device for nic in nics) else nics


def _nic(nic: Nic) -> str:
    """Its model; a function without a known RDMA device may not have one."""
    return short_model(nic.model) or ("RDMA NIC" if nic.rdma_device else "NIC")


def count_names(names: Iterable[str]) -> str:
    """Count equal names, most frequent first.

    >>> count_names(["H100", "H100", "L4"])
    '2x H100, 1x L4'
    """
    return ", ".join(f"{n}x {name}" for name, n in sorted(Counter(names).items(), key=lambda item: (-item[1], item[0])))


def _platform(report: Report) -> str:
    platform = report.platform
    return f"{platform.profile} ({platform.confidence})" if platform.profile else ""


def _gpus(report: Report) -> str:
    topology = report.topology
    products = {function.id: (function.vendor, function.device) for function in topology.pci}
    models = {products.get(gpu.pci or ""): gpu.name for gpu in topology.gpus if gpu.driver_state == "open"}
    names = (  # of a GPU that the driver cannot name: what it calls those with the same PCI id
        gpu.name if gpu.driver_state == "open" else models.get(products.get(gpu.pci or "", ("", "")), gpu.name)
        for gpu in topology.gpus
    )
    return count_names(
        short_model(name) or join_known((gpu.vendor, "GPU"), " ")
        for gpu, name in zip(topology.gpus, names, strict=True)
    )


def _processors(report: Report) -> str:
    node = report.node
    with_cpus = len([numa_node for numa_node in node.numa_nodes if numa_node.cpus])
    memory_only = len([numa_node for numa_node in node.numa_nodes if numa_node.cpus == ""])
    return join_known(
        (
            f"{node.cpu.sockets}x {node.cpu.name or 'CPU'}" if node.cpu.sockets else node.cpu.name,
            f"{with_cpus} NUMA nodes" if with_cpus > 1 else None,
            f"{memory_only} memory-only NUMA node{'s' * (memory_only > 1)}" if memory_only else None,
            f"{node.memory_mib / 1024:.0f} GiB" if node.memory_mib else None,
        ),
        ", ",
    )


def _system(report: Report) -> str:
    node = report.node
    return join_known(
        (
            node.os,
            f"kernel {node.kernel}" if node.kernel else None,
            f"virtual machine ({node.virtualization})" if node.virtualization else None,
            f"in a container ({node.container})" if node.container else None,
            f"inside {node.job_limit}" if node.job_limit else None,
        ),
        ", ",
    )


def _software(report: Report) -> str:
    driver, stack = report.software.driver, report.software.rdma_stack
    flavour = {True: " (open)", False: " (proprietary)", None: ""}[driver.open]
    rdma = f"OFED {stack.version or ''}".strip() if stack.kind == "ofed" else None
    return join_known(
        (
            f"NVIDIA driver {driver.version}{flavour}" if driver.version else None,
            f"CUDA {driver.cuda}" if driver.cuda else None,
            rdma or ("inbox RDMA" if stack.kind == "inbox" else None),
        ),
        ", ",
    )


def _source(report: Report) -> str:
    source = "this host" if report.source.kind == "live" else report.source.kind
    return join_known(
        (
            source + (f" {report.source.path}" if report.source.path else ""),
            f"observed {report.observed_at}" if report.observed_at else None,
            f"fabricscope {report.generator.version}",
        ),
        ", ",
    )


def _window(report: Report) -> str:
    """The time over which counters were compared; if they were not, the reason is under "Could not check"."""
    window = report.counters_window
    if window is None or not window.seconds:
        return ""
    return f"compared over {format_duration(window.seconds)}" + (f", since {window.since}" if window.since else "")
