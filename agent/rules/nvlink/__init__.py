"""Rules about NVLinks between GPUs, and to NVSwitches."""
