-- `fleet html`: rows of a node folded into one text, as few of these texts differ. Cells are joined by chr(31), rows
-- by chr(30); neither is let through from a value, and an empty cell is not known. Texts of 100,000 nodes take time and
-- memory: one node of those with the same digests is asked for.

-- name: links
-- PCIe links; what is not conclusive has no speed.
SELECT
  node,
  id,
  conclusive_speed_gt_s,
  conclusive_width,
  CASE WHEN quality = 'conclusive' THEN bandwidth_gbyte_s END AS bandwidth_gbyte_s
FROM link

-- name: gpus
WITH wide AS (
  {links}
)
SELECT node, array_to_string(list_sort(list(cells)), chr(30)) AS folded
FROM (
  SELECT gpu.node AS node, {cells} AS cells
  FROM gpu
  JOIN wanted ON wanted.node = gpu.node
  LEFT JOIN wide ON wide.node = gpu.node AND wide.id = gpu.pci
) AS thing
GROUP BY node

-- name: rails
-- One row of text for each port of a rail.
WITH wide AS (
  {links}
)
SELECT node, array_to_string(list_sort(list(cells)), chr(30)) AS folded
FROM (
  SELECT nic.node AS node, {cells} AS cells
  FROM nic
  JOIN wanted ON wanted.node = nic.node
  LEFT JOIN port ON port.node = nic.node AND port.nic = nic.id
  LEFT JOIN wide ON wide.node = nic.node AND wide.id = nic.id
  WHERE nic.rail IS NOT NULL
) AS thing
GROUP BY node

-- name: checks
-- One row of text for each rule.
SELECT node, array_to_string(list_sort(list(cells)), chr(30)) AS folded
FROM (
  SELECT judged.node AS node, {cells} AS cells
  FROM "check" AS judged
  JOIN wanted ON wanted.node = judged.node
  WHERE {which}
) AS thing
GROUP BY node

-- name: first_looks
-- When each node was first seen, as far back as the history goes.
SELECT node, min(observed_at) AS first_seen
FROM history_change
WHERE "table" = 'host'
GROUP BY node

-- name: findings
-- Findings that are worded alike, and where; only of the first ones all texts. Silenced ones come last.
WITH known AS (
  SELECT
    {place} AS place,
    coalesce(rule, '') AS rule,
    coalesce(severity, '') AS severity,
    coalesce(label, '') AS label,
    coalesce(summary, '') AS summary,
    coalesce(impact, '') AS impact,
    coalesce(remedy, '') AS remedy,
    coalesce(evidence, '') AS evidence,
    coalesce(silenced, FALSE) AS silenced,
    coalesce(silenced_reason, '') AS silenced_reason,
    coalesce(silenced_until, '') AS silenced_until
  FROM finding
),
alike AS (
  SELECT
    rule, severity, label, summary, impact, remedy, evidence, silenced, silenced_reason, silenced_until,
    string_agg(place, chr(30)) AS places,
    count(*) AS times
  FROM known
  GROUP BY rule, severity, label, summary, impact, remedy, evidence, silenced, silenced_reason, silenced_until
),
ranked AS (
  SELECT
    rule, severity, label, summary, impact, remedy, evidence, silenced, silenced_reason, silenced_until, places,
    row_number() OVER (
      ORDER BY
        silenced,
        CASE severity WHEN 'critical' THEN 0 WHEN 'error' THEN 1 WHEN 'warning' THEN 2 ELSE 3 END,
        times DESC, rule, severity, label, summary, impact, remedy, evidence, silenced_reason, silenced_until
    ) AS finding_rank
  FROM alike
)
SELECT
  finding_rank,
  rule,
  severity,
  label,
  CASE WHEN finding_rank <= $most THEN summary END AS summary,
  CASE WHEN finding_rank <= $most THEN impact END AS impact,
  CASE WHEN finding_rank <= $most THEN remedy END AS remedy,
  CASE WHEN finding_rank <= $most THEN evidence END AS evidence,
  places,
  silenced,
  silenced_reason,
  silenced_until
FROM ranked

-- name: error_counters
-- Names of error counters: few, and looked at once each.
SELECT named.name
FROM (SELECT name FROM counter GROUP BY name) AS named
WHERE contains(lower(named.name), 'err')
  OR contains(lower(named.name), 'discard')
  OR contains(lower(named.name), 'link_downed')
  OR contains(lower(named.name), 'recovery')

-- name: counted_nodes
-- Nodes of which any counter was read.
SELECT node
FROM counter
GROUP BY node

-- name: errors
-- The sum of some counters of each node.
SELECT counted.node, sum(counted.value) AS errors
FROM counter AS counted
SEMI JOIN wanted ON counted.name = wanted.name
GROUP BY counted.node

-- name: verdict_changes
-- From when on each node had a verdict.
WITH told AS (
  SELECT
    node,
    observed_at,
    verdict,
    lag(verdict) OVER (PARTITION BY node ORDER BY observed_at) AS previous
  FROM history_host
)
SELECT node, observed_at, verdict
FROM told
WHERE previous IS NULL OR previous <> verdict

-- name: finding_changes
-- Findings that began or ended after a moment; one whose severity changed did neither, nor did those that a node had
-- when it was first seen.
WITH episode AS (
  {episode}
),
placed AS (
  SELECT
    node,
    rule,
    severity,
    label,
    began,
    ended,
    lag(ended) OVER (PARTITION BY node, rule, subject, fingerprint ORDER BY began) AS previous_ended,
    lead(began) OVER (PARTITION BY node, rule, subject, fingerprint ORDER BY began) AS next_began
  FROM episode
),
first_look AS (
  SELECT node, min(observed_at) AS first_seen
  FROM history_change
  WHERE "table" = 'host'
  GROUP BY node
)
SELECT DISTINCT placed.node, placed.rule, placed.label, placed.ended IS NULL AS is_new
FROM placed
JOIN first_look ON first_look.node = placed.node
WHERE placed.severity IN ('critical', 'error', 'warning')
  AND (
    (
      placed.ended IS NULL
      AND placed.began > $moment
      AND placed.began > first_look.first_seen
      AND (placed.previous_ended IS NULL OR placed.previous_ended < placed.began)
    )
    OR (placed.ended > $moment AND (placed.next_began IS NULL OR placed.next_began > placed.ended))
  )
