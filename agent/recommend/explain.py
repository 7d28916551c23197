"""What a job's log shows that this machine should give otherwise, and what could explain it, the likeliest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agent.model.recommend_answers import Difference, LogAnswer, NcclLog
from agent.model.report import Report
from agent.recommend.constants import NVLS, RING, TREE, parse_version
from agent.recommend.graph import ChannelPlan, plan_nvls, plan_ring, plan_tree
from agent.recommend.machine import NodeFacts
from agent.recommend.predict import HEALTHY, MODELLED_FROM, Request, predict
from agent.recommend.settings import find_harm
from agent.recommend.tuning import TUNED

_TIE = 0.9  # of the bandwidth of what NCCL should choose: another choice that is as good lies at a border of its table
_OLDEST = (2, 4)
_PLANS: dict[str, Callable[..., ChannelPlan]] = {RING: plan_ring, TREE: plan_tree, NVLS: plan_nvls}
_SOCKET_CAUSES = (
    "NCCL_IB_DISABLE=1 or NCCL_NET=Socket",
    "the container has no /dev/infiniband (docker: --device /dev/infiniband; Kubernetes: the RDMA device plugin)",
    "libibverbs, or the provider library of the NIC, is missing in the container",
    "the limit of locked memory is too low (docker: --ulimit memlock=-1)",
)
_DIRECT_CAUSES = (
    "NCCL_NET_GDR_LEVEL or NCCL_DMABUF_ENABLE switches it off",
    "neither peer memory nor DMA-BUF of the NIC works: nvidia-peermem is not loaded or not registered with "
    "ib_core, and "
    "the NIC's driver or the GPU's modules do not support DMA-BUF (a line on DMA-BUF of the GPU alone shows "
    "nothing of it)",
    "the GPU and the NIC have no PCIe switch in common, so NCCL copies through host memory",
)


def explain_log(log: NcclLog, node: NodeFacts | None, report: Report | None = None) -> LogAnswer:
    """Compare a log with a machine; with none, what the log itself shows."""
    matching, right, open_questions = [], [], []
    for name, compare in _COMPARISONS:
        answer = compare(log, node, report)
        if isinstance(answer, str):
            open_questions.append(f"{name}: {answer}")
        elif answer:
            matching += answer
        else:
            right.append(name)
    matching += _compare_settings(log, node)
    matching += [_affinity(log)] if log.no_affinity else []
    return LogAnswer(
        machine=node.title if node else None,
        log=log,
        differences=matching,
        as_expected=right,
        not_compared=open_questions,
    )


Answer = list[Difference] | str


def _compare_network(log: NcclLog, node: NodeFacts | None, report: Report | None) -> Answer:
    """RDMA or sockets."""
    between = (log.nodes or 1) > 1
    if not between and "NET/Socket" not in log.transports:
        return "the job is on one node" if log.nodes else "the log has no line 'comm .. nRanks .. nNodes ..'"
    sockets = log.network == "Socket" or "NET/Socket" in log.transports
    if not sockets:
        return [] if log.network or log.transports else "the log has no line 'Using network'"
    if node is not None and not node.rails and not log.no_rdma_device:
        return "this machine has no NIC for jobs"
    causes = _list_set(log, "NCCL_IB_DISABLE", "NCCL_NET")
    causes += _SOCKET_CAUSES[1:] if log.no_rdma_device else _SOCKET_CAUSES
    seen = "TCP sockets" + (", 'NET/IB : No device found'" if log.no_rdma_device else "")
    what = f"RDMA on {len(node.rails)} rails" if node is not None and node.rails else "RDMA"
    return [Difference(what="network", seen=seen, expected=what, reasons=causes)]


def _compare_devices(log: NcclLog, node: NodeFacts | None, report: Report | None) -> Answer:
    """NICs that are used, and the rails."""
    if node is None or not node.rails:
        return "no machine with rails to compare with"
    if node.assumed:
        return "a platform has no names of NICs"
    if not log.devices:
        return "the log has no line 'NET/IB : Using'"
    used = {name.partition(":")[0] for name in log.devices}
    rails = {rail.label for rail in node.rails}
    down = sorted(rail.label for rail in node.rails if not rail.network_gbyte_s)
    left, foreign = sorted(rails - used), sorted(used - rails)
    causes = _list_set(log, "NCCL_IB_HCA") + [f"the port of {name} is down" for name in down if name in left]
    rows = []
    if left:
        causes += ["the container was given only some of the devices"] if not causes else []
        expected = f"all {len(rails)} rails"
        rows.append(Difference(what="NICs", seen=f"without {', '.join(left)}", expected=expected, reasons=causes))
    if foreign:
        other = ["other RDMA ports are active: name the rails in NCCL_IB_HCA"]
        seen = f"also {', '.join(foreign)}, which are no rails here"
        rows.append(Difference(what="NICs", seen=seen, expected=", ".join(sorted(rails)), reasons=other))
    return rows


def _compare_gpudirect(log: NcclLog, node: NodeFacts | None, report: Report | None) -> Answer:
    """Straight to GPU memory, or copied through the host's."""
    ways = {way: count for way, count in log.transports.items() if way.startswith("NET/") and "Socket" not in way}
    disabled = bool(log.gpudirect_off) or (not ways and log.gpudirect is False and (log.nodes or 1) > 1)
    if log.network == "Socket" or (not ways and not disabled and log.gpudirect is None):
        return "no channel of the log crosses the network with RDMA"
    copied = sum(count for way, count in ways.items() if "GDRDMA" not in way)
    if not copied and not disabled:
        return []
    causes = _list_set(log, "NCCL_NET_GDR_LEVEL", "NCCL_DMABUF_ENABLE")
    if report is not None:
        blocked = [row for row in report.gpudirect if row.verdict == "blocked"]
        causes += dict.fromkeys(cause for row in blocked for cause in row.causes)
    if not causes:
        off, driver, far = _DIRECT_CAUSES
        if log.version is not None and parse_version(log.version) < (2, 14):
            off = "NCCL_NET_GDR_LEVEL switches it off"
        near = [] if log.gpudirect_off else [f"{far}: {log.too_far[0]}"] if log.too_far else []
        causes = [driver, off] if log.gpudirect_off else [*near, off, driver, *([] if near else [far])]
    seen = f"{copied} of {sum(ways.values())} network channels without GDRDMA" if ways else "GPUDirect RDMA disabled"
    if log.gpudirect_off:
        seen += f"; disabled for {', '.join(log.gpudirect_off[:4])}"
    return [Difference(what="GPUDirect RDMA", seen=seen, expected="'via NET/IB/n/GDRDMA'", reasons=causes)]


