"""Optical modules in the RoCE ports of NPUs."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import NpuPort
from agent.model.nic import Lane, TransceiverModule
from agent.model.topology import find_npu_link
from agent.rules.ascend.ports import about_port, list_ports, npu_ports, shows_ports
from agent.rules.context import RuleContext
from agent.rules.nic.optics import DARK_DBM, find_lane_faults, is_lit
from agent.rules.rule import Fail, Result, rule

_LIMITS = ("rx_power_low_alarm_dbm", "rx_power_high_alarm_dbm", "tx_power_low_alarm_dbm", "tx_power_high_alarm_dbm")


def _command(port: NpuPort) -> str:
    return f"hccn_tool -i {port.npu} -optical -g"


@rule("npu-optic-power", each=list_ports)
def npu_optic_power(context: RuleContext, port: NpuPort) -> Result:
    about, module = about_port(port), port.module
    if find_npu_link(context.accelerator_nics, port).state == "DOWN":
        return about.not_applicable("not-in-use", detail="down")
    if module is None:
        return about.unknown("output-missing", command=_command(port))
    if module.state == "absent":
        return about.not_applicable("no-such-device", detail="no module is in the port")
    lit = [lane for lane in module.lanes if is_lit(lane)]
    faults = [*_judge_heat(module), *_judge_light(lit, module), *_judge_dark(module)]
    if faults:
        return _fail_power(port, module, faults)
    if not lit:
        return about.unknown("not-shown", detail="its module shows no power of any lane with light")
    if not all(name in module.thresholds for name in _LIMITS):
        return about.unknown("not-shown", detail="its module has no limits of its power")
    return about.passes()


def _judge_heat(module: TransceiverModule) -> Iterator[tuple[str, tuple[str, str]]]:
    heat, limit = module.temperature_c, module.thresholds.get("temperature_high_alarm_c")
    if heat is not None and limit and heat >= limit:
        yield f"the module has {heat:g} C, its limit is {limit:g}", ("temperature", f"{heat:g} C (limit {limit:g} C)")


def _judge_light(lit: list[Lane], module: TransceiverModule) -> Iterator[tuple[str, tuple[str, str]]]:
    for lane in lit:
        yield from ((text, row) for _, text, row in find_lane_faults(lane, module))


def _judge_dark(module: TransceiverModule) -> Iterator[tuple[str, tuple[str, str]]]:
    """Lanes that send and receive nothing while others receive: a port uses all of its lanes."""
    dark = [lane for lane in module.lanes if not is_lit(lane) and (lane.tx_power_dbm or DARK_DBM) > DARK_DBM]
    if len(dark) < len([lane for lane in module.lanes if lane.rx_power_dbm is not None]):
        for lane in dark:
            yield f"lane {lane.lane} sends light and receives none", (f"lane {lane.lane}", f"{lane.rx_power_dbm:g} dBm")


def _fail_power(port: NpuPort, module: TransceiverModule, faults: list[tuple[str, tuple[str, str]]]) -> Fail:
    name = " ".join(filter(None, (module.vendor, module.part, module.serial)))
    rows = [*([("module", name)] if name else []), *(row for _, row in faults[:16])]
    if module.flags:
        rows.append(("flags", ", ".join(module.flags)))
    return about_port(port).fail(
        summary="; ".join(text for text, _ in faults[:4])
        + (f"; and {len(faults) - 4} more" if len(faults) > 4 else ""),
        impact="Bit errors and link flaps follow: 3 dB less is half the light.",
        evidence=tuple(Evidence(what, value, _command(port)) for what, value in rows),
        severity="error" if module.flags else "warning",
    )


@rule("npu-optic-absent", gate=shows_ports)
def npu_optic_absent(context: RuleContext) -> Iterator[Result]:
    ports = npu_ports(context)
    plugged = sum(port.module is not None and port.module.state != "absent" for port in ports)
    for port in ports:
        yield _judge_absent(context, port, plugged)


def _judge_absent(context: RuleContext, port: NpuPort, plugged: int) -> Result:
    about, module = about_port(port), port.module
    if module is None:
        return about.unknown("output-missing", command=_command(port))
    if module.state != "absent":
        return about.passes()
    if module.lanes or find_npu_link(context.accelerator_nics, port).state == "ACTIVE":
        return about.unknown("undecided", detail="not present, and yet the module shows values or the port is up")
    if not plugged:
        return about.not_applicable("no-such-device", detail="no port is known to have a module")
    if port.address is None:
        return about.unknown(
            "not-shown", detail="not present, and no address: whether the port is to have a cable is not known"
        )
    return about.fail(
        summary="no module in its RoCE port; other NPUs of this node have one",
        impact="The port has no link: jobs over several nodes do not start.",
        evidence=(
            Evidence("optical module", "not present", _command(port)),
            Evidence("other ports with a module", str(plugged), "hccn_tool -i N -optical -g"),
        ),
    )
