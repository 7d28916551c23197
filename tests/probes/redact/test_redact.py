"""Pseudonyms: one value has one, of its shape, and what one value was made of another still is."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures import identifiers as made
from probes.host.interface import Completed, Refusal
from probes.host.recording import Recording
from probes.netlink import HEADER
from probes.redact import binary as binary
from probes.redact.redact import redact_recording
from probes.redact.text import Pseudonyms, TextRedactor

MAC = "b8:3f:d2:12:34:56"
RAW = bytes.fromhex(MAC.replace(":", ""))
FLIPPED = "ba3f:d2ff:fe12:3456"
MACS = st.binary(min_size=6, max_size=6).filter(lambda raw: any(raw) and not raw[0] & 1)
LOG = (
    "6,1,0,-;Command line: BOOT_IMAGE=/vmlinuz root=UUID=0a1b2c3d-1111-2222-3333-444455556666 "
    "ip=10.20.30.40::10.20.30.1:255.255.255.0:gpu-17:eth0:off BOOTIF=01-b8-3f-d2-12-34-56\n"
    "6,2,10,-;mlx5_core 0000:19:00.0: Port module event: module 0, Cable plugged\n"
    "6,3,20,-;usb 1-5: SerialNumber: ZX81QWERTY77\n"
    "6,4,30,-;systemd[1]: Hostname set to <gpu-17.ai.example.com>.\n"
    "6,5,40,-;IPv6: ADDRCONF: eth0: fe80::ba3f:d2ff:fe12:3456: duplicate\n"
    "6,6,50,-;PCI: MMIO at [mem 0x0000200000000000-0x00002000ffffffff] "
    "12:34:56 0::/ 550.54.15 6.8.0-49 96.00.9F.00.01\n"
)
UUID = "GPU-aaaaaaaa-0101-bbbb-cccc-0123456789ab"
SHOW_GIDS = (
    "mlx5_0\t1\t1\t0000:0000:0000:0000:0000:ffff:0a14:1e28\t10.20.30.40  \tv2\teth0\n"
    f"mlx5_0\t1\t0\tfe80:0000:0000:0000:{FLIPPED}\t\tv1\teth0\n"
)
LSPCI = (
    "0000:19:00.0 x\n\tCapabilities: [148 v1] Device Serial Number b8-3f-d2-03-00-12-34-56\n"
    "\t\t[SN] Serial number: MT2233X00AAA\n"
)


def texts() -> TextRedactor:
    """With one key, always the same."""
    return TextRedactor(Pseudonyms(b"key"))


def recorded() -> Recording:
    """A host as it speaks in many tongues."""
    commands = {
        ("ibstat",): "CA 'mlx5_0'\n\tNode GUID: 0xb83fd20300123456\n\t\tBase lid: 17\n",
        (
            "ibv_devinfo",
            "-v",
        ): "\tnode_guid:\t\t\tb83f:d203:0012:3456\n\t\t\tGID[  1]:\t\t::ffff:10.20.30.40, RoCE v2\n",
        ("show_gids",): SHOW_GIDS,
        ("lspci", "-D", "-nn", "-vvv"): LSPCI,
        ("nvidia-smi", "-q"): f"    Serial Number         : 1654922006123\n    GPU UUID              : {UUID}\n",
        ("nvidia-smi", "-q", "-x"): f"<serial>1654922006123</serial><uuid>{UUID}</uuid>",
    }
    return Recording(
        files={
            "/proc/sys/kernel/hostname": b"gpu-17\n",
            "/sys/class/dmi/id/product_serial": b"J1KQ7\n",
            "/sys/class/dmi/id/chassis_asset_tag": b"7\n",
            "/sys/class/dmi/id/board_serial": b"To be filled by O.E.M.\n",
            "/sys/class/net/enxb83fd2123456/address": f"{MAC}\n".encode(),
            "/sys/class/infiniband/mlx5_0/node_desc": b"gpu-17 mlx5_0\n",
            "/etc/dgx-release": b'DGX_SERIAL_NUMBER="1560000012345"\n',
            "/dev/kmsg": LOG.encode(),
        },
        links={f"/dev/disk/by-id/wwn-0x{RAW[:3].hex()}fffe{RAW[3:].hex()}": "../../sda"},
        commands={argv: Completed(argv, 0, text, "", 0.1) for argv, text in commands.items()},
        nvml={
            ("nvmlDeviceGetSerial", "[0]"): "1654922006123",
            ("nvmlDeviceGetUUID", "[0]"): UUID,
            ("nvmlDeviceGetPlatformInfo", "[0]"): {"chassisSerialNumber": "1824125002", "slotNumber": 24},
            ("nvmlDeviceGetGpuFabricInfoV", "[0]"): {"clusterUuid": "aaaaaaaa0101bbbbcccc0123456789ab", "cliqueId": 1},
        },
        refusals={"/sys/x": Refusal("failed", f"no route to {MAC.upper()}")},
        lost={"rdma": Refusal("timed_out", "gpu-17 does not answer")},
    )


def everything(recording: Recording) -> str:
    """All of its text."""
    return repr(recording).lower()


ORIGINALS = (
    "gpu-17 ai.example.com j1kq7 b8:3f:d2 b83f:d203 b83fd203 b8-3f-d2 ba3f:d2ff b83fd2123456 b83fd2fffe 10.20.30. "
    "0a14:1e28 654922006123 mt2233x00aaa zx81qwerty77 0123456789ab 0a1b2c3d 560000012345"
)


@pytest.mark.parametrize("original", ORIGINALS.split())
def test_no_spelling_is_left(original: str) -> None:
    """Whatever tongue it is spoken in."""
    assert original in everything(recorded())
    assert original not in everything(redact_recording(recorded())[0])


def test_what_names_nobody_stays() -> None:
    """Versions, addresses of PCI and of memory, times, control groups, numbers, fillers."""
    new, _ = redact_recording(recorded())
    log = new.files["/dev/kmsg"].decode()

    assert "0000:19:00.0" in log
    assert "[mem 0x0000200000000000-0x00002000ffffffff] 12:34:56 0::/ 550.54.15 6.8.0-49 96.00.9F.00.01" in log
    assert "255.255.255.0" in log
    assert b"To be filled by O.E.M.\n" == new.files["/sys/class/dmi/id/board_serial"]
    assert "Base lid: 17" in said(new, "ibstat")


def test_sameness_survives_every_tongue() -> None:
    """One GUID, MAC, address, serial, UUID is one afterwards, and the GUID is still the MAC's."""
    new, _ = redact_recording(recorded())
    mac = bytes.fromhex(
        next(value for path, value in new.files.items() if path.endswith("/address")).decode().replace(":", "")
    )
    guid = f"{mac[:3].hex()}0300{mac[3:].hex()}"
    interface = f"{mac[0] ^ 2:02x}{mac[1:3].hex()}fffe{mac[3:].hex()}"
    address = said(new, "show_gids").split("\t")[4].strip()

    assert mac[0] & 2
    assert f"Node GUID: 0x{guid}" in said(new, "ibstat")
    assert ":".join(guid[i : i + 4] for i in range(0, 16, 4)) in said(new, "ibv_devinfo", "-v")
    assert bytes.fromhex(guid).hex("-") in said(new, "lspci", "-D", "-nn", "-vvv")
    assert ":".join(interface[i : i + 4] for i in range(0, 16, 4)) in said(new, "show_gids")
    assert f"/sys/class/net/enx{mac.hex()}/address" in new.files
    assert f"BOOTIF=01-{mac.hex('-')}" in new.files["/dev/kmsg"].decode()
    assert mac.hex(":").upper() in new.refusals["/sys/x"].reason
    assert f"::ffff:{address}" in said(new, "ibv_devinfo", "-v")
    assert f"ip={address}::" in new.files["/dev/kmsg"].decode()
    assert new.nvml["nvmlDeviceGetSerial", "[0]"] in said(new, "nvidia-smi", "-q")
    uuid = new.nvml["nvmlDeviceGetUUID", "[0]"]
    place = new.nvml["nvmlDeviceGetPlatformInfo", "[0]"]
    assert ("1824125002", 24) != (place["chassisSerialNumber"], place["slotNumber"])
    assert (10, 24) == (len(place["chassisSerialNumber"]), place["slotNumber"])
    assert uuid.startswith("GPU-")
    assert uuid in said(new, "nvidia-smi", "-q", "-x")
    assert uuid[4:].replace("-", "") == new.nvml["nvmlDeviceGetGpuFabricInfoV", "[0]"]["clusterUuid"]
    host = new.files["/proc/sys/kernel/hostname"].decode().strip()
    assert new.files["/sys/class/infiniband/mlx5_0/node_desc"] == f"{host} mlx5_0\n".encode()
    assert new.lost["rdma"].reason == f"{host} does not answer"


