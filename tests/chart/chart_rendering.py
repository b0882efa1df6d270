"""Charts as Helm renders them."""

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from hack.chart_build import built
from hack.realnode import builds
from syncer.api import Obj

ROOT = Path(__file__).parent.parent.parent
CHARTS = ROOT / "charts"


class Unrenderable(Exception):
    """Helm refuses the chart with these values; the message is Helm's."""


def helm(*arguments: str, values: Mapping[str, Any] | None = None) -> str:
    """Run helm, with values if they are given; return its output.

    Raises:
        Unrenderable: It failed.
    """
    given = ["--values", "-"] if values is not None else []
    command = [str(builds.tool("helm")), *arguments, *given]
    done = subprocess.run(
        command, input=yaml.safe_dump(values or {}), capture_output=True, text=True, check=False, timeout=600
    )
    if done.returncode:
        raise Unrenderable(done.stderr.strip())
    return done.stdout


def rendered(
    chart: Path, values: Mapping[str, Any] | None = None, *, release: str = "shop", options: Sequence[str] = ()
) -> list[Obj]:
    """Return the objects of a chart in the namespace that has the release's name, without its hooks' order.

    Raises:
        Unrenderable: Helm refuses the values.
    """
    folder = built(chart.name) if chart.parent == CHARTS else chart
    text = _template(("template", release, str(folder), "--namespace", release, *options), yaml.safe_dump(values or {}))
    return loaded(text)


@lru_cache(maxsize=128)
def _template(arguments: tuple[str, ...], values: str) -> str:
    """Run Helm once for the same values, as many tests look at the same objects."""
    return helm(*arguments, values=yaml.safe_load(values))


def loaded(text: str) -> list[Obj]:
    """Return the objects in a text of YAML, read by libyaml: PyYAML's own reader takes as long as Helm."""
    return [each for each in yaml.load_all(text, Loader=yaml.CSafeLoader) if each]


def granted(objects: Iterable[Obj]) -> dict[tuple[str, str, str], set[tuple[str, str, str, str]]]:
    """Return what roles allow, by kind, namespace and name: each group, resource, name (or ``""``) and verb."""
    return {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): {
            (group, resource, name, verb)
            for rule in each["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for name in rule.get("resourceNames", [""])
            for verb in rule["verbs"]
        }
        for each in objects
        if each["kind"] in ("Role", "ClusterRole")
    }


def bound(objects: Iterable[Obj]) -> set[tuple[str, str, str, str]]:
    """Return each binding: kind and name of its role, its namespace, and the name of its subject."""
    return {
        (each["roleRef"]["kind"], each["roleRef"]["name"], each["metadata"].get("namespace", ""), subject["name"])
        for each in objects
        if each["kind"] in ("RoleBinding", "ClusterRoleBinding")
        for subject in each["subjects"]
    }
