"""Plain frozen data: the contract that rules, outputs and the fleet read. Imports nothing of ours."""
