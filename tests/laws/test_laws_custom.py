"""The laws of syncer.testing.laws, over syncers as they are made from entries of ``sync.custom``."""

from typing import Any, ClassVar

from hypothesis import strategies as st

from syncer.api import Config, Key, Marks, Obj, Resource, key_of
from syncer.names import PerNamespace, SingleNamespace
from syncer.resources.custom.config import By, CustomConfig
from syncer.resources.custom.from_host import CustomFromHost
from syncer.resources.custom.mirror import CustomKind, CustomToHost, Ties
from syncer.resources.custom.references import referred
from syncer.resources.custom.related import TranslatedNames
from syncer.resources.kinds import SECRETS
from syncer.testing import strategies
from syncer.testing.laws import Scene, laws_for
from syncer.testing.merge import merged
from syncer.testing.objects import build, host_copy

WIDGETS = Resource("example.org/v1", "Widget", "widgets")
CLASSES = Resource("example.org/v1", "Class", "classes", namespaced=False)
NAMES = SingleNamespace(cluster="vc", namespace="vc-ns")

_WORDS = st.sampled_from(["db", "a-x-b", "long" * 20])
_REFERENCE = st.fixed_dictionaries({"name": _WORDS}, optional={"namespace": st.just("shop"), "kind": st.just("Secret")})
SPECS = strategies.some({"to": _REFERENCE, "many": st.lists(_REFERENCE, max_size=2), "text": strategies.TEXT})
WIDGET_CONTENTS = strategies.some({"spec": SPECS, "status": strategies.some({"phase": strategies.TEXT})})
REFERENCES = {path: referred(path, [SECRETS]) for path in ("spec.to.name", "spec.many[].name")}


class Widgets(CustomToHost):
    """An entry that goes down, with references."""

    name = "widgets"
    resource = WIDGETS
    config = CustomConfig

    def __init__(self) -> None:
        super().__init__(CustomKind("widgets", WIDGETS, WIDGETS), CustomConfig(), Ties(REFERENCES))


class SharedWidgets(Widgets):
    """An entry whose fields both sides own but those with names in them."""

    both = ("spec.text",)


class Classes(CustomFromHost):
    """An entry that comes up."""

    name = "classes"
    resource = CLASSES
    config = CustomConfig

    def __init__(self) -> None:
        super().__init__(
            CustomKind("classes", CLASSES, CLASSES), CustomConfig.model_validate({"direction": "fromHost"})
        )


class WidgetSecrets(TranslatedNames):
    """Secrets that an operator makes for copies of widgets."""

    name = "widget-secrets"
    resource = SECRETS
    config: ClassVar[type[Config]] = Config

    def __init__(self) -> None:
        kind, by = CustomKind("widgets", WIDGETS, WIDGETS), By(reference="spec.to.name")
        synced: Any = lambda widget: True  # noqa: E731
        super().__init__("widget-secrets", kind, SECRETS, by, marks=Marks(), names=NAMES, is_synced=synced)


def _shown(host: Obj) -> Scene:
    return Scene(key_of(host), (), (host,))


def _made(made: Obj) -> Scene:
    """A Secret that a widget names, at its place on the host; without the labels that only a tenant may forge."""
    key = Key("shop", made["metadata"]["name"])
    widget = build(WIDGETS, "owner", spec={"to": {"name": key.name}}, metadata={"uid": "u-1"})
    host_key = NAMES.to_host(SECRETS, key)
    placed = merged(made, {"metadata": {"namespace": host_key.namespace, "name": host_key.name, "labels": None}})
    return Scene(key, (widget,), (host_copy(widget), placed))


TestToHost = laws_for(Widgets, objects=strategies.objects(WIDGETS, WIDGET_CONTENTS))
TestShared = laws_for(SharedWidgets, objects=strategies.objects(WIDGETS, WIDGET_CONTENTS))
TestToHostInNamespacesOfTheirOwn = laws_for(
    Widgets, objects=strategies.objects(WIDGETS, WIDGET_CONTENTS, names=strategies.LABELS), translator=PerNamespace
)
TestFromHost = laws_for(
    Classes, objects=strategies.objects(CLASSES, WIDGET_CONTENTS, names=strategies.LABELS).map(_shown)
)
TestNamed = laws_for(WidgetSecrets, objects=strategies.secrets().map(_made))
