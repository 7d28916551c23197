"""Runs in the guest: lays a file over another one that can be opened and never answers a read: `never.py FILE`.

A file system of one file (FUSE). Once a read has been handed to this process, no signal ends who waits for it: state D,
as in a driver that waits for its device. Ends when this process does.
"""

import ctypes
import os
import struct
import sys

REQUEST = struct.Struct("=IIQQIIII")  # length, opcode, unique, node, user, group, pid, padding
GETATTR, OPEN, READ, RELEASE, FLUSH, INIT, INTERRUPT, FORGET = 3, 14, 15, 18, 25, 26, 36, 2
UNANSWERED = {READ, INTERRUPT, FORGET}
MODE = 0o100444
ATTRIBUTES = struct.pack("=QII6Q10I", 3600, 0, 0, 1, 4096, 8, 0, 0, 0, 0, 0, 0, MODE, 1, 0, 0, 0, 4096, 0)
DIRECT = 1  # every read(2) is a request
ANSWERS = {
    INIT: struct.pack("=IIIIHHIIHHI7I", 7, 31, 0, 0, 16, 12, 4096, 1, 1, 0, 0, *[0] * 7),
    GETATTR: ATTRIBUTES,
    OPEN: struct.pack("=QII", 0, DIRECT, 0),
    RELEASE: b"",
    FLUSH: b"",
}
NO_SUCH_CALL = -38


def mount(target: str) -> int:
    """Lay the file there: the descriptor of its requests. Raises OSError."""
    requests = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={requests},rootmode={MODE:o},user_id=0,group_id=0,allow_other"
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(b"never", target.encode(), b"fuse", 0, options.encode()):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)
    return requests


def serve(requests: int) -> None:
    """Answer everything but reads, until it is unmounted."""
    while True:
        data = os.read(requests, 1 << 18)
        _, opcode, unique, *_ = REQUEST.unpack_from(data)
        if opcode in UNANSWERED:
            continue
        answer = ANSWERS.get(opcode, b"")
        error = 0 if opcode in ANSWERS else NO_SUCH_CALL
        os.write(requests, struct.pack("=IiQ", 16 + len(answer), error, unique) + answer)


if __name__ == "__main__":
    descriptor = mount(sys.argv[1])
    print("mounted", flush=True)
    serve(descriptor)
