"""PFC storms that NPUs send, by the watchdog of their RoCE ports."""

from __future__ import annotations

import re

from agent.model.counters import port_counters
from agent.model.finding import Evidence
from agent.model.gpu import NpuPort
from agent.model.topology import find_npu_link
from agent.rules.ascend.ports import about_port, list_ports
from agent.rules.context import RuleContext
from agent.rules.rule import Result, rule

_COUNT = r"tx_pfc[0-7]_duration_(?:warn|err)_cnt"


@rule("npu-pfc-storm", each=list_ports)
def npu_pfc_storm(context: RuleContext, port: NpuPort) -> Result:
    about, command = about_port(port), f"hccn_tool -i {port.npu} -pfc_stat -g"
    link = find_npu_link(context.accelerator_nics, port)
    counts = {name: n for name, n in port_counters(link).items() if re.fullmatch(_COUNT, name)}
    errors = {name: n for name, n in sorted(counts.items()) if "_err_" in name}
    if not errors:
        return about.unknown("output-missing", command=command)
    if context.why_not_counted:
        return about.unknown(context.why_not_counted)
    moves = {name: context.counter_delta(f"port:{port.nic}/{link.port}", name, errors) for name in errors}
    if any(moves.values()):
        return about.fail(
            summary=f"it holds its switch port in PFC pause (priority {', '.join(n[6] for n in moves if moves[n])})",
            impact="Pause spreads from switch to switch: jobs of other nodes stop as well.",
            evidence=tuple(Evidence(n, f"+{move}", command) for n, move in moves.items() if move),
        )
    gap = next((name for name, move in moves.items() if move is None), None)
    if gap:
        return about.unknown(context.why_no_delta(f"port:{port.nic}/{link.port}", gap))
    if not any(counts.values()):
        return about.unknown(
            "undecided", detail="the watchdog has counted nothing since it was reset: by default it is off"
        )
    return about.passes()
