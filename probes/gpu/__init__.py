"""GPUs and their NVLinks: facts, read through NVML, or from outputs of `nvidia-smi`.

Their place on the bus is in `pci/`, driver versions and modules are in `kernel/`, Xid messages in
`kernel/log_events.py`.
"""
