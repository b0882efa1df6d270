"""Each option of each kind can be given in a file and reaches the kind's syncer, unless its help says that it is for
others.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from sampled import registry

from syncer.api import Config, ConfigError, Syncer, dig, is_within, path_text
from syncer.config import Document, Option, build, options
from syncer.directions import direction_class
from syncer.plugins import installed
from syncer.testing.merge import merged

#: Looked up once: each time, all built-in syncers are checked.
INSTALLED = installed()

#: A value of each option for which its type doesn't say one, by its path in the section.
VALUES: dict[str, Any] = {
    "allow": ["*.example.org"],
    "allowAddresses": ["192.0.2.0/24"],
    "allowVolumes": ["nfs"],
    "allowedCIDRs.egress": [{"cidr": "192.0.2.0/24"}],
    "allowedCIDRs.ingress": [{"cidr": "192.0.2.0/24"}],
    "allowedHosts": ["*.shop.example.org"],
    "cpu": "8",
    "deny": ["*.example.org"],
    "label": "example.org/public",
    "limits": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]},
    "mappings.byName": {"infra/settings": "shop/settings"},
    "memory": "16Gi",
    "metadata.labels.allow": ["*", "example.org/tier"],
    "names": ["widgets.example.org"],
    "namespaces": ["shop"],
    "patches.down": [{"op": "remove", "path": "/metadata/annotations/example.org~1size"}],
    "patches.up": [{"op": "remove", "path": "/metadata/annotations/example.org~1size"}],
    "pods": "50",
    "quota": {"hard": {"pods": "5"}},
    "priorityClassName": "tenants",
    "runtimeClassName": "gvisor",
    "selector.matchExpressions": [{"key": "tenants", "operator": "Exists"}],
    "tolerations": [{"key": "example.org/batch", "operator": "Exists"}],
}
#: Values by the type that an option takes.
TYPES: dict[str, Any] = {
    "duration": "7m",
    "list of text": ["example.org/team"],
    "mapping of text": {"example.org/team": "shop"},
    "number": 1.5,
}
#: Options that some kinds refuse, with the words of their help that say so.
REFUSED = {
    "authority": "The owner of fields that go to the host",
    "metadata": "Not for `fake` kinds",
    "onHostDeletion": "Other values than `recreate` are only for kinds that go to the host",
    "selector": "Only for kinds that go to the host.",
}


def leaves(model: Any, path: str = "") -> Iterator[Option]:
    """Yield the options of a section that have none below them."""
    for option in options(model, path):
        if option.model is not None:
            yield from leaves(option.model, option.path)
        else:
            yield option


def own_field(syncer: type[Syncer]) -> str:
    """Return a field of a kind that goes to the host unchanged."""
    going = [path_text(path) for path in (*syncer.down, *syncer.both) if path not in syncer.translates]
    return next(iter(going), "/metadata/labels/example.org~1tier")


def value_of(option: Option, syncer: type[Syncer]) -> Any:
    """Return a plausible value that isn't the default."""
    if option.path == "authority":
        return {own_field(syncer): "host"}
    if option.path in VALUES:
        return VALUES[option.path]
    if option.takes == "true or false":
        return not option.default
    if option.takes == "whole number":
        return option.default + 1
    if " | " in option.takes:
        choices = option.takes.removesuffix(' or ""').split(" | ")
        return next(each for each in reversed(choices) if each != option.default)
    return TYPES[option.takes]


def document(syncer: type[Syncer], given: dict[str, Any]) -> Document:
    """Return a file with a section of a kind, which is on."""
    direction, _, name = syncer.section.partition(".")
    section = merged({"enabled": True}, given)
    if syncer.name == "published-services":
        section = merged({"namespaces": ["shop"]}, section)
    names: dict[str, Any] = {"translator": "single-namespace"}
    if syncer.name == "namespaces":
        names = {"translator": "per-namespace", "namespaces": ["team"]}
    sync: dict[str, Any] = {direction: {name: section}}
    if syncer.name == "pods":
        sync["fromHost"] = {"nodes": {"enabled": True}, "storageClasses": {"enabled": True}}
    return Document(
        data={
            "cluster": "shop",
            "host": {"namespace": "vc-shop"},
            "names": names,
            "sync": sync,
        }
    )


def at(path: str, value: Any) -> dict[str, Any]:
    """Return a section with a single option."""
    for name in reversed(path.split(".")):
        value = {name: value}
    found: dict[str, Any] = value
    return found


def refused(syncer: type[Syncer]) -> list[Option]:
    """Return the options that a kind doesn't take, as their help says."""
    direction = direction_class(syncer)
    by_kind = {
        "authority": not direction.goes_down,
        "metadata": not direction.goes_down and not direction.comes_up,
        "onHostDeletion": not direction.goes_down or syncer.own_deletion,
        "selector": not direction.goes_down,
    }
    found = [option for option in options(syncer.config) if by_kind.get(option.path)]
    return [option for option in found if REFUSED[option.path] in " ".join(option.help.split())]


def taken(syncer: type[Syncer]) -> list[Option]:
    """Return the options that a kind takes."""
    without = {option.path for option in refused(syncer)} | {"enabled"}
    return [option for option in leaves(syncer.config) if option.path.partition(".")[0] not in without]


KINDS = [pytest.param(syncer, id=syncer.section) for syncer in registry()]
REFUSALS = [
    pytest.param(syncer, option, id=f"{syncer.section}.{option.path}")
    for syncer in registry()
    for top in refused(syncer)
    for option in leaves(syncer.config)
    if is_within(option.path, top.path)
]


@pytest.mark.parametrize("syncer", KINDS)
def test_options_reach_the_syncer(syncer: type[Syncer]) -> None:
    given: dict[str, Any] = {}
    for option in taken(syncer):
        given = merged(given, at(option.path, value_of(option, syncer)))
    loaded = build(document(syncer, given), INSTALLED)
    [section] = [each.section for each in loaded.cluster.enabled() if each.syncer.name == syncer.name]
    assert isinstance(section, syncer.config)
    found = section.model_dump(mode="json", by_alias=True)
    for option in taken(syncer):
        value = dig(found, option.path)
        assert value not in (option.default, None), option.path
        assert option.item is not None or value == value_of(option, syncer), option.path


@pytest.mark.parametrize("syncer", KINDS)
def test_kind_is_on_or_off_as_its_option_says(syncer: type[Syncer]) -> None:
    for enabled in (True, False):
        loaded = build(document(syncer, {"enabled": enabled}), INSTALLED)
        assert enabled is any(each.syncer.name == syncer.name for each in loaded.cluster.enabled())


@pytest.mark.parametrize(("syncer", "option"), REFUSALS)
def test_option_that_a_kind_does_not_take_is_refused(syncer: type[Syncer], option: Option) -> None:
    with pytest.raises(ConfigError, match=r"can't be|can't have|nothing of this kind does"):
        build(document(syncer, at(option.path, value_of(option, syncer))), INSTALLED)


@pytest.mark.parametrize("syncer", KINDS)
def test_unknown_option_is_refused(syncer: type[Syncer]) -> None:
    with pytest.raises(ConfigError, match="no such option"):
        build(document(syncer, {"noSuchOption": 1}), INSTALLED)


def test_only_options_that_every_kind_has_are_refused() -> None:
    assert REFUSED.keys() <= {option.path for option in options(Config)}