def said(recording: Recording, *argv: str) -> str:
    """A command's output."""
    answer = recording.commands[argv]
    assert isinstance(answer, Completed)
    return answer.stdout


def test_a_short_name_is_hidden_where_it_is_known_to_be_one() -> None:
    """A host called "vm" is not written anew in /proc/sys/vm, but behind every label."""
    files = {
        "/proc/sys/kernel/hostname": b"vm\n",
        "/proc/cmdline": b"root=/dev/vm systemd.hostname=vm ip=::::vm:eth0\n",
        "/proc/hwloc-nofile-info": b"OSName: Linux\nHostName: vm\n",
        "/sys/class/infiniband/mlx5_0/node_desc": b"vm mlx5_0\n",
        "/proc/sys/vm/swappiness": b"60\n",
    }
    new = redact_recording(Recording(files=dict(files)))[0].files
    host = new["/proc/sys/kernel/hostname"].strip().decode()

    assert f"root=/dev/vm systemd.hostname={host} ip=::::{host}:eth0\n" == new["/proc/cmdline"].decode()
    assert f"OSName: Linux\nHostName: {host}\n" == new["/proc/hwloc-nofile-info"].decode()
    assert f"{host} mlx5_0\n" == new["/sys/class/infiniband/mlx5_0/node_desc"].decode()
    assert "/proc/sys/vm/swappiness" in new


