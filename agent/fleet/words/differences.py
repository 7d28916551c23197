"""What differs from its peers, as a sentence: `MTU is 1500; 30 of 32 rails have 4220`."""

from __future__ import annotations

from agent.fleet.questions.bags import ABSENT
from agent.fleet.questions.odd import Outlier
from agent.fleet.words.pieces import count, number

_STATES = {
    "no_driver": "no driver is bound",
    "vfio": "it is given to a guest (vfio)",
    "no_rdma_device": "it has no RDMA device",
    "other_namespace": "its interface is in another network namespace",
    "present": "a driver is bound",
}


def describe_outlier(outlier: Outlier) -> str:
    """The value, how far it is away, and what its peers have."""
    value = describe_value(outlier.attribute, outlier.what, outlier.value)
    if outlier.attribute == "probe-status":
        value = f"the probe {', '.join(outlier.places)} ended as {outlier.value}"
    away = f" ({outlier.by})" if outlier.by else ""
    return f"{value[:1].upper()}{value[1:]}{away}; {describe_peers(outlier)}."


def describe_peers(outlier: Outlier) -> str:
    """`30 of 32 rails have 4220`."""
    usual = outlier.usual
    if outlier.attribute in ("cmdline", "settings"):
        usual = "not have it" if usual == ABSENT else usual
    elif outlier.attribute == "services":
        usual = usual.partition("=")[2]
    elif outlier.attribute.endswith("-pfc"):
        usual = _describe_priorities(usual)
    elif outlier.attribute == "nic-state":
        usual = "a driver" if usual == "present" else usual
    have = "do" if usual == "not have it" else "have"
    return f"{number(outlier.usual_count)} of {count(outlier.of, outlier.one)} {have} {usual}"


def describe_value(attribute: str, what: str, value: str) -> str:
    """`port state is DOWN`; PFC by its priorities, a driver's state in words."""
    if attribute.endswith("-pfc"):
        return f"PFC is on for {_describe_priorities(value)}" if "1" in value else "PFC is off"
    if attribute == "nic-state" and value in _STATES:
        return _STATES[value]
    if attribute in ("cmdline", "settings"):
        return f"{what}: missing" if value == ABSENT else f"{what} has {value}"
    if attribute == "services":
        return f"service {value.replace('=', ' is ', 1)}"
    return f"{what.removesuffix(' of a rail')} is {value}"


def _describe_priorities(bits: str) -> str:
    """
    >>> _describe_priorities("00010000"), _describe_priorities("00000000"), _describe_priorities("00011000")
    ('priority 3', 'PFC off', 'priorities 3, 4')
    """
    on = [str(priority) for priority, bit in enumerate(bits) if bit == "1"]
    return "PFC off" if not on else f"priority {on[0]}" if len(on) == 1 else f"priorities {', '.join(on)}"
