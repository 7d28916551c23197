"""`netbox plan` and `netbox apply` from outside: exit codes, both forms, one clear line for what cannot be done."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from agent.cli.main import run
from agent.reports import encode_report
from tests.agent.netbox.conftest import NONE, House
from tests.agent.netbox.server import TOKEN, Reply, Server
from tests.conftest import ROOT
from tests.machines import scan_machine
from tests.texts import error_lines

SHAPE = "8xh200-sxm-2s-16xcx7-roce-4nvsw"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A NetBox of ours, named by the environment."""
    pytest.importorskip("pynetbox", reason=NONE)
    result = Server()
    monkeypatch.setenv("NETBOX_URL", result.url)
    monkeypatch.setenv("NETBOX_TOKEN", TOKEN)
    yield result
    result.close()


@pytest.fixture
def house(server: Server) -> House:
    """The same, with a device for the machine below."""
    result = House(server.url, server.token)
    result.device("h200", serial=scan_machine(SHAPE).node.serial)
    server.requests.clear()
    return result


@pytest.fixture
def report(tmp_path: Path) -> str:
    """A finished report of a machine with a bit of everything."""
    path = tmp_path / "h200.json"
    path.write_bytes(encode_report(scan_machine(SHAPE)))
    return str(path)


def read_message(capsys: pytest.CaptureFixture[str]) -> str:
    """What stood on stderr: one line, no traceback, no secret."""
    output = capsys.readouterr()
    assert 1 == len(error_lines(output.err)), output.err
    assert "Traceback" not in output.err
    assert TOKEN not in output.err + output.out
    return output.err


def test_plan_apply_plan(house: House, report: str, capsys: pytest.CaptureFixture[str]) -> None:
    """1 there is something to do, 0 it is done, 0 there is nothing left; stdout says what, and nothing else is said."""
    assert [1, 0, 0, 0] == [run(["netbox", verb, report]) for verb in ("plan", "apply", "plan", "apply")]

    output = capsys.readouterr()
    first, second, third, fourth = output.out.split("\n1 report: ")[0], *output.out.split("\n1 report: ")[1:4]
    assert "+ module GPU 0000:0f:00.0  model NVIDIA H200, serial 1768160209398" in first
    assert second.startswith("123 changes\n") or " changes\n" in second
    assert "changes made\n" in third
    assert "in step" in third
    assert fourth.startswith("nothing to do\n")
    assert "" == output.err


@pytest.mark.parametrize("option", ["--source", "--report"])
def test_one_machine_by_report_or_source(house: House, report: str, option: str, tmp_path: Path) -> None:
    """As every other command takes it."""
    from fixtures.build import write_capture

    write_capture(SHAPE, None, tmp_path / "capture.tar.gz")
    place = report if option == "--report" else str(tmp_path / "capture.tar.gz")

    assert 0 == run(["netbox", "apply", option, place, "-o", str(tmp_path / "out.txt")])
    assert 0 == run(["netbox", "plan", report, "-o", str(tmp_path / "plan.txt")])


