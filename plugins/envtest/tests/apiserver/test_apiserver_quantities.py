"""Quantities in the form in which a real API server 1.36 hands them out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_envtest.apiserver.quantities import QuantityError, amount, canonical

FORMS = """
0=0 0.0=0 1=1 1000m=1 1500m=1500m 0.5=500m 1.5=1500m 100m=100m 0.1m=1m 0.0005=1m 1k=1k 1000=1k 1000000=1M 1e3=1e3
12e6=12e6 123e4=1230e3 1Ki=1Ki 1024=1024 1024Ki=1Mi 1.5Gi=1536Mi 0.5Mi=512Ki 0.5Ki=512 10240Ki=10Mi 1048576Ki=1Gi
1000Mi=1000Mi 1000M=1G 100u=1m 3000000n=3m 1.23456789=1235m 1E=1E 1Ei=1Ei 15e-1=1500e-3 0.500=500m
"""
#: What looks canonical to the server comes back as it was, even if it isn't.
ODD = ("1.500", "+1", "01", "1E3", "1.")


@pytest.mark.parametrize(("text", "form"), [pair.split("=") for pair in (FORMS.split())] + [[odd, odd] for odd in ODD])
def test_forms_that_the_real_server_gave(text: str, form: str) -> None:
    assert canonical(text) == form


def test_numbers_are_quantities_too() -> None:
    assert (canonical(1), canonical(0.5), canonical(2000)) == ("1", "500m", "2k")


def test_billionths_stay_where_no_rounding_is_asked_for() -> None:
    assert canonical("100u", milli=False) == "100u"


@pytest.mark.parametrize("text", ["", "x", "1x", "1 Gi", "--1", "1.2.3", "1KI", "Ki", "1e"])
def test_an_invalid_quantity_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="must match the regular expression"):
        canonical(text)


NUMBERS = st.builds("{}{}".format, st.integers(0, 10**6), st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi"]))


@given(NUMBERS)
def test_the_canonical_form_is_as_much_and_stays(text: str) -> None:
    assert amount(canonical(text)) == amount(text)
    assert canonical(canonical(text)) == canonical(text)