def _compare_inside(log: NcclLog, node: NodeFacts | None, report: Report | None) -> Answer:
    """Between GPUs of a node: peer-to-peer, or through host memory."""
    if (log.local_ranks or 0) < 2:
        return "one GPU of each node" if log.local_ranks else "the log has no line 'comm .. localRanks ..'"
    shared = sum(count for way, count in log.transports.items() if way.startswith("SHM"))
    direct = sum(count for way, count in log.transports.items() if way.startswith("P2P"))
    if not shared and not direct:
        return "the log has no channels"
    if not shared:
        return []
    if node is None:
        return "host memory is used between GPUs; whether they have direct links needs --report"
    if node.kind not in ("nvlink", "xgmi"):
        return "GPUs without direct links: host memory is the usual way"
    causes = [
        *_list_set(log, "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL"),
        "the container hides GPUs of the same node from each other",
        "peer access fails: IOMMU or ACS",
    ]
    seen = f"{shared} of {shared + direct} channels through host memory (SHM)"
    return [Difference(what="GPUs of a node", seen=seen, expected="P2P over their direct links", reasons=causes)]


def _compare_nvls(log: NcclLog, node: NodeFacts | None, report: Report | None) -> Answer:
    """NVLink SHARP."""
    if log.nvls is None and log.nvls_channels is None:
        return "the log has no line 'NVLS multicast support'"
    on = log.nvls is not False and (log.nvls_channels or 0) > 0
    if on:
        return []
    if node is None:
        return "not in use; whether this machine could needs --report"
    if node.kind != "nvlink" or node.sm < 90 or not node.regular:
        return "these GPUs have none"
    if (log.local_ranks or 0) < 3:
        return "fewer than three GPUs of a node"
    causes = [
        *_list_set(log, "NCCL_NVLS_ENABLE"),
        "the fabric manager is not ready, or the fabric state of a GPU is not 'completed'",
        "allocating multicast memory failed (IMEX, container without its channels)",
    ]
    return [Difference(what="NVLS", seen="not in use", expected="in use inside the node", reasons=causes)]