def test_two_captures_share_no_pseudonym() -> None:
    """The key is made anew, and kept nowhere."""
    first, second = (redact_recording(recorded())[0].files["/proc/sys/kernel/hostname"] for _ in range(2))

    assert first != second


@given(MACS, st.booleans())
def test_a_guid_stays_its_macs(raw: bytes, known: bool) -> None:
    """Made in any of the ways that vendors make them, whether the MAC itself is in the capture or not."""
    names = Pseudonyms(b"key")
    if known:
        names.macs.add(raw)
    mac = names.mac(raw)

    assert mac[0] & 3 == 2
    assert mac[:3] + b"\x03\x00" + mac[3:] == names.guid(raw[:3] + b"\x03\x00" + raw[3:])
    if known or not raw[0] & 2:
        flip = bytes([raw[0] ^ 2]), bytes([mac[0] ^ 2])
        assert flip[1] + mac[1:3] + b"\xff\xfe" + mac[3:] == names.guid(flip[0] + raw[1:3] + b"\xff\xfe" + raw[3:])


@given(st.binary(min_size=4, max_size=4), st.binary(min_size=4, max_size=4))
def test_subnets_stay_subnets(first: bytes, second: bytes) -> None:
    """Addresses that share their first n bits, n > 8, still share as many, and no more."""
    names = Pseudonyms(b"key")
    second = first[:1] + second[1:]
    new = names.ipv4(first), names.ipv4(second)

    if new[0][:1] == new[1][:1] == b"\x0a" and new[0] != first:
        assert shared_bits(first, second) == shared_bits(*new)


def shared_bits(first: bytes, second: bytes) -> int:
    """How many leading bits are the same."""
    return 32 - (int.from_bytes(first, "big") ^ int.from_bytes(second, "big")).bit_length()


@given(st.text(max_size=200), st.binary(max_size=200))
def test_any_text_is_written_anew_without_an_error(text: str, content: bytes) -> None:
    """Also what is no text at all."""
    written = texts()
    written.learn(text)
    written.know({"gpu-17": "host-1"})

    assert isinstance(written.text(text), str)
    assert isinstance(written.content(content), bytes)


