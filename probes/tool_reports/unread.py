"""Whether a text has labels of several devices, in a form of which no reader makes facts."""

from __future__ import annotations

from probes.text import lazy_pattern

FEWEST = 4  # devices of one kind: of fewer none is the odd one
_HEADING = lazy_pattern(
    r"(?m)^[ \t]*(?:(?:Features|(?:Coalesce|Ring|Channel|Pause|Time stamping|FEC) parameters|Private flags"
    r"|EEE [Ss]ettings) for [\w.-]{2,32}:|Device #\d{1,3}:|(?:pci|auxiliary)/[\w.:-]{5,60}:|NPU ID[ \t]*:[ \t]*\d{1,3}"
    r"|GPU ?\[\d{1,3}\][ \t]{0,24}:[ \t]{1,24}[^\n:]{2,60}:[ \t][^\n]{1,200}"  # of rocm-smi
    r"|\[\d{1,3}\] AIP \(\w{2,12}\)[^\n]{0,40}|GPU ?[:#\[] ?\d{1,3}\]?:?"
    r"|net\.ipv[46]\.(?:conf|neigh)\.(?!all\.|default\.|lo\.)[\w./@:-]{2,32}\.\w{2,40} ?= ?[^\n]{0,40})[ \t\r]*$"
)

_OF_PATHS = lazy_pattern(  # which two interfaces are enough for
    r"(?m)^[ \t]*net\.ipv4\.conf\.(?!all\.|default\.|lo\.)[\w./@:-]{2,32}\.(?:arp_ignore|rp_filter) ?= ?\d"
)


def has_labels(text: str) -> bool:
    r"""Whether as many headings name devices as are compared, or two settings decide which way interfaces answer.

    >>> has_labels("".join(f"Features for ens{n}:\nrx: on\n" for n in range(4))), has_labels("GPU: 0\n")
    (True, False)
    """
    return len(_HEADING.findall(text)) >= FEWEST or len(_OF_PATHS.findall(text)) > 1
