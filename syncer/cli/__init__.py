"""The command line. Modules here import little at the top, so that ``syncer version`` answers at once."""

import sys
from pathlib import Path


def main() -> None:
    """Run the command ``syncer``; ``kubectl-syncer`` is the same as ``kubectl syncer``."""
    from syncer.cli.app import app

    called = Path(sys.argv[0]).name
    app(prog_name="kubectl syncer" if called == "kubectl-syncer" else "syncer", complete_var="_SYNCER_COMPLETE")
