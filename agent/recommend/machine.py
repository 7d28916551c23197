"""What a prediction needs of one node, taken from its report, or assumed from a platform's profile."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from agent.model.gpu import Gpu
from agent.model.nic import Nic
from agent.model.node import NcclLibrary
from agent.model.profile import Profile
from agent.model.report import Report
from agent.model.topology import Path
from agent.recommend.constants import nvlink_gbyte_s, parse_version, pcie_gbyte_s
from agent.recommend.graph import Mesh, SearchInput, cube_mesh
from agent.recommend.rails import RailFacts, merge_rails, rail_gbyte_s, read_rails

_SM = {"Volta": 70, "Turing": 75, "Ampere": 80, "Ada": 89, "Ada Lovelace": 89, "Hopper": 90, "Blackwell": 100}
_FULL_GBYTE_S = {90: 26.562, 100: 50.0}  # signalling rate of one link of these generations, one direction
# Sum of the seven links of each of eight GPUs, one direction; 910B: 28 GB/s a port, from the driver's lane speed
_MESH_SUM_GBYTE_S = {"MI300X": 448.0, "MI325X": 448.0, "MI355X": 537.6, "910B": 196.0}
_MESH_SIZE = 8
_CUBES = ("dgx1v", "sxm2-v100-8")  # profiles of eight V100 in a hybrid cube mesh

_USUAL_RAILS = {  # NICs for jobs and Gb/s of each: NVIDIA's DGX system guides, AWS's pages of EC2 instance types
    "dgx-a100": (8, 200.0), "dgx-h100": (8, 400.0), "dgx-h200": (8, 400.0), "dgx-b200": (8, 400.0),
    "dgx-b300": (8, 800.0),
    "p4d.24xlarge": (4, 100.0), "p4de.24xlarge": (4, 100.0), "p5.48xlarge": (32, 100.0), "p5e.48xlarge": (32, 100.0),
    "p5en.48xlarge": (16, 200.0), "p6-b200.48xlarge": (8, 400.0),
}  # fmt: skip


class NodeFacts(NamedTuple):
    """One node."""

    host: str
    title: str
    kind: str  # nvlink | xgmi | hccs | pcie | none
    gpus: tuple[str, ...]  # labels
    sm: int
    links: tuple[float, ...]  # GB/s of all direct links of each GPU, in NCCL's units, as they are
    healthy_links: float
    rails: tuple[RailFacts, ...]
    network: str  # InfiniBand | RoCE | EFA | none
    amd_cpu: bool
    arm_cpu: bool
    nccl: str | None
    missing: tuple[str, ...]
    assumed: tuple[str, ...]
    regular: bool  # every GPU reaches every other one alike by direct links
    weakest_gpu: str | None = None
    mesh: Mesh = ()  # of GPUs that are joined unevenly: pairs with GB/s, in NCCL's units
    domain: int = 0  # GPUs that one NVLink fabric joins beyond this node; 0: no more than these

    def search_input(self, nodes: int, version: tuple[int, int], healthy: bool) -> SearchInput:
        """What NCCL's search sees."""
        links = self.healthy_links if healthy else min(self.links, default=0.0)
        rails = tuple(rail_gbyte_s(rail, healthy) for rail in self.rails) if nodes > 1 else ()
        return SearchInput(
            len(self.gpus), self.sm, links, merge_rails([rail for rail in rails if rail > 0], len(self.gpus)), version
        )


def read_node(report: Report) -> NodeFacts:
    """The facts of one report; `missing` names the fields without which nothing can be predicted."""
    topology = report.topology
    gpus = [gpu for gpu in topology.gpus if gpu.driver_state not in ("no_driver", "vfio", "error")]
    vendor = next((gpu.vendor or "" for gpu in gpus), "")
    missing = [] if gpus else ["topology.gpus"]
    rails = read_rails(report, gpus)
    sm = min((_sm(gpu) for gpu in gpus), default=0)
    kind, links, healthy = _read_links(gpus, sm, vendor, report)
    if kind == "nvlink" and not sm:
        missing.append("topology.gpus[].compute_capability")
    if kind == "pcie" and not all(gpu.links_known for gpu in gpus):
        missing.append("topology.gpus[].links")
    weakest = min(range(len(links)), key=lambda index: links[index], default=None)
    cpu = report.node.cpu
    regular = kind != "nvlink" or _is_regular(gpus, topology.paths)
    return NodeFacts(
        host=report.node.hostname or "this host",
        title=_title(gpus, rails, kind),
        kind=kind,
        gpus=tuple(gpu.label for gpu in gpus),
        sm=sm,
        links=tuple(links),
        healthy_links=healthy,
        rails=tuple(rails),
        network=_network(topology.host_nics),
        amd_cpu=bool(cpu and cpu.vendor == "AuthenticAMD"),
        arm_cpu=report.node.arch == "aarch64",
        nccl=_nccl_version(report.software.nccl.libraries),
        missing=tuple(missing),
        assumed=(),
        regular=regular,
        mesh=() if regular else _read_pairs(gpus, nvlink_gbyte_s(sm, parse_version(None)), topology.paths),
        weakest_gpu=gpus[weakest].label if weakest is not None and links[weakest] < healthy * 0.999 else None,
    )


