"""PCI functions from `lspci`: for sources without sysfs. Text and hex of one function complete each other."""

from __future__ import annotations

from probes.host.interface import Failed, Host
from probes.pci.draft import Draft, functions
from probes.pci.facts import PciFacts
from probes.pci.lspci_text import Listing, parse_lspci
from probes.probe import Reading
from probes.text import Unparsable

TEXT = ("lspci", "-D", "-nn", "-vvv")
HEX = ("lspci", "-D", "-nn", "-xxxx")


def read(host: Host) -> Reading:
    """The functions of the outputs that the source holds; a live host is asked once. Raises Absent, Failed."""
    asked = [argv for argv in (TEXT, HEX) if host.has_output(*argv)] or [TEXT]
    listings = [_listing(host, argv) for argv in asked]
    return Reading(
        PciFacts(functions(_merged(listings))),
        sources=tuple(" ".join(argv) for argv in asked),
        missing=_missing(listings),
    )


def _listing(host: Host, argv: tuple[str, ...]) -> Listing:
    done = host.run(*argv)
    try:
        return parse_lspci(done.stdout)
    except Unparsable as why:
        first = done.stderr.strip().partition("\n")[0]
        raise Failed(f"{' '.join(argv)}: {first or why} (exit {done.returncode})") from None


def _merged(listings: list[Listing]) -> list[Draft]:
    """One draft a function: the first output's, completed by the next."""
    found: dict[str, Draft] = {}
    for draft in (draft for listing in listings for draft in listing.drafts):
        if found.setdefault(draft.address, draft) is not draft:
            found[draft.address].add(draft)
    return list(found.values())


def _missing(listings: list[Listing]) -> str | None:
    denied = min(listing.denied for listing in listings)
    if not denied:
        return None
    return f"lspci hid capabilities: it needs CAP_SYS_ADMIN ({denied} of {len(listings[0].drafts)} functions)"
