"""`recommend`: predictions for a machine, a platform or a job, and what a job's log or a benchmark's table shows.

Only options, output and exit codes belong here, not the model: that is in agent/recommend.
"""

from __future__ import annotations

from agent.cli.job import explain_log
from agent.cli.recommend.machine import recommend as recommend
from agent.cli.recommend.plan import plan

recommend.command("explain-log")(explain_log)
recommend.command("plan")(plan)
