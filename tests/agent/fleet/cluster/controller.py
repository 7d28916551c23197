"""A slurmctld in the foreground with a topology: this machine's own, or one that lies unpacked in a folder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

SLURMCTLD = shutil.which("slurmctld") or shutil.which("slurmctld", path="/usr/sbin")


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
