"""Lines of many tasks in one stream, each with its task's label: `srun --label`, pdsh, clush, `kubectl logs --prefix`.

srun cuts a long line into parts of about 1 KiB, each on a line with the label of its task, and mixes them with those
of other tasks: the parts of one label are one line again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

HEAD_BYTES = 1 << 16  # of a stream, in which the first report begins
HELD_BYTES = 256 << 20  # of reports that are not whole yet
_LABEL_BYTES = 1 << 10  # about what a label costs
_START = b'{"schema":'
_END = b"\n"  # as the report ends that a scan writes: it has the same digest
_LABEL = rb"[ \t]*(\[[^\]\s]{1,300}\]|[A-Za-z0-9][A-Za-z0-9._-]{0,252}:) "
_FIRST = re.compile(rb"^" + _LABEL + re.escape(_START), re.MULTILINE)
_LINE = re.compile(_LABEL)


def is_labelled(head: bytes) -> bool:
    r"""Whether reports of this stream have labels.

    >>> is_labelled(b'srun: job 7 queued\n 3: {"schema":"fabricscope'), is_labelled(b'{"schema": "a: {"}\n')
    (True, False)
    """
    return _FIRST.search(head) is not None


def join_labelled(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Whole reports with the number of the line on which each begins; what is no part of one as it is."""
    parts: dict[bytes, tuple[int, bytearray]] = {}
    size = 0
    for number, line in lines:
        match = _LINE.match(line)
        label = match[1] if match else b""
        text = line[match.end() if match else 0 :].rstrip(b"\r\n")
        begins = text.startswith(_START)
        if label not in parts and not begins:
            if text.strip():
                yield str(number), text
            continue
        if begins and label in parts:
            first, part = parts.pop(label)
            size -= len(part) + _LABEL_BYTES
            yield str(first), bytes(part) + _END
        if label not in parts:
            parts[label] = number, bytearray()
            size += _LABEL_BYTES
        first, part = parts[label]
        part += text
        size += len(text)
        if size > HELD_BYTES or not match or (text.endswith(b"}") and _is_json(part)):
            del parts[label]
            size -= len(part) + _LABEL_BYTES
            yield str(first), bytes(part) + _END
    for first, part in parts.values():
        yield str(first), bytes(part) + _END


def _is_json(data: bytearray) -> bool:
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
