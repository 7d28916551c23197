"""A slurmctld in the foreground with a topology: this machine's own, or a later one that lies unpacked in build/slurm.

Debian's stable release has no Slurm that reads topology.yaml, its testing release has: `make slurm` unpacks its
packages, with all that they need, and they are entered by chroot. Nothing else of the machine changes. Needs root, and
a Debian whose package source is configured.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SLURMCTLD = shutil.which("slurmctld") or shutil.which("slurmctld", path="/usr/sbin")
ROOT = Path(__file__).resolve().parents[4]
PLACE = ROOT / "build" / "slurm"
PACKAGES = ("slurmctld", "slurm-client", "slurm-wlm-basic-plugins")
RELEASE = "testing"
FIRST = (25, 5)  # version that reads topology.yaml
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
DEVICES = {"null": (1, 3), "urandom": (1, 9)}


class Controller:
    """`root`: where another Slurm is unpacked, `folder` below it; None: the one that is installed."""

    def __init__(
        self, folder: Path, file: str, text: str, nodes: str, root: Path | None = None, plugin: str = ""
    ) -> None:
        place = str(folder) if root is None else f"/{folder.relative_to(root)}"
        self._enter = [] if root is None else ["chroot", str(root)]
        (folder / "state").mkdir()
        (folder / file).write_text(text)
        (folder / "slurm.conf").write_text(
            f"ClusterName=t\nSlurmctldHost={os.uname().nodename.split('.')[0]}(127.0.0.1)\n"
            f"SlurmctldPort={16900 + os.getpid() % 900}\nCommunicationParameters=NoCtldInAddrAny\n"
            f"AuthType=auth/none\nCredType=cred/none\nSlurmUser=root\nStateSaveLocation={place}/state\n"
            f"SlurmctldPidFile={place}/pid\nSelectType=select/cons_tres\n{plugin}\n"
            "ProctrackType=proctrack/linuxproc\nMpiDefault=none\n"
            f"NodeName={nodes} CPUs=1 State=FUTURE\nPartitionName=p Nodes=ALL Default=YES\n"
        )
        self._environment = {**os.environ, "SLURM_CONF": f"{place}/slurm.conf"}
        self._log = folder / "log"
        program = str(SLURMCTLD) if root is None else "/usr/sbin/slurmctld-wlm"  # the name that Debian links to
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*self._enter, program, "-D", "-c", "-f", f"{place}/slurm.conf"],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip

    def topology(self, *name: str) -> str:
        """What `scontrol show topology` says, of one of several topologies by its name."""
        scontrol = "scontrol" if not self._enter else "/usr/bin/scontrol"
        until = time.monotonic() + 60
        while time.monotonic() < until and self._process.poll() is None:
            done = subprocess.run(
                [*self._enter, scontrol, "show", "topology", *name], env=self._environment, capture_output=True,
                text=True, timeout=60,
            )  # fmt: skip
            if "Name=" in done.stdout:
                return done.stdout
            time.sleep(0.3)
        raise AssertionError(f"slurmctld did not answer: {self.log()[-2000:]}")

    def log(self) -> str:
        """What it said."""
        return self._log.read_text()

    def stop(self) -> None:
        """End it."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Unmakeable(Exception):
    """It cannot be had here; the message is one line."""


def absent() -> str | None:
    """Why no test can use it; None where it is there."""
    if os.geteuid() != 0:
        return "a Slurm of a later release is entered by root only"
    return None if (PLACE / "usr/sbin/slurmctld-wlm").exists() else "no Slurm >= 25.05 is unpacked here: `make slurm`"


def make() -> str:
    """Unpack it; its version. Raises Unmakeable."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Unmakeable("a Debian with apt-get, and root, are needed")
    with tempfile.TemporaryDirectory(prefix="fabricscope-slurm-") as folder:
        work = Path(folder)
        (work / "archives/partial").mkdir(parents=True)
        (work / "lists/partial").mkdir(parents=True)
        (work / "status").touch()  # nothing is installed, as far as this apt knows: all that is needed is fetched
        (work / "sources").write_text(f"deb [signed-by={KEYS}] {_source()} {RELEASE} main\n")
        (work / "apt.conf").write_text(
            f'Dir::Etc::sourcelist "{work}/sources";\nDir::Etc::sourceparts "-";\nDir::State::lists "{work}/lists";\n'
            f'Dir::State::status "{work}/status";\nDir::Cache "{work}";\nDir::Cache::archives "{work}/archives";\n'
            'APT::Sandbox::User "root";\n'
        )
        _run(work, "apt-get", "update", "-qq")
        version = _version(_run(work, "apt-cache", "policy", PACKAGES[0]))
        _run(work, "apt-get", "install", "-qq", "-y", "--download-only", "--no-install-recommends", *PACKAGES)
        unpacked = work / "root"
        _unpack(unpacked, sorted((work / "archives").glob("*.deb")), work)
        shutil.rmtree(PLACE, ignore_errors=True)
        PLACE.parent.mkdir(exist_ok=True)
        shutil.move(unpacked, PLACE)
    return version


def _source() -> str:
    """Where this machine has Debian's packages from."""
    request = [
        "apt-get",
        "indextargets",
        "--format",
        "$(REPO_URI)",
        "Created-By: Packages",
        "Origin: Debian",
        "Label: Debian",
    ]
    for _ in range(2):
        completed = subprocess.run(request, capture_output=True, text=True, check=False).stdout.split()
        if completed:
            return completed[0]
        subprocess.run(["apt-get", "update", "-qq"], capture_output=True, check=False)
    raise Unmakeable("no package source of Debian's is configured")


def _version(policy: str) -> str:
    match = re.search(r"Candidate: (([0-9]{1,4})\.([0-9]{1,4})\S*)", policy)
    if not match or (int(match[2]), int(match[3])) < FIRST:
        raise Unmakeable(f"Debian's {RELEASE} offers {match[1] if match else 'no slurmctld'}, and 25.05 is needed")
    return match[1]


def _unpack(root: Path, packages: list[Path], work: Path) -> None:
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for package in packages:
        _run(work, "dpkg", "-x", str(package), str(root))
    for name in ("dev", "tmp"):
        (root / name).mkdir(exist_ok=True)
    for name, (major, minor) in DEVICES.items():
        os.mknod(root / "dev" / name, 0o020666, os.makedev(major, minor))
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    shutil.copy("/etc/hosts", root / "etc/hosts")


def _run(work: Path, *command: str) -> str:
    environment = {
        **os.environ,
        "APT_CONFIG": str(work / "apt.conf"),
        "DEBIAN_FRONTEND": "noninteractive",
        "LC_ALL": "C",
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        result = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise Unmakeable(f"{' '.join(command)[:80]}: {result[-1][:300]}")
    return done.stdout


if __name__ == "__main__":
    try:
        print(f"slurm: {make()} is in {PLACE.relative_to(ROOT)}")
    except (Unmakeable, OSError) as error:
        print(f"slurm: {error}: tests of topology.yaml by Slurm are left out", file=sys.stderr)
