"""An ingest from reports to Parquet and back through DuckDB: right, idempotent, in any order."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agent.fleet.dataset import BadDataset, Manifest, open_dataset
from agent.fleet.ingest.run import _count_buckets
from agent.fleet.ingest.spill import Entry, Epoch, Spilled, SpilledBlock
from agent.fleet.ingest.worker_pool import Workers
from tests.agent.fleet.small import START, as_of, files, history, lasting, named, plain, report, rows, take

pytest.importorskip("duckdb")
pq = pytest.importorskip("pyarrow.parquet")


def test_the_newest_report_of_a_node_is_its_latest_state(tmp_path: Path) -> None:
    result = take(tmp_path / "d", report(hour=1, driver="new"), report(hour=0, driver="old"), report("gpu2"))

    assert rows(tmp_path / "d", "host", "node, driver") == [("gpu1", "new"), ("gpu2", "570.1")]
    assert (result.read, result.fresh, result.late, result.repeated, result.nodes) == (3, 3, 0, 0, 2)


def test_the_same_reports_again_write_nothing(tmp_path: Path) -> None:
    reports = [report(), report(hour=2, driver="x"), report("gpu2")]
    take(tmp_path / "d", *reports)
    before = open_dataset(str(tmp_path / "d")).manifest
    result = take(tmp_path / "d", *reports)

    assert (result.fresh, result.repeated, result.nodes) == (0, 3, 2)
    assert open_dataset(str(tmp_path / "d")).manifest == before


def test_what_did_not_change_is_not_in_history_again(tmp_path: Path) -> None:
    take(tmp_path / "d", report())
    take(tmp_path / "d", report(hour=1))
    take(tmp_path / "d", report(hour=2, gpus=["a", "c"]))

    result = history(tmp_path / "d", "change", '"table", hour(observed_at), rows')
    assert result == [("gpu", 10, 2), ("gpu", 8, 2), ("host", 8, 1)]
    assert rows(tmp_path / "d", "host", "uptime_seconds") == [(7200.0,)]


def test_a_table_that_becomes_empty_is_a_change(tmp_path: Path) -> None:
    take(tmp_path / "d", report(hour=0))
    take(tmp_path / "d", report(hour=1, gpus=[]))

    assert ("gpu", 9, 0) in history(tmp_path / "d", "change", '"table", hour(observed_at), rows')
    assert len(as_of(tmp_path / "d", "gpu", START)) == 2
    assert as_of(tmp_path / "d", "gpu", START + timedelta(hours=1)) == []


def test_a_late_report_goes_to_its_time_and_does_not_become_the_latest(tmp_path: Path) -> None:
    take(tmp_path / "d", report(hour=0, driver="a"), report(hour=4, driver="a"))
    result = take(tmp_path / "d", report(hour=2, driver="b"))

    assert result.late == 1
    assert rows(tmp_path / "d", "host", "driver, hour(observed_at)") == [("a", 12)]
    drivers = [_driver(tmp_path / "d", hour) for hour in (0, 1, 2, 3, 4, 5)]
    assert drivers == ["a", "a", "b", "b", "a", "a"]


def test_a_late_report_takes_out_the_change_that_it_explains(tmp_path: Path) -> None:
    take(tmp_path / "d", report(hour=0, driver="a"), report(hour=4, driver="b"))
    take(tmp_path / "d", report(hour=2, driver="b"))

    result = history(tmp_path / "d", "change", "hour(observed_at)", "\"table\" = 'host'")
    assert result == [(10,), (8,)]
    assert [_driver(tmp_path / "d", hour) for hour in (0, 2, 4)] == ["a", "b", "b"]
    assert len(history(tmp_path / "d", "host")) == 2


def test_of_two_reports_of_one_moment_the_one_that_was_generated_last_counts(tmp_path: Path) -> None:
    first = report(hour=1, driver="a")
    again = report(hour=1, driver="b", generated_at="2026-01-20T00:00:00Z")
    take(tmp_path / "one", first, again)
    take(tmp_path / "two", again)
    result = take(tmp_path / "two", first)
    take(tmp_path / "three", first)
    take(tmp_path / "three", again)

    assert result.repeated == 1
    for name in ("one", "two", "three"):
        assert rows(tmp_path / name, "host", "driver") == [("b",)]
        assert [item[0] for item in history(tmp_path / name, "host", "driver")] == ["b"]
        assert len(history(tmp_path / name, "sighting")) == 1


def test_at_rest_the_files_on_disk_are_those_of_the_manifest(tmp_path: Path) -> None:
    for hour in range(3):
        take(tmp_path / "d", *(report(f"gpu{n}", hour, driver=str(hour)) for n in range(4)))

    assert files(tmp_path / "d") == named(tmp_path / "d")
    assert plain(tmp_path / "d", "latest/host/**/*.parquet") == [(4,)]
    assert sorted(item.name for item in (tmp_path / "d").iterdir()) == [
        ".lock", "history", "latest", "manifest.json", "state",
    ]  # fmt: skip


def test_small_files_of_a_day_are_made_one_and_say_the_same(tmp_path: Path) -> None:
    most = 0
    for hour in range(16):
        take(tmp_path / "d", report(hour=hour / 2, driver=str(hour % 3)))
        most = max(most, len(open_dataset(str(tmp_path / "d")).history("host")))
    take(tmp_path / "one", *(report(hour=hour / 2, driver=str(hour % 3)) for hour in range(16)))

    assert 12 <= most <= 13
    assert len(open_dataset(str(tmp_path / "d")).history("host")) < 6
    for table in ("change", "sighting", "host", "gpu"):
        assert history(tmp_path / "d", table) == history(tmp_path / "one", table)
    assert files(tmp_path / "d") == named(tmp_path / "d")


def test_every_table_has_a_file_so_that_its_columns_are_known(tmp_path: Path) -> None:
    take(tmp_path / "d", report())
    opened = open_dataset(str(tmp_path / "d"))

    for table in opened.manifest.latest:
        assert opened.latest(table), table
        rows(tmp_path / "d", table, lasting(table))
    for table in opened.manifest.history:
        assert opened.history(table), table


def test_more_nodes_are_spread_over_more_buckets_and_none_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.fleet.ingest.run.NODES_A_BUCKET", 4)
    take(tmp_path / "d", *(report(f"gpu{n}") for n in range(6)))
    few = open_dataset(str(tmp_path / "d")).manifest.buckets
    take(tmp_path / "d", *(report(f"gpu{n}") for n in range(6, 40)))
    take(tmp_path / "d", report("gpu3", 1, driver="x"))

    manifest = open_dataset(str(tmp_path / "d")).manifest
    assert (few, manifest.buckets, manifest.nodes) == (2, 16, 40)
    assert len(rows(tmp_path / "d", "host")) == 40
    assert len(rows(tmp_path / "d", "gpu")) == 80
    assert rows(tmp_path / "d", "host", "node", "driver = 'x'") == [("gpu3",)]
    assert files(tmp_path / "d") == named(tmp_path / "d")


@pytest.mark.parametrize("limit", ["HELD_BYTES", "HISTORY_BYTES"])
def test_wide_rows_are_written_before_there_are_many(
    limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.fleet.ingest.run.NODES_A_BUCKET", 4)  # each bucket adds to the same files of history
    sources = [report(f"gpu{n}", moment) for moment in range(3) for n in range(6)]
    take(tmp_path / "whole", *sources)
    monkeypatch.setattr(f"agent.fleet.ingest.files.{limit}", 1)
    take(tmp_path / "d", *sources)

    for table in open_dataset(str(tmp_path / "d")).manifest.latest:
        assert rows(tmp_path / "d", table, lasting(table)) == rows(tmp_path / "whole", table, lasting(table))
    groups = [
        pq.ParquetFile(path).num_row_groups
        for place in ("whole", "d")
        for path in open_dataset(str(tmp_path / place)).history("sighting")
    ]
    assert groups[0] < groups[-1]


def test_nodes_with_many_reports_are_merged_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [report(f"gpu{n}", hour, f"{hour * n % 3}", ("a", f"{hour}")) for hour in range(40) for n in range(6)]
    late, known = report("gpu2", 3.5, "late"), sources[:60]
    take(tmp_path / "whole", *known)
    take(tmp_path / "whole", late, *sources)
    pieces, entries = list[int](), Spilled.entries

    def noted(spilled: Spilled, blocks: list[SpilledBlock]) -> list[Entry]:
        pieces.append(len(blocks))
        return entries(spilled, blocks)

    monkeypatch.setattr(Spilled, "entries", noted)
    monkeypatch.setattr("agent.fleet.ingest.merging._PIECE_BYTES", 1)
    monkeypatch.setattr("agent.fleet.ingest.spill._REMEMBERED_ROWS", 0)
    monkeypatch.setattr("agent.fleet.ingest.spill.MOST_REPORTS", 50)  # a node's reports are in several epochs
    take(tmp_path / "d", *known)
    result = take(tmp_path / "d", late, *sources)

    assert [2] * 6 + [4] * 6 == pieces
    assert (181, 1, 60) == (result.fresh, result.late, result.repeated)
    for table in ("host", "gpu", "change", "sighting"):
        assert history(tmp_path / "d", table) == history(tmp_path / "whole", table)
    for table in ("host", "gpu"):
        assert rows(tmp_path / "d", table) == rows(tmp_path / "whole", table)


def test_the_text_of_findings_is_not_held_without_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finding = {"rule": "r", "severity": "error", "subject": "node", "fingerprint": "f", "evidence": ["x" * 100_000]}
    monkeypatch.setattr("agent.fleet.ingest.spill.MOST_BYTES", 1_000_000)
    epochs, write = list[int](), Epoch.write

    def noted(epoch: Epoch, folder: str) -> list[SpilledBlock]:
        epochs.append(epoch.reports)
        return write(epoch, folder)

    monkeypatch.setattr(Epoch, "write", noted)
    take(tmp_path / "d", *(report(f"gpu{n}", findings=[finding]) for n in range(25)))

    assert [10, 10, 5] == epochs


def test_a_cluster_stands_before_the_node(tmp_path: Path) -> None:
    take(tmp_path / "d", report(), cluster="east")
    take(tmp_path / "d", report(), cluster="west")

    assert rows(tmp_path / "d", "host", "node, cluster, hostname") == [
        ("east/gpu1", "east", "gpu1"),
        ("west/gpu1", "west", "gpu1"),
    ]


REPORTS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(["a", "b"]), st.sampled_from([(), ("a",), ("a", "b")])),
    min_size=1,
    max_size=4,
    unique_by=lambda each: each[0],
)


@settings(
    max_examples=5, phases=[Phase.explicit, Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(REPORTS, st.data())
def test_any_order_and_repetition_gives_the_same_answers(
    tmp_path_factory: pytest.TempPathFactory, what: list[tuple[int, str, tuple[str, ...]]], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("order")
    reports = [report("gpu1", hour, driver, gpus) for hour, driver, gpus in what]
    take(folder / "one", *reports)
    for permutation in data.draw(st.permutations(reports + reports[:2])):
        take(folder / "two", permutation)

    for table in ("host", "gpu"):
        assert rows(folder / "one", table) == rows(folder / "two", table)
        for hour in [0, *(item[0] for item in what)]:
            moment = START + timedelta(hours=hour)
            wanted = [item for item in sorted(what) if item[0] <= hour][-1:]
            one = as_of(folder / "one", table, moment)
            assert one == as_of(folder / "two", table, moment)
            assert len(one) == (sum(len(item[2]) for item in wanted) if table == "gpu" else len(wanted))
    assert history(folder / "one", "change") == history(folder / "two", "change")
    assert history(folder / "one", "sighting") == history(folder / "two", "sighting")


@pytest.mark.parametrize("many", [8_000, 1])
def test_two_processes_read_what_one_reads(
    many: int, tmp_path: Path, real_commands: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After many reports others merge what was read, and what the first put into quarantine is kept."""
    reports = [report(f"gpu{n % 50}", n // 50, str(n % 3)) for n in range(150)]
    take(tmp_path / "one", *reports)
    monkeypatch.setattr("agent.fleet.ingest.run._MANY", many)
    renewed, renew = list[int](), Workers.renew

    def noted(workers: Workers) -> None:
        renewed.append(workers.count)
        renew(workers)

    monkeypatch.setattr(Workers, "renew", noted)
    result = take(tmp_path / "two", *reports, b"{", jobs=2)

    for table in ("host", "gpu"):
        assert rows(tmp_path / "one", table) == rows(tmp_path / "two", table)
    assert history(tmp_path / "one", "change") == history(tmp_path / "two", "change")
    assert (1, [2] if many == 1 else []) == (result.quarantined, renewed)
    assert len(list((tmp_path / "two" / "quarantine").iterdir())) == 2


def test_a_damaged_manifest_is_refused_and_left_alone(tmp_path: Path) -> None:
    take(tmp_path / "d", report())
    manifest = tmp_path / "d" / "manifest.json"
    for damage in (b"", b"{", b"[]", b'{"format": "other/1"}', b'{"format":"fabricscope.dataset/1","buckets":3}'):
        manifest.write_bytes(damage)
        with pytest.raises(BadDataset, match=r"manifest\.json: "):
            take(tmp_path / "d", report("gpu2"))
        assert manifest.read_bytes() == damage


def test_a_manifest_does_not_lead_out_of_the_dataset(tmp_path: Path) -> None:
    take(tmp_path / "d", report())
    manifest = tmp_path / "d" / "manifest.json"
    manifest.write_text(manifest.read_text().replace("latest/host/", "../../host/"))

    with pytest.raises(BadDataset, match="leads out"):
        open_dataset(str(tmp_path / "d"))


def test_a_folder_of_somebody_else_does_not_become_a_dataset(tmp_path: Path) -> None:
    (tmp_path / "d" / "latest").mkdir(parents=True)
    (tmp_path / "d" / "thesis.tex").write_text("x")

    with pytest.raises(BadDataset, match=r"not empty: 'thesis\.tex'"):
        take(tmp_path / "d", report())
    assert ["latest", "thesis.tex"] == sorted(path.name for path in (tmp_path / "d").iterdir())


@pytest.mark.parametrize(
    "name",
    [".staging/index.html", ".staging", "latest/x.txt", "history/host/dt=2026-01-01/mine.parquet", "quarantine/notes"],
)
def test_folders_that_are_only_named_as_ours_are_refused(name: str, tmp_path: Path) -> None:
    """Nothing in them is removed."""
    (tmp_path / "d" / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "d" / name).write_text("x")

    with pytest.raises(BadDataset, match="is there"):
        take(tmp_path / "d", report())
    assert "x" == (tmp_path / "d" / name).read_text()


def test_files_of_somebody_else_in_a_dataset_stay(tmp_path: Path) -> None:
    """Only names of our pattern are tidied up; a folder of another in place of the staging folder is not removed."""
    take(tmp_path / "d", report())
    mine = tmp_path / "d" / "latest" / "host" / "bucket=00" / "mine.parquet"
    mine.parent.mkdir(parents=True, exist_ok=True)
    left = mine.with_name(f"00000001-{'a' * 12}.parquet")
    for path in (mine, left, tmp_path / "d" / "manifest.json.mine.tmp", tmp_path / "d" / "manifest.json.0a1b2c3d.tmp"):
        path.write_text("x")
    take(tmp_path / "d", report())
    assert mine.exists()
    assert (tmp_path / "d" / "manifest.json.mine.tmp").exists()
    assert not left.exists()
    assert not (tmp_path / "d" / "manifest.json.0a1b2c3d.tmp").exists()

    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "thesis.tex").write_text("x")
    (tmp_path / "d" / ".staging").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadDataset, match="not of an ingest"):
        take(tmp_path / "d", report())
    assert (tmp_path / "elsewhere" / "thesis.tex").exists()


