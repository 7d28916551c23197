"""The ports of an RDMA device from sysfs: what each file says, and files that do not answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.host.interface import Denied, Failed, TimedOut
from probes.probe import Status
from probes.rdma.facts import GidEntry
from probes.sources.memory import SymlinkNode
from tests.probes.rdma.rdma_machine import ADDRESS, CLASS, DEVICE, PORT, devices, first_port, one_card, probed


class TestOneCard:
    """Every fact of a card whose files are all there."""

    def test_identity(self) -> None:
        """The card is its PCI function; the texts are those of its files."""
        device = devices(one_card())["mlx5_0"]

        assert (ADDRESS, "CA", "28.41.1000") == (device.address, device.node_type, device.firmware)
        assert ("MT_0000000838", "MT4129", "node1 mlx5_0") == (
            device.board_id,
            device.hca_type,
            device.node_description,
        )
        assert ("0002:c903:00a1:0010",) * 2 == (device.node_guid, device.system_image_guid)
        assert (False, False, None) == (device.software, device.asleep, device.limited)

    def test_port_state_has_no_numbers(self) -> None:
        """Numbers of the kernel's enumerations are left out, LIDs are numbers."""
        port = first_port(one_card())

        assert ("Ethernet", "ACTIVE", "LinkUp", "400 Gb/sec (4X NDR)", 0, 0) == (
            port.link_layer,
            port.state,
            port.phys_state,
            port.rate_text,
            port.lid,
            port.sm_lid,
        )

    def test_used_gids_alone_have_attributes_read(self) -> None:
        """An empty entry is no GID, and its type and interface would only answer EINVAL."""
        host = one_card()
        port = first_port(host)

        assert (
            GidEntry(0, "fe80:0000:0000:0000:0002:c9ff:fea1:0010", "RoCE v2", "ens1f0np0"),
            GidEntry(10, "0000:0000:0000:0000:0000:ffff:c0a8:0105", "RoCE v2", "ens1f0np0.100"),
        ) == port.gids
        assert port.gids_known
        assert not [path for path in host.asked if path.endswith(("types/1", "ndevs/1"))]

    def test_interfaces_are_those_of_the_port_and_of_its_gids(self) -> None:
        """Not the other port's, not a virtual function's representor."""
        assert ("ens1f0np0", "ens1f0np0.100") == first_port(one_card()).netdevs

    def test_counters_without_a_value_are_left_out(self) -> None:
        """No PMA and all-ones are no counts; a saturated counter is one; the cache time is no counter."""
        port = first_port(one_card())

        assert {"link_downed": 255, "port_rcv_data": 4294967295} == port.counters
        assert {"out_of_sequence": 7} == port.hw_counters

    def test_everything_answered(self) -> None:
        """The reading is whole and each file was asked once."""
        host = one_card()
        outcome = probed(host)

        assert (Status.OK, None, (CLASS,)) == (outcome.status, outcome.reason, outcome.sources)
        assert len(host.asked) == len(set(host.asked))


class TestTroubles:
    """Files that do not answer."""

    @pytest.mark.parametrize("code", ["EINVAL", "EOPNOTSUPP", "EAGAIN"])
    def test_what_a_driver_does_not_have_is_no_gap(self, code: str) -> None:
        """The rate of a virtual adapter, a counter, the type of a GID that went away in between."""
        host = one_card()
        refused = ("rate", "counters/link_downed", "gid_attrs/types/10", "gids/0")
        host.refused |= {f"{CLASS}/mlx5_0/ports/1/{name}": Failed("no", code) for name in refused}
        outcome = probed(host)

        (port,) = outcome.facts.devices[0].ports
        assert (Status.OK, None) == (outcome.status, port.rate_text)
        assert {"port_rcv_data": 4294967295} == port.counters
        assert (GidEntry(10, "0000:0000:0000:0000:0000:ffff:c0a8:0105", None, "ens1f0np0.100"),) == port.gids

    @pytest.mark.parametrize("why", [Denied("denied: state", "EACCES"), TimedOut("timed out: state")])
    def test_what_was_refused_is_said(self, why: Denied | TimedOut) -> None:
        """The port is there, its state is unknown, and the reading is not whole."""
        host = one_card()
        host.refused[f"{CLASS}/mlx5_0/ports/1/state"] = why
        outcome = probed(host)

        assert (Status.PARTIAL, why.reason) == (outcome.status, outcome.reason)
        assert (None, "LinkUp") == (
            outcome.facts.devices[0].ports[0].state,
            outcome.facts.devices[0].ports[0].phys_state,
        )

    def test_a_table_that_was_not_read_whole_is_not_known(self) -> None:
        """One entry failed: an absent GID may be that one."""
        host = one_card()
        host.refused[f"{CLASS}/mlx5_0/ports/1/gids/1"] = Failed("input/output error", "EIO")

        assert not first_port(host).gids_known

    def test_a_device_that_vanishes_is_left_out_and_said(self) -> None:
        """Its name was listed, its folder is gone."""
        host = one_card().put({f"{CLASS}/mlx5_9": SymlinkNode("../../devices/gone/infiniband/mlx5_9")})
        outcome = probed(host)

        assert ["mlx5_0"] == [device.name for device in outcome.facts.devices]
        assert (Status.PARTIAL, "mlx5_9 vanished while it was read") == (outcome.status, outcome.reason)

    def test_a_huge_gid_table_is_bounded(self) -> None:
        """Only so many entries are read; an unread rest means that the table is not known."""
        host = one_card().put({f"{PORT}/gids/{index}": "::" for index in range(11, 400)})
        port = first_port(host)

        assert ([0, 10], False) == ([gid.index for gid in port.gids], port.gids_known)
        assert 256 == len([path for path in host.asked if "/gids/" in path])

    def test_unused_partitions_end_the_search(self) -> None:
        """Each read can be a firmware command: after a block without a key no more are asked for."""
        host = one_card().put({f"{PORT}/pkeys/{index}": "0x0000" for index in range(1, 128)})
        host.put({f"{PORT}/pkeys/31": "0x8001"})

        assert ("0xffff", "0x8001") == first_port(host).pkeys
        assert 64 == len([path for path in host.asked if "/pkeys/" in path])


def test_counters_of_a_device_with_one_port_are_the_ports() -> None:
    """The port's own value stands where both have a name."""
    host = one_card().put({f"{DEVICE}/hw_counters/sent_cnps": "5", f"{DEVICE}/hw_counters/out_of_sequence": "1"})

    assert {"out_of_sequence": 7, "sent_cnps": 5} == first_port(host).hw_counters


def test_an_infiniband_port_guid_is_its_first_gid() -> None:
    """By the definition of GID 0; an Ethernet port has none."""
    host = one_card().put({f"{PORT}/link_layer": "InfiniBand\n"})

    assert "0002:c9ff:fea1:0010" == first_port(host).port_guid
    assert first_port(one_card()).port_guid is None


NAMES = ("state", "rate", "lid", "link_layer", "gids/0", "pkeys/0", "gid_attrs/types/0", "counters/link_downed")


@given(st.sampled_from(NAMES), st.binary() | st.text().map(str.encode))
def test_any_content_is_survived(name: str, content: bytes) -> None:
    """Whatever a file holds: the other facts stay, and no number is made of it that is not in it."""
    host = one_card()
    host.files.add(f"{PORT}/{name}", content)
    outcome = probed(host)

    assert Status.OK == outcome.status
    assert "LinkUp" == outcome.facts.devices[0].ports[0].phys_state
