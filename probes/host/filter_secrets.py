"""What of a file may leave the process that reads it: of environments, maps and files of users, what is asked of NCCL.

The filter sits where a file is read, so that nothing else reaches a recording, a report or a log. It is a pure function
of path and content, and what is filtered already it leaves as it is: a capture replays as it was taken.
"""

from __future__ import annotations

from probes.text import lazy_pattern

SYSTEM_FILE = "/etc/nccl.conf"
LINE_BYTES = 4096  # a longer line of a user's file is no setting

# No OMPI_ARGV: a program's arguments are its own
_WANTED = lazy_pattern(rb"(?:NCCL|HCCL|UCX|FI|NVSHMEM)_|OMPI_MCA_|(?:ROCR|HIP)_VISIBLE_DEVICES=")
_VARIABLE = lazy_pattern(rb"(?<![A-Za-z0-9_])(?:NCCL|HCCL|UCX|FI|OMPI|NVSHMEM)_")
# How their files' names begin. PyTorch has libcufile and libnvshmem_host mapped in its every process, used or not.
LIBRARIES = r"(?:lib(?:nccl|hccl|nvshmem|gdrapi|cufile|fabric|ibverbs|ucs|torch_cuda)|nvshmem_transport)[-_.]"
_MAPPED = lazy_pattern(rf"/{LIBRARIES}|/dev/(?:nvidia|davinci|kfd|infiniband/)".encode())
_ADDRESSES = lazy_pattern(rb"^[0-9a-f]+-[0-9a-f]+ ")  # of a map: they are random, and no one asks for them
_MOUNTS = lazy_pattern(rb"\s/(?:dev/shm|home(?:/\S*)?)\s")  # the size of shared memory; homes that a server holds
_PROCESS = lazy_pattern(r"/proc/[^/]+/(?:task/[^/]+/)?(environ|maps|mounts|mountinfo)\Z")
_OF_PROCESSES = ("/environ", "/maps", "/mounts", "/mountinfo")  # asked first: few scans compile the pattern
_USERS = lazy_pattern(r"\A/(?:home/[^/]+|root)/[^/]+\Z|/[^/]*nccl[^/]*\.conf\Z")


def filter_content(path: str, content: bytes) -> bytes:
    r"""The content without what no one may see.

    >>> filter_content("/proc/7/environ", b"SECRET=x\0NCCL_IB_TC=106\0")
    b'NCCL_IB_TC=106\x00'
    >>> filter_content("/root/.nccl.conf", b"# NCCL_DEBUG\nNCCL_IB_TC = 106\nPASSWORD=x\n")
    b'# NCCL_DEBUG\nNCCL_IB_TC = 106\n\n'
    """
    if path.startswith("/sys/") or path == SYSTEM_FILE:  # the system's file is written by root for everybody
        return content
    if path.endswith(_OF_PROCESSES) and (process := _PROCESS.search(path)):
        return _of_process(process[1], content)
    if (path.startswith(("/home/", "/root/")) or "nccl" in path) and _USERS.search(path):
        return b"\n".join(line if _is_of_nccl(line) else b"" for line in content.split(b"\n"))
    return content


def _of_process(name: str, content: bytes) -> bytes:
    if name == "environ":
        whole = content.rpartition(b"\0")[0]  # what is cut off has no end
        return b"".join(part + b"\0" for part in whole.split(b"\0") if _WANTED.match(part))
    if name == "maps":
        if not _MAPPED.search(content):  # most processes: their lines need not be looked at one by one
            return b""
        lines = {_ADDRESSES.sub(b"0-0 ", line) for line in content.split(b"\n") if _MAPPED.search(line)}
        return b"".join(line + b"\n" for line in sorted(lines))
    return b"".join(_mount(line) + b"\n" for line in content.split(b"\n") if _MOUNTS.search(line))


def _mount(line: bytes) -> bytes:
    """Of a home only where it is and of what kind: its server, its share and whose account it is are not asked."""
    words = line.split()
    is_home = len(words) > 3 and words[1].startswith(b"/home")
    return b" ".join((b"-", *words[1:3], b"-", b"0", b"0")) if is_home else line


def _is_of_nccl(line: bytes) -> bool:
    """Whether a line names a variable: a setting, one that is meant as one, or a remark about one. A user may have
    made a link of the file: what has NULs is another file's content."""
    return len(line) < LINE_BYTES and b"\0" not in line and _VARIABLE.search(line) is not None
