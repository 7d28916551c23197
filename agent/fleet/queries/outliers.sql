-- `fleet outliers`: values are counted by class, and then only the rows are fetched whose values are not the usual ones.

-- name: class_facts
-- What decides which hardware classes are compared as one.
SELECT hardware_class, vendor, product, profile, arch, max(gpus) AS gpus, max(rails) AS rails, count(*) AS nodes
FROM host
GROUP BY hardware_class, vendor, product, profile, arch

-- name: switch_classes
-- The switches of each class.
SELECT hardware_class, count(*) AS switches
FROM switch
GROUP BY hardware_class

-- name: earlier_classes
-- Nodes of some classes that were in another one once.
SELECT DISTINCT moved.node, moved.hardware_class, moved.earlier_class, moved.gpus, moved.rails
FROM (
  SELECT
    host.node AS node,
    host.hardware_class AS hardware_class,
    past.hardware_class AS earlier_class,
    host.gpus AS gpus,
    host.rails AS rails
  FROM host
  JOIN history_host AS past ON past.node = host.node
) AS moved
SEMI JOIN wanted ON moved.hardware_class = wanted.hardware_class
WHERE moved.earlier_class <> moved.hardware_class

-- name: value_counts
-- How often each combination of the compared columns occurs; the first of `keys` is the hardware class.
SELECT {keys}, count(*) AS things
FROM {table} AS thing
WHERE {which}
GROUP BY {keys}

-- name: things
-- The things that have such a combination.
SELECT thing.node, {label} AS thing_label, {keys}
FROM {table} AS thing
SEMI JOIN wanted ON {matching}
WHERE {which}

-- name: things_of_nodes
-- All things of some nodes, and for each choice whether it is one of them.
SELECT thing.node, {label} AS thing_label, {keys}, {choices}
FROM {table} AS thing
SEMI JOIN wanted ON {matching}
WHERE {which}

-- name: group_nodes
-- How many nodes the things of a group are on.
SELECT {keys}, count(DISTINCT thing.node) AS nodes
FROM {table} AS thing
SEMI JOIN wanted ON {matching}
WHERE {which}
GROUP BY {keys}

-- name: all_things
TRUE

-- name: only_rails
thing.rail IS NOT NULL

-- name: only_others
thing.rail IS NULL AND thing.nic IS NOT NULL

-- name: only_endpoints
-- GPUs, accelerators and network controllers; what a physical function hands to guests is no part of the machine.
thing.class IN ('0x030000', '0x030200', '0x038000', '0x120000', '0x020000', '0x020700')
  AND thing.physical_function IS NULL

-- name: only_with_acs
thing.acs IS NOT NULL AND thing.physical_function IS NULL

-- name: link_label
coalesce(thing.kind, 'other') || ' ' || thing.id

