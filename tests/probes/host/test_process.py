"""What a line on stderr says of a process."""

from __future__ import annotations

import getpass
import os
import re

from probes.host.process import describe_process


def test_a_running_process_has_a_name_a_user_a_state_and_an_age() -> None:
    """Ours."""
    line = describe_process(os.getpid())

    assert line is not None
    assert re.fullmatch(
        rf"\S+ of {getpass.getuser()}, pid {os.getpid()}, state R \(running\)(, in \w+)?, running for \d+ (s|min|h)",
        line,
    )


def test_a_process_that_is_gone_is_none() -> None:
    """One that ended, and numbers that no process has."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)

    assert [None] * 3 == [describe_process(pid) for pid in (child, 0x7FFFFFFF, -1)]
