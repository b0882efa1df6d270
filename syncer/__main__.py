"""``python -m syncer`` is the command ``syncer``."""

from syncer.cli import main

if __name__ == "__main__":
    main()