def test_json_has_it_all(house: House, report: str, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    """The suffix chooses it, too."""
    out = tmp_path / "plan.json"
    assert 1 == run(["netbox", "plan", report, "--format", "json"])
    assert 1 == run(["netbox", "plan", report, "-o", str(out)])
    plan = json.loads(capsysbinary.readouterr().out)

    assert plan == json.loads(out.read_text())
    assert ("fabricscope.netbox-plan/1", False) == (plan["schema"], plan["in_step"])
    assert [("serial", None)] == [(row["found_by"], row["problem"]) for row in plan["reports"]]
    assert {"create", "update"} == {change["action"] for change in plan["changes"]}

    assert 0 == run(["netbox", "apply", report, "--format", "json"])
    applied = json.loads(capsysbinary.readouterr().out)
    assert (len(plan["changes"]), [], True) == (len(applied["done"]), applied["refused"], applied["in_step"])


def test_a_device_that_is_not_there_is_told_and_made_when_asked(
    server: Server, report: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """1 without --create, and nothing is sent."""
    house = House(server.url, server.token)
    server.requests.clear()

    assert 1 == run(["netbox", "apply", report])
    assert (
        "x no device in NetBox has the serial number 1460009 or h200-01: --create makes it" in capsys.readouterr().out
    )
    assert [] == server.writes

    place = ["--site", f"lab-{house.mark}", "--role", f"node-{house.mark}", "--device-type", f"xe-{house.mark}"]
    assert 1 == run(["netbox", "plan", report, "--create", *place])
    assert "+ device h200-01  serial 1460009" in capsys.readouterr().out
    assert 0 == run(["netbox", "apply", report, "--create", *place])
    output = capsys.readouterr().out
    assert "+ device h200-01  serial 1460009\n" in output
    assert "+ module GPU 0000:0f:00.0  model NVIDIA H200, serial 1768160209398\n" in output
    assert 0 == run(["netbox", "plan", report])

    capsys.readouterr()
    for wrong, result in ((1, "no site in NetBox has the slug x"), (3, "no role"), (5, "no device type")):
        assert 2 == run(["netbox", "plan", report, "--create", *[*place[:wrong], "x", *place[wrong + 1 :]]])
        assert result in read_message(capsys)


def test_what_netbox_refuses_is_told_and_is_exit_1(
    server: Server, house: House, report: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the object and the reason; the rest is done."""
    server.denied.add("POST dcim/mac-addresses")

    assert 1 == run(["netbox", "apply", report])
    assert "x refused: MAC address enp16s0f0np0  MAC B8:3F:D2:33:9C:BF: 403 Forbidden: You" in capsys.readouterr().out


def test_a_limit_stops_before_anything_is_sent(
    server: Server, house: House, report: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, with both numbers."""
    assert 2 == run(["netbox", "apply", report, "--limit-changes", "10"])

    assert "changes, and --limit-changes is 10" in read_message(capsys)
    assert [] == server.writes


def test_a_netbox_that_breaks_off_is_exit_2_and_what_was_done_is_shown(
    server: Server, house: House, report: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run goes on from there."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    server.trick("POST dcim/modules", *[Reply(504)] * 4)

    assert 2 == run(["netbox", "apply", report])
    output = capsys.readouterr()
    assert "+ module type NVIDIA H200" in output.out
    assert "what was changed stays: run it again" in output.err
    assert 0 == run(["netbox", "apply", report])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--url", "http://netbox.example.com"], "not sent without TLS"),
        (["--url", "http://127.0.0.1:9"], "127.0.0.1:9: Connection refused"),
        (["--token-file", "/nonexistent"], "/nonexistent: No such file"),
        (["--ca", "/nonexistent"], "--ca is for https"),
        (["--timeout", "nan"], "nan is not a number"),
        (["--timeout", "0"], "'--timeout'"),
        (["--create"], "--create needs --site, --role and --device-type"),
        (["--role", "x"], "--role and --device-type need --create"),
        (["--source", "/tmp"], "exclude each other"),
        (["--report", "x.json"], "exclude each other"),
        (["--format", "yaml"], "'yaml'"),
        (["--site", "nowhere"], "no site in NetBox has the slug nowhere"),
        (["/nonexistent.json"], "/nonexistent.json: No such file"),
        (["--token", "secret"], "No such option"),
    ],
)
@pytest.mark.usefixtures("house")
def test_wrong_usage_is_one_line(
    report: str, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And exit 2, for both commands."""
    monkeypatch.setattr("time.sleep", lambda _: None)

    for verb in ("plan", "apply"):
        assert 2 == run(["netbox", verb, report, *arguments])
        assert said in read_message(capsys)


def test_a_wrong_token_is_one_line(
    server: Server, report: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the token, also with --debug."""
    monkeypatch.setenv("NETBOX_TOKEN", "nbt_wrong.secret")
    assert 2 == run(["netbox", "plan", report])
    result = read_message(capsys)
    assert "does not let this token read" in result
    assert "secret" not in result

    with pytest.raises(Exception, match="does not let this token read") as error:
        run(["netbox", "plan", report, "--debug"])
    assert "secret" not in str(error.value)


def test_without_pynetbox_one_line_says_what_to_install(report: str, real_commands: None) -> None:
    """Exit 2. The commands' help does not need it."""
    code = "import sys; sys.modules['pynetbox'] = None; from agent.cli.main import run; sys.exit(run(sys.argv[1:]))"
    start = [sys.executable, "-c", code, "netbox", "plan"]
    environment = {"NETBOX_TOKEN": TOKEN, "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [*start, report, "--url", "https://a"], capture_output=True, text=True, cwd=ROOT, env=environment, check=False
    )
    help_ = subprocess.run([*start, "--help"], capture_output=True, text=True, cwd=ROOT, env=environment, check=True)

    assert (2, "") == (done.returncode, done.stdout)
    assert "error: pynetbox is not installed: pip install 'pynetbox>=7.4'" in done.stderr
    assert 1 == len(done.stderr.splitlines())
    assert "--token-file" in help_.stdout


def test_many_reports_and_one_that_is_no_report(
    house: House, report: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same host twice is the later report; a file that is none ends it before NetBox is asked."""
    later = tmp_path / "later.json"
    one = msgspec.structs.replace(scan_machine(SHAPE), observed_at="2026-02-01T00:00:00Z")
    later.write_bytes(encode_report(one))

    assert 0 == run(["netbox", "apply", report, str(later), report])
    assert "not looked at:" in capsys.readouterr().out
    (tmp_path / "bad.json").write_text("{}")
    assert 2 == run(["netbox", "apply", report, str(tmp_path / "bad.json")])
    assert "bad.json: not a report" in read_message(capsys)


def test_a_plan_fits_eighty_columns(house: House, report: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for what has no blank to fold at."""
    from agent.netbox.api import NetBoxAccess
    from agent.netbox.client import NetBox
    from agent.netbox.matching import ReportedNode
    from agent.netbox.page import page
    from agent.netbox.run import ApplyOptions, plan
    from agent.outputs.inventory.node import build_desired
    from agent.outputs.text.lines import to_plain_text

    client = NetBox(NetBoxAccess(house.url, house.token))
    result = plan(client, [ReportedNode(build_desired(scan_machine(SHAPE)), "h200.json")], ApplyOptions())
    lines = to_plain_text(page(result, 80)).splitlines()

    assert [] == [line for line in lines if len(line) > 80]
    assert len(lines) < 80
