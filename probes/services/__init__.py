"""Services of a GPU node: whether they run, by what systemd leaves in files, and what their logs state of a fault."""
