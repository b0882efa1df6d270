"""Generate the schema, examples, lists of options, metrics and limits,
and what charts need. --check: compare.
"""

import argparse
import json
import sys
from importlib.metadata import distribution
from pathlib import Path

from hack.chart_rights import rights_template
from hack.chart_schema import text_of, values_schema, values_table
from hack.kinds_page import kinds_page
from hack.limits_table import PAGE, constants, with_values
from hack.reasons_page import reasons_page
from syncer.api.metadata_defaults import FAMILIES, Family
from syncer.config import config_with
from syncer.config.render import defaults, markdown, schema
from syncer.observe.catalogue import CATALOGUE, LABELS, Metric
from syncer.observe.metrics import BOUNDS
from syncer.plugins import OURS, Installed
from syncer.resources.harmless_annotations import (
    ANY,
    CLAIMS,
    INGRESSES,
    LOAD_BALANCERS,
    SNAPSHOTS,
    Harmless,
)

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
DOCS = ROOT / "docs"
LIMITS = ROOT / PAGE
CHARTS = ROOT / "charts"
SYNCER = CHARTS / "syncer"
#: The charts that have values: all but the library.
WITH_VALUES = (SYNCER, CHARTS / "virtual-cluster")

BEGIN = "<!-- values: written by hack/generate -->"
END = "<!-- end of values -->"

