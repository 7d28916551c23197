"""The names of saved outputs, and which serves where a command's output is wanted.

Names are those of sos: each run of characters outside [A-Za-z0-9_./-] is one "_", then "/" is "."; a suffix such as
.txt may follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from probes.host.commands import (
    KNOWN,
    LABELLED_OF_INTERFACES,
    NVIDIA_SMI_SAVED,
    OF_INTERFACE,
    OF_NPU,
    OF_SERVICE,
)
from probes.text import lazy_pattern

SUFFIXES = (".txt", ".xml", ".log", ".out", ".json")
OF_DEVICES = tuple(dict.fromkeys(OF_INTERFACE + LABELLED_OF_INTERFACES + OF_NPU + OF_SERVICE))
_NAMES_KEPT = 2048  # that are taken apart: each output is asked for by many probes
LSPCI_EXTRAS = frozenset("Dnkbvx")  # options of lspci that only add to what it prints
LONG_OPTIONS = {  # of nvidia-smi
    "--query": "-q",
    "--xml-format": "-x",
    "--list-gpus": "-L",
    "--matrix": "-m",
    "--status": "-s",
    "--errorcounters": "-e",
    "--capabilities": "-c",
    "--remotelinkinfo": "-R",
}


def is_of_device(name: str) -> bool:
    """Whether it is the name of an output about one interface, NPU or service."""
    return any(find_device(argv, name) for argv in OF_DEVICES)


def find_device(argv: tuple[str, ...], name: str) -> str | None:
    """The device that an output is about, by its name; None for what is not this command's about one device.

    >>> find_device(("ethtool", "-S"), "ethtool_-S_ens1f0np0.txt"), find_device(("ethtool", "-S"), "ethtool_-S")
    ('ens1f0np0', None)
    """
    wanted, options = _command_parts(argv)
    words, others = _parts(file_stem(name))
    if words[: len(wanted)] != wanted or set(options) != set(others):
        return None
    return "_".join(words[len(wanted) :]) or None


@cache
def _command_parts(argv: tuple[str, ...]) -> tuple[list[str], list[str]]:
    return _parts(saved_name(argv))


@lru_cache(_NAMES_KEPT)
def saved_name(argv: tuple[str, ...]) -> str:
    """The name that sos gives to a command's output.

    >>> saved_name(("nvidia-smi", "topo", "-m")), saved_name(("systemctl", "show", "--property=Id,Sub", "a.service"))
    ('nvidia-smi_topo_-m', 'systemctl_show_--property_Id_Sub_a.service')
    """
    line = re.sub(r"^/(?:usr/)?s?bin/", "", " ".join(argv))
    return re.sub(r"[^A-Za-z0-9_./-]+", "_", line).replace("/", ".").strip("._")


def best_name(argv: tuple[str, ...], names: list[str]) -> str | None:
    """The file that serves where this command's output is wanted. Options count as a set.

    >>> best_name(("lspci", "-D", "-nn", "-vvv"), ["lspci_-nnvvv", "lspci_-t", "lspci_-vv.txt"])
    'lspci_-nnvvv'
    >>> best_name(("nvidia-smi", "-L"), ["nvidia-smi_--list-gpus", "nvidia-smi"])
    'nvidia-smi_--list-gpus'
    >>> best_name(("nvidia-smi", "-q"), ["nvidia-smi_-q_-x.xml"])
    """
    if not names:
        return None
    wanted_words, wanted = _parts(saved_name(argv))
    ranked: list[tuple[int, str]] = []
    for name in names:
        if argv in NVIDIA_SMI_SAVED and name.startswith(saved_name(argv)):
            ranked.append((0, name))
        words, options = _parts(file_stem(name))
        if words != wanted_words:
            continue
        rank = _lspci_rank(wanted, options) if argv[0] == "lspci" else 0 if set(wanted) == set(options) else None
        if rank is not None:
            ranked.append((-rank, name))
    return min(ranked)[1] if ranked else None


_TOOL_IN_NAME = lazy_pattern(
    "|".join(sorted({rf"(?<=[-_.]){re.escape(argv[0])}(?=[_.]|$)" for argv in KNOWN}, reverse=True))
)


def group_by_prefix(names: Iterable[str]) -> dict[str, list[str]]:
    """Names of outputs by what is before the command: "n7-" of "n7-ibstat.txt".

    >>> group_by_prefix(["n7-ibstat.txt", "n8-ibstat.txt", "n7-nvidia-smi_-q.txt", "lspci_-vvv.txt", "notes.md"])
    {'n7-': ['ibstat.txt', 'nvidia-smi_-q.txt'], 'n8-': ['ibstat.txt'], '': ['lspci_-vvv.txt']}
    >>> group_by_prefix(["hccn_tool_-i_0_-ip_-g.txt"])
    {'': ['hccn_tool_-i_0_-ip_-g.txt']}
    """
    own = tuple(f"{argv[0]}{end}" for argv in KNOWN for end in "_.")
    groups: dict[str, list[str]] = {}
    for name in names:
        if f"{name}.".startswith(own):
            groups.setdefault("", []).append(name)
        elif match := _TOOL_IN_NAME.search(name):
            groups.setdefault(name[: match.start()], []).append(name[match.start() :])
    return groups


def file_stem(name: str) -> str:
    """The name of a file without the suffix that a person gave it."""
    return next((name[: -len(suffix)] for suffix in SUFFIXES if name.endswith(suffix)), name)


_FOLDERS = ("hw_counters", "counters", "gid_attrs_types", "gid_attrs_ndevs", "gids", "pkeys", "statistics", "device")
_FILES = lazy_pattern(
    r"(?:cat_)?(?:(?P<proc>proc_driver_nvidia_(?:version|params)|proc_[a-z]{1,40})"
    r"|sys_class_infiniband_(?P<device>\w{1,40}?)_ports_(?P<port>\d{1,3})_(?P<of_port>\w{1,80})"
    r"|sys_class_net_(?P<interface>[a-z0-9]{1,15})_(?P<of_interface>\w{1,80})"
    r"|sys_module_(?P<module>\w{1,40}?)_parameters_(?P<parameter>\w{1,80}))"
)


def find_path(name: str) -> str | None:
    """The file of the kernel that a saved file was read from, by its name, where "/" is "_" and may be nothing else.

    >>> find_path("cat_proc_cmdline.txt"), find_path("sys_class_infiniband_mlx5_0_ports_1_gid_attrs_types_3")
    ('/proc/cmdline', '/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/3')
    >>> find_path("cat_sys_class_net_ens1f0np0_device_numa_node.txt"), find_path("proc_notes.v2.txt")
    ('/sys/class/net/ens1f0np0/device/numa_node', None)
    """
    match = _FILES.fullmatch(file_stem(name))
    if match is None:
        return None
    if match["proc"]:
        return "/" + match["proc"].replace("_", "/")
    if match["module"]:
        return f"/sys/module/{match['module']}/parameters/{match['parameter']}"
    if match["device"]:
        return f"/sys/class/infiniband/{match['device']}/ports/{match['port']}/{_with_folder(match['of_port'])}"
    return f"/sys/class/net/{match['interface']}/{_with_folder(match['of_interface'])}"


_PORT_TOOL = lazy_pattern(r"(?P<tool>mlxlink|mstlink)_(?:-\w{1,20}_){0,4}-d_(?P<device>[\w.:-]{1,60}?)(?:_-.{0,60})?")


def find_device_command(name: str) -> str | None:
    """The command that a file was saved of, where its output does not name the device.

    >>> find_device_command("mlxlink_-d_37:00.1_-m_-c.txt"), find_device_command("mlxlink_-d_mlx5_0")
    ('mlxlink -d 37:00.1', 'mlxlink -d mlx5_0')
    """
    match = _PORT_TOOL.fullmatch(file_stem(name))
    return f"{match['tool']} -d {match['device']}" if match else None


def _with_folder(attribute: str) -> str:
    folder = next((folder for folder in _FOLDERS if attribute.startswith(f"{folder}_")), "")
    shown = folder.replace("gid_attrs_", "gid_attrs/")
    return f"{shown}/{attribute.removeprefix(f'{folder}_')}" if folder else attribute


_WITH_STATISTICS = ("-I", "--include-statistics")  # the same output, and lines behind it


@lru_cache(_NAMES_KEPT)
def _parts(stem: str) -> tuple[list[str], list[str]]:
    tokens = [token for token in stem.split("_") if token]
    if tokens[:1] == ["nvidia-smi"]:
        tokens = [LONG_OPTIONS.get(token, token) for token in tokens]
    elif tokens[:1] == ["ethtool"]:
        tokens = [token for token in tokens if token not in _WITH_STATISTICS]
    return [t for t in tokens if not t.startswith("-")], [t for t in tokens if t.startswith("-")]


def _lspci_rank(wanted: list[str], options: list[str]) -> int | None:
    """How much it shows; None where it does not print what is wanted. Without -v it still names the functions."""
    letters = "".join(options).replace("-", "")
    if not set(letters) <= LSPCI_EXTRAS or any(option.startswith("--") for option in options):
        return None
    kind = "x" if any("x" in option for option in wanted) else "v"
    if kind not in letters and (kind == "x" or letters.count("n") == 1):  # -n leaves the names of the classes out
        return None
    return letters.count(kind) * 8 + letters.count("n")