-- name: text_counts
-- How often each text (of settings, services, the kernel's command line) occurs in a class.
SELECT hardware_class, compared, count(*) AS nodes
FROM (SELECT node, hardware_class, {compared} AS compared FROM host) AS configured
WHERE compared IS NOT NULL
GROUP BY hardware_class, compared

-- name: text_nodes
-- The nodes that have such a text.
SELECT configured.node, configured.hardware_class, configured.compared
FROM (SELECT node, hardware_class, {compared} AS compared FROM host) AS configured
SEMI JOIN wanted
  ON configured.hardware_class = wanted.hardware_class
  AND configured.compared = wanted.compared

-- name: common_command_line
-- Without the words that are each node's own, which would make every text another; datasets of earlier versions have
-- no such column.
coalesce(cmdline_common, regexp_replace(cmdline, $own_words, ' ', 'g'))

-- name: memory_counts
SELECT hardware_class, memory_mib, count(*) AS nodes
FROM host
GROUP BY hardware_class, memory_mib

-- name: numa_memory_counts
SELECT hardware_class, numa_memory_gib, count(*) AS nodes
FROM host
WHERE numa_memory_gib IS NOT NULL
GROUP BY hardware_class, numa_memory_gib

-- name: rack_nodes
-- What the racks of nodes are found by: nodes that share a chassis, and how many others have each name but its last
-- number.
SELECT hardware_class, chassis, name, count(*) AS nodes
FROM (
  SELECT
    thing.hardware_class AS hardware_class,
    shared.chassis_serial AS chassis,
    CASE WHEN shared.chassis_serial IS NULL THEN regexp_replace(thing.node, '[0-9]+$', '0') ELSE thing.node END AS name
  FROM host AS thing
  LEFT JOIN (
    SELECT chassis_serial
    FROM host
    WHERE chassis_serial <> ''
    GROUP BY chassis_serial
    HAVING count(*) BETWEEN $fewest AND $most
  ) AS shared ON shared.chassis_serial = thing.chassis_serial
) AS placed
GROUP BY hardware_class, chassis, name

-- name: domain_nodes
-- The NVLink domains of nodes; zeros are no domain.
SELECT DISTINCT node, hardware_class, cluster_uuid
FROM gpu
WHERE cluster_uuid <> '00000000-0000-0000-0000-000000000000'

-- name: wrong_clocks
-- A report may arrive late: that a clock is behind is certain only where ingest counted on by uptime.
SELECT node, hardware_class, clock_skew_seconds
FROM host
WHERE clock_skew_seconds > $ahead_seconds OR (clock_skew_seconds < $behind_seconds AND observed_at > generated_at)

-- name: probe_counts
-- How probes ended in a class, and how long they took, counted in steps.
SELECT hardware_class, name, status, step, count(*) AS nodes
FROM (SELECT hardware_class, name, status, {step} AS step FROM probe) AS timed
GROUP BY hardware_class, name, status, step

-- name: probe_nodes
SELECT timed.node, timed.hardware_class, timed.name, timed.status, timed.step, timed.duration_seconds
FROM (SELECT node, hardware_class, name, status, duration_seconds, {step} AS step FROM probe) AS timed
SEMI JOIN wanted
  ON timed.hardware_class IS NOT DISTINCT FROM wanted.hardware_class
  AND timed.name IS NOT DISTINCT FROM wanted.name
  AND timed.status IS NOT DISTINCT FROM wanted.status
  AND timed.step IS NOT DISTINCT FROM wanted.step

-- name: step
-- A duration that cannot be right has none: not every engine has a number for it.
CASE
  WHEN duration_seconds BETWEEN 0.0 AND $longest_seconds
  THEN CAST(floor(duration_seconds / $step_seconds) AS BIGINT)
END

-- name: window_counts
-- How many nodes of a class have a window: their counters were compared between two samples.
SELECT hardware_class, count(*) AS nodes
FROM host
WHERE window_seconds IS NOT NULL
GROUP BY hardware_class

-- name: rate_counts
-- How fast error counters grow at a place, and how often each rate occurs.
SELECT hardware_class, name, place, per_hour, count(*) AS subjects, count(DISTINCT node) AS nodes
FROM (SELECT node, hardware_class, name, place, {per_hour} AS per_hour FROM rate WHERE {enough}) AS timed
GROUP BY hardware_class, name, place, per_hour

-- name: rate_nodes
SELECT
  timed.node, timed.hardware_class, timed.name, timed.place, timed.per_hour, timed.subject, timed.label, timed.grown
FROM (
  SELECT node, hardware_class, name, place, subject, label, grown, {per_hour} AS per_hour
  FROM rate
  WHERE {enough}
) AS timed
SEMI JOIN wanted ON {matching}

-- name: per_hour
CAST(floor(grown * 3600.0 / seconds) AS BIGINT)

-- name: enough
grown >= $least_errors AND grown * 3600.0 >= $least_per_hour * seconds

-- name: node_facts
-- What nodes may have in common.
SELECT thing.node, {columns}
FROM host AS thing
SEMI JOIN wanted ON {matching}

-- name: fact_nodes
-- How many nodes of a class have a fact in common.
SELECT {keys}, count({nodes}) AS nodes
FROM {table} AS thing
SEMI JOIN wanted ON {matching}
GROUP BY {keys}

-- name: node_rail_facts
-- The switches that nodes are connected to, their modules and NIC firmware, and on which rails.
SELECT thing.node, list(coalesce(thing.rail, $no_rail)) AS rails, {facts}
FROM {table} AS thing
SEMI JOIN wanted ON {matching}
WHERE coalesce({facts}) IS NOT NULL
GROUP BY thing.node, {facts}
