"""roce-fec-ber."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce_runtime.ports import Watched, by_wire
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule
from agent.rules.runtime import HOUR, Limit, Moved, Words, judged, moved, span
from agent.rules.threshold import Threshold

_LOST = ("rx_pcs_symbol_err_phy", "rx_fec_uncorrectable_blocks", "fec_uncorrectable_blocks", "fec_uncorr_blocks")
_CORRECTED, _BITS = "rx_corrected_bits_phy", "rx_bits_phy"
_DOWNS = ("carrier_down_count", "link_down_events_phy", "link_down_events")
_PER_HOUR = Threshold("roce-fec-ber.lost_per_hour", 10, "blocks an hour that FEC could not correct: an error")
_WARN = Threshold("roce-fec-ber.warning_ratio", 1e-5, "bits that FEC corrected, of all received: a warning")
_ERROR = Threshold("roce-fec-ber.error_ratio", 1e-4, "the same: an error (the code ends at 2.4e-4)")
_LEAST_BITS = 1e12


@rule(
    "roce-fec-ber",
    "warning",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-fec-ber",),
    thresholds=(_PER_HOUR, _WARN, _ERROR),
)
def roce_fec_ber(case: Case) -> Iterator[Answer]:
    """The wire of a RoCE port has so many bit errors that error correction fails, or soon will.

    ## What it checks
    On the interface of every active RoCE port: blocks that FEC could not correct, and the share of bits that it did.

    ## Why it matters
    What FEC cannot correct is lost traffic whatever PFC does. The corrected share warns early: the code of 50G and 100G
    lanes ends at 2.4e-4, and a cable that is going bad moves towards it for weeks.

    ## How it is decided
    Ten blocks an hour that were not corrected: error. Corrected bits, of 10^12 received at least: from 1e-5 a warning,
    from 1e-4 an error. Storage NICs one step lower.

    ## What keeps it silent
    - The link went down in the window: errors while it comes up are no measure; not applicable (see roce-link-flap).
    - Fewer bits than 10^12: unknown where there are corrections. Wires without FEC and drivers without these counters:
      not applicable.
    - No earlier sample, counters that could not be read or were reset: unknown.

    ## How to confirm
    `ethtool -S INTERFACE | grep -E 'pcs_symbol|corrected_bits|rx_bits_phy|err_lane'`, twice; `ethtool -I --show-fec IF`

    ## How to fix
    Clean or replace the cable or module; the lane that errs tells which fibre.

    ## Source
    Linux mlx5 `counters.rst` (pcs symbol errors are lost traffic); the limits of the ratio are common practice.
    """
    yield from by_wire(case, lambda each: _judge(case, each), "bit errors")


def _judge(case: Case, each: Watched) -> Answer:
    subject = each.place.subject
    downs = moved(case, each.eth, _DOWNS)
    if isinstance(downs, Moved) and downs.total:
        return NotApplicable(subject, "its link went down in the window: errors while it comes up are no measure")
    words = Words(
        "blocks that FEC could not correct",
        "Each is lost traffic, and costs RoCE a go-back or a timeout of up to 4.3 s.",
        "Clean or replace the cable or module.",
        cause="lost",
    )
    lost = judged(case, each.place, moved(case, each.eth, _LOST), (Limit(_PER_HOUR, "error", HOUR),), words)
    if isinstance(lost, Fail):
        return lost
    ratio = _ratio(case, each)
    return next((a for kind in (Fail, Unknown, Pass) for a in (ratio, lost) if isinstance(a, kind)), lost)


def _ratio(case: Case, each: Watched) -> Answer:
    place = each.place
    fixed, bits = moved(case, each.eth, [_CORRECTED]), case.moved(each.eth.subject, _BITS, each.eth.now)
    if not isinstance(fixed, Moved):
        return NotApplicable(place.subject, "its driver does not count corrected bits")
    if not fixed.total:
        return Unknown(place.subject, fixed.gap) if fixed.gap else Pass(place.subject)
    if bits is None or bits < _LEAST_BITS:
        return Unknown(
            place.subject, f"{fixed.total} corrected bits, too few bits received in {span(case)} for a ratio"
        )
    ratio = fixed.total / bits
    if ratio < case.threshold(_WARN):
        return Pass(place.subject)
    grave = ratio >= case.threshold(_ERROR)
    return Fail(
        subject=place.subject,
        label=place.label,
        summary=f"FEC corrected {ratio:.1e} of the bits received in {span(case)}, "
        f"limit {case.threshold(_ERROR if grave else _WARN):.0e}",
        impact=f"At 2.4e-04 the code ends, and traffic is lost; this is {100 * ratio / 2.4e-4:.0f} % of it.",
        remedy="Clean or replace the cable or module.",
        evidence=fixed.evidence,
        severity=place.severity("error" if grave else "warning"),
        cause="corrected",
        places=place.places,
    )
