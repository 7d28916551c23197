"""An lspci output cut into functions and their fields, as printed; and the words that it prints instead of numbers.

Indentation is not used: mail and web pages lose it. A line that opens no field goes on with the field before it. Names
of classes and of makers are facts of the PCI id database (pci.ids); what is not here stays unknown: a name is never
guessed at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from probes.text import lazy_pattern

_CLASSES = {  # name in lower case -> class and subclass
    "scsi storage controller": "0100",
    "ide interface": "0101",
    "raid bus controller": "0104",
    "sata controller": "0106",
    "serial attached scsi controller": "0107",
    "non-volatile memory controller": "0108",
    "mass storage controller": "0180",
    "ethernet controller": "0200",
    "infiniband controller": "0207",
    "fabric controller": "0208",
    "network controller": "0280",
    "vga compatible controller": "0300",
    "3d controller": "0302",
    "display controller": "0380",
    "audio device": "0403",
    "multimedia controller": "0480",
    "ram memory": "0500",
    "cxl": "0502",
    "memory controller": "0580",
    "host bridge": "0600",
    "isa bridge": "0601",
    "pci bridge": "0604",
    "cardbus bridge": "0607",
    "infiniband to pci host bridge": "060a",
    "bridge": "0680",
    "serial controller": "0700",
    "communication controller": "0780",
    "pic": "0800",
    "dma controller": "0801",
    "sd host controller": "0805",
    "iommu": "0806",
    "system peripheral": "0880",
    "co-processor": "0b40",
    "firewire (ieee 1394)": "0c00",
    "usb controller": "0c03",
    "fibre channel": "0c04",
    "smbus": "0c05",
    "ipmi interface": "0c07",
    "serial bus controller": "0c80",
    "network and computing encryption device": "1000",
    "encryption controller": "1080",
    "performance counters": "1101",
    "signal processing controller": "1180",
    "processing accelerators": "1200",
}
_PROGRAMMING_INTERFACE = {"0108": "02", "0502": "10"}  # NVM Express, CXL memory: the only ones

# In the order of the texts: the longer name first where one begins with the other.
_VENDORS = {
    "NVIDIA Corporation": "0x10de",
    "nVidia Corporation": "0x10de",
    "Mellanox Technologies": "0x15b3",
    "Advanced Micro Devices, Inc. [AMD/ATI]": "0x1002",
    "Advanced Micro Devices [AMD/ATI]": "0x1002",
    "ATI Technologies Inc": "0x1002",
    "Advanced Micro Devices, Inc. [AMD]": "0x1022",
    "Advanced Micro Devices [AMD]": "0x1022",
    "AMD Pensando Systems": "0x1dd8",
    "Pensando Systems": "0x1dd8",
    "Intel Corporation": "0x8086",
    "Broadcom / LSI": "0x1000",
    "LSI Logic / Symbios Logic": "0x1000",
    "Broadcom Inc. and subsidiaries": "0x14e4",
    "Broadcom Limited": "0x14e4",
    "Broadcom Corporation": "0x14e4",
    "PLX Technology, Inc.": "0x10b5",
    "PMC-Sierra Inc.": "0x11f8",
    "Amazon.com, Inc.": "0x1d0f",
    "Google, Inc.": "0x1ae0",
    "Microsoft Corporation": "0x1414",
    "Huawei Technologies Co., Ltd.": "0x19e5",
    "Samsung Electronics Co Ltd": "0x144d",
    "Micron Technology Inc": "0x1344",
    "ASPEED Technology, Inc.": "0x1a03",
    "Matrox Electronics Systems Ltd.": "0x102b",
    "Chelsio Communications Inc": "0x1425",
    "QLogic Corp.": "0x1077",
    "Cornelis Networks": "0x434e",
    "Dell": "0x1028",
    "Hewlett-Packard Company": "0x103c",
    "Hewlett Packard Enterprise": "0x1590",
    "Super Micro Computer Inc": "0x15d9",
    "Supermicro": "0x15d9",
    "Lenovo": "0x17aa",
    "IBM": "0x1014",
}


def class_code(name: str, subclass: str | None, interface: str | None) -> str | None:
    """The 24-bit class of a head line: `subclass` is the number that -nn prints, `interface` the one after "prog-if".

    >>> class_code("3D controller", None, None), class_code("USB controller", "0c03", "30")
    ('0x030200', '0x0c0330')
    """
    number = subclass or _CLASSES.get(name.strip().lower())
    return None if number is None else f"0x{number}{interface or _PROGRAMMING_INTERFACE.get(number, '00')}"


def vendor_of(text: str) -> tuple[str | None, str | None, str]:
    """Vendor id, vendor name and the rest of a device's name; None, None and all of it for a maker unknown here.

    >>> vendor_of("NVIDIA Corporation Device 2330")
    ('0x10de', 'NVIDIA Corporation', 'Device 2330')
    """
    for name, number in _VENDORS.items():
        if text.startswith(name) and not text[len(name) : len(name) + 1].isalnum():
            return number, name, text[len(name) :].strip()
    return None, None, text


_HEAD = lazy_pattern(r"[>\s]{0,40}(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?:\s+(\S.*))?\s*")
_HEX = lazy_pattern(r"[>\s]{0,40}([0-9a-f]{2,3}): ((?:[0-9a-f]{2}\s){0,15}[0-9a-f]{2})\s*")
_FIELD = lazy_pattern(r"([A-Z][A-Za-z0-9/ -]{0,30}):(?:\s+|$)|(Expansion ROM|\[virtual\]|!!!)")
_NUMBERS = lazy_pattern(r"\[[0-9a-f]{4}:[0-9a-f]{4}\]")
_LONGEST_FIELD = 4096
_MARGIN = "> \t\r\n"

_CAPABILITY = lazy_pattern(r"\[([0-9a-f]{2,3})(?: v\d{1,2})?\]\s+")


class LspciBlock:
    """The lines of one function."""

    __slots__ = ("address", "closed", "data", "fields", "head", "torn")

    def __init__(self, address: str, head: str, fields: dict[str, list[str]] | None = None) -> None:
        self.address = address
        self.head = head
        self.fields = fields or {}  # name -> its texts, in order
        self.data = bytearray()
        self.closed = False  # it was printed to its end: another function, its driver or its bytes come after it
        self.torn = False  # a row of its bytes is missing

    @property
    def bytes_whole(self) -> bool:
        """Whether its bytes, where it has some, are as many as a config space has."""
        return not self.data or (not self.torn and len(self.data) in _SIZES)

    def first(self, name: str) -> str:
        """The text of a field where it is first; "" where there is none."""
        texts = self.fields.get(name)
        return texts[0] if texts else ""

    def texts_of(self, name: str) -> list[str]:
        """Where the texts of a field go. The regions of virtual functions are called as the function's own are."""
        virtual = name.startswith("Region") and "Capabilities" in self.fields
        return self.fields.setdefault(f"VF {name}" if virtual else name, [])

    def add_bytes(self, offset: int, row: bytes) -> None:
        """Rows follow each other; what comes after a gap is left out."""
        if offset == len(self.data):
            self.data += row
        else:
            self.torn = True
        self.closed = True

    def capabilities(self) -> list[str]:
        """What is after "Capabilities: [60] "."""
        return [_CAPABILITY.sub("", text, count=1) for text in self.fields.get("Capabilities", ())]


