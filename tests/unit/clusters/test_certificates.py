"""Dates of certificates, compared with those of the cryptography package."""

from datetime import UTC, datetime

import pytest
import trustme
from cryptography import x509

from syncer.clusters.certificates import Validity, client_context, first_certificate, load_client_certificate, validity


@pytest.mark.parametrize(
    ("begins", "ends"),
    [
        (datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC), datetime(2049, 12, 31, 1, 2, 3, tzinfo=UTC)),
        (datetime(1951, 1, 1, tzinfo=UTC), datetime(2050, 1, 1, tzinfo=UTC)),
        (datetime(2000, 1, 1, tzinfo=UTC), datetime(2999, 12, 31, tzinfo=UTC)),
    ],
)
def test_dates_are_those_in_the_certificate(begins: datetime, ends: datetime) -> None:
    leaf = trustme.CA().issue_cert("a" * 60 + ".example", not_before=begins, not_after=ends)
    pem = leaf.cert_chain_pems[0].bytes()
    read = x509.load_pem_x509_certificate(pem)
    assert validity(first_certificate(b"# a comment\n" + pem)) == (begins, ends)
    assert (read.not_valid_before_utc, read.not_valid_after_utc) == (begins, ends)


def test_certificate_that_is_out_of_date() -> None:
    limits = Validity(datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC))
    assert limits.wrong(datetime(2024, 6, 1, tzinfo=UTC)) == ""
    assert limits.wrong(datetime(2025, 1, 1, tzinfo=UTC)) == "expired at 2025-01-01 00:00:00Z"
    assert limits.wrong(datetime(2023, 1, 1, tzinfo=UTC)) == "is valid only from 2024-01-01 00:00:00Z on"


def test_anything_else_is_no_certificate() -> None:
    der = first_certificate(trustme.CA().cert_pem.bytes())
    for broken in (b"", b"\x30", b"\x30\x80", der[:-1], der[:100], b"\x30\x02\x05\x00", b"garbage" * 20):
        with pytest.raises(ValueError, match="not a certificate"):
            validity(broken)
    with pytest.raises(ValueError, match="PEM"):
        first_certificate(b"-----BEGIN PRIVATE KEY-----")


def test_key_leaves_no_file_behind(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delattr("os.memfd_create")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    leaf = trustme.CA().issue_cert("a.example")
    context = client_context(ca=None, insecure=True)
    load_client_certificate(context, certificate=leaf.cert_chain_pems[0].bytes(), key=leaf.private_key_pem.bytes())
    from pathlib import Path

    assert list(Path(str(tmp_path)).iterdir()) == []
