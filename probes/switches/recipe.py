"""The read-only commands whose outputs are read here, by system, with the names of the files to save them in."""

from __future__ import annotations

from probes.named_tuple import NamedTuple


class RecipeLine(NamedTuple):
    """One command. `output`: what the reader calls it. `per_port`: PORT stands for each port in turn."""

    command: str
    file: str
    output: str
    per_port: bool = False


_DATE = RecipeLine("date -u +%Y-%m-%dT%H:%M:%SZ", "date.txt", "date")
_CONFIG = RecipeLine("sudo cat /etc/sonic/config_db.json", "config_db.json", "config_db.json")


def _save(command: str, suffix: str = "txt") -> RecipeLine:
    """With the file named by the command, as saved outputs of hosts are."""
    output = command.removesuffix(" -j").removesuffix(" --json")
    return RecipeLine(command, f"{command.replace(' ', '_')}.{suffix}", output)


RECIPES: dict[str, tuple[RecipeLine, ...]] = {
    "sonic": (
        _DATE,
        _CONFIG,
        _save("show lldp table"),
        _save("show interfaces status"),
        _save("show interfaces fec status"),
        _save("show interfaces counters fec-stats"),
        _save("show interfaces flap"),
        _save("show pfc counters"),
        _save("show pfcwd config"),
        _save("show pfcwd stats"),
        _save("show priority-group drop counters"),
        _save("show headroom-pool watermark"),
        _save("show queue counters -j", "json"),
        _save("show queue wredcounters --json", "json"),
    ),
    "sonic-enterprise": (_DATE, _CONFIG),
    "cumulus": (
        _DATE,
        RecipeLine("nv config show -o json", "nv_config_show_-o_json.json", "nv config show"),
        RecipeLine("nv show interface -o json", "nv_show_interface_-o_json.json", "nv show interface"),
        RecipeLine("nv show interface lldp -o json", "nv_show_interface_lldp_-o_json.json", "nv show interface"),
        RecipeLine(
            "nv show interface PORT counters qos -o json",
            "nv_show_interface_PORT_counters_qos_-o_json.json",
            "nv show interface counters qos",
            per_port=True,
        ),
        RecipeLine(
            "nv show interface PORT qos pfc-watchdog -o json",
            "nv_show_interface_PORT_qos_pfc-watchdog_-o_json.json",
            "nv show interface qos pfc-watchdog",
            per_port=True,
        ),
    ),
}


def format_recipe(system: str) -> str:
    """The commands as lines of a shell, in a folder of the switch's name. Raises KeyError."""
    lines = ["# On the switch; they read only. One folder for each switch.", 'mkdir -p "$(hostname)"; cd "$(hostname)"']
    ports = ""
    for line in RECIPES[system]:
        if line.per_port and not ports:
            ports = "$(ls /sys/class/net | grep ^swp)"
        if line.per_port:
            command, file = (text.replace("PORT", "$port") for text in (line.command, line.file))
            lines.append(f"for port in {ports}; do {command} > {file}; done")
        else:
            lines.append(f"{line.command} > {line.file}")
    return "\n".join(lines) + "\n"
