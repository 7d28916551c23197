"""What drivers write into the kernel log of a fault: one row per sentence, with the source that prints it.

A row makes an event of a line: its kind and code, the part that the line names, and details. What an event means is a
matter of rules. Rows are tried in order, the first that fits is the event. `docs/log-sentences.md` is made of them.
"""

from probes.kernel.accelerator_sentences import ACCELERATORS, INTEL
from probes.kernel.host_sentences import HOST
from probes.kernel.network_sentences import MELLANOX, NETWORK_STACK, OTHER_NICS
from probes.kernel.nvidia_sentences import NVIDIA
from probes.kernel.pci_sentences import PCI
from probes.kernel.sentence import Sentence

SENTENCES: tuple[Sentence, ...] = (
    *NVIDIA,
    *ACCELERATORS,
    *INTEL,
    *PCI,
    *HOST,
    *MELLANOX,
    *OTHER_NICS,
    *NETWORK_STACK,
)
