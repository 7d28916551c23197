"""NCCL's files and jobs: what is a setting, what was looked at, and what nobody may see."""

from __future__ import annotations

from functools import partial

import pytest

from probes.catalogue import probe
from probes.host.interface import Absent, Denied
from probes.nccl import probe as nccl
from probes.nccl.jobs import parse_conf, parse_environ, parse_maps
from probes.probe import Status, outcome_of
from probes.sources.memory import SymlinkNode
from tests.probes.machine import Machine, read_facts

LIBRARY = "7f00-7f01 r-xp 00000000 08:02 11 /usr/lib/libnccl.so.2.21.5\n"


def live(**jobs: str) -> Machine:
    """A running host, with a system daemon and jobs: p4711="NCCL_IB_TC=106"."""
    host = Machine(live=True).put(
        {
            "/proc/self": SymlinkNode("4000"),
            "/proc/4000/mounts": "tmpfs /dev/shm tmpfs rw,size=65536k 0 0\n",
            "/proc/2/task/2/children": "3 4",
            "/proc/3/maps": "",
            "/proc/1/maps": "",
            "/proc/1/ns/mnt": SymlinkNode("mnt:[1]"),
            "/proc/4000/ns/mnt": SymlinkNode("mnt:[1]"),
            "/home/alice/x": "",
        }
    )
    for name, environ in jobs.items():
        pid = name[1:]
        host.put(
            {
                f"/proc/{pid}/maps": LIBRARY + "7f-80 rw-s 0 00:06 9 /dev/nvidia0\n",
                f"/proc/{pid}/environ": "".join(f"{item}\0" for item in environ.split()),
                f"/proc/{pid}/comm": "python3\n",
                f"/proc/{pid}/ns/mnt": SymlinkNode("mnt:[1]"),
                f"/proc/{pid}/limits": f"{'Max locked memory':<26}{'65536':<21}{'65536':<21}bytes\n",
                f"/proc/{pid}/status": "CapEff:\t0\n",
            }
        )
    return host


facts = partial(read_facts, "nccl")


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("NCCL_IB_TC=106", "NCCL_IB_TC", "106"),
        ("NCCL_IB_TC = 106", "NCCL_IB_TC ", " 106"),
        (" NCCL_IB_TC=106", " NCCL_IB_TC", "106"),
        ("export NCCL_IB_TC=106", "export NCCL_IB_TC", "106"),
        ("NCCL_IB_HCA==mlx5_0", "NCCL_IB_HCA", "=mlx5_0"),
        ('NCCL_IB_HCA="mlx5_0"', "NCCL_IB_HCA", '"mlx5_0"'),
        ("NCCL_IB_TC=106 # x", "NCCL_IB_TC", "106 # x"),
        ("NCCL_IB_TC=106\r", "NCCL_IB_TC", "106\r"),
        ("\ufeffNCCL_IB_TC=106", "\ufeffNCCL_IB_TC", "106"),
    ],
)
def test_a_line_is_taken_literally(line: str, key: str, value: str) -> None:
    """As NCCL does: the first "=" parts it, and nothing is trimmed."""
    settings, others = parse_conf(f"# remark\n\n{line}\n", "f", "system")

    assert [(key, value, "f:3", "system", line)] == [tuple(setting) for setting in settings]
    assert [] == others


def test_remarks_and_lines_without_equals() -> None:
    """A remark is none of both; a line that sets nothing is told."""
    settings, others = parse_conf("# a=b\n  # c=d\n \nNCCL_DEBUG\n", "f", "user")

    assert [] == settings
    assert [("", "NCCL_DEBUG", "f:4")] == [tuple(other)[:3] for other in others]


def test_an_environment_gives_settings_and_not_where_a_rank_stands() -> None:
    """Names that tell whom a rank calls are no settings."""
    content = b"OMPI_COMM_WORLD_RANK=3\0OMPI_MCA_btl=tcp\0OMPI_MCA_orte_hnp_uri=tcp://10.0.0.1\0NCCL_A=1=2\0NCCL_B\0"

    assert (("NCCL_A", "1=2"), ("OMPI_MCA_btl", "tcp")) == parse_environ(content)
    content = b"ROCR_VISIBLE_DEVICES=3\0HIP_VISIBLE_DEVICES=0\0HIP_VISIBLE_DEVICES_X=1\0CUDA_VISIBLE_DEVICES=3\0"
    assert (("HIP_VISIBLE_DEVICES", "0"), ("ROCR_VISIBLE_DEVICES", "3")) == parse_environ(content)


def test_maps_tell_deleted_libraries_and_devices() -> None:
    """A library that was renewed under a running job is still mapped."""
    mapped = parse_maps("0-0 r 0 0 1 /x/libnccl.so.2.18.3 (deleted)\n0-0 r 0 0 1 /dev/infiniband/uverbs0\n")

    assert ("/x/libnccl.so.2.18.3",) == mapped.libraries
    assert (False, True) == (mapped.gpu, mapped.rdma)


