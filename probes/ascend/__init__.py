"""Huawei Ascend NPUs: what PCI, /dev and files of the driver show, and saved outputs of npu-smi and hccn_tool.

Imported where an Ascend NPU is on the bus, or such an output is saved. Its tools are never run: hccn_tool holds a lock
on the device. Lines of the kernel log are in `kernel`, PCI functions in `pci`, HCCL's settings in `nccl`.
"""
