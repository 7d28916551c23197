"""What collectives reach on a node or a job, what bounds them, what faults cost, what to set: from reports alone.

NCCL's own model (graph search and tuning) and the arithmetic around it. No probe, no rule: findings are input.
"""
