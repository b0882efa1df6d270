"""Syncers and plugins to configure, without entry points."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from pydantic import Field, SecretStr

from syncer.api import Config, ConfigError, Key, Mirror, NameTranslator, Resource, Syncer
from syncer.config import Loaded, Override, build, parse


class Selector(Config):
    """Which widgets are meant."""

    operator: str = "In"


class WidgetConfig(Config):
    """How widgets are synced."""

    size: int = 3
    """How large."""

    cluster_ip: bool = False
    labels: dict[str, str] = Field(default={})
    limits: tuple[int, ...] = ()
    password: SecretStr = SecretStr("")
    selectors: list[Selector] = Field(default=[])


class Widgets(Mirror[WidgetConfig]):
    """Copies widgets."""

    name = "widgets"
    resource = Resource("example.org/v1", "Widget", "widgets")
    section = "toHost.widgets"
    config = WidgetConfig


class Gadgets(Mirror):
    """Copies gadgets.

    There is more to say of them.
    """

    name = "gadgets"
    resource = Resource("example.org/v1", "Gadget", "gadgets")
    section = "fromHost.gadgetParts"


class Straight:
    """Leaves names as they are."""

    def __init__(self, *, cluster: str, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace

    def to_host(self, resource: Resource, key: Key) -> Key:
        return key

    def to_virtual(self, resource: Resource, key: Key) -> Key | None:
        return key

    def host_namespaces(self) -> tuple[str, ...] | None:
        return (self.namespace,)


class Apart(Straight):
    """Names with the virtual cluster in them."""

    def to_host(self, resource: Resource, key: Key) -> Key:
        return Key(self.namespace, f"{key.namespace}-{key.name}-{self.cluster}")


class Anywhere(Straight):
    """Needs no namespace on the host."""

    needs_namespace = False


class FakePlugins:
    """Plugins that are simply there."""

    def __init__(self) -> None:
        self.named: list[str] = []
        self.checked: list[type[Syncer]] = []

    def syncers(self, named: Iterable[str] = ()) -> Sequence[type[Syncer]]:
        self.named = list(named)
        return [Widgets, Gadgets]

    def known_syncers(self) -> Sequence[str]:
        return ["widgets", "gadgetParts", "sprockets"]

    def translator(self, name: str) -> type[NameTranslator] | None:
        return {"single-namespace": Apart, "straight": Straight, "anywhere": Anywhere}.get(name)

    def known_translators(self) -> Sequence[str]:
        return ["single-namespace", "anywhere"]

    def refuse_conflicts(self, syncers: Sequence[type[Syncer]]) -> None:
        self.checked = list(syncers)


def loaded(plugins: Any, text: str, *overrides: Override) -> Loaded:
    """Return the configuration of a file."""
    return build(parse(text, "f.yaml"), plugins, overrides)


def problems(plugins: Any, text: str, *overrides: Override) -> list[str]:
    """Return the problems for which a file is refused."""
    with pytest.raises(ConfigError) as caught:
        loaded(plugins, text, *overrides)
    return [str(problem) for problem in caught.value.problems]
