"""AWS Neuron devices: links between them, as both of their ends state them.

Their PCIe links are what the hypervisor shows, and are in `pcie`; EFA is in `gpudirect`.
"""
