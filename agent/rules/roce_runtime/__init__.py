"""Rules about how the counters of RoCE ports and their interfaces moved."""
