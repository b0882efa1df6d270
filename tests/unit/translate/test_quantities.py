"""Quantities in the form of API servers; the expected texts are those of k8s.io/apimachinery 0.36.3."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_envtest.apiserver import quantities as server
from syncer.translate.quantities import canonical, quantity


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (0, "0"),
        ("00", "0"),
        ("-0", "0"),
        ("0Ki", "0"),
        (10, "10"),
        (1.5, "1500m"),
        ("1.0", "1"),
        (".5", "500m"),
        ("0.10", "100m"),
        ("0.0001", "1m"),
        ("0.9999", "1"),
        ("1.1m", "2m"),
        ("1u", "1m"),
        ("999n", "1m"),
        ("1001u", "2m"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1000", "1k"),
        ("1000k", "1M"),
        ("12.5k", "12500"),
        ("999999", "999999"),
        ("1024", "1024"),
        ("1024000", "1024k"),
        ("12345678901234567890", "12345678901234567890"),
        ("10E", "10E"),
        ("1Ki", "1Ki"),
        ("8Ki", "8Ki"),
        ("1024Ki", "1Mi"),
        ("1024Mi", "1Gi"),
        ("1023Ki", "1023Ki"),
        ("1536Mi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        ("0.0001Ki", "103m"),
        ("8Ei", "9223372036854775807"),
        ("-1500m", "-1500m"),
        ("-1.5Gi", "-1536Mi"),
    ],
)
def test_quantity_is_written_as_an_api_server_writes_it(given: Any, expected: str) -> None:
    assert canonical(given) == expected
    assert server.canonical(expected) == expected, "the API server keeps it"


@pytest.mark.parametrize("given", ["1e3", "1E3", "12e6", "1e-3", "1e0", "+1", "007", "1.500", "1.", "+3Ki"])
def test_quantity_that_an_api_server_keeps_in_an_odd_form_gets_a_plain_one_that_it_keeps_too(given: str) -> None:
    written = canonical(given)
    assert quantity(written) == quantity(given)
    assert server.canonical(written) == written


@pytest.mark.parametrize("given", ["", "x", "1 Gi", "1_000", "ten", "1e999999999", "1" * 65, "1000E"])
def test_value_that_is_no_quantity_is_unchanged(given: str) -> None:
    assert canonical(given) == given


@given(
    st.integers(0, 10**6) | st.decimals(0, 10**6, places=6).map(str),
    st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e3", "E-2"]),
)
def test_quantity_is_rounded_up_to_thousandths_and_kept_by_the_api_server(number: int | str, suffix: str) -> None:
    text = f"{number}{suffix}"
    written = canonical(text)
    assert server.canonical(written) == written
    before, after = quantity(text), quantity(written)
    assert before is not None
    assert after is not None
    assert 0 <= after - before < Decimal("0.001")
