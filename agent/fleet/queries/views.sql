-- Views that `fleet query` and a loaded PostgreSQL have beside the tables.

-- name: rule_check
-- Table "check" by a name that is no reserved word.
SELECT {columns}
FROM "check"

-- name: finding_episode
-- From when to when each finding was there and not silenced; ended: null while it is. A finding that came back is
-- another episode, and so is one whose severity is another.
WITH moment AS (
  SELECT
    node,
    observed_at,
    row_number() OVER (PARTITION BY node ORDER BY observed_at) AS place,
    lead(observed_at) OVER (PARTITION BY node ORDER BY observed_at) AS next_observed_at
  FROM history_change
  WHERE "table" = 'finding'
),
seen AS (
  SELECT
    finding.node AS node,
    finding.hardware_class AS hardware_class,
    finding.rule AS rule,
    finding.severity AS severity,
    finding.subject AS subject,
    finding.label AS label,
    finding.fingerprint AS fingerprint,
    finding.part AS part,
    finding.part_serial AS part_serial,
    finding.fleet_window AS fleet_window,
    moment.observed_at AS observed_at,
    moment.next_observed_at AS next_observed_at,
    moment.place - row_number() OVER (
      PARTITION BY finding.node, finding.rule, finding.severity, finding.subject, finding.fingerprint
      ORDER BY moment.place
    ) AS episode
  FROM history_finding AS finding
  JOIN moment ON moment.node = finding.node AND moment.observed_at = finding.observed_at
  WHERE NOT coalesce(finding.silenced, FALSE)
)
SELECT
  node,
  rule,
  severity,
  subject,
  fingerprint,
  max(label) AS label,
  max(hardware_class) AS hardware_class,
  min(observed_at) AS began,
  CASE WHEN count(*) = count(next_observed_at) THEN max(next_observed_at) END AS ended,
  max(part) AS part,
  max(part_serial) AS part_serial,
  max(fleet_window) AS fleet_window
FROM seen
GROUP BY node, rule, severity, subject, fingerprint, episode

-- name: finding_open
-- The findings of each node's newest report that are not silenced, and since when they are there.
SELECT
  finding.node AS node,
  finding.rule AS rule,
  finding.severity AS severity,
  finding.subject AS subject,
  finding.fingerprint AS fingerprint,
  finding.label AS label,
  finding.hardware_class AS hardware_class,
  host.cluster AS cluster,
  finding.summary AS summary,
  finding.impact AS impact,
  finding.remedy AS remedy,
  finding.confidence AS confidence,
  finding.fleet_window AS fleet_window,
  episode.began AS began,
  host.observed_at AS observed_at
FROM finding
LEFT JOIN host ON host.node = finding.node
LEFT JOIN finding_episode AS episode
  ON episode.node = finding.node
  AND episode.rule = finding.rule
  AND episode.severity = finding.severity
  AND episode.subject = finding.subject
  AND episode.fingerprint = finding.fingerprint
  AND episode.ended IS NULL
WHERE NOT coalesce(finding.silenced, FALSE)

-- name: node_day
-- Every node and day (UTC) with a report: how many there were, and the node's state by the last of them.
WITH reported AS (
  SELECT node, {day} AS day, count(*) AS reports, max(observed_at) AS last_report
  FROM history_sighting
  GROUP BY node, {day}
),
state AS (
  SELECT
    node,
    cluster,
    hardware_class,
    verdict,
    critical,
    error,
    warning,
    info,
    observed_at AS began,
    lead(observed_at) OVER (PARTITION BY node ORDER BY observed_at) AS ended
  FROM history_host
)
SELECT
  reported.node AS node,
  reported.day AS day,
  reported.reports AS reports,
  reported.last_report AS last_report,
  state.cluster AS cluster,
  state.hardware_class AS hardware_class,
  state.verdict AS verdict,
  state.critical AS critical,
  state.error AS error,
  state.warning AS warning,
  state.info AS info
FROM reported
JOIN state
  ON state.node = reported.node
  AND state.began <= reported.last_report
  AND (state.ended IS NULL OR reported.last_report < state.ended)

-- name: node_setting
-- One row per node and setting of NCCL and its like, of column "settings" of host.
SELECT
  host.node AS node,
  host.cluster AS cluster,
  host.hardware_class AS hardware_class,
  split_part(item.word, '=', 1) AS setting,
  substr(item.word, strpos(item.word, '=') + 1) AS value
FROM host
CROSS JOIN unnest(regexp_split_to_array(host.settings, ' ')) AS item(word)
WHERE item.word <> ''

-- name: node_service
-- One row per node and service, of column "services" of host.
SELECT
  host.node AS node,
  host.cluster AS cluster,
  host.hardware_class AS hardware_class,
  split_part(item.word, '=', 1) AS service,
  substr(item.word, strpos(item.word, '=') + 1) AS state
FROM host
CROSS JOIN unnest(regexp_split_to_array(host.services, ' ')) AS item(word)
WHERE item.word <> ''

-- name: port_day
-- What the error counters of each RDMA port grew by from the first report of a day to that of the next day with one,
-- on the last day to the newest report; a counter that is lower than before began again.
WITH sample AS (
  SELECT node, nic, port, label, rail, observed_at, 0 AS newest, {counters}
  FROM history_port_counter
  UNION ALL
  SELECT
    port_counter.node, port_counter.nic, port_counter.port, port_counter.label, port_counter.rail, host.observed_at,
    1 AS newest, {counters}
  FROM port_counter
  JOIN host ON host.node = port_counter.node
),
compared AS (
  SELECT
    node,
    nic,
    port,
    label,
    rail,
    newest,
    {day} AS day,
    observed_at AS sampled_at,
    CASE
      WHEN lead(observed_at) OVER port_history > observed_at THEN lead(observed_at) OVER port_history
    END AS compared_at,
    {grown}
  FROM sample
  WINDOW port_history AS (PARTITION BY node, nic, port ORDER BY observed_at, newest)
)
SELECT
  node,
  nic,
  port,
  label,
  rail,
  day,
  sampled_at,
  compared_at,
  {counters}
FROM compared
WHERE newest = 0

-- name: grown
CASE
  WHEN lead(observed_at) OVER port_history = observed_at THEN NULL
  WHEN lead({counter}) OVER port_history >= {counter} THEN lead({counter}) OVER port_history - {counter}
  WHEN {counter} IS NOT NULL THEN lead({counter}) OVER port_history
END AS {counter}

-- name: day
-- Of a time without a zone.
CAST(observed_at AS DATE)

-- name: day_with_zone
CAST(observed_at AT TIME ZONE 'UTC' AS DATE)
