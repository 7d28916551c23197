"""What a host says. Nothing here judges, and nothing here imports `agent`."""
