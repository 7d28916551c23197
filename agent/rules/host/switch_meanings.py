"""What codes mean that command lines of switches state about their ports."""

from __future__ import annotations

from agent.rules.host.meaning import ToolMeaning
from agent.rules.host.network_tool_meanings import NO_TRAFFIC, RESENT

_WHEN = "What it means depends on when that was."
_REDUNDANCY = (
    "Hosts with a link to each switch of the pair run on one of them, or lose both: the secondary switch may close its "
    "ports."
)
SWITCH_MEANINGS = {
    "switch-disabled": ToolMeaning("warning", "a switch closed a port because of an error", NO_TRAFFIC, "switch"),
    "switch-peer-lost": ToolMeaning("warning", "a switch of a pair (MLAG, vPC) has lost its peer", _REDUNDANCY, "pair"),
    "switch-peer-differs": ToolMeaning(
        "warning", "the switches of a pair (MLAG, vPC) are configured differently", _REDUNDANCY, "pair",
    ),
    "switch-member-out": ToolMeaning(
        "warning", "a member of a link aggregation carries no traffic, others do",
        "The aggregation has less bandwidth; where the host uses its port alone, its packets are lost.", "member",
    ),
    "switch-errors": ToolMeaning("warning", "a switch counts damaged frames on a port", RESENT, "switch-link", "low"),
    "switch-errors-sent": ToolMeaning(
        "warning", "a switch sends damaged frames through a port",
        "They came in damaged through another port, and were passed on before their end was read; or they are longer "
        f"than the port allows. {RESENT}", "stomped", "low",
    ),
    "switch-log-flaps": ToolMeaning(
        "warning", "a switch logs that the link of a port came and went",
        "Each change stops its traffic for seconds; jobs over this port end or wait.", "switch-link", "low",
    ),
    "switch-uncorrected": ToolMeaning(
        "warning", "a switch counts code words that FEC could not correct on a port",
        "Each loses a packet or more. Some come with each start of a link: what they mean depends on whether more "
        "come.", "switch-link", "low",
    ),
    "module-flags": ToolMeaning(
        "warning", "the optical module of a port of a switch states an alarm", RESENT, "switch-module", "low",
    ),
    "switch-storm": ToolMeaning(
        "warning", "the PFC watchdog of a switch stopped a queue because its peer paused it for too long",
        "What is sent in this class is dropped: jobs over this port are slower, or time out.", "storm",
    ),
    "switch-dim": ToolMeaning(
        "warning", "a port of a switch receives far less light than others", RESENT, "switch-module", "low",
    ),
    "switch-module-unseen": ToolMeaning(
        "info", "a switch sees no module in a port whose link is up",
        "Traffic passes; levels of light and alarms of the module are not known.", "unseen", "low",
    ),
    "switch-faults": ToolMeaning(
        "info", "a switch counts faults of a port's link", f"Each stops its traffic for seconds. {_WHEN}",
        "switch-link", "low",
    ),
    "switch-flaps-most": ToolMeaning(
        "warning", "the link of a port of a switch came and went far more often than those of the others",
        f"Each change stops its traffic for seconds. {_WHEN}", "switch-link", "low",
    ),
    "switch-paused": ToolMeaning(
        "warning", "a port of a switch receives far more pauses than all others",
        "What is plugged in there takes data more slowly than its link: the backlog fills the switch, and other ports "
        "wait for it.", "pauses-of-host", "low",
    ),
    "switch-waiting": ToolMeaning(
        "warning", "a port of a switch has a link, and no subnet manager set it up",
        "The port carries nothing until the subnet manager gives what is plugged in there an address.", "waiting",
    ),
    "switch-drops": ToolMeaning(
        "warning", "a switch drops more than a few of the packets of a port",
        "Dropped packets of RoCE are sent again, a whole window of them: jobs over this port are slower, or time out. "
        "What it means depends on when they were dropped, and in which class.", "drops", "low",
    ),
    "switch-drops-most": ToolMeaning(
        "info", "a switch drops packets of a port, few for its traffic and far more than of the others",
        "RoCE needs none to be dropped. What it means depends on when they were dropped, and in which class.",
        "drops", "low",
    ),
    "switch-paused-alone": ToolMeaning(
        "info", "a port of a switch receives many pauses, and the others none",
        "What is plugged in there takes data too slowly, if it is not the only one that uses this class.",
        "pauses-of-host", "low",
    ),
    "switch-pauses-sent": ToolMeaning(
        "info", "a switch pauses one port far more than all others",
        "What is plugged in there is held back, as what it sends goes to a port that is full, or paused itself.",
        "pauses-of-switch", "low",
    ),
    "switch-port-down": ToolMeaning(
        "info", "a port of a switch is on, has a module or a name, and has no link", NO_TRAFFIC, "switch-module", "low",
    ),
    "switch-log-down": ToolMeaning(
        "info", "a switch logs that a port lost its link, and not that it came back",
        NO_TRAFFIC + " A host that was switched off looks like this, too.", "switch-module", "low",
    ),
    "switch-group-down": ToolMeaning(
        "info", "no member of a link aggregation carries traffic", NO_TRAFFIC, "member", "low",
    ),
    "switch-flaps": ToolMeaning(
        "info", "a port of a switch changed its state often since its counters were cleared",
        f"Each change stops its traffic for seconds. {_WHEN}", "switch-link", "low",
    ),
    "switch-errors-few": ToolMeaning(
        "info", "a switch counts damaged frames on a port, few for its traffic",
        "What it means depends on whether more come.", "switch-link", "low",
    ),
    "switch-uncorrected-few": ToolMeaning(
        "info", "a switch counts a few code words that FEC could not correct on a port",
        "Some come with each start of a link: what they mean depends on whether more come.", "switch-link", "low",
    ),
    "switch-stormed": ToolMeaning(
        "info", "the PFC watchdog of a switch stopped a queue at times, and started it again",
        f"What was sent in this class was dropped then. {_WHEN}", "storm", "low",
    ),
    "modules-flags": ToolMeaning(
        "info", "optical modules of several ports of a switch state alarms: ports without a cable do, too", RESENT,
        "switch-module", "low",
    ),
    "switch-slow": ToolMeaning(
        "info", "the link of a port of a switch is slower than those of most others",
        "It is a fault where the port should be like the others: cable, module or a setting of one end limits it.",
        "switch-link", "low",
    ),
    "switch-pfc-port": ToolMeaning(
        "info", "PFC is off on a port of a switch, and on for most others",
        "A switch drops RoCE packets of such a port under congestion. Ports without a host have it off, too.",
        "pfc", "low",
    ),
    "switch-pfc-nowhere": ToolMeaning(
        "info", "PFC is on for the switch, and on no port that is listed",
        "The switch drops RoCE packets under congestion, where it is meant to be lossless.", "pfc", "low",
    ),
}  # fmt: skip
