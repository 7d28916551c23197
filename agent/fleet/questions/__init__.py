"""Questions to a fleet, one module each: the SQL of agent/fleet/queries, bound, and the answer as plain data."""