def assume_node(profile: Profile, rails: tuple[int, float] | None) -> NodeFacts:
    """What a platform is by its profile; `rails`: how many and their Gb/s, where the profile does not have them."""
    from agent.platforms.devices import find_device

    names = [find_device("0x10de", f"0x{device[5:]}") for device in profile.gpu_devices if device[:4] == "10de"]
    architecture = next((name.architecture for name in names if name and name.architecture), None)
    sm = _SM.get(architecture or "", 0)
    count = int(profile.gpus.value) if profile.gpus else 0
    links = int(profile.nvlinks_per_gpu.value) if profile.nvlinks_per_gpu else 0
    missing = [] if count else [f"profile {profile.name}: gpus"]
    mesh = "910B" if profile.name == "ascend-a2" else None
    mesh = next((key for key in _MESH_SUM_GBYTE_S if key.lower() in profile.name.lower()), mesh)
    kind = ("hccs" if mesh == "910B" else "xgmi") if mesh else "nvlink" if links else "none"
    gpu_gbyte_s = _MESH_SUM_GBYTE_S[mesh] if mesh else links * nvlink_gbyte_s(sm, parse_version(None))
    number, rate = rails or _profile_rails(profile)
    path = pcie_gbyte_s(64.0 if "b300" in profile.name else 32.0 if sm >= 90 or mesh else 16.0 if sm >= 80 else 8.0, 16)
    path /= max(1, number // max(1, count))  # several NICs of a GPU share its slot's lanes
    network = rate / 8
    planned = RailFacts("NIC", None, network, network, path, path)
    assumed = [f"{count} GPUs, {links} NVLinks each: profile {profile.name}"] if links else [f"profile {profile.name}"]
    if rails:
        assumed.append(f"{number} rails of {rate:g} Gb/s: as requested")
    elif number:
        assumed.append(f"{number} rails of {rate:g} Gb/s: the usual NICs of this platform")
    return NodeFacts(
        host=profile.name,
        title=profile.title or profile.name,
        kind=kind,
        gpus=tuple(f"GPU{index}" for index in range(count)),
        sm=sm,
        links=(gpu_gbyte_s,) * count,
        healthy_links=gpu_gbyte_s,
        rails=tuple(planned._replace(label=f"NIC{index}") for index in range(number)),
        network="EFA" if "xlarge" in profile.name else "InfiniBand",
        amd_cpu=False,
        arm_cpu=False,
        nccl=None,
        missing=tuple(missing),
        assumed=tuple(assumed),
        regular=profile.name not in _CUBES and (profile.nv is None or int(profile.nv.value) == links),
        mesh=cube_mesh(nvlink_gbyte_s(sm, parse_version(None))) if profile.name in _CUBES else (),
    )


def complete_node(node: NodeFacts, report: Report, profile: Profile | None) -> NodeFacts:
    """What the report does not show, by the platform's profile, marked as assumed; nothing where they do not fit."""
    nics = [nic for nic in report.topology.host_nics if nic.role == "rail"]
    no_rates = bool(nics) and not node.rails and all(port.state is None for nic in nics for port in nic.ports)
    if profile is None or not (node.missing or no_rates):
        return node
    platform = assume_node(profile, None)
    if platform.missing or len(platform.gpus) != len(node.gpus) or (node.sm and node.sm != platform.sm):
        return node
    if no_rates and platform.rails:
        node = node._replace(rails=platform.rails, network=platform.network, assumed=platform.assumed[1:])
    if node.missing:
        node = node._replace(
            kind=platform.kind, links=platform.links, healthy_links=platform.healthy_links, sm=platform.sm,
            regular=platform.regular, missing=(), assumed=(platform.assumed[0], *node.assumed),
            title=f"{node.title} ({platform.title})",
        )  # fmt: skip
    return node


def _profile_rails(profile: Profile) -> tuple[int, float]:
    """How many rails a platform has, and their Gb/s; none where neither is known."""
    number, rate = _USUAL_RAILS.get(profile.name, (0, 0.0))
    rate = float(profile.rail_gbit_s.value) if profile.rail_gbit_s else rate
    number = int(profile.rails.value) if profile.rails else number
    return (number, rate) if number and rate else (0, 0.0)


def _nccl_version(libraries: list[NcclLibrary]) -> str | None:
    """The oldest version that jobs have mapped, else the first that is installed; None where jobs use one whose file
    does not name its version, as in the wheels of PyTorch: what is installed beside it is not theirs."""
    used = [library.version for library in libraries if library.used_by]
    if used:
        known = [version for version in used if version]
        return min(known, key=parse_version) if len(known) == len(used) else None
    return next((library.version for library in libraries if library.version), None)


def _sm(gpu: Gpu) -> int:
    text = (gpu.compute_capability or "").split(".")
    if len(text) == 2 and text[0].isdecimal() and text[1].isdecimal():
        return int(text[0]) * 10 + int(text[1])
    return _SM.get(gpu.architecture or "", 0)


def _read_links(gpus: list[Gpu], sm: int, vendor: str, report: Report) -> tuple[str, list[float], float]:
    """The kind of direct links, GB/s of each GPU's as they are, and of a healthy GPU's."""
    if vendor in ("AMD", "Huawei"):
        return _read_mesh(gpus, vendor, report)
    one = nvlink_gbyte_s(sm, parse_version(None))
    full = _FULL_GBYTE_S.get(sm // 10 * 10, 0.0)
    sums = []
    counts = []
    for gpu in gpus:
        links = [link for link in gpu.links if link.protocol == "nvlink"]
        active = [link for link in links if link.state in ("active", "sleep")]
        share = [min(1.0, (link.signal_gbyte_s or full) / full) if full else 1.0 for link in active]
        sums.append(one * sum(share))
        counts.append(max(len(links), _paths_nv(gpu, report)))
        if not links:
            sums[-1] = one * counts[-1]
    if not any(sums):
        return ("pcie" if gpus else "none"), [], 0.0
    return "nvlink", sums, one * max(counts)


def _read_pairs(gpus: list[Gpu], one: float, paths: list[Path]) -> Mesh:
    """Which GPUs are joined by how many links: as the links state, else NV#."""
    places = {gpu.id: index for index, gpu in enumerate(gpus)}
    counts: Counter[tuple[int, int]] = Counter()
    for gpu in gpus:
        for link in gpu.links:
            far = places.get(link.remote.id or "") if link.remote else None
            if far is not None and places[gpu.id] < far and link.state in ("active", "sleep"):
                counts[places[gpu.id], far] += 1
    for path in paths if not counts else []:
        kind, ends = path.kind or "", sorted(places[end] for end in (path.a, path.b) if end in places)
        if kind[:2] == "NV" and kind[2:].isdecimal() and len(ends) == 2:
            counts[ends[0], ends[1]] = int(kind[2:])
    return tuple((a, b, one * count) for (a, b), count in sorted(counts.items()))


def _read_mesh(gpus: list[Gpu], vendor: str, report: Report) -> tuple[str, list[float], float]:
    """Full meshes of xGMI and HCCS: the sum of a GPU's links, by its model, and the share of them that is up."""
    kind = "xgmi" if vendor == "AMD" else "hccs"
    name = next((gpu.name or "" for gpu in gpus), "")
    gpu_gbyte_s = next((value for key, value in _MESH_SUM_GBYTE_S.items() if key in name), 0.0)
    joined = any(link for gpu in gpus for link in gpu.links) or any(
        (path.kind or "") == kind.upper() for path in report.topology.paths
    )
    if not gpu_gbyte_s or not joined or len(gpus) != _MESH_SIZE:
        return "none", [], 0.0
    shares = []
    for gpu in gpus:
        known = [link for link in gpu.links if link.state != "unknown"]
        shares.append(sum(link.state in ("active", "sleep") for link in known) / len(known) if known else 1.0)
    return kind, [gpu_gbyte_s * share for share in shares], gpu_gbyte_s


def _paths_nv(gpu: Gpu, report: Report) -> int:
    """The number in NV#, of any pair of a GPU: where its links are not listed."""
    kinds = [path.kind or "" for path in report.topology.paths if gpu.id in (path.a, path.b)]
    return max((int(kind[2:]) for kind in kinds if kind[:2] == "NV" and kind[2:].isdecimal()), default=0)


def _is_regular(gpus: list[Gpu], paths: list[Path]) -> bool:
    ids = {gpu.id for gpu in gpus}
    kinds = [path.kind for path in paths if path.a in ids and path.b in ids]
    switch = any(link.remote and link.remote.kind == "switch" for gpu in gpus for link in gpu.links)
    return switch or (bool(kinds) and all((kind or "")[:2] == "NV" for kind in kinds) and len(set(kinds)) == 1)


def _network(nics: list[Nic]) -> str:
    rails = [nic for nic in nics if nic.role == "rail"]
    if any(nic.driver == "efa" for nic in rails):
        return "EFA"
    layers = {port.link_layer for nic in rails for port in nic.ports if port.link_layer}
    return "InfiniBand" if "InfiniBand" in layers else "RoCE" if layers else "none"


def _title(gpus: list[Gpu], rails: list[RailFacts], kind: str) -> str:
    name = next((gpu.name for gpu in gpus if gpu.name), "GPU")
    parts = [f"{len(gpus)}x {name}"]
    if kind == "nvlink" and any(gpu.links for gpu in gpus):
        active = [sum(link.state in ("active", "sleep") for link in gpu.links) for gpu in gpus]
        parts.append(
            f"{min(active)} NVLinks each" if min(active) == max(active) else f"{min(active)} to {max(active)} NVLinks"
        )
    if rails:
        rates = sorted({round(rail.healthy_network_gbyte_s * 8) for rail in rails})
        parts.append(f"{len(rails)} rails of {'/'.join(map(str, rates))} Gb/s")
    return ", ".join(parts)
