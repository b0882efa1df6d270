"""Which hosts a tenant's routes may serve."""

import pytest
from pydantic import TypeAdapter, ValidationError

from syncer.api import HostPattern, is_allowed_host


@pytest.mark.parametrize(
    ("host", "pattern", "allowed"),
    [
        ("shop.example.org", "shop.example.org", True),
        ("shop.example.org", "*.example.org", True),
        ("a.shop.example.org", "*.example.org", True),
        ("*.example.org", "*.example.org", True),
        ("*.shop.example.org", "*.example.org", True),
        ("example.org", "*.example.org", False),
        ("shop-example.org", "*.example.org", False),
        ("*.org", "*.example.org", False),
        ("*.example.org", "shop.example.org", False),
        ("", "*.example.org", False),
        ("*", "*.example.org", False),
        (".example.org", "*.example.org", False),
        ("Shop.example.org", "*.example.org", False),
        ("shop.example.org.", "shop.example.org", False),
        ("shop.example.org.", "*.example.org", False),
        ("shop.example.org:443", "shop.example.org", False),
        ("evil.org/.example.org", "*.example.org", False),
        ("evil.org\n.example.org", "*.example.org", False),
        ("*.*.example.org", "*.example.org", False),
    ],
)
def test_host_is_allowed_as_its_pattern_says(host: str, pattern: str, allowed: bool) -> None:
    assert is_allowed_host(host, [pattern]) is allowed
    assert is_allowed_host(host, ["other.example.com", pattern]) is allowed
    assert not is_allowed_host(host, [])


@pytest.mark.parametrize("text", ["", "*", "Shop.example.org", "shop.example.org.", "a.*.org", "https://a.org"])
def test_pattern_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="expected a name in small letters"):
        TypeAdapter(HostPattern).validate_python(text)
