"""Damaged input through whole commands, in this process: from what is given to what is written.

An input is made from its number alone, so that each can be repeated:

    python -m tests.fuzz.commands scan 10000 20000   # numbers; files of a folder after them are damaged, too

`make fuzz` goes on where it ended: `build/fuzz/NAME.json` holds the next number and those that failed, which it tries
first.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gzip
import io
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from agent.cli.errors import CliError
from agent.cli.main import run
from agent.fleet.ingest.run import Ingested, IngestOptions, ingest
from agent.receive.inbox import Inbox, Limits
from agent.receive.listening import AccessFiles, TlsFiles, open_sockets
from agent.receive.server import Server, ServerOptions
from tests.fuzz import ethernet, readers, seeds
from tests.fuzz.mutations import mutated, replace_value, with_checksums
from tests.probes.gpu import nvidia_smi_texts as smi
from tests.probes.pci.lspci_sample import SAMPLE
from tests.probes.rdma import tool_texts as rdma_texts

SECONDS = 2.0  # of a core, for one input
INGESTED_AT_ONCE = 16
MOST_FAILURES = 20
PRINTED_AFTER = 500  # inputs
ANSWER_SECONDS = 20.0  # for one request, on a loaded machine; what it costs is measured by itself
FORMATS = ("json", "json", "text", "html")
SAVED = {  # outputs by the names of their files
    "nvidia-smi_-q.txt": smi.QUERY,
    "nvidia-smi_topo_-m.txt": smi.TOPO,
    "nvidia-smi_topo_-p2p_r.txt": smi.P2P,
    "nvidia-smi_-L.txt": smi.LIST,
    "nvidia-smi_nvlink_-s.txt": smi.STATUS,
    "nvidia-smi_nvlink_-e.txt": smi.ERRORS,
    "nvidia-smi_nvlink_-R.txt": smi.REMOTES,
    "lspci_-vvv.txt": SAMPLE,
    "ibstat.txt": rdma_texts.IBSTAT,
    "ibv_devinfo_-v.txt": rdma_texts.IBV_DEVINFO,
    "rdma_link.txt": rdma_texts.RDMA_LINK,
    "show_gids.txt": rdma_texts.SHOW_GIDS,
    "lsmod.txt": seeds.LSMOD,
    "dmesg.txt": seeds.KERNEL_LOGS[1],
    "dmidecode.txt": seeds.DMIDECODE,
    "ip_-d_link_show.txt": seeds.IP_LINK,
    "ethtool_ens6f0.txt": ethernet.SETTINGS,
    "ethtool_-S_ens6f0.txt": ethernet.STATISTICS,
    "ethtool_-m_ens6f0.txt": ethernet.MODULE,
}


class Failure(Exception):
    """An input that a command did not take as it must; the message says what came."""


Try = Callable[[int], None]  # raises for the input of this number


class Command(NamedTuple):
    """One way in. `begin`: of a folder and more seeds, what tries an input there."""

    begin: Callable[[Path, Sequence[bytes]], contextlib.AbstractContextManager[Try]]
    inputs: int = 1  # that one number makes


class Result(NamedTuple):
    """What came of a run."""

    inputs: int
    following: int  # the number after the last
    failed: dict[int, str]
    slowest_seconds: float


@contextlib.contextmanager
def always(attempt: Try) -> Iterator[Try]:
    """What tries an input without a place of its own."""
    yield attempt


def try_numbers(name: str, numbers: Iterable[int], seconds: float, more: Sequence[bytes] = ()) -> Result:
    """Try the inputs of these numbers, no further one after so many seconds."""
    command, failed, following, count, slowest = COMMANDS[name], {}, 0, 0, 0.0
    with tempfile.TemporaryDirectory() as folder, command.begin(Path(folder), more) as attempt:
        attempt(-1)  # what is imported by the first is no cost of it
        until = time.monotonic() + seconds
        for number in numbers:
            if time.monotonic() > until or len(failed) > MOST_FAILURES:
                break
            began = time.process_time()
            try:
                attempt(number)
            except Exception as error:  # noqa: BLE001 - whatever came is the result
                place = error.__traceback__
                while place is not None and place.tb_next is not None:
                    place = place.tb_next
                at = f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place else ""
                failed[number] = f"{type(error).__name__}: {str(error)[:300]} ({at})"
            spent = time.process_time() - began
            if spent > SECONDS:
                failed.setdefault(number, f"{spent:.1f} s")
            slowest, following, count = max(slowest, spent), number + 1, count + command.inputs
    return Result(count, following, failed, slowest)


def _run(*arguments: str) -> bytes:
    """What a command prints; nothing where it refuses in its own words. Any other end is raised."""
    output = io.BytesIO()
    with (
        contextlib.redirect_stdout(io.TextIOWrapper(output, "utf-8", write_through=True)),
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.suppress(CliError, OSError),
    ):
        run([*arguments, "--debug"])
        return output.getvalue()
    return b""


@functools.cache
def _pasted() -> list[bytes]:
    """Every text that a reader has as its sample, without a name."""
    samples = {seed for reader in readers.READERS for seed in reader.seeds() if len(seed) > 40}
    return sorted(samples)


@contextlib.contextmanager
def _scanning(folder: Path, more: Sequence[bytes]) -> Iterator[Try]:
    """One file of any kind; or several outputs by their names, some of them damaged."""
    files = [*seeds.archives(), *seeds.reports(), *_pasted(), *more]
    saved = {name: text.encode() for name, text in SAVED.items()}

    def attempt(number: int) -> None:
        random = Random(number)
        place = Path(tempfile.mkdtemp(dir=folder))
        if random.random() < 0.5:
            chosen = random.sample(sorted(saved), random.choice((1, 2, 5, len(saved))))
            for name in chosen:
                content = saved[name] if random.random() < 0.4 else mutated(random, [saved[name], *saved.values()])
                (place / name).write_bytes(content)
            path = place
        else:
            content = mutated(random, files)
            path = place / random.choice(("paste.txt", "x.tar", "report.json", *SAVED))
            path.write_bytes(with_checksums(content) if number % 4 and b"ustar" in content else content)
        form = FORMATS[number % len(FORMATS)]
        extras = ["--verbose"] if form == "text" else []
        output = _run("scan", str(path), "--format", form, *extras)
        if output and form == "json":
            check_report(json.loads(output))
        _empty(place)

    yield attempt


_BUG = re.compile(r"\w+ at [\w<>]+:\d+: ")  # how an error is told that a probe does not expect


def check_report(report: dict[str, Any]) -> None:
    """A probe that breaks is a line in a report, and no line that may be there; a rule that breaks ends the run."""
    broken = [
        f"{run['name']}: {run['reason']}"
        for run in report["probes"]
        if run["status"] == "failed" and _BUG.match(run.get("reason") or "")
    ]
    if broken:
        raise Failure("; ".join(broken))


@contextlib.contextmanager
def _explaining(folder: Path, more: Sequence[bytes]) -> Iterator[Try]:
    """A job's folder with one or a few of its files damaged."""
    from tests.agent.job.test_hostile import seeds as job_seeds

    files = job_seeds()
    every = [*(content for contents in files.values() for content in contents), *more]

    def attempt(number: int) -> None:
        random = Random(number)
        place = Path(tempfile.mkdtemp(dir=folder))
        for name in random.sample(sorted(files), random.choice((1, 1, 2, 4))):
            (place / name).write_bytes(mutated(random, random.choice((files[name], every))))
        output = _run("job", str(place), "--format", ("json", "text", "html")[number % 3])
        if output and number % 3 == 0:
            json.loads(output)
        _empty(place)

    yield attempt