@pytest.mark.parametrize(
    ("path", "gpu"),
    [
        ("/dev/nvidia0", True),
        ("/dev/davinci3", True),
        ("/dev/kfd", True),
        ("/dev/kfd (deleted)", False),
        ("/x/kfd", False),
    ],
)
def test_a_mapped_device_node_makes_a_process_a_job(path: str, gpu: bool) -> None:
    """Of AMD the one node of all GPUs, of which each process has pages."""
    assert gpu == parse_maps(f"0-0 rw-s 0 00:06 9 {path}\n").gpu


def test_nothing_there_is_known_to_be_not_set() -> None:
    """A live host without a file and without a job."""
    result = facts(live())

    assert ((), ("/etc/nccl.conf",), (), 0, 0) == (
        result.settings,
        result.searched,
        result.unread,
        result.jobs,
        result.jobs_unread,
    )
    assert "65536" == result.shared_memory


def test_files_of_the_system_and_of_users() -> None:
    """Each with its scope; users' from /root and from homes."""
    host = live().put({"/etc/nccl.conf": "NCCL_A=1\n", "/root/.nccl.conf": "NCCL_B=1\nNCCL_C\n"})
    host.put({"/home/alice/.nccl.conf": "NCCL_D=1\n"})
    result = facts(host)

    assert [("NCCL_A", "system"), ("NCCL_B", "user"), ("NCCL_D", "user")] == [(s.key, s.scope) for s in result.settings]
    assert ["NCCL_C"] == [not_setting.value for not_setting in result.not_settings]


def test_a_link_in_a_home_is_not_followed() -> None:
    """It may lead to a file that only root may read."""
    result = facts(live().put({"/root/.nccl.conf": SymlinkNode("/etc/shadow"), "/etc/shadow": "NCCL_X=1\n"}))

    assert () == result.settings
    assert ("/root/.nccl.conf: a link, which is not followed",) == result.unread


@pytest.mark.parametrize("kind", ["nfs4", "autofs", "fuse.sshfs", "lustre"])
def test_homes_on_a_server_are_not_looked_into(kind: str) -> None:
    """A server that is gone would hold the probe."""
    host = live().put({"/proc/4000/mounts": f"s:/h /home {kind} rw 0 0\n", "/home/alice/.nccl.conf": "NCCL_D=1\n"})

    assert () == facts(host).settings
    assert any("/home" in why for why in facts(host).unread)


def test_homes_of_this_machine_are() -> None:
    """A local mount."""
    host = live().put({"/proc/4000/mounts": "/dev/x /home xfs rw 0 0\n", "/home/alice/.nccl.conf": "NCCL_D=1\n"})

    assert ["NCCL_D"] == [setting.key for setting in facts(host).settings]


def test_a_file_that_may_not_be_read_is_told() -> None:
    """Not as one that is not there."""
    host = live().put({"/etc/nccl.conf": "NCCL_A=1\n"})
    host.refused["/etc/nccl.conf"] = Denied("/etc/nccl.conf: Permission denied", "EACCES")
    result = facts(host)

    assert "/etc/nccl.conf" not in result.searched
    assert ("/etc/nccl.conf: Permission denied",) == result.unread


def test_jobs_alike_are_one_row() -> None:
    """Eight ranks set the same."""
    result = facts(live(p4711="NCCL_A=1 HOME=/x", p4712="NCCL_A=1", p4713="NCCL_A=2"))

    assert [
        ("1", "environment of pid 4711 (python3) and 1 more"),
        ("2", "environment of pid 4713 (python3)"),
    ] == [(setting.value, setting.source) for setting in result.settings]
    assert (3, 0) == (result.jobs, result.jobs_unread)
    assert [("/usr/lib/libnccl.so.2.21.5", "2.21.5", 3)] == [tuple(library) for library in result.libraries]
    assert ("pid 4711 (python3)", "65536", False, False) == result.limits[0]


def test_an_environment_that_may_not_be_read_is_counted() -> None:
    """The job is seen, what it sets is not."""
    host = live(p4711="NCCL_A=1")
    host.refused["/proc/4711/environ"] = Denied("no", "EACCES")

    assert (1, 1, ()) == (facts(host).jobs, facts(host).jobs_unread, facts(host).settings)


def test_processes_are_not_read_where_no_driver_of_job_devices_is_loaded() -> None:
    """Nor is their number unknown then: maps of all of them are a tenth of a scan."""
    bare, own = live(p4711="NCCL_A=1"), live(p4711="NCCL_A=1")
    bare.put({"/sys/module/ext4/x": ""}).refused["/proc/1/maps"] = Denied("no", "EACCES")
    own.put({"/sys/module/nvidia_uvm/x": ""})

    assert (0, 1) == (facts(bare).jobs, facts(own).jobs)


def test_processes_of_others_make_the_number_of_jobs_unknown() -> None:
    """Without privilege nobody knows whether one of them uses a GPU."""
    host = live(p4711="NCCL_A=1")
    host.refused["/proc/1/maps"] = Denied("no", "EACCES")
    result = facts(host)

    assert (None, None) == (result.jobs, result.jobs_unread)
    assert ["NCCL_A"] == [setting.key for setting in result.settings]
    assert "looked into by root only" in result.unread[-1]


