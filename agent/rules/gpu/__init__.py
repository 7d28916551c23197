"""Rules about GPUs and their driver."""
