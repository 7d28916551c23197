"""What nvidia-smi prints, as real drivers print it: one 4-GPU machine with two bridges and two NICs, in every format.

GPU2 is idle, the second bridge has a link down. Written by hand; no line is of a real machine.
"""

from __future__ import annotations

NAME = "NVIDIA RTX A6000"
UUIDS = [f"GPU-{index}b616c38-08a3-7c85-1e1c-4685c27a540f" for index in range(4)]
ADDRESSES = ["0000:01:00.0", "0000:25:00.0", "0000:41:00.0", "0000:c1:00.0"]

TOPO = (
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tPHB\tNV4\tSYS\tPIX\tSYS\t0-15,32-47\t0\t\tN/A\n"
    "GPU1\tPHB\t X \tSYS\tNV12\tNODE\tSYS\t0-15,32-47\t0\t\tN/A\n"
    "GPU2\tNV4\tSYS\t X \tPXB\tSYS\tNODE\t16-31,48-63\t1\t\tN/A\n"
    "GPU3\tSYS\tNV12\tPXB\t X \tSYS\tPIX\t16-31,48-63\t1\t\tN/A\n"
    "NIC0\tPIX\tNODE\tSYS\tSYS\t X \tSYS\t\t\t\t\n"
    "NIC1\tSYS\tSYS\tNODE\tPIX\tSYS\t X \t\t\t\t\n"
    "\nLegend:\n\n"
    "  X    = Self\n"
    "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)\n"
    "  PIX  = Connection traversing at most a single PCIe bridge\n"
    "  NV#  = Connection traversing a bonded set of # NVLinks\n"
    "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_bond_0\n\n"
)

P2P = (
    " \tGPU0\tGPU1\tGPU2\tGPU3\t\n"
    " GPU0\tX\tCNS\tOK\tNS\t\n"
    " GPU1\tCNS\tX\tGNS\tOK\t\n"
    " GPU2\tOK\tGNS\tX\tDR\t\n"
    " GPU3\tNS\tOK\tDR\tX\t\n"
    "\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n"
)

LIST = "".join(f"GPU {index}: {NAME} (UUID: {uuid})\n" for index, uuid in enumerate(UUIDS)) + (
    "  MIG 1g.10gb     Device  0: (UUID: MIG-6b8c26a5-286a-f440-4f76-3af4cf4108f1)\n"
)


def nvlink(*lines: str) -> str:
    """The same lines below every GPU."""
    below = "".join(f"\t {line}\n" for line in lines)
    return "".join(f"GPU {index}: {NAME} (UUID: {uuid})\n{below}" for index, uuid in enumerate(UUIDS))


STATUS = nvlink("Link 0: 14.062 GB/s", "Link 1: 14.062 GB/s", "Link 2: <inactive>", "Link 10: 14.062 GB/s")
ERRORS = nvlink(
    *("Link 0: Replay Errors: 12", "Link 0: Recovery Errors: 0", "Link 0: CRC Errors: 3"),
    *("", "Link 1: Malformed packet Errors: 0", "Link 1: Rx Errors: 7", "Link 1: Tx packets: 90123"),
    *("Link 1: FEC Errors - 0: 36140749276", "Link 1: Effective BER: 15e-255", "Link 1: Symbol Errors: N/A"),
)
REMOTES = "".join(
    f"GPU {index}: {NAME} (UUID: {UUIDS[index]})\n\t Link 0: Remote Device 0000{ADDRESSES[peer].upper()}: Link 12\n"
    for index, peer in ((0, 2), (1, 3), (2, 0), (3, 1))
)
CAPABILITIES = nvlink("Link 0, P2P is supported: true", "Link 0, SLI is supported: false")


