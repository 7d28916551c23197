"""`watch` beside a running kernel: what happens is said and judged by itself, and what is mended is taken back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from fixtures.machine import Machine
from tests.lab.batches import SMALL, machine
from tests.lab.conftest import RecordRow, started
from tests.lab.qemu.described import settings
from tests.lab.qemu.guest import SCAN, UPTIME_SECONDS, Guest
from tests.matrix.cases import causes

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]

GPU, NIC, OTHER_NIC = "0000:19:00.0", "0000:1b:00.0", "0000:9b:00.0"
PORT, OTHER_PORT = "enp27s0np0", "enp155s0np0"
UNASSIGNED = ("peer-differs", "GPU1")
LOOK_SECONDS = 3
FLAPS = 4
PATIENCE_SECONDS = 180  # a kind of event rests up to a minute after its judging, and the guest is slow
UNIT = "fabricscope-watch.service"
UNITS = "/run/systemd/system"
RULES = "/run/udev/rules.d"
RENAMES = f"""
cat > {RULES}/60-rdma-persistent-naming.rules <<'END'
ACTION=="add", SUBSYSTEM=="infiniband", PROGRAM="rdma_rename %k NAME_FIXED rail1"
END
cat > {RULES}/90-lab.rules <<'END'
ACTION=="add", SUBSYSTEM=="net", KERNEL=="{OTHER_PORT}", NAME="port1"
END
udevadm control --reload
"""
RENAMED = f"""
ip link set {OTHER_PORT} down; udevadm trigger --action=add /sys/class/net/{OTHER_PORT}; udevadm settle
ip link set port1 up; udevadm settle; ls /sys/class/infiniband /sys/class/net
"""
Judgings = list[dict[str, Any]]


class Watch:
    """What a watch in the guest wrote, a judging a line."""

    def __init__(self, guest: Guest, place: str) -> None:
        self._guest = guest
        self._place = place
        self._seen = 0

    def lines(self) -> Judgings:
        """Every judging so far. The last line may be on its way."""
        text = self._guest.run("cat", self._place).out
        return [json.loads(line) for line in text.rpartition("\n")[0].splitlines()]

    def until(self, expected: Callable[[Judgings], bool]) -> Judgings:
        """The judgings that came since it was asked last, as soon as they are what is wanted."""
        for _ in range(0, PATIENCE_SECONDS, LOOK_SECONDS):
            if expected(new := self.lines()[self._seen :]):
                break
            self._guest.must("sleep", str(LOOK_SECONDS))
        assert expected(new), json.dumps(new)[-3000:]
        self._seen += len(new)
        return new


@pytest.fixture
def guest() -> Iterator[Guest]:
    """One for each test, as nothing takes back what they do."""
    one = started("-watch", shape=SMALL)
    yield one
    one.close()


@pytest.fixture
def watch(guest: Guest) -> Watch:
    """A watch of the healthy machine, a day after its boot."""
    place = "/run/watch.ndjson"
    options = ("--format", "ndjson", "--settle", "1", "--timeout", "120", "--quiet")
    shifted = ("unshare", "--time", "--boottime", str(UPTIME_SECONDS), "--fork", "--kill-child=SIGTERM")
    run = ("systemd-run", "--quiet", "--unit=lab-watch", f"--property=StandardOutput=truncate:{place}")
    guest.must(*run, *shifted, SCAN, "watch", *options)
    return Watch(guest, place)


def loud(judgings: Judgings, kind: str) -> Judgings:
    """Findings above info that are new, or gone."""
    changes = [change for judging in judgings for change in judging["changes"] if change["group"] == "findings"]
    return [change for change in changes if change["kind"] == kind and not change["note"].startswith("info")]


def came(judgings: Judgings, kind: str = "new") -> list[tuple[str, str]]:
    """The same: rule, and the name of the first subject."""
    return sorted((finding["what"], finding["subjects"][0]["label"]) for finding in loud(judgings, kind))


def describe(judgings: Judgings) -> str:
    """Those that came, in words."""
    return "; ".join(f"{finding['what']}: {finding['note']}" for finding in loud(judgings, "new"))


def renames(judgings: Judgings) -> set[str]:
    """New names of devices that were known by others."""
    changes = [change for judging in judgings for change in judging["changes"] if change["kind"] == "renamed"]
    return {subject["label"].rpartition(" -> ")[2] for change in changes for subject in change["subjects"]}


def card(output: Machine, address: str) -> list[str]:
    """What fabsim is told to make the RDMA device of that function."""
    return [line for key, line in settings(output).items() if key[1] == address and key[2].startswith("ib ")]


def why(judgings: Judgings) -> set[str]:
    """The kinds of reasons for which it was judged."""
    return {reason["kind"] for judging in judgings for reason in judging["why"]}


def reasons(judgings: Judgings) -> str:
    """The same, as they are told."""
    return "; ".join(reason["text"] for judging in judgings for reason in judging["why"])


def is_silent(judgings: Judgings) -> bool:
    """Whether the last of them has no finding above info."""
    return has_verdict("ok", judgings)


def has_verdict(verdict: str, judgings: Judgings) -> bool:
    """Whether the last of them has it."""
    return bool(judgings) and judgings[-1]["verdict"] == verdict


def test_what_happens_is_found_and_what_is_mended_is_taken_back(
    guest: Guest, watch: Watch, record_row: RecordRow
) -> None:
    """Each by the kernel's own message, with the full scan an hour away."""
    assert [] == came(watch.until(is_silent))

    guest.tell([f"carrier {NIC} 0"])
    down = watch.until(lambda new: bool(came(new)))
    assert [("roce-link-down", f"rocep27s0/1 ({PORT})")] == came(down)
    assert {"interface"} == why(down)
    record_row("A carrier is lost under `watch`: no uevent, rtnetlink reports it", reasons(down), describe(down))

    bridge = guest.shell(f"readlink -f /sys/bus/pci/devices/{GPU}").strip().rpartition("/")[0]
    guest.write(f"/sys/bus/pci/devices/{GPU}/remove", "1")
    removed = watch.until(lambda new: bool(came(new)))
    assert [("inventory-lost", "former GPU0")] == came(removed)
    assert {"pci"} <= why(removed) <= {"pci", "gpu", "interface"}
    record_row("A GPU is unplugged under `watch`", reasons(removed), describe(removed))

    guest.tell([f"carrier {NIC} 1"])
    guest.write(f"{bridge}/rescan", "1")
    mended = watch.until(partial(has_verdict, "warning"))
    assert [UNASSIGNED] == came(mended)  # the kernel: "BAR 1 ...: can't assign; no space", of the GPU beside it
    assert [("inventory-lost", "former GPU0"), ("roce-link-down", f"rocep27s0/1 ({PORT})")] == came(mended, "gone")
    assert why(mended) <= {"pci", "gpu", "interface"}
    record_row("Both are repaired", reasons(mended), f"both findings are gone; {describe(mended)}")

    guest.shell(f"mkdir -p {RULES}; {RENAMES}")
    guest.tell([f"remove {OTHER_NIC}", *card(machine(SMALL), OTHER_NIC)])
    names = guest.shell(RENAMED).split()
    assert {"rail1", "port1"} <= set(names)
    renamed = watch.until(lambda new: has_verdict("warning", new) and {"rail1", "port1"} <= renames(new))
    assert {"rdma"} <= why(renamed) <= {"rdma", "interface"}
    assert came(renamed) == came(renamed, "gone")  # at most that it was set down, for as long as it was
    record_row(
        "A NIC's driver is reloaded, and udev gives its RDMA device and its port other names, under `watch`",
        reasons(renamed),
        f"renamed: {OTHER_PORT} is port1, rocep155s0 is rail1; nothing else",
    )


