"""A recording as a capture: a folder or a tar (plain, gzip, zstd by suffix). The same recording, the same bytes."""

from __future__ import annotations

import base64
import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

from probes.ending_signals import unwinding_at_signals
from probes.host.interface import Completed, Refusal
from probes.host.recording import Recording
from probes.named_tuple import NamedTuple
from probes.own_files import create_temporary, create_temporary_folder, remove_own_file
from probes.planted import PathUse, follow_links
from probes.sources.archive import ENTRIES_LIMIT, KEPT_LIMIT_BYTES
from probes.sources.capture import FORMAT, RECAPTURED
from probes.sources.memory import SymlinkNode

HOSTNAME = "/proc/sys/kernel/hostname"
COMPRESSIONS = {".tar": "", ".tar.gz": "gzip", ".tgz": "gzip", ".tar.zst": "zstd"}
OTHERS = (".gz", ".zst", ".xz", ".bz2", ".zip", ".txz")


def write_capture(recording: Recording, path: str, version: str | None = None) -> None:
    """Write to a temporary name, sync, rename: on any error there is no half capture. Raises OSError.

    `version` is the generator's. A path without one of the suffixes of COMPRESSIONS is a folder's.
    """
    compression = next((kind for suffix, kind in COMPRESSIONS.items() if path.endswith(suffix)), None)
    if compression is None and path.endswith(OTHERS):
        raise OSError(errno.EINVAL, f"a capture is a folder or one of {', '.join(COMPRESSIONS)}", path)
    entries = [CaptureEntry("manifest.json", _json(_manifest(recording, version)))]
    entries += _files(recording)
    entries += _number_documents(
        "commands", [_command(argv, recording.commands[argv]) for argv in sorted(recording.commands)]
    )
    if recording.nvml:
        calls = [_call(*call, recording.nvml[call]) for call in sorted(recording.nvml)]
        entries.append(CaptureEntry("nvml.json", _json(calls)))
    entries += _number_documents("netlink", [_exchange(*q, recording.netlink[q]) for q in sorted(recording.netlink)])
    entries += _number_documents(
        "ethtool", [_record_question(*q, recording.ethtool[q]) for q in sorted(recording.ethtool)]
    )
    _check_size(entries, path)
    folder, name = os.path.split(os.path.abspath(path))
    path = os.path.join(follow_links(folder, PathUse.READ), name)
    follow_links(path, PathUse.REPLACE)
    with unwinding_at_signals():
        if compression is None:
            _write_folder(entries, path)
        else:
            _write_tar(entries, path, compression)


def _check_size(entries: list[CaptureEntry], path: str) -> None:
    """What no reader would accept is not written."""
    size = sum(len(e.name) + (len(e.content) if isinstance(e.content, bytes) else 0) for e in entries)
    if len(entries) > ENTRIES_LIMIT or size > KEPT_LIMIT_BYTES:
        why = f"{len(entries):,} files and {size >> 20} MiB of evidence: more than a capture may hold"
        raise OSError(errno.EFBIG, why, path)


class CaptureEntry(NamedTuple):
    """One name in a capture: a file's bytes, a link, or None for a directory."""

    name: str
    content: bytes | SymlinkNode | None


def missing(recording: Recording) -> list[str]:
    """What a whole capture would hold besides, a line each."""
    return [f"{name}: {recording.lost[name].reason}" for name in sorted(recording.lost)] + recording.missing


def _manifest(recording: Recording, version: str | None) -> dict[str, Any]:
    hostname = recording.files.get(HOSTNAME, b"").decode("utf-8", "replace").strip()
    return {
        "format": FORMAT,
        "generator": {"name": "fabricscope", "version": version},
        "captured_at": recording.observed_at,
        "hostname": hostname or None,
        "source_kind": recording.source_kind if recording.source_kind in RECAPTURED else "live",
        "missing": missing(recording),
        "listings": {path: recording.listings[path] for path in sorted(recording.listings)},
        "errors": {path: _error(recording.refusals[path]) for path in sorted(recording.refusals)},
        "unanswered": {name: _error(recording.unanswered[name]) for name in sorted(recording.unanswered)},
        "lost": {name: _error(recording.lost[name]) for name in sorted(recording.lost)},
    }


def _files(recording: Recording) -> list[CaptureEntry]:
    """The tree. Left out is what lies below a file or link: the host changed while it was recorded."""
    nodes: dict[str, bytes | SymlinkNode | None] = dict.fromkeys(recording.directories | set(recording.listings))
    nodes |= recording.files
    nodes |= {path: SymlinkNode(text) for path, text in recording.links.items()}
    entries: dict[str, CaptureEntry] = {}
    for path in sorted(nodes, key=lambda path: path.split("/")):
        parents = [path[:i] for i, character in enumerate(path) if character == "/" and i]
        if any(nodes.get(parent) is not None for parent in parents) or path == "/":
            continue
        for parent in parents:
            entries.setdefault(parent, CaptureEntry(f"files{parent}", None))
        entries[path] = CaptureEntry(f"files{path}", nodes[path])
    return [CaptureEntry("files", None), *entries.values()]