HEAD = """\
# Every option with its default, but for this example's names and paths. Written by hack/generate.
# yaml-language-server: $schema=syncer.schema.json
"""
GIVEN = {
    "virtualClusters[].name": "shop",
    "virtualClusters[].kubeconfig": "/etc/syncer/shop.kubeconfig",
    "virtualClusters[].hostNamespace": "vc-shop",
}
OPTIONS = "# Options\n\nWritten by hack/generate; `syncer config explain PATH` says the same.\n\n"
METRICS = """\
# Metrics

Written by hack/generate. The names and meanings of `workqueue_*`, `rest_client_*` and
`leader_election_*` are client-go's and those of `controller_runtime_*` are controller-runtime's, so
dashboards and alerts that know them work unchanged; the label `cluster` is added. A metric without
`cluster` is about the process, as are `process_*` and `python_gc_*` of prometheus-client.

Label values come from the configuration and the code, never from an object, and the series of a
virtual cluster go when it leaves. The upper bounds of every histogram are, in seconds:
{bounds}.

| metric | kind | labels | meaning |
|---|---|---|---|
{metrics}

| label | values |
|---|---|
{labels}
"""
METADATA = """\
# Labels and annotations

Written by hack/generate from `syncer/api/metadata_defaults.py` and
`syncer/resources/harmless_annotations.py`.

A tenant's labels and annotations are copied to the host with the object, because pods are selected
by them, and controllers of the host act on some of them, whoever has written them. Those of [the
families](#cloud-identities) below stay behind by default, on every kind. A tenant who sets one of
them, except a note of a tool, gets an event with the reason `NotCopied` on the object. The list
names well-known controllers; if the host runs others that act on metadata, deny their keys, too.

On claims, Ingresses and Services of type LoadBalancer, on which controllers act by thousands of
annotations, it is the other way round: only [harmless annotations](#harmless-annotations) cross,
and those that the operator allows.

```yaml
sync:
  toHost:
    services:
      metadata:
        annotations:
          # The full name of a denied key lets it through; "*" keeps all others crossing.
          allow: ["*", external-dns.alpha.kubernetes.io/hostname]
          deny: ["dns.example.org/*"]
    ingresses:
      metadata:
        annotations:
          # Besides the harmless ones: all of the operator's own domain, and some of a controller.
          allow: ["*", "example.org/*", "alb.ingress.kubernetes.io/actions.*"]
    secrets:
      metadata:
        labels: {{allow: ["app", "app.kubernetes.io/*"]}}  # only these
```

* A pattern that spells out the domain and the beginning of the name, such as
  `alb.ingress.kubernetes.io/actions.*`, lets denied keys through as a full name does. One that
  spells out the domain alone, such as `example.org/*`, lets keys through that are merely not on a
  kind's list; `*` lets nothing through that the kind doesn't.
* A ServiceAccount's annotations all stay behind: clouds give credentials by them. Allow a single
  one by its name.
* The labels `owner` and `OWNER` of a ConfigMap or Secret stay behind: Helm finds its releases by
  them, so a tenant's would be upgraded or removed with the rights of Helm on the host. For the same
  reason a Secret with a type of `helm.sh/` is Opaque there.
* With `names.translator: per-namespace`, no label and no annotation of a Namespace crosses unless
  it is allowed by its name. Those that the operator gives the host namespaces are
  `sync.toHost.namespaces.labels` and `annotations`; a tenant's can't override them.
* A Service of type LoadBalancer with a key of *Load balancers*, and an Ingress with one of *Ingress
  controllers* or of any domain with "ingress" in it, is refused rather than copied without it: it
  might be open to more than the tenant means. The event has the same reason.
* Annotations of ingress-nginx that name a Secret, a ConfigMap or a Service name the copy once they
  are allowed. Other controllers' names stay as they are: allow such keys only to tenants who may
  use any object that the controller reads.
* An Ingress with a key of *Certificates* is copied without it: a cert-manager in the virtual
  cluster acts on it there.
* What a rule of a custom kind denies is also left out of the `labels` and `annotations` of
  templates in it, such as cert-manager's `secretTemplate`: an operator on the host writes them to
  the objects that it makes.
* Marks (`vsyncer.dev/`), kubectl's `last-applied-configuration`, and the label that makes a CRD
  public never cross, and can't be allowed. From the templates in custom resources, such as
  cert-manager's `secretTemplate`, they are removed, too; marks under any name, such as `podLabels`.
  An operator that takes labels from a list or a text isn't covered.
* A volume or variable that reads a denied label or annotation by its name
  (`metadata.annotations['…']`) finds nothing; `metadata.annotations` as a whole lists it.
* Objects of the host that appear in the virtual cluster lack the notes of tools, the last of these
  tables, as labels and annotations.

Pods and Services need their labels, as the tenant's Services select by them. So whatever the host
itself selects in that namespace (Services, NetworkPolicies, PodDisruptionBudgets, Deployments,
StatefulSets, DaemonSets, ReplicaSets) has to select by a label below the marks' prefix too, such as
`vsyncer.dev/role: daemon`, which no tenant can set. Otherwise a tenant's Pod with the right labels
gets the traffic, or is adopted, and counts as one of the replicas. The daemon's own namespace
should be another one.

## Harmless annotations

Those that cross on three kinds by default, because they affect no more than the object's own
traffic. A value has to match the regular expression, as a controller may write it into the
configuration that all tenants share; otherwise the object is refused. `allow` with the key's full
name lets any value through. What is missing on purpose:

* Buffers and sizes of bodies (`nginx.ingress.kubernetes.io/proxy-body-size`, `proxy-buffer-size`):
  memory and disk of the controller are everybody's.
* What changes other paths of a host (`rewrite-target`, `use-regex`, `app-root`, `server-alias`,
  `canary`, `from-to-www-redirect`), how routes are matched
  (`traefik.ingress.kubernetes.io/router.pathmatcher`, `router.priority`, `router.entrypoints`), or
  what is logged and inspected (`enable-access-log`, `enable-modsecurity`).
* All of external-dns and cert-manager: they write names and certificates of the host's own.
* Whether a load balancer is internal, its address, its certificates, and whether it is shared.

{harmless}
{families}"""


def metadata() -> str:
    """Return the page of the labels and annotations that stay behind by default."""
    return METADATA.format(families="\n".join(map(_family, FAMILIES)), harmless=_harmless())


