"""Readers of what libraries dump beside a log: flight recorder of PyTorch, RAS and Inspector of NCCL.

Each keeps a bounded part of what it reads. Nothing is concluded here: `agent.job.causes` finds the candidates.
"""