def query_gpu(index: int) -> str:
    """One GPU of `nvidia-smi -q` of R570, cut down to what is read and what could be mistaken for it."""
    idle = index == 2
    return f"""GPU 0000{ADDRESSES[index].upper()}
    Product Name                          : {NAME}
    Product Architecture                  : Ampere
    Persistence Mode                      : Enabled
    Addressing Mode                       : HMM
    MIG Mode
        Current                           : Disabled
        Pending                           : Enabled
    MIG Device
        Index                             : 0
        Shared FB Memory Usage
            Total                         : 9728 MiB
    Serial Number                         : 165032000{index}
    GPU UUID                              : {UUIDS[index]}
    Minor Number                          : {3 - index}
    VBIOS Version                         : 94.02.5C.00.02
    Platform Info
        Chassis Serial Number             :{" "}
        Module Id                         : 1
    GPU C2C Mode                          : N/A
    GPU Virtualization Mode
        Virtualization Mode               : Pass-Through
        Host VGPU Mode                    : N/A
    GPU Recovery Action                   : Drain and Reset
    PCI
        Bus                               : 0x01
        Bus Id                            : 0000{ADDRESSES[index].upper()}
        GPU Link Info
            PCIe Generation
                Max                       : 4
                Current                   : {1 if idle else 4}
                Device Current            : {1 if idle else 4}
                Device Max                : 4
                Host Max                  : 5
            Link Width
                Max                       : 16x
                Current                   : 8x
        Replays Since Reset               : 9
    Performance State                     : {"P8" if idle else "P0"}
    FB Memory Usage
        Total                             : 49140 MiB
        Used                              : 2 MiB
    BAR1 Memory Usage
        Total                             : 65536 MiB
    Utilization
        GPU                               : {0 if idle else 97} %
        Memory                            : 11 %
    Fabric
        State                             : Completed
        Status                            : Success
        CliqueId                          : 7
        ClusterUUID                       : 8f2b1c3d-0000-0000-0000-00000000a1b2
        Health
            Bandwidth                     : Full
            Route Recovery in progress    : False
            Route Unhealthy               : True
            Access Timeout Recovery       : N/A
    Processes
        Process ID                        : 4711
            Type                          : C
            Name                          : /usr/bin/odd : Current : 3

"""


HEALTH_TEXT = """\
    Persistence Mode                      : Disabled
    Clocks Event Reasons
        Idle                              : Not Active
        Applications Clocks Setting       : Active
        SW Power Cap                      : Not Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
            HW Power Brake Slowdown       : Not Active
        Sync Boost                        : Not Active
        SW Thermal Slowdown               : Not Active
        Display Clock Setting             : Not Active
    Clocks Event Reasons Counters
        HW Thermal Slowdown               : 120000 us
    ECC Mode
        Current                           : Enabled
        Pending                           : Disabled
    ECC Errors
        Volatile
            SRAM Correctable              : 900
            SRAM Uncorrectable Parity     : 1
            SRAM Uncorrectable SEC-DED    : 2
            DRAM Correctable              : 800
            DRAM Uncorrectable            : 3
        Aggregate
            SRAM Correctable              : 901
            SRAM Uncorrectable Parity     : 10
            SRAM Uncorrectable SEC-DED    : 20
            DRAM Uncorrectable            : 30
            SRAM Threshold Exceeded       : Yes
        Channel Repair Pending            : Yes
        TPC Repair Pending                : No
        Unrepairable Memory               : Yes
    Retired Pages
        Pending Page Blacklist            : N/A
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 3
        Pending                           : Yes
        Remapping Failure Occurred        : Yes
    GPU Power Readings
        Average Power Draw                : 480.00 W
        Current Power Limit               : 500.00 W
        Requested Power Limit             : 650.50 W
        Default Power Limit               : 700.00 W
    Module Power Readings
        Current Power Limit               : 1000.00 W
    Clocks
        Graphics                          : 991 MHz
        SM                                : 990 MHz
    Applications Clocks
        Graphics                          : 1200 MHz
    Default Applications Clocks
        Graphics                          : 1980 MHz
    Max Clocks
        SM                                : 1980 MHz
"""


