"""Tables that people keep, and values that they compare: what is a fault, and what is usual."""

from __future__ import annotations

import pytest

from probes.host.commands import SHEET, STATED
from probes.sources.identify import identify_command
from probes.text import ParseError
from probes.tool_reports.sentences.compared import list_compared
from probes.tool_reports.sheets import is_sheet, list_sheet_faults


def table(heading: str, *rows: str, mark: str = ",") -> str:
    return "".join(f"{line.replace(',', mark)}\n" for line in (heading, *rows))


def widths(odd: str, mark: str = ",") -> str:
    return table("node,gpu,link_width", *(f"a{n},0,x16" for n in range(1, 5)), odd, mark=mark)


@pytest.mark.parametrize("mark", [",", ";", "\t", " | ", "    "])
def test_a_row_that_is_not_as_the_others_is_found_in_any_form(mark: str) -> None:
    text = "Widths of all GPUs:\n\n" + widths("a5,0,x4", mark)
    assert identify_command(text) == (SHEET,)
    assert [(report.code, report.subject) for report in list_sheet_faults(text)] == [("below-width", "a5 GPU 0")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (widths("a5,0,x16"), []),
        (widths("a5,0,x32"), []),
        (widths("storage-5,0,x4"), []),  # of another kind
        (table("host,model,nvlinks", "a1,H100,18", "a2,H100,18", "a3,H100,18", "a4,A100,12"), []),
        (table("host,nvlinks,note", "a1,18,", "a2,18,", "a3,18,", "a4,17,slow"), [("below-count", "a4")]),
        (table("host,nvlinks", "a1,18", "a2,12", "a3,18"), []),  # too few are alike
        (table("port,link speed,neighbor", "1,400G,a1", "2,400G,a2", "3,400G,a3", "4,100G,nfs"), []),
        (table("GPU,max width,width", "0,16,16", "1,16,8"), [("below-width", "GPU 1")]),
        (table("host,busbw", "a1,371", "a2,369", "a3,372", "a4,205"), []),  # of no part that is read here
        (table("host,nccl busbw", "a1,371", "a2,369", "a3,372", "a4,205"), []),
        (table("host,GPU,busbw", "a1,0,371", "a2,0,369", "a3,0,372", "a4,0,205"), [("below-bandwidth", "a4 GPU 0")]),
        (table("host,GPU,driver", "a1,0,570.1", "a2,0,570.1", "a3,0,570.1", "a4,0,565.3"),
         [("sheet-version", "a4 GPU 0")]),
        (table("host,GPU,ECC uncorrected", "a1,0,0", "a2,0,4"), [("sheet-memory", "a2 GPU 0")]),
        (table("server,slot,accelerator,link trained,PCIe errors (UE)", "a1,1,HL-3,yes,0", "a1,2,HL-3,yes,0",
               "a2,1,HL-3,no,7", "a2,2,HL-3,yes,0"), [("sheet-down", "a2 slot 1"), ("sheet-uncorrected", "a2 slot 1")]),
        (table("server,gpu,result", "a1,1,ok", "a1,2,nok"), [("sheet-state", "a1 GPU 2")]),
        (table("host,GPU,ECC corrected", "a1,0,0", "a2,0,4"), []),
        (table("host,GPU,SBE,DBE", "a1,0,9,0", "a2,0,9,1"), [("sheet-memory", "a2 GPU 0")]),
        (table("host,GPU,remap_pending", "a1,0,No", "a2,0,Yes"), [("sheet-pending", "a2 GPU 0")]),
        (table("host,GPU,remap_failed", "a1,0,0", "a2,0,1"), [("sheet-remap-failed", "a2 GPU 0")]),
        (table("host,GPU,xid", "a1,0,-", "a2,0,79"), [("metric-xid", "a2 GPU 0")]),
        (table("host,mlx5 port,state", "a1,1,up", "a2,1,up", "a3,1,down"), [("sheet-down", "a3")]),
        (table("host,hca,state", "a1,mlx5_0,up", "a2,mlx5_0,up", "a3,mlx5_0,down"), [("sheet-down", "a3 mlx5_0")]),
        ("".join(f"dev=mlx5_{n} state={'Init' if n == 2 else 'Active'} width=4x\n" for n in range(5)),
         [("sheet-down", "mlx5_2")]),
        ("".join(f"dev=mlx5_{n} state=Active width={2 if n == 3 else 4}x\n" for n in range(5)),
         [("below-width", "mlx5_3")]),
        ("".join(f"dev=mlx5_{n} state=Active width=4x\n" for n in range(5)), []),
        ("HCA     State   Width\nmlx5_0  Active  4X\nmlx5_1  Down\nmlx5_2  Active  4X\n", [("sheet-down", "mlx5_1")]),
        (table("host,hca,state", "a1,mlx5_0,down", "a2,mlx5_0,down", "a3,mlx5_0,up"), []),
        (table("GPU,bdf,width", "H100,0000:1b:00.0,16", "H100,0000:5e:00.0,16", "H100,0000:9a:00.0,16",
               "H100,0000:cf:00.0,8"), [("below-width", "H100 0000:cf:00.0")]),
        (table("PCI address,health,GPU", "0000:1B:00.0,OK,a", "0000:5E:00.0,Failed,b"),
         [("sheet-state", "0000:5e:00.0 b")]),
    ],
)  # fmt: skip
def test_what_a_row_states(text: str, expected: list[tuple[str, str]]) -> None:
    reports = list_sheet_faults(text) if is_sheet(text) else []
    assert expected == [(report.code, report.subject) for report in reports]


