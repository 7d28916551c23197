"""GPUs that hang on their CPU by NVLink-C2C: what the rules about them share."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.gpu import Gpu
from agent.rules.case import Case
from agent.rules.devices import no_gpu
from agent.rules.nvlink.tally import Form, form_of, not_offered
from agent.rules.rule import Answer, NotApplicable


def superchips(case: Case) -> Iterator[Gpu | Answer]:
    """Every GPU of a Grace superchip, or why it is none that can be judged."""
    yield from no_gpu(case)
    for gpu in case.topology.gpus:
        subject = f"gpu:{gpu.id}"
        if answer := not_offered(case, gpu):
            yield answer
        elif form_of(case, gpu) is not Form.SUPERCHIP:
            yield NotApplicable(subject, "a GPU without NVLink-C2C")
        elif case.virtual_machine:
            yield NotApplicable(subject, "a virtual machine: its hypervisor decides what a guest sees of C2C")
        else:
            yield gpu
