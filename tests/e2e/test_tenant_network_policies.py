"""A tenant's NetworkPolicies hold on a real node: connections are dropped, and let through again."""

from collections.abc import Iterator

import pytest
from network_scene import Answer, connect
from node_scene import WEB, running, until
from tenant_scene import Tenant

ON = {"toHost": {"networkPolicies": {"enabled": True}}}
PORT = 8080
#: Only pods of namespaces of the team are let in.
TEAM = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: team}
spec:
  podSelector: {matchLabels: {app: web}}
  policyTypes: [Ingress]
  ingress: [{from: [{namespaceSelector: {matchLabels: {team: front}}}], ports: [{port: 8080}]}]
"""
#: Nothing is let out.
SILENCE = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: silence}
spec: {podSelector: {}, policyTypes: [Egress]}
"""


@pytest.fixture(scope="module")
def _synced(tenant: Tenant) -> Iterator[None]:
    with tenant.configured(sync=ON), tenant.namespace("walls", WEB), tenant.namespace("front", WEB):
        yield


@pytest.mark.usefixtures("_synced")
def test_tenants_policies_drop_connections_and_let_them_through_again(tenant: Tenant) -> None:
    inside, other = running(tenant, "walls", "app=web", 2)
    outside, _ = running(tenant, "front", "app=web", 2)
    target = f"{tenant.kubectl('get', 'pod', other, '-n=walls', '-o=jsonpath={.status.podIP}')}:{PORT}"

    def met() -> tuple[str, str]:
        """Return what connections to the pod meet: of its namespace, and of the other one."""
        return connect(tenant, "walls", inside, [target])[target], connect(tenant, "front", outside, [target])[target]

    assert met() == (Answer.OPEN, Answer.OPEN)
    tenant.kubectl("apply", "-n=walls", "-f", "-", stdin=TEAM)
    until("nobody of the team is there, so all are dropped", lambda: met() == (Answer.SILENT, Answer.SILENT))
    tenant.kubectl("label", "namespace", "front", "team=front")
    until("the namespace of the team is let in, and no other", lambda: met() == (Answer.SILENT, Answer.OPEN))
    tenant.kubectl("apply", "-n=front", "-f", "-", stdin=SILENCE)
    until("nothing of the team is let out", lambda: met() == (Answer.SILENT, Answer.SILENT))
    answer = tenant.exec("front", outside, "/web", "api", "/api/v1/namespaces/front/pods")
    assert answer.startswith(("200", "403")), "its API server is reached all the same"
    tenant.kubectl("delete", "networkpolicy", "silence", "-n=front")
    tenant.kubectl("delete", "networkpolicy", "team", "-n=walls")
    until("without policies all are open to the tenant's own", lambda: met() == (Answer.OPEN, Answer.OPEN))
