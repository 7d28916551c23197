"""Rules about PCIe links and the devices on them."""