@given(st.text("0123456789abcdefABCDEF:.-x ", max_size=120))
def test_texts_of_digits_keep_their_length_or_their_meaning(text: str) -> None:
    """Nothing but identities is touched: a text without colons, dashes and long runs stays as it is."""
    written = texts()
    written.learn(text)

    assert isinstance(written.text(text), str)
    assert "0000:19:00.0 12:34" == written.text("0000:19:00.0 12:34")


@given(st.binary(max_size=300))
def test_any_netlink_reply_is_written_anew(reply: bytes) -> None:
    """Malformed ones end where they are."""
    binary.rewrite_netlink(texts(), 0, reply)
    list(binary.hardware_addresses(0, reply))
    list(binary.network_addresses(0, reply))


def test_attributes_that_are_not_understood_are_left_out() -> None:
    """An alias is free text; a tunnel holds the addresses of its ends; a name is kept."""
    name, alias, address = attribute(3, b"eth0\0"), attribute(20, b"rack 7, mr x\0"), attribute(1, RAW)
    tunnel = attribute(18, attribute(1, b"vxlan\0") + attribute(2, attribute(4, bytes([10, 20, 30, 40]))))
    body = bytes(16) + name + alias + address + tunnel
    reply = HEADER.pack(HEADER.size + len(body), 16, 2, 1, 0) + body
    new = binary.rewrite_netlink(texts(), 0, reply) or b""

    assert b"eth0\0" in new
    assert b"vxlan\0" in new
    assert [] == [secret for secret in (b"rack", RAW, bytes([10, 20, 30, 40])) if secret in new]
    assert binary.rewrite_netlink(texts(), 16, reply) is None


def attribute(kind: int, value: bytes) -> bytes:
    """One, padded."""
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def test_the_serial_number_of_a_configuration_space() -> None:
    """In sysfs's file and in lspci's dump: the same, and nothing else is touched."""
    space = bytearray(4096)
    serial = bytes.fromhex(made.guid_of_mac(MAC).replace(":", ""))
    struct.pack_into("<I", space, 0x100, 0x0001 | 1 << 16 | 0x148 << 20)
    struct.pack_into("<I", space, 0x148, 0x0003 | 1 << 16)
    space[0x14C:0x154] = serial[::-1]
    dump = "0000:19:00.0 Network\n" + "\n".join(f"{i:02x}: {space[i : i + 16].hex(' ')}" for i in range(0, 4096, 16))
    written = texts()
    new = binary.rewrite_config_space(written, bytes(space))

    assert new[0x14C:0x154][::-1] == written.names.guid(serial)
    assert (new[:0x14C], new[0x154:]) == (space[:0x14C], space[0x154:])
    assert new[0x140:0x150].hex(" ") in binary.rewrite_lspci_dumps(written, f"{dump}\n\n")
    assert "0000:19:00.0 Network" in binary.rewrite_lspci_dumps(written, f"{dump}\n\n")


@given(st.binary(min_size=256, max_size=400))
def test_any_configuration_space_is_written_anew(content: bytes) -> None:
    """Also one whose capabilities are a loop."""
    assert len(content) == len(binary.rewrite_config_space(texts(), content))


def test_dcb_names_an_interface_in_question_and_answer() -> None:
    """An interface may be named by its MAC; what DCB says are numbers."""
    written = texts()
    written.learn("b8:3f:d2:00:00:01")
    name, numbers = attribute(1, b"enxb83fd2000001\0"), attribute(13, attribute(2, bytes(136)))
    request, answered = (
        HEADER.pack(HEADER.size + 4 + len(body), 78, 1, 1, 0) + bytes(4) + body
        for body in (name, name + numbers + attribute(8, RAW))
    )
    new = binary.rewrite_netlink(written, 0, answered) or b""

    assert b"b83fd2000001" not in binary.rewrite_request(written, 0, request)
    assert binary.rewrite_request(written, 0, request)[20:] == new[20 : len(request)]
    assert numbers in new
    assert RAW not in new
    assert binary.rewrite_request(written, 20, request) == request


