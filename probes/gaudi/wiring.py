"""How the boards of Gaudi servers join the ports of their cards.

The wiring is a fact of each board that Intel publishes in its collective library (HabanaAI/HCL, Apache-2.0, tables
connectivity_autogen_HLS2, HLS2PCIE, HLS3, HLS3PCIE); it is written again here, a character for each of 24 ports.
Cards are named by their module id, ports by the number of their NIC. A pair's ports meet in the order of their numbers
but on HLS3, where the far ports are written out.
"""

from __future__ import annotations

from collections.abc import Mapping

from probes.named_tuple import NamedTuple

PORTS = 24
SCALE_OUT, UNUSED = "s", "-"
_DIGITS = "0123456789abcdefghijklmn"


class Board(NamedTuple):
    """`peers`: by card and port, the module id of the card at the other end, or SCALE_OUT, or UNUSED."""

    name: str
    devices: tuple[str, ...]  # PCI devices of its cards
    peers: tuple[str, ...]
    far_ports: tuple[str, ...] = ()

    def scale_out(self, card: int) -> frozenset[int]:
        """The ports of a card that leave the box."""
        return frozenset(port for port in range(PORTS) if self.peers[card][port] == SCALE_OUT)

    def far_end(self, card: int, port: int) -> tuple[int, int] | None:
        """Card and port at the other end of one inside the box; None for any other port."""
        peer = self.peers[card][port]
        if not peer.isdecimal():
            return None
        if self.far_ports:
            return int(peer), _DIGITS.index(self.far_ports[card][port])
        place = self.peers[card][:port].count(peer)
        theirs = [number for number in range(PORTS) if self.peers[int(peer)][number] == str(card)]
        return int(peer), theirs[place]


BOARDS = (
    Board(
        "HLS2",
        ("0x1020",),
        (
            "33737744s4222111666555ss",
            "22626655s5777000333444ss",
            "11515566s6333444000777ss",
            "00404477s7222555111666ss",
            "77373300s0555222666111ss",
            "66262211s1444333777000ss",
            "55151122s2444777000333ss",
            "44040033s3111666555222ss",
        ),
    ),
    Board(
        "HLS2PCIE",
        ("0x1020", "0x1021"),
        (
            "111111ssss333333222222--",
            "000000ssss222222333333--",
            "333333ssss111111000000--",
            "222222ssss000000111111--",
            "555555ssss777777666666--",
            "444444ssss666666777777--",
            "777777ssss555555444444--",
            "666666ssss444444555555--",
        ),
    ),
    Board(
        "HLS3",
        ("0x1060",),
        (
            "11332255447766674s52ss13",
            "55765s43ss20002233446677",
            "66456s70ss31003311554477",
            "11220055774466547s61ss02",
            "00223355776665ss230s1711",
            "47ss321s0611003322664477",
            "74ss012s3522001133445577",
            "00223355446656ss103s2411",
        ),
        (
            "cd45cdcd0101cd4hi.87..bm",
            "abg56.kj..bm01gh01mnefmn",
            "abg56.kj..na4523efgh2323",
            "ghef23ef4545gh4hi.87..na",
            "89klabkl89ij10..2fg.6lij",
            "dc..e34.i9016767ijkl6767",
            "dc..e34.i901cdklcdabijab",
            "abmn89mn89mn10..2fg.6lmn",
        ),
    ),
    Board(
        "HLS3PCIE",
        ("0x1060", "0x1063"),
        (
            "--111111ssss333322332222",
            "--000000ssss222233223333",
            "--333333ssss111100110000",
            "--222222ssss000011001111",
            "--555555ssss777766776666",
            "--444444ssss666677667777",
            "--777777ssss555544554444",
            "--666666ssss444455445555",
        ),
    ),
)


def find_board(cards: Mapping[int, tuple[str, frozenset[int]]]) -> Board | None:
    """The board whose scale-out ports are those of all cards. `cards`: (PCI device, ports) by module id."""
    fitting = [
        board
        for board in BOARDS
        if all(
            0 <= card < len(board.peers) and device in board.devices and ports == board.scale_out(card)
            for card, (device, ports) in cards.items()
        )
    ]
    return fitting[0] if cards and len(fitting) == 1 else None