QUERY = (
    "\n==============NVSMI LOG==============\n\n"
    "Timestamp                                 : Tue Jul 14 08:12:53 2026\n"
    "Driver Version                            : 570.211.01 [Deprecated; will be removed. Use KMD Version instead]\n"
    "CUDA Version                              : 12.8\n\n"
    "Attached GPUs                             : 4\n" + "".join(map(query_gpu, range(4)))
)


def xml_gpu(index: int) -> str:
    """The same GPU in document type 12."""
    idle = index == 2
    return f"""  <gpu id="0000{ADDRESSES[index].upper()}">
    <product_name>{NAME}</product_name>
    <product_architecture>Ampere</product_architecture>
    <persistence_mode>Enabled</persistence_mode>
    <addressing_mode>HMM</addressing_mode>
    <mig_mode><current_mig>Disabled</current_mig><pending_mig>Enabled</pending_mig></mig_mode>
    <mig_devices><mig_device><index>0</index><fb_memory_usage><total>9728 MiB</total></fb_memory_usage></mig_device>
    </mig_devices>
    <serial>165032000{index}</serial>
    <uuid>{UUIDS[index]}</uuid>
    <minor_number>{3 - index}</minor_number>
    <vbios_version>94.02.5C.00.02</vbios_version>
    <platformInfo><chassis_serial_number></chassis_serial_number><module_id>1</module_id></platformInfo>
    <c2c_mode>N/A</c2c_mode>
    <gpu_virtualization_mode><virtualization_mode>Pass-Through</virtualization_mode></gpu_virtualization_mode>
    <gpu_recovery_action>Drain and Reset</gpu_recovery_action>
    <pci>
      <pci_bus_id>0000{ADDRESSES[index].upper()}</pci_bus_id>
      <pci_gpu_link_info>
        <pcie_gen>
          <max_link_gen>4</max_link_gen>
          <current_link_gen>{1 if idle else 4}</current_link_gen>
          <max_device_link_gen>4</max_device_link_gen>
          <max_host_link_gen>5</max_host_link_gen>
        </pcie_gen>
        <link_widths><max_link_width>16x</max_link_width><current_link_width>8x</current_link_width></link_widths>
      </pci_gpu_link_info>
      <replay_counter>9</replay_counter>
    </pci>
    <performance_state>{"P8" if idle else "P0"}</performance_state>
    <fb_memory_usage><total>49140 MiB</total></fb_memory_usage>
    <bar1_memory_usage><total>65536 MiB</total></bar1_memory_usage>
    <utilization><gpu_util>{0 if idle else 97} %</gpu_util></utilization>
    <fabric>
      <state>Completed</state><status>Success</status><cliqueId>7</cliqueId>
      <clusterUuid>8f2b1c3d-0000-0000-0000-00000000a1b2</clusterUuid>
      <health><bandwidth>Full</bandwidth><route_recovery_in_progress>False</route_recovery_in_progress>
      <route_unhealthy>True</route_unhealthy><access_timeout_recovery>N/A</access_timeout_recovery></health>
    </fabric>
  </gpu>
"""


XML = (
    '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>\n'
    "  <driver_version>570.211.01</driver_version>\n  <cuda_version>12.8</cuda_version>\n"
    "  <attached_gpus>4</attached_gpus>\n" + "".join(map(xml_gpu, range(4))) + "</nvidia_smi_log>\n"
)

CSV = (
    "timestamp, driver_version, count, index, name, serial, uuid, pci.bus_id, pcie.link.gen.gpucurrent, "
    "pcie.link.gen.max, pcie.link.width.current, pstate, memory.total [MiB], utilization.gpu [%], mig.mode.current, "
    "c2c.mode, fabric.state, fabric.status, compute_cap, platform.chassis_serial_number, hostname\n"
) + "".join(
    f"2026/07/14 08:12:53.977, 570.211.01, 4, {index}, {NAME}, [N/A], {UUIDS[index]}, 0000{ADDRESSES[index].upper()}, "
    f"4, 4, 8, P0, 49140 MiB, 97 %, Disabled, [N/A], Completed, Success, 8.6, , [Unknown Error]\n"
    for index in range(4)
)