def test_rdma_netlink_keeps_names_and_leaves_guids_out() -> None:
    body = attribute(1, bytes(4)) + attribute(2, b"mlx5_0\0") + attribute(6, RAW) + attribute(67, b"roce\0")
    reply = HEADER.pack(HEADER.size + len(body), 5121, 2, 1, 0) + body
    new = binary.rewrite_netlink(texts(), 20, reply) or b""

    assert b"mlx5_0\0" in new
    assert b"roce\0" in new
    assert RAW not in new
    assert binary.rewrite_netlink(texts(), 0, reply) is None


def test_priorities_of_a_vlan_are_kept() -> None:
    data = attribute(1, bytes(2)) + attribute(3, attribute(1, bytes([0, 0, 0, 0, 3, 0, 0, 0])) * 3)
    body = bytes(16) + attribute(3, b"v\0") + attribute(18, attribute(1, b"vlan\0") + attribute(2, data))
    reply = HEADER.pack(HEADER.size + len(body), 16, 2, 1, 0) + body
    assert binary.rewrite_netlink(texts(), 0, reply) == reply


def test_a_switch_is_named_nowhere() -> None:
    """lldpctl has it as the key of a table."""
    argv = ("lldpctl", "-f", "json")
    row = {
        "chassis": {"leaf-17.pod3.example.org": {"id": {"type": "mac", "value": MAC}}},
        "port": {"descr": "leaf-17 p1"},
    }
    stdout = json.dumps({"lldp": {"interface": {"eth0": row}}})
    recording = Recording(commands={argv: Completed(argv, 0, stdout, "", 0.0)})
    new, _ = redact_recording(recording)
    done = new.commands[argv]

    assert isinstance(done, Completed)
    assert [] == [name for name in ("leaf-17", "pod3", "example", MAC) if name in done.stdout]
    assert "eth0" in done.stdout


def test_what_lldpctl_says_otherwise_is_text() -> None:
    argv = ("lldpctl", "-f", "json")
    new, _ = redact_recording(Recording(commands={argv: Completed(argv, 0, "unable to connect", "", 0.0)}))
    assert new.commands[argv] == Completed(argv, 0, "unable to connect", "", 0.0)


def test_users_and_addresses_of_settings_are_named_nowhere() -> None:
    """Homes, lines of PAM's limits, addresses in NCCL's settings and those of a switch's management."""
    argv = ("lldpctl", "-f", "json")
    heard = '{"lldp": {"chassis": {"leaf-17": {"mgmt-ip": ["10.20.30.44", "fe80::1"], "descr": "OS 5.9.1.1"}}}}'
    files = {
        "/etc/nccl.conf": b"NCCL_IB_ADDR_RANGE=10.20.30.0/24\nNCCL_TOPO_FILE=/home/alice/topo.xml\n",
        "/home/alice/.nccl.conf": b"NCCL_IB_TC=106\n",
        "/proc/7/environ": b"NCCL_COMM_ID=10.20.30.41:5000\0NCCL_DEBUG_FILE=/home/bob/x\0",
        "/proc/7/mounts": b"- /home/alice nfs - 0 0\n",
        "/etc/security/limits.d/x.conf": b"alice soft memlock 9\n* hard memlock 64\nroot - memlock 64\n",
        "/dev/kmsg": b"6,7,60,-;nfs: server filer7 not responding, still trying\n",
    }
    recording = Recording(
        files=files,
        listings={"/home": ["alice", "bob"]},
        refusals={"/home/carol/.nccl.conf": Refusal("denied", "/home/carol/.nccl.conf: Permission denied", "EACCES")},
        commands={argv: Completed(argv, 0, heard, "", 0.0)},
    )
    new, texts = redact_recording(recording)
    everything = repr(new)

    names = ("alice/", "'alice", "alice soft", "bob", "carol", "10.20.30.4", "10.20.30.0", "filer7")
    assert [] == [name for name in names if name in everything]
    alice = texts.names.user("alice")
    assert f"/home/{alice}/.nccl.conf" in new.files
    assert alice in new.listings["/home"]
    assert f"/home/{alice}/topo.xml".encode() in new.files["/etc/nccl.conf"]
    assert b"* hard memlock 64\nroot - memlock 64\n" in new.files["/etc/security/limits.d/x.conf"]
    assert "OS 5.9.1.1" in everything
