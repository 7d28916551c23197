"""What further sentences of the subnet manager mean (`probes/services/subnet_manager_sentences.py`)."""

from agent.rules.host.driver_meaning import Meaning

SUBNET_MANAGER_MEANINGS = {
    "sm-lids-out": Meaning(
        "error", "it has no free address (LID) left", "Further ports get no LID and stay in INIT.", False
    ),
    "sm-files": Meaning(
        "warning", "it cannot write its files", "After its next start ports may get other LIDs: running jobs end.",
        False,
    ),
    "sm-noisy-port": Meaning(
        "warning", "it took a port out of use that sends traps all the time",
        "Traffic of that link goes another way, or its node is cut off.", False, "medium",
    ),
    "sm-link-trap": Meaning(
        "warning", "a port reports that errors of its link are above the limit",
        "Packets on that link are sent again or lost.", False, "medium",
    ),
    "sm-prefix": Meaning(
        "warning", "ports use another subnet prefix than it is configured for",
        "IPoIB and connections by GID fail between these ports and others.", False, "medium",
    ),
    "sm-tables": Meaning(
        "warning", "a switch did not take its routing table", "Routes over that switch are old or missing.",
        False, "low",
    ),
    "sm-group-refused": Meaning(
        "info", "it refused to let ports join a multicast group: settings differ, or the group does not exist",
        "IP over these ports (IPoIB) does not work; RDMA does not need it.", False, "medium",
    ),
    "sm-no-answer": Meaning(
        "info", "nodes or switches did not answer it in time",
        "Their ports may be missing in the routes; one that was restarted comes back by itself.", False, "low",
    ),
}  # fmt: skip