def _number_documents(folder: str, documents: list[dict[str, Any]]) -> list[CaptureEntry]:
    return [CaptureEntry(f"{folder}/{i:03}.json", _json(document)) for i, document in enumerate(documents)]


def _command(argv: tuple[str, ...], answer: Completed | Refusal) -> dict[str, Any]:
    if isinstance(answer, Refusal):
        return {"argv": argv, "error": _error(answer)}
    return {
        "argv": argv,
        "returncode": answer.returncode,
        "stdout": answer.stdout,
        "stderr": answer.stderr,
        "seconds": answer.seconds,
    }


def _call(function: str, arguments: str, answer: Any) -> dict[str, Any]:
    call: dict[str, Any] = {"function": function, "arguments": json.loads(arguments)}
    return call | ({"error": _error(answer)} if isinstance(answer, Refusal) else {"answer": answer})


def _exchange(protocol: int, request: bytes, answer: bytes | Refusal) -> dict[str, Any]:
    question: dict[str, Any] = {"protocol": protocol, "request": base64.b64encode(request).decode()}
    if isinstance(answer, Refusal):
        return question | {"error": _error(answer)}
    return question | {"reply": base64.b64encode(answer).decode()}


def _record_question(interface: str, request: bytes, answer: bytes | Refusal) -> dict[str, Any]:
    question: dict[str, Any] = {"interface": interface, "request": base64.b64encode(request).decode()}
    if isinstance(answer, Refusal):
        return question | {"error": _error(answer)}
    return question | {"reply": base64.b64encode(answer).decode()}


def _error(refusal: Refusal) -> dict[str, Any]:
    return {"status": refusal.status, "reason": refusal.reason, "code": refusal.code}


def _json(document: Any) -> bytes:
    return (json.dumps(document, indent=1) + "\n").encode()


def _write_tar(entries: list[CaptureEntry], path: str, compression: str) -> None:
    if os.path.lexists(path) and not (os.path.isfile(path) or os.path.islink(path)):
        raise OSError(errno.EEXIST, "exists and is not a file", path)
    descriptor, part = create_temporary(path, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with _open_compressed(file, compression) as stream:
                _pack(entries, stream)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:  # also an interrupt leaves no half-written archive
        remove_own_file(part)
        raise
    _sync_directory(path)


def _pack(entries: list[CaptureEntry], stream: IO[bytes]) -> None:
    import io
    import tarfile

    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT, errors="surrogateescape") as tar:
        for entry in entries:
            member = tarfile.TarInfo(entry.name)  # time, owner and group are 0
            if isinstance(entry.content, SymlinkNode):
                member.type, member.linkname = tarfile.SYMTYPE, entry.content.text
            elif entry.content is None:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
            else:
                member.size = len(entry.content)
            tar.addfile(member, io.BytesIO(entry.content) if isinstance(entry.content, bytes) else None)


@contextmanager
def _open_compressed(file: IO[bytes], compression: str) -> Iterator[IO[bytes]]:
    if compression == "gzip":
        import gzip

        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as stream:
            yield cast("IO[bytes]", stream)
    elif compression == "zstd":
        try:
            import zstandard
        except ImportError:
            raise OSError(errno.ENOSYS, "zstd needs the Python package zstandard; write .tar.gz") from None
        with zstandard.ZstdCompressor(level=9).stream_writer(file, closefd=False) as stream:
            yield stream
    else:
        yield file


def _write_folder(entries: list[CaptureEntry], path: str) -> None:
    part = create_temporary_folder(os.path.abspath(path))
    try:
        for entry in entries:
            place = f"{part}/{entry.name}"
            os.makedirs(os.path.dirname(place), exist_ok=True)
            if isinstance(entry.content, SymlinkNode):
                os.symlink(entry.content.text, place)
            elif entry.content is None:
                os.makedirs(place, exist_ok=True)
            else:
                with open(place, "xb") as file:
                    file.write(entry.content)
                    file.flush()
                    os.fsync(file.fileno())
        os.rename(part, path)
    except BaseException:  # also an interrupt leaves no half-written archive
        _remove_tree(part)
        raise
    _sync_directory(path)


def _remove_tree(folder: str) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _sync_directory(path: str) -> None:
    descriptor = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
