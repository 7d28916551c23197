"""NCCL: its settings, what they select on this node, and what jobs may use."""
