"""HCCL settings of jobs, and rank tables, against the node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agent.model.finding import Evidence
from agent.model.gpu import NpuPort
from agent.model.reasons import Reason
from agent.rules.ascend.npus import find_npus, is_a3
from agent.rules.ascend.ports import about_port, npu_ports, shows_ports
from agent.rules.context import RuleContext
from agent.rules.nccl.settings import EffectiveSetting, effective_settings, is_surely_unset, why_jobs_unread
from agent.rules.node_wide import aggregate_node_wide
from agent.rules.pages import read_limit
from agent.rules.rule import NODE, Fail, Result, Unknown, rule
from agent.rules.wording import format_ranges

_SERVICE_LEVEL, _DEFAULT_LEVEL = "HCCL_RDMA_SL", 4
_TIMEOUT, _RETRIES = "HCCL_RDMA_TIMEOUT", "HCCL_RDMA_RETRY_CNT"
_DEFAULTS = {_TIMEOUT: 20, _RETRIES: 7}
_UNIT_SECONDS = 4.096e-6  # a timeout is that times two to the power of the setting
_LEAST = {_TIMEOUT: read_limit("hccl-timeout-short.timeout"), _RETRIES: read_limit("hccl-timeout-short.retries")}
_NO_HCCS, _PCIE, _ROCE = "HCCL_INTER_HCCS_DISABLE", "HCCL_INTRA_PCIE_ENABLE", "HCCL_INTRA_ROCE_ENABLE"


@rule("npu-pfc-priority", gate=shows_ports)
def npu_pfc_priority(context: RuleContext) -> Iterator[Result]:
    if context.settings.facts.get("roce_mode") == "lossy":
        yield NODE.not_applicable("declared", detail='declared roce_mode = "lossy"')
        return
    setting = next(iter(effective_settings(context, _SERVICE_LEVEL)), None)
    text = setting.value.strip() if setting else str(_DEFAULT_LEVEL)
    if not (text.isascii() and text.isdigit() and len(text) == 1 and int(text) < 8):
        yield NODE.unknown("undecided", detail=f"{_SERVICE_LEVEL} is {text[:20]!r}, no priority")
        return
    answers = (_judge_priority(port, int(text), setting) for port in npu_ports(context))
    yield from aggregate_node_wide(answers, f"PFC does not protect priority {text}, which HCCL uses")


def _judge_priority(port: NpuPort, level: int, setting: EffectiveSetting | None) -> Result:
    if port.pfc is None:
        return about_port(port).unknown(
            "not-asked", detail=f"PFC of NPU {port.npu} was never set, or was not read: the firmware's default"
        )
    if level in port.pfc:
        return about_port(port).passes()
    source = setting.source if setting else "HCCL's default"
    return about_port(port).fail(
        summary=f"PFC protects priority {format_ranges(port.pfc)}, HCCL uses {level}",
        impact="Packets of HCCL are dropped when the network is congested; each loss costs a timeout of seconds.",
        evidence=(
            Evidence(f"bitmap_{port.npu}", format_ranges(port.pfc), "/etc/hccn.conf"),
            Evidence(_SERVICE_LEVEL, str(level), source),
        ),
        values=(
            ("PRIORITY", str(level)),
            ("BITMAP", ",".join("1" if n == level or n in port.pfc else "0" for n in range(8))),
        ),
    )


@rule("hccl-inter-hccs-disabled")
def hccl_inter_hccs_disabled(context: RuleContext) -> Result:
    settings = effective_settings(context, _NO_HCCS)
    disabling = next((setting for setting in settings if setting.value.strip().upper() == "TRUE"), None)
    if not is_a3(context):
        return NODE.not_applicable("no-such-device", detail="no die of an Atlas A3")
    if disabling is None:
        known = settings or is_surely_unset(context)
        if known:
            return NODE.passes()
        return NODE.unknown(why_jobs_unread(context) or Reason("not-shown", detail="settings of jobs were not read"))
    return _fail_setting(
        "HCCS between nodes is switched off",
        "Traffic inside a SuperPoD goes over RoCE: 50 GB/s for each module instead of 392 (data sheet rates).",
        [(_NO_HCCS, disabling)],
    )


@rule("hccl-intra-invalid")
def hccl_intra_invalid(context: RuleContext) -> Result:
    pcie, roce = _first(context, _PCIE), _first(context, _ROCE)
    is_pcie = pcie is None or pcie.value.strip() != "0"
    is_roce = roce is not None and roce.value.strip() == "1"
    stated = [(name, setting) for name, setting in ((_PCIE, pcie), (_ROCE, roce)) if setting is not None]
    if not find_npus(context):
        return NODE.not_applicable("no-such-device", detail="no Ascend NPU")
    if not stated:
        known = is_surely_unset(context)
        if known:
            return NODE.passes()
        return NODE.unknown(why_jobs_unread(context) or Reason("not-shown", detail="settings of jobs were not read"))
    if is_roce and pcie is not None and pcie.value.strip() == "1":
        return _fail_setting("both are 1, which HCCL does not support", "Jobs end at their start.", stated)
    if not is_pcie and not is_roce:
        return _fail_setting("PCIe is 0 without RoCE, which HCCL does not support", "Jobs end at their start.", stated)
    return NODE.passes()


@rule("hccl-timeout-short")
def hccl_timeout_short(context: RuleContext) -> Result:
    settings = {key: setting for key in _DEFAULTS if (setting := _first(context, key)) is not None}
    values = _DEFAULTS | {key: _to_number(setting.value.strip()) for key, setting in settings.items()}
    short = [key for key, value in values.items() if value is not None and value < context.threshold(_LEAST[key])]
    if not any(port.address for port in npu_ports(context)):
        return NODE.not_applicable(
            "not-configured", detail="no RoCE port of an NPU has an address: its jobs stay on this node"
        )
    if short:
        return _fail_timeout(short, values, settings)
    if None in values.values():
        key = next(key for key, value in values.items() if value is None)
        return NODE.unknown("undecided", detail=f"{key} is {settings[key].value[:20]!r}, no number")
    if settings or is_surely_unset(context):
        return NODE.passes()
    return NODE.unknown(why_jobs_unread(context) or Reason("not-shown", detail="settings of jobs were not read"))


def _to_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 3 else None


def _fail_timeout(short: list[str], values: Mapping[str, int | None], settings: dict[str, EffectiveSetting]) -> Fail:
    exponent, retries = values[_TIMEOUT], values[_RETRIES]
    how_long = f" of {_UNIT_SECONDS * 2**exponent:.2g} s" if exponent is not None else ""
    count = "its retries" if retries is None else f"{retries} retr{'y' if retries == 1 else 'ies'}"
    return _fail_setting(
        ", ".join(f"{values[key]}, {_DEFAULTS[key]} is the default" for key in short),
        f"A connection between nodes ends after {count} with a timeout{how_long}: a link that flaps, or a switch that "
        "restarts, ends the job.",
        [(key, settings[key]) for key in short],
    )


def _first(context: RuleContext, key: str) -> EffectiveSetting | None:
    return next(iter(effective_settings(context, key)), None)


def _fail_setting(summary: str, impact: str, settings: list[tuple[str, EffectiveSetting]]) -> Fail:
    names = " and ".join(name for name, _ in settings)
    return NODE.fail(
        summary=f"{names}: {summary}",
        impact=impact,
        evidence=tuple(setting.evidence(name) for name, setting in settings),
        values=settings[0][1].process,
    )


@rule("npu-rank-table-mismatch")
def npu_rank_table_mismatch(context: RuleContext) -> Iterator[Result]:
    ranks = context.topology.ascend.rank_tables if context.topology.ascend else []
    own = [rank for rank in ranks if rank.server == context.node.hostname]
    ports = {port.npu: port for port in npu_ports(context) if port.address}
    if not ranks:
        yield NODE.not_applicable("no-such-device", detail="no rank table")
    elif not own:
        yield NODE.unknown("undecided", detail="no server of the rank table has this node's name")
    for rank in own:
        port = ports.get(rank.npu)
        if port is None or rank.address is None:
            yield Unknown(
                f"npu:{rank.npu}", Reason("not-shown", detail="its address is not known, or not in the rank table")
            )
        elif port.address == rank.address:
            yield about_port(port).passes()
        else:
            yield about_port(port).fail(
                summary=f"the rank table has address {rank.address}, the port has {port.address}",
                impact="HCCL connects to an address that this NPU does not have: the job does not start.",
                evidence=(
                    Evidence("device_ip", rank.address, rank.source),
                    Evidence(f"address_{port.npu}", port.address or "", "/etc/hccn.conf"),
                ),
                values=(("RANK_IP", rank.address),),
            )
