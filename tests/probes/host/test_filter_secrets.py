"""What leaves the process that reads an environment: names of NCCL and its kin, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from probes.capture.writer import write_capture
from probes.host.filter_secrets import filter_content
from probes.host.folder import FolderFiles
from probes.host.live import LiveHost
from probes.host.recording import RecordingHost
from probes.nccl import probe as nccl
from probes.nccl.jobs import WANTED

ENVIRON = (
    b"SECRET=hunter2\0NCCL_IB_TC=106\0WIFI_PASSWORD=x\0OMPI_ARGV=--token x\0"
    b"XNCCL_A=1\0FI_PROVIDER=efa\0OMPI_MCA_btl=tcp\0UCX_TLS=rc\0"
)


def test_only_names_of_the_contract_leave_an_environment() -> None:
    """Prefixes at the beginning of a name; what is cut off at the end is dropped."""
    left = b"NCCL_IB_TC=106\0FI_PROVIDER=efa\0OMPI_MCA_btl=tcp\0UCX_TLS=rc\0"

    assert left == filter_content("/proc/4711/environ", ENVIRON)
    assert left == filter_content("/proc/self/task/7/environ", ENVIRON + b"NCCL_CUT=1")
    assert left == filter_content("/proc/4711/environ", left)
    assert ENVIRON == filter_content("/sys/x/environ", ENVIRON)
    amd = b"ROCR_VISIBLE_DEVICES=3\0HIP_VISIBLE_DEVICES=0\0"
    assert amd == filter_content("/proc/1/environ", amd + b"HIP_VISIBLE_DEVICES_OF=x\0HIP_TOKEN=x\0")


def test_maps_keep_libraries_and_device_nodes_without_addresses() -> None:
    """Nobody asks where the kernel put them."""
    maps = b"7f3a-7f3b r-xp 0 08:02 1 /usr/lib/libnccl.so.2.21.5\n55-56 r--p 0 08:02 2 /home/alice/secret\n"
    maps += b"7f3c-7f3d rw-s 0 00:06 9 /dev/nvidia0\n7f3e-7f3f rw-s 0 00:06 9 /dev/nvidia0\n"
    maps += b"7f40-7f41 rw-s 0 00:06 9 /dev/kfd\n"
    left = (
        b"0-0 r-xp 0 08:02 1 /usr/lib/libnccl.so.2.21.5\n0-0 rw-s 0 00:06 9 /dev/kfd\n0-0 rw-s 0 00:06 9 /dev/nvidia0\n"
    )

    assert left == filter_content("/proc/1/maps", maps)
    assert left == filter_content("/proc/1/maps", left)


def test_mounts_keep_shared_memory_and_homes() -> None:
    """Servers and paths of other mounts are not ours to tell."""
    mounts = b"server:/x /data nfs rw 0 0\nshm /dev/shm tmpfs rw 0 0\nserver:/h /home/a nfs rw 0 0\n"
    mounts += b"/dev/sda /homes xfs rw 0 0\n"

    left = b"shm /dev/shm tmpfs rw 0 0\n- /home/a nfs - 0 0\n"
    assert left == filter_content("/proc/1/mounts", mounts)
    assert left == filter_content("/proc/1/mounts", left)


@pytest.mark.parametrize("path", ["/root/.nccl.conf", "/home/alice/.nccl.conf", "/data/job/my-nccl.conf"])
def test_a_users_file_keeps_lines_of_nccl(path: str) -> None:
    """It may be a link to another's file; line numbers stay. What holds NULs is an environment."""
    content = b"root:$6$salt$hash:1:2\nNCCL_IB_TC=106\nSECRET=1\0NCCL_A=1\nNCCL_" + b"x" * 5000

    assert b"\nNCCL_IB_TC=106\n\n" == filter_content(path, content)


@pytest.mark.parametrize("path", ["/etc/nccl.conf", "/etc/os-release", "/proc/cmdline", "/home/alice/x/y"])
def test_other_files_are_read_as_they_are(path: str) -> None:
    """The system's own file is written by root, for everybody."""
    assert b"export A=1\n" == filter_content(path, b"export A=1\n")


def test_a_folder_filters_both_ways_of_reading(tmp_path: Path) -> None:
    """One file, and many of one directory."""
    (tmp_path / "proc" / "7").mkdir(parents=True)
    (tmp_path / "proc" / "7" / "environ").write_bytes(ENVIRON)
    files = FolderFiles(str(tmp_path))

    assert b"SECRET" not in files.read("/proc/7/environ")
    assert b"SECRET" not in files.attributes("/proc/7", ["environ"])["environ"]
    assert b"NCCL_IB_TC=106" in files.read("/proc/7/environ")


@pytest.fixture
def job(tmp_path: Path, real_commands: None):
    """A process that has something called libnccl mapped, and a secret in its environment."""
    library = tmp_path / "libnccl.so.2.99.9"
    library.write_bytes(bytes(4096))
    code = (
        "import mmap,sys;f=open(sys.argv[1],'rb');m=mmap.mmap(f.fileno(),0,prot=mmap.PROT_READ);print(1,flush=True);"
        "sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(library)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={
            **{name: value for name, value in os.environ.items() if not WANTED.match(name)},
            "SECRET": "hunter2-of-fabricscope",
            "NCCL_DEBUG": "WARN",
            "AWS_SECRET_ACCESS_KEY": "hunter3",
        },
    )
    assert process.stdout is not None
    assert process.stdin is not None
    process.stdout.readline()
    yield process
    process.stdin.close()
    process.wait(timeout=10)
    process.stdout.close()


def test_no_secret_of_a_running_job_is_in_a_capture(
    job: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is found, its setting too; the archive holds neither its secrets nor its command line."""
    monkeypatch.setattr("probes.nccl.jobs._DRIVERS", ("",))  # any module: here none is of a job's devices
    host = RecordingHost(LiveHost())
    facts = nccl.read(host).facts
    path = tmp_path / "x.tar"
    write_capture(host.recording, str(path))

    mine = [setting for setting in facts.settings if setting.source.startswith(f"environment of pid {job.pid} ")]
    assert [("NCCL_DEBUG", "WARN")] == [(item.key, item.value) for item in mine]
    assert ["2.99.9"] == [
        library.version for library in facts.libraries if library.path == str(tmp_path / "libnccl.so.2.99.9")
    ]
    with tarfile.open(path) as archive:
        contents = b"".join(archive.extractfile(member).read() for member in archive if member.isfile())  # type: ignore[union-attr]  # a file has content
    assert b"NCCL_DEBUG=WARN" in contents
    assert b"hunter" not in contents
    assert b"AWS_SECRET" not in contents
    assert "hunter" not in str(facts)