def test_a_link_that_retrains_is_found_by_the_clock(guest: Guest, record_row: RecordRow) -> None:
    """No message of the kernel tells it. By the unit as it is shipped: what was found survives its restart."""
    place, cause = "/run/service.ndjson", causes()["pcie/gpu-at-x8"]
    line = f"{SCAN} watch --every 10 --timeout 60 --state-dir ${{STATE_DIRECTORY}}/state --format ndjson --quiet"
    line += " --output ${STATE_DIRECTORY}/report.json"
    output = f"StandardOutput=append:{place}\nStandardError=journal\n"
    guest.shell(f"systemctl stop fabricscope-scan.timer; mkdir -p {UNITS}/{UNIT}.d; rm -f {place}")
    guest.shell("rm -rf /var/lib/private/fabricscope /var/lib/fabricscope")
    guest.write(f"{UNITS}/{UNIT}.d/lab.conf", f"[Service]\nExecStart=\nExecStart={line}\n{output}")
    guest.shell(f"systemctl daemon-reload; systemctl start {UNIT}")
    try:
        watch = Watch(guest, place)
        watch.until(is_silent)
        guest.become(machine(SMALL, cause.overlay))
        result = watch.until(lambda new: bool(came(new)))
        guest.must("systemctl", "stop", UNIT)
        guest.become(machine(SMALL))
        watch.until(lambda new: True)  # what came in between
        guest.must("systemctl", "start", UNIT)
        mended = watch.until(lambda new: "start" in why(new))
    finally:
        guest.run("systemctl", "stop", UNIT)
        ended = guest.shell(f"systemctl show -p Result --value {UNIT}")

    assert ["pcie-width-downgraded"] == [rule for rule, _ in came(result)]
    assert {"time"} == why(result[-1:])
    assert ("start", "error", "ok") == (*why(mended[:1]), mended[0]["verdict_before"], mended[0]["verdict"])
    assert [] == came(mended)
    assert ["pcie-width-downgraded"] == [rule for rule, _ in came(mended, "gone")]
    assert "success" == ended.strip()
    record_row(
        "A GPU's link retrains with half its lanes under fabricscope-watch.service; repaired while that is stopped",
        reasons([result[-1], mended[0]]),
        f"{describe(result)}; known after the restart, and gone",
    )


def test_flaps_amid_many_events_are_found(guest: Guest, watch: Watch, record_row: RecordRow) -> None:
    """Every function sends uevents while a link goes down again and again: few judgings, and the flaps are counted."""
    assert [] == came(watch.until(is_silent))

    storm = "for each in {1..20}; do udevadm trigger --subsystem-match=pci --action=change; done; udevadm settle"
    events = 20 * len(guest.shell("ls /sys/bus/pci/devices").split())
    for _ in range(FLAPS):
        guest.tell([f"carrier {NIC} 0"])
        guest.must("sleep", "5")
        guest.tell([f"carrier {NIC} 1"])
        guest.must("sleep", "5")
    guest.shell(storm)
    judgings = watch.until(lambda new: ("roce-link-flap", f"rocep27s0/1 ({PORT})") in came(new))

    assert {"roce-link-flap", "roce-link-down"} >= {rule for rule, _ in came(judgings)}
    assert len(judgings) < events // 20
    assert guest.run("systemctl", "is-active", "lab-watch").code == 0
    kernel = f"{FLAPS} times down and up, {events} uevents of PCI functions"
    flaps = "; ".join(change["note"] for change in loud(judgings, "new") if change["what"] == "roce-link-flap")
    record_row("A link flaps among many uevents under `watch`", kernel, f"{len(judgings)} judgings; {flaps}")
