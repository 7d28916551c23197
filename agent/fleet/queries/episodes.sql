-- Episodes of findings: `fleet news` and `fleet repeat`.

-- name: episodes
-- Findings that are there, or were after a moment. previous_ended: of the same finding's episode before; where it is
-- when this one began, only the severity became another.
WITH episode AS (
  {episode}
),
numbered AS (
  SELECT
    node,
    rule,
    severity,
    subject,
    fingerprint,
    label,
    part,
    part_serial,
    fleet_window,
    began,
    ended,
    lag(ended) OVER (PARTITION BY node, rule, subject, fingerprint ORDER BY began) AS previous_ended,
    lag(severity) OVER (PARTITION BY node, rule, subject, fingerprint ORDER BY began) AS previous_severity,
    lead(began) OVER (PARTITION BY node, rule, subject, fingerprint ORDER BY began) AS next_began
  FROM episode
)
SELECT
  node, rule, severity, subject, fingerprint, label, part, part_serial, began, ended,
  previous_ended, previous_severity, next_began, fleet_window
FROM numbered
WHERE ended IS NULL OR ended > $moment

-- name: arrivals
-- When the last report of each node arrived.
SELECT node, coalesce(received_at, observed_at) AS received_at
FROM host

-- name: switch_nodes
-- Switches whose outputs were stored.
SELECT node
FROM switch

-- name: findings_of_rules
-- The findings of newest reports that an entry of a silence file may be for.
SELECT thing.node, thing.rule, thing.severity, thing.subject, thing.fingerprint, thing.label
FROM finding AS thing
SEMI JOIN wanted ON {matching}

-- name: severe_findings
-- Findings of newest reports that may want a node out of service.
SELECT node, rule, severity
FROM finding
WHERE severity IN ('critical', 'error', 'warning') AND NOT coalesce(silenced, FALSE)

-- name: named_arrivals
-- The same, and what each node calls itself.
SELECT node, hostname, coalesce(received_at, observed_at) AS received_at
FROM host

-- name: far_ports
-- What a fabric file of the host has at the far end of an RDMA port.
SELECT thing.node, thing.nic, thing.port, thing.neighbor_name, thing.neighbor_port
FROM port AS thing
SEMI JOIN wanted ON {matching}

-- name: far_interfaces
-- What LLDP has at the far end of an interface, also by the NIC that it is of.
SELECT thing.node, thing.id, thing.nic, thing.neighbor_system, thing.neighbor_port
FROM netdev AS thing
SEMI JOIN wanted ON thing.node = wanted.node
WHERE thing.neighbor_port IS NOT NULL
