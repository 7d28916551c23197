-- `fleet findings`: one rule on many nodes is one answer. What the nodes' operator silenced is left out.

-- name: counts
-- Findings by rule, severity and class, with one of their texts.
SELECT
  rule,
  severity,
  hardware_class,
  count(DISTINCT node) AS nodes,
  count(*) AS findings,
  min(summary) AS summary,
  min(remedy) AS remedy,
  max(cost_percent) AS cost_percent,
  max(cost_nodes) AS cost_nodes,
  count(fleet_window) AS by_fleet
FROM finding
WHERE NOT coalesce(silenced, FALSE)
GROUP BY rule, severity, hardware_class

-- name: nodes
-- The nodes of such groups, and the label and the part of what each finding is about.
SELECT finding.rule, finding.severity, finding.node, finding.label, finding.part, finding.part_serial
FROM finding
SEMI JOIN wanted
  ON finding.rule IS NOT DISTINCT FROM wanted.rule
  AND finding.severity IS NOT DISTINCT FROM wanted.severity
  AND finding.hardware_class IS NOT DISTINCT FROM wanted.hardware_class
WHERE NOT coalesce(finding.silenced, FALSE)

-- name: nodes_without
-- The nodes of a class that do not have the finding that others of the class have.
WITH affected AS (
  SELECT DISTINCT finding.rule, finding.severity, finding.hardware_class, finding.node
  FROM finding
  SEMI JOIN wanted
    ON finding.rule = wanted.rule
    AND finding.severity = wanted.severity
    AND finding.hardware_class = wanted.hardware_class
  WHERE NOT coalesce(finding.silenced, FALSE)
),
class_finding AS (
  SELECT DISTINCT rule, severity, hardware_class
  FROM affected
),
possible AS (
  SELECT
    class_finding.rule AS rule,
    class_finding.severity AS severity,
    class_finding.hardware_class AS hardware_class,
    host.node AS node
  FROM class_finding
  JOIN host ON host.hardware_class = class_finding.hardware_class
)
SELECT possible.rule, possible.severity, possible.hardware_class, possible.node
FROM possible
ANTI JOIN affected
  ON possible.rule = affected.rule
  AND possible.severity = affected.severity
  AND possible.hardware_class = affected.hardware_class
  AND possible.node = affected.node

-- name: costs
-- What slows jobs on several nodes, by the model, on which node, and how many GPUs that has.
SELECT finding.node AS node, finding.rule AS rule, finding.label AS label, finding.cost_percent AS lost, host.gpus AS gpus
FROM finding
JOIN host ON host.node = finding.node
WHERE finding.cost_percent IS NOT NULL AND finding.cost_nodes > 1 AND NOT coalesce(finding.silenced, FALSE)

-- name: gpus
-- All GPUs.
SELECT CAST(sum(gpus) AS BIGINT) AS gpus
FROM host

-- name: first_seen
-- Since when the oldest finding of each rule and severity is there.
WITH episode AS (
  {episode}
)
SELECT finding.rule AS rule, finding.severity AS severity, min(episode.began) AS began
FROM finding
JOIN episode
  ON episode.node = finding.node
  AND episode.rule = finding.rule
  AND episode.severity = finding.severity
  AND episode.subject = finding.subject
  AND episode.fingerprint = finding.fingerprint
WHERE episode.ended IS NULL AND NOT coalesce(finding.silenced, FALSE)
GROUP BY finding.rule, finding.severity
