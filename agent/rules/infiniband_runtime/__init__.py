"""Rules about how the counters of InfiniBand ports moved."""
