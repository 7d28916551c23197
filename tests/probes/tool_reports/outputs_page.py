"""The page of all outputs of tools that are read, and of the faults that tools state in them."""

from __future__ import annotations

from probes.host.commands import (
    CHECKS,
    COMMANDS,
    DEVICE_LABELS,
    LABELLED,
    LABELLED_OF_INTERFACES,
    LOOP,
    OF_INTERFACE,
    OF_NPU,
    PODS,
    REPEATED,
    SAVED,
    SHEET,
    STATED,
    SWITCH_PORTS,
    TOOL_ERRORS_SAVED,
)
from probes.sources.given import describe_command
from probes.sources.identify import MARKS
from probes.sources.output_names import saved_name
from probes.sources.pieces import IN_PARTS
from probes.tool_reports.network.port_errors import COUNTERS
from probes.tool_reports.probe import READERS

_HEAD = """# Outputs that are read

Every output of a tool that a saved source may hold. This page is made from the tables that the program uses
(`probes/host/commands.py`, `probes/sources/identify.py`); run `make docs` after a change.
[Sources](sources.md#saved-outputs) states what may stand around an output, and how a file is named after its command.
`by its text`: it is recognized in a file of any name, and without its command in a longer text.

| command | recognized | a part of it (`grep`, `head`) |
|---|---|---|
"""
_FAULTS = """
## Faults that tools state

Each is an event of the report (`kind` `tool`) and a finding of [`tool-reports-fault`](rules-map.md). What an existing
rule finds from the same output is not here: lost GPUs, ECC counts and persistence in the table of `nvidia-smi`
(`gpu-missing`, `gpu-ecc`, `gpu-persistence-off`), and its sentences where nothing works (`gpu-driver-unusable`).
[Each code](../agent/rules/host/meanings/tool-reports-fault.md) has its severity, confidence and meaning. Codes that
begin with `words-` or `values-` are of lines and values that no check explains
([how](decisions/0029-lines-that-no-table-has.md)): notes of low confidence.
"""
_LABELS = """
## Labels that no field has

`labels of devices` is any text in which at least four headings name devices: `Features for ens1f0np0:` and the like of
ethtool (`-k`, `-c`, `-g`, `-l`, `--show-priv-flags`), `Device #1:` of mlxconfig, `pci/0000:3b:00.0:` of devlink,
`NPU ID : 0` of npu-smi, `[0] AIP (accel0)` of `hl-smi -q`, and settings of interfaces that sysctl prints. Of these, and
of the outputs below, every label is compared among the devices, whether a field of the report has it or not. What is
not the same on all is in [`topology.unequal_labels`](report.md#labels-that-no-field-has): {commands}.
"""
_PORTS = """
## Ports of an InfiniBand fabric

`ibqueryerrors`, `perfquery` and lines of ibdiagnet are events of the report (`kind` `ib_port`), one per port with an
error, of switches too, each with the port at its other end where the output names it; `ib-fabric-errors` decides which
are a bad cable. Taken are the counters below. Not taken are counters of data, packets and waiting (PortXmitWait), the
sum over all ports of a switch (`port ALL`), and tables of details (`perfquery -D`). They are no counters of this host's
ports: a host name in them is text of the subnet.

"""


def describe_outputs() -> str:
    """The page as Markdown."""
    known = {argv for commands, _ in MARKS for argv in commands} | {PODS, STATED, SWITCH_PORTS}
    known |= {CHECKS, SHEET, LOOP, REPEATED, DEVICE_LABELS, *TOOL_ERRORS_SAVED}
    devices = {*OF_INTERFACE, *OF_NPU, *LABELLED_OF_INTERFACES}
    commands = sorted(dict.fromkeys((*COMMANDS, *SAVED, *LABELLED_OF_INTERFACES)), key=lambda argv: " ".join(argv))
    rows = [
        f"| `{_name(argv, argv in devices)}` | {_recognize(argv in known)} | {_describe_part(argv)} |\n"
        for argv in commands
    ]
    counters = [f"- `{printed}` (`{name}`)\n" for name, printed in COUNTERS.items()]
    tools = sorted({argv[0] for commands, _ in READERS for argv in commands})
    text = f"\nRead for it: {', '.join(f'`{tool}`' for tool in tools)}.\n"
    compared = [f"`{describe_command(argv)}`" for argv in (*LABELLED, *LABELLED_OF_INTERFACES) if argv != DEVICE_LABELS]
    labels = _LABELS.format(commands=", ".join(compared))
    return _HEAD + "".join(rows) + labels + _FAULTS + text + _PORTS + "".join(counters)


def _name(argv: tuple[str, ...], is_of_device: bool) -> str:
    return f"{describe_command(argv)}{' DEVICE' if is_of_device else ''}"


def _recognize(by_text: bool) -> str:
    return "by its text" if by_text else "by the name of the file, or the command before it"


def _describe_part(argv: tuple[str, ...]) -> str:
    return "used as a part" if saved_name(argv).startswith((*IN_PARTS, "journalctl")) else "not used"
