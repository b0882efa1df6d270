"""``syncer etcd keep`` keeps the newest snapshots of a CronJob, and all others; ``check`` compares their CA."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cli_scene import bad, good

from syncer.pki import certificates


def test_snapshots_of_the_cron_job_are_kept_by_number_and_others_all(tmp_path: Path) -> None:
    names = ["shop-backup-27", "shop-backup-9", "by-hand", "shop-backup-28", "shop-backup-now", "other-backup-1"]
    for age, name in enumerate(names):
        file = tmp_path / f"{name}.db"
        file.write_bytes(b"x" * 7)
        os.utime(file, (1_000_000 + age, 1_000_000 + age))
    (tmp_path / "shop-backup-29.db.part").touch()
    printed = json.loads(good("etcd", "keep", str(tmp_path), "--newest", "2", "--prefix", "shop-backup-", "-o", "json"))
    assert [row["snapshot"] for row in printed] == names
    assert [row["snapshot"] for row in printed if row["outcome"] == "removed"] == ["shop-backup-27"]
    assert printed[0] == {
        "snapshot": "shop-backup-27",
        "bytes": "7",
        "made": "1970-01-12T13:46:40Z",
        "outcome": "removed",
    }
    assert {file.name for file in tmp_path.iterdir()} == {
        *(f"{name}.db" for name in names[1:]),
        "shop-backup-29.db.part",
    }


def test_empty_folder_is_no_failure(tmp_path: Path) -> None:
    assert good("etcd", "keep", str(tmp_path), "--newest", "1", "--prefix", "x-") == ""


def test_snapshot_of_another_ca_is_reported_and_a_renewed_one_is_not(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    ca, snapshots = tmp_path / "ca.crt", tmp_path / "backup"
    snapshots.mkdir()
    made = certificates.new_authority("kubernetes", now)
    ca.write_bytes(made.certificate_pem)
    (snapshots / "x-1.db").touch()
    check = ("etcd", "check", str(snapshots), "x-1", "--ca", str(ca))
    assert "isn't known" in good(*check)

    good("etcd", "keep", str(snapshots), "--newest", "1", "--prefix", "x-", "--made", "x-1", "--ca", str(ca))
    ca.write_bytes(certificates.new_authority("kubernetes", now + timedelta(days=1), made.key).certificate_pem)
    assert "is the one of the snapshot" in good(*check)
    assert b"KEY" not in b"".join(file.read_bytes() for file in snapshots.iterdir())

    ca.write_bytes(certificates.new_authority("kubernetes", now).certificate_pem)
    assert "isn't the one of the snapshot x-1" in bad(*check, code=1)
    ca.unlink()
    assert "isn't the one of the snapshot x-1" in bad(*check, code=1)


def test_note_of_a_snapshot_goes_with_it(tmp_path: Path) -> None:
    for age, name in enumerate(("x-1", "x-2")):
        for suffix in ("db", "ca"):
            file = tmp_path / f"{name}.{suffix}"
            file.touch()
            os.utime(file, (1_000_000 + age, 1_000_000 + age))
    good("etcd", "keep", str(tmp_path), "--newest", "1", "--prefix", "x-")
    assert {file.name for file in tmp_path.iterdir()} == {"x-2.db", "x-2.ca"}
