"""An lspci output written for the tests, in the manner of pciutils 3.7: a root port, two GPUs, a NIC and its VF."""

from __future__ import annotations

SAMPLE = """\
0000:15:01.0 PCI bridge [0604]: Intel Corporation Device [8086:352a] (rev 04) (prog-if 00 [Normal decode])
\tControl: I/O+ Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr+ Stepping- SERR+ FastB2B- DisINTx+
\tStatus: Cap+ 66MHz- UDF- FastB2B- ParErr- DEVSEL=fast >TAbort- <TAbort- <MAbort- >SERR- <PERR- INTx-
\tNUMA node: 0
\tIOMMU group: 3
\tBus: primary=15, secondary=16, subordinate=1a, sec-latency=0
\tCapabilities: [40] Express (v2) Root Port (Slot+), MSI 00
\t\tDevCap:\tMaxPayload 512 bytes, PhantFunc 0
\t\t\tExtTag+ RBE+
\t\tDevCtl:\tCorrErr- NonFatalErr- FatalErr- UnsupReq-
\t\t\tRlxdOrd+ ExtTag- PhantFunc- AuxPwr- NoSnoop-
\t\t\tMaxPayload 256 bytes, MaxReadReq 128 bytes
\t\tLnkCap:\tPort #1, Speed 32GT/s, Width x16, ASPM not supported
\t\t\tClockPM- Surprise+ LLActRep+ BwNot+ ASPMOptComp+
\t\tLnkCtl:\tASPM Disabled; RCB 64 bytes, Disabled- CommClk+
\t\t\tExtSynch- ClockPM- AutWidDis- BWInt+ AutBWInt+
\t\tLnkSta:\tSpeed 16GT/s (downgraded), Width x16 (ok)
\t\t\tTrErr- Train- SlotClk+ DLActive+ BWMgmt+ ABWMgmt-
\t\tLnkCtl2: Target Link Speed: 32GT/s, EnterCompliance- SpeedDis-
\tCapabilities: [100 v1] Access Control Services
\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-
\tKernel driver in use: pcieport

0000:16:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 PCIe] [10de:2331] (rev a1)
\tSubsystem: NVIDIA Corporation Device [10de:1626]
\tPhysical Slot: 7-1
\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- DisINTx+
\tNUMA node: 0
\tRegion 0: Memory at 20004000000 (64-bit, prefetchable) [size=16M]
\tRegion 2: Memory at 20000000000 (64-bit, prefetchable) [size=128G]
\tExpansion ROM at 98000000 [disabled] [size=512K]
\tCapabilities: [40] Power Management version 3
\t\tFlags: PMEClk- DSI- D1- D2- AuxCurrent=0mA PME(D0+,D1-,D2-,D3hot+,D3cold-)
\t\tStatus: D3 NoSoftRst+ PME-Enable- DSel=0 DScale=0 PME-
\tCapabilities: [60] Express (v2) Endpoint, MSI 00
\t\tDevCap:\tMaxPayload 256 bytes, PhantFunc 0, Latency L0s unlimited, L1 <64us
\t\t\tExtTag+ AttnBtn- AttnInd- PwrInd- RBE+ FLReset+ SlotPowerLimit 75.000W
\t\tDevCtl:\tCorrErr- NonFatalErr- FatalErr- UnsupReq-
\t\t\tRlxdOrd- ExtTag+ PhantFunc- AuxPwr- NoSnoop+ FLReset-
\t\t\tMaxPayload 256 bytes, MaxReadReq 4096 bytes
\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM L1, Exit Latency L1 <4us
\t\tLnkCtl:\tASPM L0s L1 Enabled; RCB 64 bytes, LnkDisable- CommClk+
\t\tLnkSta:\tSpeed 16GT/s (downgraded), Width x8 (downgraded)
\t\t\tTrErr- Train- SlotClk+ DLActive- BWMgmt+ ABWMgmt-
\t\tLnkCtl2: Target Link Speed: 16GT/s, EnterCompliance- SpeedDis-
\tCapabilities: [100 v1] Device Serial Number 98-51-03-00-00-77-8c-48
\tCapabilities: [140 v1] Address Translation Service (ATS)
\t\tATSCap:\tInvalidate Queue Depth: 00
\t\tATSCtl:\tEnable+, Smallest Translation Unit: 00
\tCapabilities: [250 v1] Single Root I/O Virtualization (SR-IOV)
\t\tIOVCtl:\tEnable- Migration- Interrupt- MSE- ARIHierarchy+
\t\tInitial VFs: 32, Total VFs: 32, Number of VFs: 4, Function Dependency Link: 00
\t\tVF offset: 2, stride: 1, Device ID: 2331
\t\tRegion 1: Memory at 0000212000000000 (64-bit, prefetchable) [size=4G]
\tKernel modules: nvidia

0000:1a:00.0 Ethernet controller [0200]: Mellanox Technologies MT2892 Family [ConnectX-6 Dx] [15b3:101d]
\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- DisINTx+
\tCapabilities: [60] Express (v2) Endpoint, IntMsgNum 0
\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed 16GT/s, Width x16
\tCapabilities: [180 v1] Single Root I/O Virtualization (SR-IOV)
\t\tIOVCtl:\tEnable+ Migration- Interrupt- MSE+ ARIHierarchy+
\t\tInitial VFs: 8, Total VFs: 8, Number of VFs: 1, Function Dependency Link: 00
\t\tVF offset: 2, stride: 1, Device ID: 101e
\tKernel driver in use: mlx5_core

0000:1a:00.2 Ethernet controller [0200]: Mellanox Technologies ConnectX Family mlx5Gen Virtual Function [15b3:101e]
\tCapabilities: [60] Express (v2) Endpoint, MSI 00
\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed unknown (downgraded), Width x0 (downgraded)
\tKernel driver in use: mlx5_core

0000:1b:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 PCIe] [10de:2331] (rev ff) (prog-if ff)
\t!!! Unknown header type 7f
\tKernel driver in use: nvidia
"""


def hex_rows(data: bytes) -> str:
    """Bytes as -xxxx prints them."""
    return "\n".join(f"{at:02x}: {data[at : at + 16].hex(' ')}" for at in range(0, len(data), 16))