def _compare_graphs(log: NcclLog, node: NodeFacts | None, report: Report | None) -> Answer:
    """Channels and their speed, as the search of NCCL finds them on this machine."""
    if not log.graphs:
        return "the log has no line 'Pattern .. nChannels ..' (NCCL_DEBUG_SUBSYS=INIT,GRAPH,ENV,TUNING)"
    if node is None or node.kind != "nvlink" or not node.regular or node.missing:
        return "no machine with a model to compare with"
    if log.local_ranks != len(node.gpus):
        return f"the job uses {log.local_ranks or 'some'} of {len(node.gpus)} GPUs of the node"
    rows, nodes = [], log.nodes or 1
    for graph in log.graphs:
        plan = _PLANS.get(graph.algorithm)
        best = plan(node.search_input(nodes, parse_version(log.version), True)) if plan else None
        if best is None or graph.channels * graph.inter_gbyte_s >= 0.97 * best.total_gbyte_s:
            continue
        slow = [rail.label for rail in node.rails if _is_slow(rail.network_gbyte_s, node)]
        causes = [
            *_list_set(log, "NCCL_TOPO_FILE"),
            *(f"{label} runs below its siblings" for label in slow),
            "another node of the job has fewer: a job gets the least of its nodes",
            "NICs are left out (NICs above)",
        ]
        rows.append(
            Difference(
                what=f"{graph.algorithm} graph",
                seen=f"{graph.channels} channels x {graph.inter_gbyte_s:g} GB/s, paths {graph.paths}",
                expected=f"{best.channels} channels x {best.inter_gbyte_s:g} GB/s",
                reasons=causes,
            )
        )
    return rows


def _compare_choices(log: NcclLog, node: NodeFacts | None, report: Report | None) -> Answer:
    """Algorithm and protocol of large messages."""
    known = [row for row in log.choices if row.collective in TUNED and row.size_bytes >= MODELLED_FROM]
    if not known:
        return "the log has no line 'Bytes -> Algo' of 8 MB and more (NCCL_DEBUG_SUBSYS=TUNING)"
    if node is None or log.local_ranks != len(node.gpus):
        return "no machine with a model to compare with"
    rows = []
    for row in known:
        request = Request(row.collective, row.size_bytes, log.nodes or 1, parse_version(log.version))
        predicted = predict([node], request, HEALTHY)
        if predicted.algorithm is None or (predicted.algorithm, predicted.protocol) == (row.algorithm, row.protocol):
            continue
        seen_row = predict([node], request._replace(algorithm=row.algorithm), HEALTHY)
        alike = (seen_row.algorithm, seen_row.protocol) == (row.algorithm, row.protocol)
        if alike and (seen_row.busbw_gbyte_s or 0.0) > _TIE * (predicted.busbw_gbyte_s or 0.0):
            continue
        causes = [*_list_set(log, "NCCL_ALGO", "NCCL_PROTO"), "a tuner plugin chooses, or the graphs differ"]
        what = f"{row.collective} of {row.size_bytes} bytes"
        seen, expected = f"{row.algorithm} {row.protocol}", f"{predicted.algorithm} {predicted.protocol}"
        rows.append(Difference(what=what, seen=seen, expected=expected, reasons=causes))
    return rows


def _is_slow(gbyte_s: float, node: NodeFacts) -> bool:
    return gbyte_s < max(rail.healthy_network_gbyte_s for rail in node.rails) * 0.999


def _compare_settings(log: NcclLog, node: NodeFacts | None) -> Iterator[Difference]:
    """Settings of the job that hurt."""
    for key, value in log.settings.items():
        harm = find_harm(key, value, node, parse_version(log.version))
        if log.version is None and harm is not None and find_harm(key, value, node, _OLDEST) is None:
            continue  # it depends on the version, which the log does not show
        if harm is not None:
            reasons = [harm.reason, f"measured: {harm.gain}"]
            yield Difference(what=key, seen=value, expected=f"not set: NCCL {harm.default}", reasons=reasons)


def _affinity(log: NcclLog) -> Difference:
    gpus = ", ".join(str(gpu) for gpu in log.no_affinity)
    reasons = ["the job manager pins ranks to CPUs of another NUMA node: 42 of 216 GB/s in nccl#2409"]
    return Difference(
        what="CPU binding", seen=f"no CPU near GPU {gpus}", expected="CPUs of its NUMA node", reasons=reasons
    )


def _list_set(log: NcclLog, *keys: str) -> list[str]:
    return [f"the job sets {key}={log.settings[key]}" for key in keys if key in log.settings]


_COMPARISONS: tuple[tuple[str, Callable[[NcclLog, NodeFacts | None, Report | None], Answer]], ...] = (
    ("network", _compare_network),
    ("NICs", _compare_devices),
    ("GPUDirect RDMA", _compare_gpudirect),
    ("GPUs of a node", _compare_inside),
    ("NVLS", _compare_nvls),
    ("graphs", _compare_graphs),
    ("choices", _compare_choices),
)