def _report_seeds(more: Sequence[bytes]) -> list[bytes]:
    reports = [*seeds.reports(), *more]
    return [*reports, b"\n".join(b" ".join(report.split()) for report in reports[:2]) + b"\n"]


@contextlib.contextmanager
def _ingesting(folder: Path, more: Sequence[bytes]) -> Iterator[Try]:
    """Several reports at once into a dataset that grows."""
    contents = _report_seeds(more)

    def attempt(number: int) -> None:
        random = Random(number)
        place = Path(tempfile.mkdtemp(dir=folder))
        for index in range(INGESTED_AT_ONCE):
            suffix = random.choice(("json", "json", "json.gz", "ndjson", "json.zst"))
            content = _damaged_report(random, contents)
            (place / f"n{index}.{suffix}").write_bytes(
                gzip.compress(content) if suffix == "json.gz" and random.random() < 0.7 else content
            )
        _ingest(place, folder / f"dataset-{number // 64}")  # one that only grows costs more with every one
        _empty(place)

    yield attempt


def _damaged_report(random: Random, contents: Sequence[bytes]) -> bytes:
    """Damage as in any text; mostly to values only, so that it gets further than the JSON."""
    if random.random() < 0.3:
        return mutated(random, contents)
    document = json.loads(contents[0])
    for _ in range(random.choice((1, 1, 4, 20))):
        replace_value(random, document, VALUES)
    return json.dumps(document, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")


VALUES: tuple[Any, ...] = (
    *(None, "", "x", -1, 0, 1, 2**31, 2**63, 2**64, 1e308, 0.5, True, [], {}, [None], {"x": 1}, "0000:00:00.0", "²"),
    *(
        "\x00",
        "\ud800",
        "a" * 5000,
        "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00+14:00",
        "../../x",
        "<script>",
        "n[1-9]",
    ),
)


def _ingest(source: Path, dataset: Path) -> Ingested:
    options = IngestOptions(sources=[str(source)], dataset=str(dataset), jobs=1)
    return ingest(options, lambda stage, done: None)


TOKEN = "token-of-a-client"


@contextlib.contextmanager
def _receiving(folder: Path, more: Sequence[bytes]) -> Iterator[Try]:
    """Requests with damage in the head, in the body, or in both; then what was taken goes into a dataset."""
    contents = _report_seeds(more)
    loop = asyncio.new_event_loop()
    errors: list[str] = []
    (socket,) = open_sockets("127.0.0.1:0", plain=True)
    spool = folder / "spool"
    inbox = Inbox(str(spool), Limits(1 << 30, 1 << 20, 1 << 20))
    inbox.open()
    known = folder / "clients.toml"
    known.touch(0o600)
    known.write_text(f'[[client]]\nhosts = "*"\ntoken = "{TOKEN}"\n')
    server = Server(
        [socket],
        inbox,
        AccessFiles(TlsFiles(None, None, None), str(known), True),
        ServerOptions(ANSWER_SECONDS, False),
        lambda line: None,
    )
    serving = loop.create_task(server.run())
    loop.run_until_complete(asyncio.sleep(0))
    loop.set_exception_handler(lambda _, context: errors.append(f"{context.get('exception') or context['message']!r}"))
    port = socket.getsockname()[1]

    def attempt(number: int) -> None:
        random = Random(number)
        body = _damaged_report(random, contents)
        body = gzip.compress(body) if random.random() < 0.3 else body
        head = f"POST /r HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {len(body)}\r\n\r\n"
        sent = head.encode()
        if number % 3 == 0:
            sent = mutated(random, [sent, b"GET /health HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n"])
        answer = loop.run_until_complete(asyncio.wait_for(_ask(port, sent + body), ANSWER_SECONDS))
        if answer and not answer.startswith(b"HTTP/1.1 "):
            raise Failure(f"answered {answer[:200]!r}")
        if answer.startswith((b"HTTP/1.1 500", b"HTTP/1.1 507")) or errors:
            raise Failure(f"{answer[:200]!r} {errors.pop() if errors else ''}")
        if number % 64 == 0:
            if not loop.run_until_complete(_ask(port, b"GET /health HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 200"):
                raise Failure("not healthy")
            if any(spool.iterdir()):
                came = _ingest(spool, folder / f"dataset-{number}")
                if came.quarantined:
                    raise Failure(f"took {came.quarantined} reports that ingest does not: {came.refused}")
            for path in spool.iterdir():
                path.unlink()

    yield attempt
    serving.cancel()
    loop.run_until_complete(asyncio.gather(serving, return_exceptions=True))
    socket.close()
    loop.close()


async def _ask(port: int, data: bytes) -> bytes:
    """All that comes back, once all is sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = b""
    with contextlib.suppress(ConnectionError):
        writer.write(data)
        writer.write_eof()
        answer = await reader.read()
    writer.close()
    return answer


def _empty(place: Path) -> None:
    for path in place.iterdir():
        path.unlink()
    place.rmdir()


COMMANDS = {
    "scan": Command(_scanning),
    "job": Command(_explaining),
    "ingest": Command(_ingesting, INGESTED_AT_ONCE),
    "receive": Command(_receiving),
}


def main(arguments: list[str]) -> int:
    """A line for every input that failed."""
    name, first, last = arguments[0], int(arguments[1]), int(arguments[2])
    more = [
        path.read_bytes()[: 64 << 10] for folder in arguments[3:] for path in Path(folder).rglob("*") if path.is_file()
    ]
    count, slowest, failed, began = 0, 0.0, 0, time.monotonic()
    for start in range(first, last, PRINTED_AFTER):
        numbers = range(start, min(start + PRINTED_AFTER, last))
        result = try_numbers(name, numbers, float("inf"), [content for content in more if content])
        for number, failure in sorted(result.failed.items()):
            print(f"{name} {number}: {failure}", flush=True)
        count, slowest = count + result.inputs, max(slowest, result.slowest_seconds)
        failed += len(result.failed)
    print(f"{name}: {count} inputs in {time.monotonic() - began:.0f} s, slowest {slowest:.2f} s of a core")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
