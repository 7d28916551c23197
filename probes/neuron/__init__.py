"""AWS Neuron devices (Trainium, Inferentia): what `neuron-ls` states of them and of the links between them.

Imported where a Neuron device is on the bus. EFA devices are in `rdma`, their settings in `nccl`.
"""
