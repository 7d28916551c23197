"""CXL memory: what the kernel's CXL bus shows of expanders and their regions, and saved output of `cxl list`.

Imported where a CXL memory device is on the PCI bus, or such an output is there. PCI functions are in `pci`.
"""
