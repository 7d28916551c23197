"""stdin, stdout and stderr as the program finds them."""

from __future__ import annotations

import os
import sys


def open_streams() -> None:
    """Give the program the streams that its caller closed: else the next file that it opens is one of them.

    A closed stdout becomes a pipe that nobody reads: an error for what writes to it, and none for what does not.
    """
    for number, mode in enumerate("rww"):
        try:
            os.fstat(number)
        except OSError:
            reader, writer = os.pipe()
            os.dup2(reader if mode == "r" else writer, number)
            for each in {reader, writer} - {number}:
                os.close(each)
            if number == 2:
                os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            stream = open(number, mode, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115  # until the end
            setattr(sys, ("stdin", "stdout", "stderr")[number], stream)
