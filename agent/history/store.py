"""The state directory: one file a host, written whole or not at all, by one run at a time.

State is a convenience: whatever is wrong with it is one line, and the scan goes on without.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Iterator

import msgspec

from agent.history.state import STATE, HostState, accept_inventory, add_history, update_state
from agent.model.report import CountersWindow, History, Report
from agent.reports import replace_file
from agent.rules.fingerprints import load_sha256
from probes.own_files import hold_lock, open_lock
from probes.planted import PathUse, follow_links

STATE_LIMIT_BYTES = 8 << 20
LOCK_SECONDS = 5.0  # how long another run may hold the directory
_SCHEMA_FAMILY = STATE.partition("/")[0]
_OPEN_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW
Warn = Callable[[str], None]


class _SchemaHead(msgspec.Struct):
    schema: str = ""


class StateError(Exception):
    """Why a state cannot be used; `replace`: it is damaged, and may be put aside for a new one."""

    def __init__(self, why: str, replace: bool = False) -> None:
        super().__init__(why)
        self.replace = replace


def apply_state_file(directory: str, report: Report, warn: Warn, keep: bool = True, accept: bool = False) -> Report:
    """The report with what earlier runs left in the directory; this run is left there too, where `keep`.

    `accept`: what is here now is the inventory. `say` gets one line for whatever keeps the state from being used.
    """
    name = _state_file_name(report)
    if name is None:
        return _without_history(report, "nothing identifies this host: no state is kept", warn)
    try:
        if keep:
            with contextlib.suppress(FileExistsError):
                os.mkdir(follow_links(directory, PathUse.OWN_FOLDER), 0o700)
        directory = follow_links(directory, PathUse.OWN_FOLDER)
        path = os.path.join(directory, name)
        with _lock(directory) as writable:
            if keep and not writable:
                warn(f"the state of this run is not kept: {directory} cannot be written")
            return _compare_and_save(path, report, warn, keep and writable, accept)
    except (OSError, StateError) as error:
        text = f"{directory}: {error.strerror}" if isinstance(error, OSError) else str(error)
        return _without_history(report, f"the state cannot be used: {text}", warn)


def _compare_and_save(path: str, report: Report, warn: Warn, keep: bool, accept: bool) -> Report:
    """Read, compare, write, while no one else does."""
    state, damage = None, None
    try:
        state = load_state(path)
    except StateError as error:
        damage = f"the state cannot be used: {error}"
        if not error.replace:
            return _without_history(report, damage, warn)
        if keep:
            with contextlib.suppress(OSError):
                os.replace(path, f"{path}.damaged")
                damage += f"; it is kept as {os.path.basename(path)}.damaged, and a new one begun"
    if accept:
        state = accept_inventory(state, report)
    result = add_history(state, report)
    if damage:
        result = _without_history(report, damage, warn)
    if keep:
        try:
            save_state(path, update_state(state, report))
        except (OSError, StateError) as error:
            text = error.strerror if isinstance(error, OSError) else error
            warn(f"the state of this run is not kept: {path}: {text}")
    return result


def load_state(path: str) -> HostState | None:
    """The state of a file; None where there is none. Raises StateError, OSError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _OPEN_FLAGS)
    except FileNotFoundError:
        return None
    except OSError as error:
        why = "a symbolic link, which is not followed" if error.errno == errno.ELOOP else error.strerror
        raise StateError(f"{path}: {why}") from error
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise StateError(f"{path}: exists and is not a file")
        data = file.read(STATE_LIMIT_BYTES + 1)
    if len(data) > STATE_LIMIT_BYTES:
        raise StateError(f"{path}: larger than a state can be ({STATE_LIMIT_BYTES} bytes)", replace=True)
    try:
        schema = msgspec.json.decode(data, type=_SchemaHead).schema
        if schema == STATE:
            return msgspec.json.decode(data, type=HostState)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StateError(f"{path}: damaged: {error}", replace=True) from error
    if schema.startswith(f"{_SCHEMA_FAMILY}/"):
        raise StateError(f"{path}: {schema[:40]} is of another version, this one reads {STATE}; left unchanged")
    raise StateError(f"{path}: not a state file of fabricscope; left unchanged")


def save_state(path: str, state: HostState) -> None:
    """Write the file whole or not at all. Raises OSError, StateError. Only under the lock: what a run that was killed
    left is replaced."""
    data = msgspec.json.encode(state, order="deterministic")
    if len(data) > STATE_LIMIT_BYTES:
        data = msgspec.json.encode(msgspec.structs.replace(state, samples=state.samples[-1:]), order="deterministic")
    if len(data) > STATE_LIMIT_BYTES:
        raise StateError(f"{len(data)} bytes, more than a state can be ({STATE_LIMIT_BYTES})")
    replace_file(path, data, sole=True)


@contextlib.contextmanager
def _lock(directory: str) -> Iterator[bool]:
    """Hold the directory. False where it can be read and not written. Raises OSError, StateError."""
    try:
        descriptor = open_lock(os.path.join(directory, "lock"))
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EROFS, errno.EPERM) or not os.path.isdir(directory):
            raise
        yield False
        return
    try:
        if not hold_lock(descriptor, time.monotonic() + LOCK_SECONDS):
            raise StateError(f"{directory}: another run holds it for more than {LOCK_SECONDS:.0f} s")
        yield True
    finally:
        os.close(descriptor)


def _state_file_name(report: Report) -> str | None:
    """The file of a host: by machine id, never by a name that may change; a container is a host of its own.

    The machine id itself is not to be shown around (machine-id(5)).
    """
    node = report.node
    own = node.machine_id or node.serial or node.hostname
    if not own:
        return None
    seen_from = f"\n{node.container}\n{node.hostname}" if node.container else ""
    return f"host-{load_sha256()(f'fabricscope {own}{seen_from}'.encode()).hexdigest()[:16]}.json"


def _without_history(report: Report, why: str, warn: Warn) -> Report:
    """The report of a run without an earlier one, and why."""
    warn(why)
    window = report.counters_window or CountersWindow(reset_reason=why)
    return msgspec.structs.replace(report, counters_window=window, history=History(reason=why))