def test_daemons_are_no_jobs() -> None:
    """DCGM has every GPU open."""
    host = live(p4711="NCCL_A=1").put({"/proc/4711/comm": "nv-hostengine\n"})

    assert (0, ()) == (facts(host).jobs, facts(host).settings)


@pytest.mark.parametrize(
    ("path", "apart", "read"),
    [
        ("/data/nccl.conf", False, True),
        ("/etc/shadow", False, False),
        ("/data/nccl.conf", True, False),
        ("relative-nccl.conf", False, False),
    ],
)
def test_a_file_named_by_a_job(path: str, apart: bool, read: bool) -> None:
    """It is read where its name says what it is, and where it is of this machine's files."""
    host = live(p4711=f"NCCL_CONF_FILE={path}").put({"/data/nccl.conf": "NCCL_A=1\n", "/etc/shadow": "NCCL_S=1\n"})
    host.put({"/proc/4711/ns/mnt": SymlinkNode("mnt:[2]" if apart else "mnt:[1]")})
    result = facts(host)

    assert read == ("NCCL_A" in [setting.key for setting in result.settings])
    assert "NCCL_S" not in [setting.key for setting in result.settings]
    assert read == (not any(path in why for why in result.unread))


def test_libraries_by_the_link_of_their_name() -> None:
    """A file that is no link has no version; a plugin is no NCCL."""
    host = live().put(
        {
            "/usr/lib/x86_64-linux-gnu/libnccl.so.2": SymlinkNode("libnccl.so.2.20.5"),
            "/usr/local/lib/libnccl.so.2": "ELF",
            "/usr/local/lib/libnccl-net.so": "ELF",
            "/usr/lib64/libgdrapi.so.2": SymlinkNode("libgdrapi.so.2.4"),
        }
    )
    result = facts(host)

    assert [("/usr/lib/x86_64-linux-gnu/libnccl.so.2.20.5", "2.20.5"), ("/usr/local/lib/libnccl.so.2", None)] == [
        (library.path, library.version) for library in result.libraries
    ]
    assert ["/usr/local/lib/libnccl-net.so"] == [plugin.path for plugin in result.plugins]
    assert ["/usr/lib64/libgdrapi.so.2.4"] == [other.path for other in result.others]


def test_topology_files() -> None:
    """There or not; the devices of one that root wrote."""
    xml = '<system><pci busid="0001:00:00.0" class="0x030200"/><pci busid="FFFF:FF:01.0" class="0x060400"/></system>'
    host = live().put({"/etc/nccl.conf": "NCCL_TOPO_FILE=/opt/t.xml\nNCCL_GRAPH_FILE=/opt/g.xml\n", "/opt/t.xml": xml})
    host.put({"/root/.nccl.conf": "NCCL_TOPO_FILE=/data/t.xml\n", "/data/t.xml": xml})
    result = facts(host)

    assert {"/opt/t.xml", "/data/t.xml"} == set(result.files)
    assert "/opt/g.xml" in result.searched
    assert {"/opt/t.xml": ("0x0302 0001:00:00.0",)} == result.devices


def test_a_source_without_any_of_it() -> None:
    """A tree need not hold what a machine has: absent, and not "not set"."""
    outcome = outcome_of(probe("nccl"), Machine())

    assert Status.ABSENT == outcome.status
    assert outcome.facts is None


def test_a_tree_with_a_file() -> None:
    """What it holds is told; jobs are not known."""
    result = facts(Machine().put({"/etc/nccl.conf": "NCCL_A=1\n"}))

    assert ["NCCL_A"] == [setting.key for setting in result.settings]
    assert None is result.jobs


def test_processes_that_end_meanwhile_are_left_out() -> None:
    """They were listed, and are gone."""
    host = live(p4711="NCCL_A=1")
    host.refused["/proc/4711/maps"] = Absent("gone", "ESRCH")

    assert 0 == facts(host).jobs


@pytest.mark.parametrize(
    ("path", "opened"),
    [
        ("/opt/a/t.xml", True),
        ("/run/nvidia-topologyd/virtualTopology.xml", True),
        ("/var/run/nvidia-topologyd/virtualTopology.xml", True),
        ("/opt/..a/t.xml", True),
        ("/var/tmp/t.xml", False),
        ("/run/user/7/t.xml", False),
        ("/etc/../home/eve/t.xml", False),
        ("/opt/a/../../tmp/t.xml", False),
        ("/opt/a/t.conf", False),
    ],
)
def test_a_topology_where_anybody_writes_is_not_opened(path: str, opened: bool) -> None:
    """What a job names there may be a link to a file of somebody else; a capture would hold it."""
    assert opened == bool(nccl._SAFE.match(path))


def test_more_homes_than_are_looked_into_are_told() -> None:
    """What the others set is not known."""
    few, many = (
        live().put({f"/home/u{n}/x": "" for n in range(count)}) for count in (127, 128)
    )  # and the one of the machine

    assert not [line for line in facts(few).unread if "homes" in line]
    assert ["/home: 129 homes, the first 128 were read"] == [line for line in facts(many).unread if "homes" in line]
