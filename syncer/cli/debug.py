"""``syncer debug …``: what to send to whoever is asked for help."""

import os
import tempfile
from datetime import datetime
from pathlib import Path
from typing import NoReturn

import click

from syncer.cli import show
from syncer.cli.options import GivenOptions, option, pass_given, query_settings

#: The name of the file that stands for standard output.
_STDOUT = "-"


@click.group()
def debug() -> None:
    """Collect what others need to find a fault."""


@debug.command()
@option(
    "-o",
    "--output-file",
    metavar="FILE",
    help="The file to write, which must not be there; - is standard output. Default:"
    " syncer-debug-TIME.tar.gz in the current folder.",
)
@query_settings
@pass_given
def bundle(given: GivenOptions, output_file: str | None) -> None:
    """Write one file with what a support engineer asks for.

    The archive has the configuration, the state of each syncer, objects that aren't in step, the
    checks of `syncer doctor`, rights, metrics and health, with an index that names what is missing
    and why. Contents of Secrets and ConfigMaps, kubeconfigs, tokens, passwords and keys aren't in
    it; names and addresses of servers are. Without a daemon, it has what can be found out here.
    Nothing is written to a cluster.

    \b
    Examples:
      syncer debug bundle --cluster shop -o shop.tar.gz
      kubectl -n NAMESPACE exec deploy/NAME -- syncer debug bundle -o - > shop.tar.gz
    """
    from syncer.cli.bundle import archive, collected
    from syncer.cli.loading import loaded
    from syncer.translate.times import utcnow

    made = utcnow()
    path = None
    if output_file != _STDOUT:
        path = Path(output_file or _name(made))
        if os.path.lexists(path):
            _refuse(path)
    found = loaded(given)[0]
    files = collected(found)
    content = archive(found, files, made)
    if path is None:
        click.echo(content, nl=False)
    else:
        _write(path, content)

    ending = "complete"
    missing = [file.name for file in files if file.is_missing]
    if missing:
        ending = f"missing: {', '.join(missing)}; its index.txt says why"
    click.echo(f"{path or 'the bundle'}: {ending}", err=path is None)


def _name(made: datetime) -> str:
    return f"syncer-debug-{made:%Y%m%dT%H%M%SZ}.tar.gz"


def _write(path: Path, content: bytes) -> None:
    """Write a new file that this user alone may read, whole or not at all."""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.link(temporary, path)  # unlike a renaming, it replaces nothing
        finally:
            Path(temporary).unlink()
    except FileExistsError:
        _refuse(path)
    except OSError as error:
        way_out = "choose another folder, or -o - for standard output"
        show.fail(f"{path} can't be written ({error.strerror}): {way_out}")


def _refuse(path: Path) -> NoReturn:
    show.fail(f"{path} is there already, and is left as it is: choose another name")
