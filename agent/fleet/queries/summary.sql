-- `fleet summary`: verdicts by class, rules by state, the worst nodes.

-- name: hours
-- Nodes by class, verdict and the hour in which their report arrived: hours are few, and few of them are stale.
SELECT
  hardware_class,
  verdict,
  CAST(floor(epoch(coalesce(received_at, observed_at)) / 3600) AS BIGINT) AS hour,
  count(*) AS nodes,
  max(coalesce(received_at, observed_at)) AS newest,
  min(coalesce(received_at, observed_at)) AS oldest
FROM host
GROUP BY hardware_class, verdict, hour

-- name: nodes_of_hours
SELECT seen.node, seen.hardware_class, seen.verdict, seen.received_at
FROM (
  SELECT
    node,
    hardware_class,
    verdict,
    coalesce(received_at, observed_at) AS received_at,
    CAST(floor(epoch(coalesce(received_at, observed_at)) / 3600) AS BIGINT) AS hour
  FROM host
) AS seen
SEMI JOIN wanted ON seen.hour = wanted.hour

-- name: lost_gpus
-- Nodes that report nothing wrong and had more GPUs before: how many then and now, and since when.
SELECT
  lost.node,
  lost.gpus_before,
  lost.gpus_now,
  min(fewer.observed_at) AS since,
  lost.hardware_class,
  lost.verdict,
  lost.virtualization,
  lost.received_at
FROM (
  SELECT
    host.node AS node,
    host.hardware_class AS hardware_class,
    host.verdict AS verdict,
    host.virtualization AS virtualization,
    max(coalesce(host.received_at, host.observed_at)) AS received_at,
    max(past.gpus) AS gpus_before,
    max(host.gpus) AS gpus_now,
    max(past.observed_at) AS last_more
  FROM host
  JOIN history_host AS past ON past.node = host.node
  WHERE past.gpus > host.gpus AND host.verdict IN ('ok', 'unknown', 'nothing_to_check')
  GROUP BY host.node, host.hardware_class, host.verdict, host.virtualization
) AS lost
JOIN history_host AS fewer ON fewer.node = lost.node
WHERE fewer.observed_at > lost.last_more
GROUP BY lost.node, lost.gpus_before, lost.gpus_now, lost.hardware_class, lost.verdict, lost.virtualization, lost.received_at

-- name: nodes_with_findings
SELECT node, hardware_class, verdict, critical, error, warning, coalesce(received_at, observed_at) AS received_at
FROM host
WHERE verdict IN ('critical', 'error', 'warning')

-- name: findings_of_nodes
SELECT finding.node, finding.severity, finding.subject, finding.cost_percent, finding.rule, finding.label
FROM finding
SEMI JOIN wanted ON finding.node = wanted.node
WHERE NOT coalesce(finding.silenced, FALSE)

-- name: rule_states
-- How each rule ended, and on how many nodes.
SELECT rule, state, reason, count(*) AS nodes
FROM "check"
GROUP BY rule, state, reason

-- name: rule_states_of_kinds
-- The same, of one node in place of many.
SELECT judged.rule, judged.state, judged.reason, CAST(sum(wanted.nodes) AS BIGINT) AS nodes
FROM "check" AS judged
JOIN wanted ON judged.node = wanted.node
GROUP BY judged.rule, judged.state, judged.reason

-- name: rule_states_of_nodes
SELECT judged.rule, judged.state, judged.reason, count(*) AS nodes
FROM "check" AS judged
SEMI JOIN wanted ON judged.node = wanted.node
GROUP BY judged.rule, judged.state, judged.reason
