"""Services of a GPU node: whether they run, by what systemd leaves in files, and what their logs state of a fault.

Logs of the kernel are in `kernel/`; what NCCL's jobs leave behind is read by `agent/job/`.
"""
