"""``syncer etcd``: the snapshots of a virtual cluster's etcd, for containers without a shell."""

import re
import time
from pathlib import Path

import click

from syncer.cli import show
from syncer.cli.options import option, output

SUFFIX = ".db"
#: Beside a snapshot: the fingerprint of the CA at its time. The keys themselves are never there.
AUTHORITY_SUFFIX = ".ca"


@click.group()
def etcd() -> None:
    """Keep the snapshots of a virtual cluster's etcd, as the chart virtual-cluster does."""


@etcd.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@option(
    "--newest",
    type=click.IntRange(1),
    required=True,
    metavar="NUMBER",
    help="How many to keep.",
)
@option("--prefix", metavar="TEXT", required=True, help="Only files PREFIX…digits.db are removed.")
@option(
    "--made",
    metavar="NAME",
    default="",
    help="The snapshot that was made just now: note the CA of --ca beside it.",
)
@option(
    "--ca",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The virtual cluster's ca.crt.",
)
@output("table", "json", "yaml")
def keep(
    folder: Path,
    newest: int,
    prefix: str,
    made: str,
    ca: Path | None,
    output: str,
    no_headers: bool,
) -> None:
    """List the snapshots in a folder, and remove the oldest of those that a CronJob has made.

    Snapshots with other names, such as those made by hand, stay.

    \b
    Example:
      syncer etcd keep /backup --newest 12 --prefix shop-backup-
    """
    if made and ca:
        (folder / f"{made}{AUTHORITY_SUFFIX}").write_text(f"{_fingerprint(ca)}\n")
    ours = re.compile(re.escape(prefix) + r"\d+" + re.escape(SUFFIX))
    found = sorted(folder.glob(f"*{SUFFIX}"), key=lambda file: (file.stat().st_mtime, file.name))
    scheduled = [file for file in found if ours.fullmatch(file.name)]
    old = scheduled[: max(len(scheduled) - newest, 0)]
    rows = []
    for file in found:
        result = "removed" if file in old else "kept"
        rows.append(_row(file, result))
    for file in old:
        file.unlink()
        file.with_suffix(AUTHORITY_SUFFIX).unlink(missing_ok=True)
    show.records(rows, output, headers=not no_headers)


@etcd.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("snapshot")
@option(
    "--ca",
    metavar="FILE",
    type=click.Path(path_type=Path),
    required=True,
    help="The virtual cluster's ca.crt.",
)
@click.pass_context
def check(ctx: click.Context, folder: Path, snapshot: str, ca: Path) -> None:
    """Check that a snapshot was made with the CA that the virtual cluster has now.

    With another one, each kubeconfig of its time is refused after the restore, and with another
    key of tokens each token: bring the Secret with the keys back first.

    \b
    Example:
      syncer etcd check /backup shop-backup-27 --ca /pki/ca.crt

    Exit status: 0 it was, or nothing is noted beside the snapshot; 1 it was another CA.
    """
    noted = folder / f"{snapshot}{AUTHORITY_SUFFIX}"
    if not noted.exists():
        unknown = f"whether {ca.name} is the one of the snapshot isn't known"
        click.echo(f"{noted.name} isn't there, so {unknown}.")
        return
    now = _fingerprint(ca) if ca.exists() else "not there"
    if noted.read_text().strip() == now:
        click.echo(f"{ca.name} is the one of the snapshot.")
        return
    click.echo(
        show.red(
            f"{ca.name} isn't the one of the snapshot {snapshot}, so all kubeconfigs and tokens of "
            "its time would be void. Nothing was restored. Bring the Secret with the keys back "
            "from your copy, and try again; or, if they are lost, restore with "
            "restore.otherKeys=true, and hand out the new kubeconfig."
        ),
        err=True,
    )
    ctx.exit(1)


def _fingerprint(ca: Path) -> str:
    """Return the fingerprint of a CA's public key, which a renewed certificate of the CA keeps."""
    import hashlib

    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = x509.load_pem_x509_certificate(ca.read_bytes()).public_key()
    return hashlib.sha256(
        key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
    ).hexdigest()


def _row(file: Path, outcome: str) -> dict[str, str]:
    stat = file.stat()
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(stat.st_mtime))
    return {
        "snapshot": file.name.removesuffix(SUFFIX),
        "bytes": str(stat.st_size),
        "made": made,
        "outcome": outcome,
    }