def blocks(text: str) -> Iterator[LspciBlock]:
    """Every function of an output. A line opens one by an address and a blank; bytes are rows as "10: 00 ff".

    >>> [(block.address, block.first("NUMA node")) for block in blocks("19:00.0 Bridge: X\\n\\tNUMA node: 1")]
    [('0000:19:00.0', '1')]
    """
    block: LspciBlock | None = None
    texts: list[str] | None = None  # of the field that is open
    for line in text.splitlines():
        head = _HEAD.fullmatch(line)
        if head is not None:
            if block is not None:
                block.closed = True
                yield block
            domain, rest, words = head.groups()
            block, texts = LspciBlock(f"{domain or '0000'}:{rest}", words or ""), None
            continue
        if block is None:
            continue
        row = _HEX.fullmatch(line)
        if row is not None:
            block.add_bytes(int(row.group(1), 16), bytes.fromhex(row.group(2)))
            continue
        words = line.lstrip(_MARGIN).rstrip()
        opened = _FIELD.match(words)
        if opened is not None:
            texts = block.texts_of(opened.group(1) or opened.group(2))
            texts.append(words[opened.end() :])
        elif words and texts is not None:
            texts[-1] = _longer(texts[-1], words)
        elif words:
            block.head = _longer(block.head, words)
    if block is not None:
        block.closed = block.closed or "Kernel driver in use" in block.fields or "Kernel modules" in block.fields
        yield block


_SIZES = frozenset({64, 128, 256, 4096})  # of a config space, as -x, -xxx and -xxxx print it
_INSIDE = lazy_pattern(
    r"(?:Kernel (?:driver in use|modules)|Subsystem|Control|Status|Flags|Capabilities|Interrupt|Region \d|NUMA node"
    r"|(?:Dev|Lnk|Root|Slt)(?:Cap|Ctl|Sta)2?):"
)
_ENDS_BLOCK = lazy_pattern(r"Kernel modules: \S")
_ENDS_BLOCK_WITH_LINE = lazy_pattern(r"(?:Kernel d|D)river in use: \S")


def find_cut(text: str, heads: Iterable[str], last: LspciBlock, before: LspciBlock | None = None) -> str | None:
    """Why more functions may be there than a text has; None: it is whole, as far as it shows. `last`: its last one;
    `before`: the one above it.

    Of -v, -x and more a blank line ends every function; a copied text may have lost the last one.

    >>> head = "19:00.0 3D controller [0302]: NVIDIA Corporation [10de:2330]"
    >>> find_cut(f"{head}\\n\\tControl: I/O- Mem+", [], LspciBlock("0000:19:00.0", "", {"Control": [""]}))
    'it ends within a function'
    """
    lines = text.splitlines()
    unended = not text.endswith(("\n", "\r"))
    if unended and lines and not lines[-1].strip(_MARGIN):
        lines.pop()  # the margin of a line that is missing
    for line in lines:
        if _HEAD.fullmatch(line):
            break
        if _HEX.fullmatch(line) or _INSIDE.match(line.lstrip(_MARGIN)):
            return "it begins within a function"
    end = lines[-1].strip(_MARGIN) if lines else ""
    if not end:
        return None
    if last.data:
        whole = last.bytes_whole
    elif last.fields:
        whole = bool(_ENDS_BLOCK.match(end) or (not unended and _ENDS_BLOCK_WITH_LINE.match(end)))
    elif before is not None and before.fields:  # of -v, and all but its first line is missing
        whole = False
    else:  # a line per function, whose numbers are its end
        whole = not unended or bool(_NUMBERS.search(last.head)) or not any(map(_NUMBERS.search, heads))
    return None if whole else "it ends within a function"


def _longer(text: str, words: str) -> str:
    """A wrapped line goes on, up to more than any field of lspci is long: the cost stays linear."""
    return f"{text} {words}" if len(text) < _LONGEST_FIELD else text