@pytest.mark.parametrize(
    "text",
    [
        "host,gpu\n",
        table("NPU,port,link", *4 * ("0,4,DOWN", "0,4,UP")),
        "Dear all, GPU 3 fails\n",
        table("name,state", "a,up", "b,down"),
    ],
)
def test_a_text_without_such_a_table_is_refused(text: str) -> None:
    assert not is_sheet(text)
    with pytest.raises(ParseError):
        list_sheet_faults(text)


@pytest.mark.parametrize(
    ("sentence", "code", "subject"),
    [
        ("On n17 GPU 4 comes up with PCIe width x4 (others x16).", "below-width", "n17 GPU 4"),
        ("GPU 4 trained at Gen2 instead of Gen5 under load", "below-speed", "GPU 4"),
        ("mlx5_6 has 100 Gb/s where all other ports have 400 Gb/s", "below-rate", "mlx5_6"),
        ("Measured on 0000:9b:00.0: 21.5 GB/s vs. 54 GB/s", "below-bandwidth", "0000:9b:00.0"),
        ("npu-smi lists 15 of 16 NPUs after the power cut", "below-count", None),
        ("n5: card 3 has lanes x2, rest x4", "below-width", "n5 card 3"),
        ("GPU 6: 2 of 18 NVLinks are down", "below-count", "GPU 6"),
        ("gpu-count check of gpu-31: expected 8 GPUs but found 7", "below-count", "gpu-31"),
    ],
)
def test_a_value_that_a_person_compares_is_stated(sentence: str, code: str, subject: str | None) -> None:
    (report,) = list_compared(f"Hello,\n{sentence}\nThanks")
    assert (report.code, report.subject) == (code, subject)
    assert identify_command(f"Hello,\n{sentence}\nThanks") == (STATED,)


@pytest.mark.parametrize(
    "sentence",
    [
        "Why does GPU 4 show x4 instead of x16?",
        "GPU 4 has x8 instead of x16 by design.",
        "GPU 4 came up with x16 instead of x8.",
        "GPU 4 at x4 instead of x16 was fixed by a new riser.",
        "The cards have x8 instead of x16.",  # of no part
        "GPU 3 and GPU 4 have x8 instead of x16 lanes, one of them.",  # which, it does not state
        "GPU 4 reaches 381 GB/s vs 390 GB/s of the others",
        "A node with 7 of 8 GPUs shows no other sign.",
        "The job sees 4 of 8 GPUs, as requested.",
        "We use only 4 of 8 GPUs here",
        "CUDA_VISIBLE_DEVICES leaves 2 of 8 GPUs",
        "expected 8 GPUs, found 8",
        "expected 7 chapters, found 6",
    ],
)
def test_what_is_usual_or_over_is_not(sentence: str) -> None:
    assert list(list_compared(sentence)) == []


def test_a_long_text_is_a_log_and_has_no_sentences() -> None:
    assert list(list_compared("npu-smi lists 15 of 16 NPUs\n" + "x\n" * 60_000)) == []
