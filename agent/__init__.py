"""What a host's facts mean: topology, rules, report, and the ways to show it."""
