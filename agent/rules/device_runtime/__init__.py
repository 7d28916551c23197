"""Rules about how error counters of PCIe links, NVLinks and C2C moved."""
