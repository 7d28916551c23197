"""Small topologies of each format, as their tools write them, for tests of the readers."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from typing import Any

from probes.text import ParseError

NCCL = b"""<system version="1">
  <cpu host_hash="0x1" numaid="0" affinity="00000000,0000000f" arch="x86_64" vendor="GenuineIntel" familyid="6"
       modelid="143">
    <pci busid="0000:15:00.0" class="0x060400" vendor="0x1000" device="0xc030" subsystem_vendor="0x1000"
         subsystem_device="0x100b" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:19:00.0" class="0x030200" vendor="0x10de" device="0x2330" subsystem_vendor="0x10de"
           subsystem_device="0x16c1" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90" rank="0" gdr="1">
          <nvlink target="0000:07:00.0" count="5" tclass="0x068000"/>
          <nvlink target="0000:08:00.0" count="13" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:1a:00.0" class="0x020700" vendor="0x15b3" device="0x1021" subsystem_vendor="0x15b3"
           subsystem_device="0x0041" link_speed="32.0 GT/s PCIe" link_width="16">
        <nic>
          <net name="mlx5_0" dev="0" speed="400000" port="1" latency="0.0" guid="0x1e95b50003fd7010" maxconn="131072"
               gdr="1"/>
        </nic>
      </pci>
    </pci>
    <pci busid="0000:28:00.0" class="0x020000" vendor="0x8086" device="0x1537" link_speed="" link_width="0">
      <nic><net name="eno1" dev="1" speed="10000" port="0" guid="0x1" gdr="0"/></nic>
    </pci>
  </cpu>
  <cpu host_hash="0x1" numaid="1" affinity="00000000,000000f0" arch="x86_64" vendor="GenuineIntel" familyid="6"
       modelid="143">
    <pci busid="0000:9d:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="8.0 GT/s" link_width="16">
      <gpu dev="1" sm="90" rank="1" gdr="1"><nvlink target="0000:08:00.0" count="18" tclass="0x068000"/></gpu>
    </pci>
  </cpu>
</system>
"""

HWLOC = b"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x000000ff" nodeset="0x00000007">
    <info name="DMISysVendor" value="Amazon EC2"/><info name="DMIProductName" value="g4dn.metal"/>
    <info name="DMIProductSerial" value="To be filled by O.E.M."/>
    <info name="OSRelease" value="5.10.1"/><info name="HostName" value="n1"/>
    <info name="Architecture" value="x86_64"/>
    <object type="Package" os_index="0" cpuset="0x0000000f" nodeset="0x00000005">
      <info name="CPUVendor" value="GenuineIntel"/><info name="CPUFamilyNumber" value="6"/>
      <info name="CPUModelNumber" value="85"/><info name="CPUModel" value="Xeon"/>
      <object type="NUMANode" os_index="0" cpuset="0x0000000f" nodeset="0x00000001" local_memory="1099511627776"/>
      <object type="NUMANode" os_index="2" cpuset="0x0000000f" nodeset="0x00000004" local_memory="1073741824"/>
      <object type="Bridge" bridge_type="0-1" bridge_pci="0000:[17-1a]">
        <object type="Bridge" bridge_type="1-1" bridge_pci="0000:[18-1a]" pci_busid="0000:17:00.0"
                pci_type="0604 [8086:2030] [0000:0000] 04" pci_link_speed="15.753846">
          <object type="PCIDev" pci_busid="0000:18:00.0" pci_type="0302 [10de:1db8] [10de:131d] a1"
                  pci_link_speed="15.753846">
            <object type="OSDev" name="nvml0" subtype="NVML" osdev_type="1">
              <info name="GPUModel" value="Tesla V100"/><info name="NVIDIAUUID" value="GPU-1"/>
              <info name="NVIDIASerial" value="032"/>
            </object>
          </object>
        </object>
      </object>
    </object>
    <object type="Package" os_index="1" cpuset="0x000000f0" nodeset="0x00000002">
      <object type="NUMANode" os_index="1" cpuset="0x000000f0" nodeset="0x00000002" local_memory="1073741824"/>
      <object type="Bridge" bridge_type="0-1" bridge_pci="0000:[ae-af]">
        <object type="PCIDev" pci_busid="0000:af:00.0" pci_type="0207 [15b3:1019] [15b3:0008] 00"
                pci_link_speed="0.000000">
          <info name="PCISlot" value="4"/><info name="PCIDevice" value="ConnectX-5 Ex"/>
          <object type="OSDev" name="ib0" osdev_type="2">
            <info name="Address" value="20:00"/><info name="Port" value="2"/>
          </object>
          <object type="OSDev" name="mlx5_0" osdev_type="3">
            <info name="NodeGUID" value="506b:4b03:003c:eee8"/><info name="SysImageGUID" value="506b:4b03:003c:eee8"/>
            <info name="Port1State" value="4"/><info name="Port1LID" value="0x527"/>
            <info name="Port1GID0" value="fe80:0000:0000:0000:506b:4b03:003c:eee8"/>
          </object>
        </object>
      </object>
    </object>
  </object>
  <distances2 type="NUMANode" nbobjs="3" kind="5" name="NUMALatency" indexing="os">
    <indexes length="6">0 2 1 </indexes><u64values length="9">10 80 21 80 10 80 </u64values>
    <u64values length="9">21 80 10 </u64values>
  </distances2>
</topology>
"""


def refusal(parse: Callable[[bytes], Any], content: bytes) -> list[str]:
    """The lines of the one error that a reader may raise; none where it reads the content."""
    try:
        parse(content)
    except ParseError as why:
        return str(why).splitlines()
    return []


def function(path: str, config: bytes, modalias: str = "", **fields: Any) -> dict[str, Any]:
    """One function of an rdma_topo dump."""
    encoded = base64.b64encode(zlib.compress(config)).decode()
    return {"realpath": path, "config": encoded, "iommu_group": None, "modalias": modalias, **fields}


def dump(*functions: dict[str, Any]) -> bytes:
    """What `rdma_topo dump` prints."""
    return json.dumps(functions, indent=4).encode()


RDMA = dump(
    function(
        "/sys/devices/pci0000:15/0000:15:01.0",
        bytes.fromhex("86803603") + bytes(4092),
        "pci:v00008086d0000352Asv00000000sd00000000bc06sc04i00",
        numa_node=0,
        subsystems={},
    ),
    function(
        "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0",
        bytes.fromhex("b3152110") + bytes(4092),
        "pci:v000015B3d00001021sv000015B3sd00000041bc02sc07i00",
        numa_node=0,
        iommu_group=42,
        subsystems={"infiniband": ["mlx5_0"], "net": ["ib0"]},
    ),
)
