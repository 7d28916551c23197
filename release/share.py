"""The manual and the completions as files below a prefix (`share/...`): built where they are packaged, not in git.

They are made from the command tree, so whoever builds them needs what the commands import. The wheel's build hook
(release/build_hook.py) names the runtime dependencies as its own, which pip puts into the build's environment: a plain
`pip install .` needs pip alone, and its wheel holds these files. An editable install leaves them out, because it has no
place that a shell or man looks at. The .deb takes them from here too; `make completion` writes them below dist/share.

`python -m release.share PREFIX`
"""

from __future__ import annotations

import argparse
from pathlib import Path

from agent.cli.command_tree import read_commands
from agent.cli.commands import app
from agent.cli.completions import bash_completion, fish_completion, zsh_completion
from release.manual import make_page

HEAD = "fabricscope, written by `make completion` from its commands"
MANUAL = "share/man/man1/fabricscope.1"
BASH = "share/bash-completion/completions/fabricscope"
ZSH = "share/zsh/site-functions/_fabricscope"
FISH = "share/fish/vendor_completions.d/fabricscope.fish"


def shared_files() -> dict[str, str]:
    """Text by path below the prefix, named as shells and man look for it."""
    tree = read_commands(app)
    return {
        MANUAL: make_page(),
        BASH: bash_completion(tree, HEAD),
        ZSH: zsh_completion(tree, HEAD),
        FISH: fish_completion(tree, HEAD),
    }


def write_shared_files(prefix: Path) -> dict[str, Path]:
    """Write them below a prefix. Returns where each path of `shared_files` is."""
    written = {}
    for name, text in shared_files().items():
        written[name] = prefix / name
        written[name].parent.mkdir(parents=True, exist_ok=True)
        written[name].write_text(text)
    return written


def main() -> None:
    """Write them, and print where they are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prefix", type=Path)
    for path in write_shared_files(parser.parse_args().prefix).values():
        print(path)


if __name__ == "__main__":
    main()