def test_a_folder_that_was_there_before_stays(tmp_path: Path) -> None:
    """No dataset came about: what was made for it goes, and no more."""
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new"):
        assert 0 == take(tmp_path / name, b"no report").fresh

    assert [] == list((tmp_path / "empty").iterdir())
    assert not (tmp_path / "new").exists()


def _driver(dataset: Path, hour: int) -> str:
    (row,) = as_of(dataset, "host", START + timedelta(hours=hour))
    names = [item.strip('"') for item in lasting("host").split(", ")]
    return str(row[names.index("driver")])


@pytest.mark.parametrize(
    ("nodes", "buckets"),
    [(1, 1), (2048, 1), (2049, 2), (16_385, 16), (32_769, 16), (131_072, 16), (131_073, 32), (10**9, 1024)],
)
def test_sixteen_buckets_grow_before_there_are_more(nodes: int, buckets: int) -> None:
    assert _count_buckets(Manifest(), nodes) == buckets
    assert _count_buckets(Manifest(buckets=64, nodes=nodes), nodes) == (buckets if buckets > 128 else 64)


def test_a_dataset_of_an_earlier_version_gets_its_new_columns(tmp_path: Path) -> None:
    """Files without columns that came later are read, and the next ingest writes all of them."""
    dataset = tmp_path / "dataset"
    take(dataset, report("gpu1", 1), report("gpu2", 1))
    removed = 0
    for name in named(dataset):
        for column in ("event", "limits", "shared_memory_mib"):
            table = pq.read_table(dataset / name)
            if column in table.column_names:
                pq.write_table(table.drop_columns([column]), dataset / name)
                removed += 1
    xid = {"kind": "xid", "text": "a", "source": "dmesg", "code": "79"}
    take(dataset, report("gpu1", 3, events=[xid], software={"limits": {"memlock a": "1"}}))

    assert 4 < removed
    assert [("gpu1", "a=1"), ("gpu2", None)] == rows(dataset, "host", "node, limits")
    assert [("gpu1", "79")] == rows(dataset, "event", "node, code")
    assert [("gpu1", 1)] == history(dataset, "change", "node, rows", "\"table\" = 'event'")
