"""What names of columns and labels stand for, whichever vendor's: one row per fact, names without blanks and signs.

A name is in one row. A name that both directions have (`error packets`) counts where the lines are of what the port
receives. Counters that no row has are known by a word in their names.
"""

from __future__ import annotations

from probes.text import lazy_pattern

DAMAGED, DAMAGED_TOTAL, RECEIVED, DAMAGED_SENT = "damaged", "damaged_total", "received", "damaged_sent"
UNCORRECTED, ERRORS_PER_BIT, FLAPS = "uncorrected", "errors_per_bit", "flaps"
STATE, CLOSED, ADMIN, MODULE, DESCRIBED, SPEED = "state", "closed", "admin", "module", "described", "speed"
STORMS, LIGHT, PFC = "storms", "light", "pfc"
LOST_SENDING, LOST_RECEIVING, SENT = "lost_sending", "lost_receiving", "sent"
REASON, PAUSES, LOGICAL, FAULTS, PRESENCE = "reason", "pauses", "logical", "faults", "presence"

FACTS = {
    DAMAGED: (
        "ethcrc ethfcs crcalignerrors fcs fcserr fcserrs fcserrors crc crcs crcerrors rxcrc rxcrcerrors "
        "rxfcserrors align alignerr alignment alignments alignmenterrors symbol symbolerr symbols "
        "symbolerrors rxsymbolerrors fragments framingerrors"
    ),
    DAMAGED_TOTAL: (
        "ethinerr rxerr rxerrs inerrors inputerrors inputerror totalerror totalerrors rcverr rcverrors "
        "errpkts errorpkts totalpacketsreceivedwitherrors"
    ),
    DAMAGED_SENT: "outputerror outputerrors outerrors outerrs txerr txerrs xmiterr",
    RECEIVED: (
        "rxhctotalpkts totalpacketsreceivedwithouterrors inpackets ethinpkts rxok inucastpkts inpkts "
        "inputpackets packetsinput totalpkts inputtotal unicastpacketsinput rxpackets receivedpackets"
    ),
    UNCORRECTED: (
        "fecuncorr fecuncorrectederrors fecuncorrectedcodewords uncorrectedcodewords "
        "fecuncorrectablecodewords uncorrected fecuncorrectedcw fecuncorrectableerrors uncorrectablecodewords "
        "rsfecuncorrectable fecuncorrectableblocks uncorrectableblocks fecuncorrectableerr fecuncorrectable "
        "feccounteruncorrectable"
    ),
    ERRORS_PER_BIT: "effectiveber symbolber fecpostber postfecber postfecerrorrate",
    FLAPS: "linkstatuschangessincelastclear linkstatuschanges carriertransitions flapcount flaps linkflaps linkdowns",
    STATE: (
        "status state operstatus operstate oper phy link linkstate operationalstate operationalstatus physicallink "
        "currentstate linkstatus kernel physical physicalstate physicalportstate portstate"
    ),
    CLOSED: "errordowncause errdisabledreason errdisablereason errdisablecause errdisabledcause",
    ADMIN: "admin adminstatus adminstate administrativestate",
    MODULE: "type port media mediatype transceiver transceivertype",
    DESCRIBED: "name description descr remotehost",
    SPEED: "speed currentlinerate linespeed operspeed",
    STORMS: "detected deadlocknum deadlockcount stormdetectedrestored totaltimesstuck txqstuckcount shutdown stuck",
    LIGHT: (
        "dbm rxpowerdbm opticalrxpowerdbm rxdbm rx1power rx2power rx3power rx4power rx5power rx6power rx7power rx8power"
    ),
    PFC: "opervlbmap pfcoper",
    LOST_SENDING: (
        "txdrp droppkts taildroppedpackets outputdiscard outputdiscards outdiscards outdrops hoqdiscardpackets"
    ),
    LOST_RECEIVING: "rxdrp indiscards pg3 pg4",
    SENT: "txok counterpkts packets outputpackets packetsoutput outpkts outucastpkts",
    PAUSES: (
        "pfc0 pfc1 pfc2 pfc3 pfc4 pfc5 pfc6 pfc7 rxpfc txpfc rxppp txppp rxpause txpause rxpauseframes txpauseframes "
        "pfcrx pfctx rxpfcframes txpfcframes rxpfcpackets txpfcpackets"
    ),
    FAULTS: (
        "maclocalfault macremotefault fecsyncloss fecalignmentloss highbererror highsererror signallocalerror "
        "codegrouperror norxreachability"
    ),
    PRESENCE: "presence present",
    LOGICAL: "logicalstate logicalportstate iblogicalstate",
    REASON: "reason cause diagnosticsstatus stateinformation linkdownreason downreason reasondown",
}
MEANINGS = {name: fact for fact, names in FACTS.items() for name in names.split()}
_BY_WORD = (  # what a counter that no row has is of, by a word in its simplified name
    (
        FLAPS,
        lazy_pattern(
            r"(?:interface|port|oper)?(?:link|state|carrier|status)(?:transitions?|changes|flaps?|flapcount|flapped)"
        ),
    ),
    (UNCORRECTED, lazy_pattern(r"\w{0,24}uncorrect(?:ed|able)\w{0,16}")),
    (
        DAMAGED,
        lazy_pattern(
            r"(?:rx|in|input|ingress|received?|eth|total|frames?|packets?){0,4}(?:bad|invalid)?"
            r"(?:crc|fcs|symbol|align(?:ment)?|framing|codeviolation)"
            r"(?:crc|fcs|align(?:ment)?|err(?:or(?:s|ed)?|s)?|count(?:er|ers|s)?|frames?|packets?|pkts?|violations?){0,4}"
        ),
    ),
)
_OF_RECEIVED = ("rx", "in", "rcv", "receive")
OF_RECEIVING = {"errors": DAMAGED_TOTAL, "errorpackets": DAMAGED_TOTAL, "packets": RECEIVED}
PORT_COLUMNS = frozenset(
    (
        "port",
        "interface",
        "iface",
        "ifname",
        "portname",
        "portid",
        "actorportname",
        "queue",
        "ethernetinterface",
        "portrx",
        "porttx",
    )
)
PORT_FIELDS = PORT_COLUMNS | {"name"}  # of JSON
QUEUE_COLUMNS = frozenset(("txq",))


def find_meaning(name: str, receives: bool | None = None) -> str | None:
    """What a simplified name stands for. `receives`: whether the lines are of what the port receives.

    >>> find_meaning("incrcerror"), find_meaning("inputcrcerrors"), find_meaning("outcrcerrors")
    ('damaged', 'damaged', None)
    """
    if fact := (OF_RECEIVING.get(name) if receives else None) or MEANINGS.get(name):
        return fact
    fact = next((fact for fact, pattern in _BY_WORD if pattern.fullmatch(name)), None)
    return None if fact == DAMAGED and receives is False and not name.startswith(_OF_RECEIVED) else fact
