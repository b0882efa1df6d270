"""The command line.

Modules import little at the top, so that ``syncer version`` answers at once.
"""

import sys
from pathlib import Path


def main() -> None:
    """Run the command ``syncer``; ``kubectl-syncer`` runs it as a kubectl plugin."""
    from syncer.cli.app import app

    called = Path(sys.argv[0]).name
    name = "kubectl syncer" if called == "kubectl-syncer" else "syncer"
    app(prog_name=name, complete_var="_SYNCER_COMPLETE")
