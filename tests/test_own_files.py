"""Nothing that is not ours is removed, emptied or replaced: each place of the product that could do so, and whose file
it is there."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT

PRODUCT = ("agent", "probes")
OF_OS = {
    "ftruncate", "link", "mkfifo", "mknod", "remove", "removedirs", "rename", "renames", "replace", "rmdir", "symlink",
    "truncate", "unlink",
}  # fmt: skip
OF_PATHS = {
    "rmdir",
    "touch",
    "truncate",
    "unlink",
    "write_bytes",
    "write_text",
    "delete_file",
    "open_output_stream",
}  # and of stores
OF_STORES = {"remove", "replace", "take"}
OURS = {
    "create_private", "create_temporary", "create_temporary_folder", "empty_own_file", "install_file",
    "open_atomically", "remove_left_behind", "remove_own_file", "replace_file", "write_atomically",
}  # fmt: skip
BY_NAME = {*OURS, "OSFile", "ParquetWriter", "TemporaryDirectory", "NamedTemporaryFile", "mkdtemp", "mkstemp"}
HARMLESS = {"copyfileobj", "disk_usage", "get_terminal_size", "which"}  # of shutil: no name is opened to write
WRITING = {"O_APPEND", "O_CREAT", "O_RDWR", "O_TRUNC", "O_WRONLY"}


def changes(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The function, and the call by which a file is removed, emptied, replaced or opened to be written."""

    def visit(node: ast.AST, place: str) -> Iterator[tuple[str, str]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from visit(child, f"{place}.{child.name}".lstrip("."))
                continue
            if isinstance(child, ast.Call) and (name := change(child)):
                yield place, name
            yield from visit(child, place)

    yield from visit(tree, "")


def change(call: ast.Call) -> str | None:
    """The name of a call that changes a file; None for any other."""
    function = call.func
    if isinstance(function, ast.Name):
        if function.id == "open":
            return "open" if may_write(call, 1) else None
        return function.id if function.id in BY_NAME else None
    if not isinstance(function, ast.Attribute):
        return None
    name, receiver = function.attr, ast.unparse(function.value)
    if receiver == "os":
        if name == "open":
            return "os.open" if has_writing_flags(call) else None
        return f"os.{name}" if name in OF_OS else None
    if receiver == "shutil":
        return None if name in HARMLESS else f"shutil.{name}"
    if receiver in ("gzip", "tarfile", "bz2", "lzma", "io") and name == "open":
        return f"{receiver}.open" if may_write(call, 1) else None
    if receiver.lower().endswith("store") and name in OF_STORES:
        return f"{receiver}.{name}"
    return f".{name}" if name in OF_PATHS | BY_NAME else None


def may_write(call: ast.Call, place: int) -> bool:
    """Whether a file is opened by a mode that is not only for reading, or by one that is not a text here."""
    modes = [keyword.value for keyword in call.keywords if keyword.arg == "mode"] + call.args[place : place + 1]
    texts = [mode.value for mode in modes if isinstance(mode, ast.Constant)]
    return len(texts) < len(modes) or any(set(str(text)) & set("wax+") for text in texts)


def has_writing_flags(call: ast.Call) -> bool:
    """Whether flags of `os.open` are of writing, or stand in a variable."""
    attributes = {node.attr for node in ast.walk(call.args[1]) if isinstance(node, ast.Attribute)}
    variables = {node.id for node in ast.walk(call.args[1]) if isinstance(node, ast.Name)} - {"os", "follow"}
    return bool(attributes & WRITING or variables or "_last" in attributes)


def found() -> Counter[tuple[str, str, str]]:
    """Module, function and call, with how often it is there."""
    places: Counter[tuple[str, str, str]] = Counter()
    for path in (path for folder in PRODUCT for path in sorted((ROOT / folder).rglob("*.py"))):
        for place, name in changes(ast.parse(path.read_text())):
            places[str(path.relative_to(ROOT)), place, name] += 1
    return places


TABLE = """
agent/cli/fleet/news.py | news | replace_file | the file of --state, read as ours before (its format)
agent/cli/fleet/pull.py | pull | TemporaryDirectory | a new folder of a random name
agent/cli/install_units.py | _write_units | install_file | a unit that why_not_replaceable found to be ours, or --force
agent/cli/job.py | _open_folder | TemporaryDirectory | a new folder of a random name
agent/cli/request.py | ReportRequest._read_stdin | TemporaryDirectory | a new folder of a random name
agent/cli/stdin.py | _copy | open | a copy of stdin, in such a folder
agent/cli/output.py | deliver | open_atomically | the file of --output
agent/cli/output.py | discard_output | os.open | /dev/null
agent/cli/output.py | open_output | open_atomically | the file of --output
agent/cli/output.py | open_streams | open | a standard stream, by its number
agent/cli/output.py | open_streams | os.open | /dev/null
agent/cli/watch.py | _WatchOutput.write_report | write_atomically | the file of --output
agent/fleet/ingest/files.py | Staging.finished | store.take | from our staging folder to a new name
agent/fleet/ingest/files.py | Writer.__init__ | create_private | in our staging folder
agent/fleet/ingest/files.py | Writer.__init__ | .ParquetWriter | in our staging folder
agent/fleet/ingest/known.py | KnownFiles.save | self._store.replace | known_files.bin of a dataset that is ours
agent/fleet/ingest/locked_dataset.py | OpenDataset._place | store.take | from our staging folder to a new name
agent/fleet/ingest/locked_dataset.py | OpenDataset.commit | store.remove | a file that the manifest before named
agent/fleet/ingest/locked_dataset.py | OpenDataset.commit | store.replace | the manifest of the dataset
agent/fleet/ingest/locked_dataset.py | OpenDataset.commit | store.replace | reasons.ndjson of the quarantine
agent/fleet/ingest/locked_dataset.py | OpenDataset.tidy | self.store.remove | a name of our pattern, in a dataset
agent/fleet/ingest/locked_dataset.py | open_dataset | remove_left_behind | temporary files beside the manifest
agent/fleet/ingest/locked_dataset.py | _remove_empty | os.rmdir | the folder, if this run made it and nothing is in it
agent/fleet/ingest/locked_dataset.py | _remove_empty | remove_own_file | .lock, empty, in a folder without anything else
agent/fleet/ingest/locked_dataset.py | _remove_staging | shutil.rmtree | .staging, if it holds only what we write
agent/fleet/ingest/locked_dataset.py | open_dataset | .TemporaryDirectory | a new folder of a random name
agent/fleet/ingest/moving.py | Mover.remove_old | remove_own_file | a received report, beyond --move-limit or -days
agent/fleet/ingest/moving.py | _move_to | os.link | to a free name in the folder of --move
agent/fleet/ingest/moving.py | _move_to | os.unlink | a file of --move, the same as when it was read
agent/fleet/ingest/moving.py | _move_to | shutil.move | a file of --move, the same as when it was read, to a free name
agent/fleet/ingest/quarantine.py | Quarantine._write | open | a descriptor
agent/fleet/ingest/quarantine.py | Quarantine._write | os.open | in our staging folder
agent/fleet/ingest/quarantine.py | RefusedBytes.keep | open | a descriptor
agent/fleet/ingest/quarantine.py | RefusedBytes.keep | os.open | in our staging folder
agent/fleet/ingest/quarantine.py | _pack | tarfile.open | in memory
agent/fleet/ingest/spill.py | Epoch.write | open | in our staging folder
agent/fleet/ingest/spill.py | _write | .OSFile | in our staging folder
agent/fleet/ingest/texts.py | TextCopies.keep | open | in our staging folder
agent/fleet/ingest/worker.py | _read_local | os.open | read only
agent/fleet/store.py | Folder.remove | os.unlink | what its callers have rows for here
agent/fleet/store.py | Folder.replace | replace_file | what its callers have rows for here
agent/fleet/store.py | Folder.take | os.rename | from our staging folder to a new name
agent/fleet/store.py | Folder.take | shutil.move | the same, between file systems
agent/fleet/store.py | ObjectStore.remove | .delete_file | what its callers have rows for here
agent/fleet/store.py | ObjectStore.replace | .open_output_stream | what its callers have rows for here
agent/fleet/store.py | ObjectStore.take | .open_output_stream | a name that no other object has
agent/fleet/store.py | ObjectStore.take | os.unlink | in our temporary folder
agent/fleet/store.py | open_no_link | os.open | read only
agent/fleet/text/tables.py | _csv | .truncate | memory
agent/fleet/text/tables.py | write_parquet | .ParquetWriter | the stream of --output
agent/history/store.py | _compare_and_save | os.replace | our state of this host that is damaged, kept as .damaged
agent/history/store.py | load_state | os.open | read only
agent/history/store.py | save_state | replace_file | our state of this host, read before
agent/receive/inbox.py | Inbox._count | remove_left_behind | temporary files of reports that were received
agent/receive/inbox.py | Inbox._keep | replace_file | a name of host, time and digest that is not there
agent/receive/pull.py | _Fetch.finish | replace_file | a name of host, time and digest
agent/reports.py | _written_beside | create_temporary | a new file
agent/reports.py | _written_beside | os.replace | what the caller names, by a file that was just written
agent/reports.py | _written_beside | remove_own_file | the temporary file that was just created
agent/reports.py | open_atomically | os.open | a device or pipe that the user named
agent/reports.py | write_atomically | open_atomically | what the caller names
agent/ship/spool.py | Spool._drop | remove_own_file | the .why of an entry
agent/ship/spool.py | Spool._tidy | remove_left_behind | temporary files of entries
agent/ship/spool.py | Spool._write | replace_file | an entry, by its name with the digest
agent/ship/spool.py | Spool.remove | os.unlink | an entry, by its name with the digest
agent/ship/spool.py | Spool.set_aside | os.rename | an entry, to the same name in aside
agent/ship/spool.py | Spool.set_aside | replace_file | the .why of an entry
agent/ship/state.py | Journal._write | replace_file | state.json of a spool that is ours
agent/ship/state.py | Journal.count_drop | os.open | a tombstone, by the name of an entry
agent/ship/state.py | Journal.count_tombstones | os.unlink | a tombstone, by the name of an entry
agent/ship/state.py | Journal.discard | empty_own_file | a tombstone, by the name of an entry
agent/ship/state.py | Journal.discard | os.rename | an entry, to its tombstone
agent/ship/state.py | Journal.load | os.replace | state.json of a spool that is ours and damaged, kept as .damaged
agent/ship/target.py | FolderTarget.write | replace_file | a name of host, time and digest
agent/ship/target.py | _serve | os.open | /dev/null
agent/units.py | install_file | .replace_file | a unit that why_not_replaceable found to be ours, or --force
probes/capture/writer.py | _pack | tarfile.open | a stream
probes/capture/writer.py | _remove_tree | shutil.rmtree | the temporary folder that was just created
probes/capture/writer.py | _write_folder | create_temporary_folder | a new folder
probes/capture/writer.py | _write_folder | open | a new file in the folder that was just created
probes/capture/writer.py | _write_folder | os.rename | the folder of --output, if nothing is in it
probes/capture/writer.py | _write_folder | os.symlink | a new link in the folder that was just created
probes/capture/writer.py | _write_tar | create_temporary | a new file
probes/capture/writer.py | _write_tar | os.replace | the file of --output, no device or pipe
probes/capture/writer.py | _write_tar | remove_own_file | the temporary file that was just created
probes/host/files.py | open_regular | os.open | read only
probes/host/files.py | open_regular | os.open | read only
probes/host/folder.py | FolderFiles._read_there | os.open | read only
probes/host/folder.py | FolderFiles.attributes | os.open | read only
probes/host/folder.py | LiveFiles.attributes | os.open | read only
probes/locks.py | acquire_lock | os.ftruncate | a lock of a probe, empty or with a holder in it
probes/own_files.py | create_private | os.open | a new file (O_EXCL)
probes/own_files.py | create_temporary | os.open | a new file (O_EXCL)
probes/own_files.py | create_temporary | os.open | a new file (O_EXCL)
probes/own_files.py | create_temporary | remove_own_file | a temporary name for the caller's own file
probes/own_files.py | empty_own_file | os.ftruncate | what its caller has a row for here
probes/own_files.py | empty_own_file | os.open | the same, no link
probes/own_files.py | open_lock | os.open | a lock, in which nothing is written here
probes/own_files.py | open_lock | os.open | read only
probes/own_files.py | remove_left_behind | remove_own_file | a temporary name for a file that the caller writes
probes/own_files.py | remove_own_file | os.unlink | what its callers have rows for here, if regular and of this user
probes/worker.py | _serve | os.open | /dev/null
"""


def rows() -> list[list[str]]:
    """The table's."""
    return [[cell.strip() for cell in line.split("|", 3)] for line in TABLE.strip().splitlines()]


def test_each_place_that_changes_a_file_says_whose_it_is() -> None:
    """A new place without a row fails, and so does a row without a place."""
    stated, places = Counter((module, place, name) for module, place, name, _ in rows()), found()

    assert Counter() == places - stated, "no row says whose file this is"
    assert Counter() == stated - places, "there is no such place"
    assert all(whose for *_, whose in rows())


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("os.unlink(path)", "os.unlink"),
        ("os.replace(a, b)", "os.replace"),
        ("text.replace(a, b)", None),
        ("self._store.replace(a, b)", "self._store.replace"),
        ("shutil.rmtree(path)", "shutil.rmtree"),
        ("shutil.which(name)", None),
        ("path.unlink()", ".unlink"),
        ("open(path)", None),
        ("open(path, 'rb')", None),
        ("open(path, 'r+b')", "open"),
        ("open(path, mode)", "open"),
        ("open(path, mode='w')", "open"),
        ("os.open(path, os.O_RDONLY | os.O_CLOEXEC)", None),
        ("os.open(path, os.O_RDWR)", "os.open"),
        ("os.open(path, flags)", "os.open"),
        ("replace_file(path, data)", "replace_file"),
    ],
)
def test_which_calls_change_a_file(call: str, name: str | None) -> None:
    """By name, and by what a file is opened for."""
    expression = ast.parse(call, mode="eval").body
    assert isinstance(expression, ast.Call)

    assert name == change(expression)
