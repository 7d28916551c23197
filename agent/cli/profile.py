"""`profile`: the built-in profiles, one of them, or a new one learnt from a good node."""

from __future__ import annotations

import sys

from agent.cli.asked import Asked
from agent.cli.delivery import deliver
from agent.cli.refused import Refused
from agent.model.node import Platform
from agent.model.profile import BadProfile
from agent.platforms.profiles import choose_profile, learn_profile, list_profiles, load_profile, profile_to_toml


def listed() -> None:
    """Print the built-in profiles, a line each."""
    wide = max(len(name) for name in list_profiles())
    for name in list_profiles():
        sys.stdout.write(f"{name:{wide}}  {load_profile(name).title}\n")


def shown(name: str) -> None:
    """Print one as TOML: a name, or a file. Raises Refused."""
    try:
        profile = choose_profile(name, Platform()).profile
    except BadProfile as error:
        raise Refused(str(error)) from error
    if profile is None:
        raise Refused(f"{name} is no profile")
    deliver(profile_to_toml(profile).encode(), None)


def learn(asked: Asked, name: str | None, output: str | None) -> None:
    """Write a profile of what a node has now. Raises Refused for a node that is not good."""
    report, _ = asked.reported()
    if report.summary.verdict in ("error", "critical"):
        worst = next((finding for finding in report.findings), None)
        why = f": {worst.rule} {worst.label}" if worst else ""
        raise Refused(f"not learnt from a node whose verdict is {report.summary.verdict}{why}")
    if not report.topology.gpus and not report.topology.nics:
        raise Refused("nothing to learn: this node has no GPU and no NIC")
    if report.summary.verdict == "unknown":
        print("fabricscope: not all of this node could be judged; what is learnt may be too little", file=sys.stderr)
    deliver(profile_to_toml(learn_profile(report, name or report.node.product or "site")).encode(), output)
