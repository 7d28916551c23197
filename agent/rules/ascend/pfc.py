"""PFC storms that NPUs send, by the watchdog of their RoCE ports."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.model.counters import port_counters
from agent.model.finding import Evidence
from agent.model.gpu import NpuPort
from agent.model.reasons import Reason
from agent.model.topology import find_npu_link
from agent.rules.ascend.ports import label_of, npu_ports, places_of, report_no_ports, subject_of
from agent.rules.context import RuleContext
from agent.rules.rule import Fail, Pass, Result, Unknown, rule

_COUNT = re.compile(r"tx_pfc[0-7]_duration_(?:warn|err)_cnt")


@rule("npu-pfc-storm")
def npu_pfc_storm(case: RuleContext) -> Iterator[Result]:
    yield from report_no_ports(case)
    for port in npu_ports(case):
        yield _judge_storm(case, port)


def _judge_storm(case: RuleContext, port: NpuPort) -> Result:
    subject, command = subject_of(port), f"hccn_tool -i {port.npu} -pfc_stat -g"
    link = find_npu_link(case.accelerator_nics, port)
    counts = {name: n for name, n in port_counters(link).items() if _COUNT.fullmatch(name)}
    errors = {name: n for name, n in sorted(counts.items()) if "_err_" in name}
    if not errors:
        return Unknown(subject, Reason("output-missing", command=command))
    if case.not_counted:
        return Unknown(subject, case.not_counted)
    moves = {name: case.moved(f"port:{port.nic}/{link.port}", name, errors) for name in errors}
    if any(moves.values()):
        return Fail(
            subject=subject,
            label=label_of(port),
            summary=f"it holds its switch port in PFC pause (priority {', '.join(n[6] for n in moves if moves[n])})",
            impact="Pause spreads from switch to switch: jobs of other nodes stop as well.",
            evidence=tuple(Evidence(what=n, value=f"+{move}", source=command) for n, move in moves.items() if move),
            places=places_of(port),
        )
    gap = next((name for name, move in moves.items() if move is None), None)
    if gap:
        return Unknown(subject, case.not_moved(f"port:{port.nic}/{link.port}", gap))
    if not any(counts.values()):
        return Unknown(
            subject,
            Reason("undecided", detail="the watchdog has counted nothing since it was reset: by default it is off"),
        )
    return Pass(subject)