def _harmless() -> str:
    lines = []
    kinds = {
        "Claims": CLAIMS,
        "VolumeSnapshots": SNAPSHOTS,
        "Ingresses": INGRESSES,
        "Services of type LoadBalancer": LOAD_BALANCERS,
    }
    for title, groups in kinds.items():
        lines += [
            f"### {title}\n",
            "| controller | annotations | values | harmless, because |",
            "|---|---|---|---|",
        ]
        lines += [_harmless_row(each) for each in groups]
        lines.append("")
    return "\n".join(lines)


def _harmless_row(group: Harmless) -> str:
    keys = ", ".join(f"`{key}`" for key in group.keys)
    form = "any" if group.form == ANY else f"`{group.form}`".replace("|", "\\|")
    return f"| {group.controller} | {keys} | {form} | {group.why} |"


def _family(family: Family) -> str:
    lines = [f"## {family.title}\n", f"Why: {family.why}.\n"]
    for title, keys in (
        ("labels and annotations", family.keys),
        ("annotations only", family.annotations),
    ):
        if keys:
            lines += [f"| {title} |", "|---|", *(f"| `{key}` |" for key in keys), ""]
    return "\n".join(lines)


def metrics() -> str:
    """Return the list of metrics, and of their labels."""
    rows = [_row(metric) for metric in sorted(CATALOGUE.values(), key=lambda metric: metric.name)]
    return METRICS.format(
        bounds=", ".join(f"{bound:g}" for bound in BOUNDS),
        metrics="\n".join(rows),
        labels="\n".join(f"| `{label}` | {meaning} |" for label, meaning in LABELS.items()),
    )


def _row(metric: Metric) -> str:
    name = f"{metric.name}_total" if metric.kind == "counter" else metric.name
    labels = " ".join(f"`{label}`" for label in metric.labels)
    return f"| `{name}` | {metric.kind} | {labels} | {metric.help} |"


def generated() -> dict[Path, str]:
    """Return the files, for the built-in plugins alone, whatever else is installed."""
    plugins = Installed(distribution(OURS).entry_points, lambda group: ())
    model = config_with(plugins.syncers(), translators=plugins.translator)
    configuration = schema(model)
    return {
        EXAMPLES / "syncer.schema.json": json.dumps(configuration, indent=2, ensure_ascii=False)
        + "\n",
        EXAMPLES / "full.yaml": HEAD + defaults(model, GIVEN),
        DOCS / "options.md": OPTIONS + markdown(model),
        DOCS / "kinds.md": kinds_page(plugins.syncers()),
        DOCS / "metadata.md": metadata(),
        DOCS / "metrics.md": metrics(),
        DOCS / "reasons.md": reasons_page(),
        LIMITS: with_values(LIMITS.read_text(), constants(ROOT), model),
        SYNCER / "README.md": _between(SYNCER / "README.md", values_table(SYNCER)),
        CHARTS / "library" / "templates" / "_rights.tpl": rights_template(model, configuration),
        **{
            chart / "values.schema.json": text_of(values_schema(chart, configuration)) + "\n"
            for chart in WITH_VALUES
        },
    }


def _between(page: Path, table: str) -> str:
    """Return a page with a table in the place that its comments mark."""
    head, begin, rest = page.read_text().partition(f"{BEGIN}\n")
    _, end, tail = rest.partition(f"{END}\n")
    assert begin, f"{page} has no line {BEGIN}"
    assert end, f"{page} has no line {END}"
    return f"{head}{begin}{table}\n{end}{tail}"


def main() -> int:
    """Write the files, or with --check name the stale ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 if a file is stale"
    )
    check = parser.parse_args().check
    files = generated()
    stale = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(files[path])
        print(f"{path.relative_to(ROOT)} {'is stale: run hack/generate' if check else 'written'}")
    if not stale:
        print("nothing changed: all files are as generated")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
