"""Hatchling's build hook: a wheel holds the manual and the completions, built with it (release/share.py states why)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SharedFilesHook(BuildHookInterface[Any]):  # type: ignore[misc]  # hatchling is in the build environment only
    """Adds the shared files to the wheel; pyproject.toml names this file."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build them into a temporary folder, unless the wheel is editable."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)  # the checkout, which pip's build environment does not hold
        from release.share import write_shared_files

        self.folder = tempfile.TemporaryDirectory(prefix="fabricscope-share-")
        written = write_shared_files(Path(self.folder.name))
        build_data["shared_data"] = {str(path): name for name, path in written.items()}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary folder."""
        if version != "editable":
            self.folder.cleanup()
