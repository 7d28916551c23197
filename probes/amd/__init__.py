"""AMD Instinct GPUs: what amdgpu and its compute driver (KFD) show in sysfs, without ROCm.

Imported where an AMD GPU is on the bus. Lines of the kernel log are in `kernel`, PCI functions in `pci`.
"""
