"""Services: addresses and node ports."""

from typing import Any

from contract_client import Api

Obj = dict[str, Any]


def services(ns: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{ns}/services" + (f"/{name}" if name else "")


def make(api: Api, ns: str, name: str = "a", **spec: Any) -> Obj:
    made: Obj = api.make(services(ns), {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}})
    found: Obj = made["spec"]
    return found


def test_it_gets_an_address(api: Api, ns: str) -> None:
    spec = make(api, ns, selector={"x": "y"})
    address = spec.pop("clusterIP")
    assert address.startswith("10.96.")
    assert spec == {
        "clusterIPs": [address],
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "selector": {"x": "y"},
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }
    assert api.get(services(ns, "a"))["status"] == {"loadBalancer": {}}


def test_it_keeps_its_address(api: Api, ns: str) -> None:
    address = make(api, ns)["clusterIP"]
    body = {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 81}]}}
    assert api.put(services(ns, "a"), body)["spec.clusterIP"] == address
    answer = api.patch(services(ns, "a"), {"spec": {"clusterIP": "10.96.77.77"}})
    assert (answer.status, answer["reason"]) == (422, "Invalid")


def test_headless(api: Api, ns: str) -> None:
    spec = make(api, ns, clusterIP="None")
    assert (spec["clusterIP"], spec["clusterIPs"]) == ("None", ["None"])


def test_an_address_of_its_choice(api: Api, ns: str) -> None:
    number = int(api.name("x").partition("-")[2]) % 250 + 1
    address = f"10.96.99.{number}"
    assert make(api, ns, clusterIP=address)["clusterIP"] == address
    body = {"metadata": {"name": "b"}, "spec": {"ports": [{"port": 80}], "clusterIP": address}}
    answer = api.post(services(ns), body)
    assert (answer.status, answer["reason"]) == (422, "Invalid")
    assert answer["message"] == (
        f'Service "b" is invalid: spec.clusterIPs: Invalid value: ["{address}"]: failed to allocate IP {address}: '
        "provided IP is already allocated"
    )
    api.delete(services(ns, "a"))
    api.eventually(lambda: api.post(services(ns), body).status == 201)


def test_node_ports(api: Api, ns: str) -> None:
    spec = make(api, ns, type="NodePort")
    port = spec["ports"][0]["nodePort"]
    assert 30000 <= port <= 32767
    assert spec["externalTrafficPolicy"] == "Cluster"
    answer = api.patch(services(ns, "a"), {"metadata": {"labels": {"x": "y"}}})
    assert answer["spec.ports.0.nodePort"] == port
    taken = {"metadata": {"name": "b"}, "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]}}
    answer = api.post(services(ns), taken)
    assert (answer.status, answer["reason"]) == (422, "Invalid")
    assert "provided port is already allocated" in answer["message"]
    assert answer["details.causes.0.field"] == "spec.ports[0].nodePort"
    two = [{"name": "a", "port": 80}, {"name": "b", "port": 81, "nodePort": 99}]
    answer = api.post(services(ns), {"metadata": {"name": "b"}, "spec": {"type": "NodePort", "ports": two}})
    assert (answer.status, answer["details.causes.0.field"]) == (422, "spec.ports[1].nodePort")
    assert answer["message"].endswith("is not in the valid range. The range of valid ports is 30000-32767")


def test_refused_node_port_takes_no_address(api: Api, ns: str) -> None:
    port = make(api, ns, type="NodePort")["ports"][0]["nodePort"]
    ports = [{"port": 80, "nodePort": port}]
    body = {"metadata": {"name": "b"}, "spec": {"type": "NodePort", "clusterIP": "10.96.3.3", "ports": ports}}
    assert api.post(services(ns), body)["details.causes.0.field"] == "spec.ports[0].nodePort"
    del ports[0]["nodePort"]
    assert api.post(services(ns), body).status == 201


def test_types_change(api: Api, ns: str) -> None:
    address = make(api, ns, type="NodePort")["clusterIP"]
    plain = api.patch(services(ns, "a"), {"spec": {"type": "ClusterIP"}})
    assert (plain["spec.clusterIP"], plain["spec.ports.0.nodePort"]) == (address, None)
    balanced = api.patch(services(ns, "a"), {"spec": {"type": "LoadBalancer"}})
    assert balanced["spec.ports.0.nodePort"]
    assert balanced["spec.allocateLoadBalancerNodePorts"] is True
    name = {"spec": {"type": "ExternalName", "externalName": "example.com"}}
    external = api.patch(services(ns, "a"), name)
    assert external.status == 200
    assert "clusterIP" not in external["spec"]
    assert "nodePort" not in external["spec.ports.0"]


def test_external_name(api: Api, ns: str) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"type": "ExternalName", "externalName": "example.com"}}
    made = api.make(services(ns), body)
    assert made["spec"] == {"type": "ExternalName", "externalName": "example.com", "sessionAffinity": "None"}


def test_its_load_balancer(api: Api, ns: str) -> None:
    make(api, ns, type="LoadBalancer")
    status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    answer = api.patch(services(ns, "a") + "/status", {"status": status})
    assert answer["status.loadBalancer.ingress.0.ip"] == "192.0.2.1"


def test_put_creates_one(api: Api, ns: str) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}
    answer = api.put(services(ns, "a"), body)
    assert answer.status == 201
    assert answer["spec.clusterIP"]


def test_ports_need_names_where_there_are_more(api: Api, ns: str) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}, {"port": 81}]}}
    answer = api.post(services(ns), body)
    assert (answer.status, answer["reason"]) == (422, "Invalid")
    assert answer["details.causes.0.field"] == "spec.ports[0].name"


def test_the_first_one(api: Api) -> None:
    spec = api.get("/api/v1/namespaces/default/services/kubernetes")["spec"]
    assert spec["clusterIP"] == "10.96.0.1"
    assert spec["ports"][0]["name"] == "https"


def test_service_cidr_has_the_range(api: Api) -> None:
    [found] = api.get("/apis/networking.k8s.io/v1/servicecidrs")["items"]
    assert found["metadata"]["name"] == "kubernetes"
    assert found["spec"] == {"cidrs": ["10.96.0.0/16"]}
    [condition] = found["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Ready", "True")
    assert condition["message"] == "Kubernetes default Service CIDR is ready"


def test_dry_run_with_an_impossible_address_names_the_range(api: Api, ns: str) -> None:
    body: Obj = {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}], "clusterIP": "192.0.2.1"}}
    answer = api.post(services(ns) + "?dryRun=All", body)
    assert (answer.status, answer["reason"]) == (422, "Invalid")
    assert answer["details.causes.0.field"] == "spec.clusterIPs"
    assert answer["message"].endswith(
        "failed to allocate IP 192.0.2.1: the provided IP (192.0.2.1) is not in the valid range. "
        "The range of valid IPs is 10.96.0.0/16"
    )
    body["spec"]["clusterIP"] = "2001:db8::1"
    answer = api.post(services(ns) + "?dryRun=All", body)
    assert (answer.status, answer["details.causes.0.field"]) == (422, "spec.clusterIPs[0]")
    assert answer["message"].endswith("IPv6 is not configured on this cluster")
    body["spec"]["clusterIP"] = "abc"
    answer = api.post(services(ns) + "?dryRun=All", body)
    assert (answer.status, answer["details.causes.0.field"]) == (422, "spec.clusterIPs[0]")
    assert answer["message"].endswith("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


def test_dry_run_takes_no_address(api: Api, ns: str) -> None:
    address = make(api, ns)["clusterIP"]
    body = {"metadata": {"name": "b"}, "spec": {"ports": [{"port": 80}], "clusterIP": address}}
    assert api.post(services(ns) + "?dryRun=All", body).status == 201, "a dry run doesn't look which are taken"
    assert api.post(services(ns), body).status == 422, "and the first Service still has it"


MERE_NAME = {"spec": {"type": "ExternalName", "externalName": "x.invalid"}}


def with_address(address: str) -> Obj:
    families = {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}
    spec = {"type": "ClusterIP", "externalName": None, "clusterIP": address, "clusterIPs": [address], **families}
    return {"spec": {**spec, "internalTrafficPolicy": "Local"}}


def test_address_is_changed_by_way_of_an_external_name(api: Api, ns: str) -> None:
    first = make(api, ns, "a", selector={"x": "y"}, sessionAffinity="ClientIP", internalTrafficPolicy="Local")
    before, other = api.get(services(ns, "a")), make(api, ns, "b")
    named = api.patch(services(ns, "a"), MERE_NAME)
    assert named.status == 200
    assert named["spec"].keys() == first.keys() - {
        "clusterIP",
        "clusterIPs",
        "ipFamilies",
        "ipFamilyPolicy",
        "internalTrafficPolicy",
    } | {"externalName"}
    number = int(api.name("x").partition("-")[2]) % 250 + 1
    for wrong in (other["clusterIP"], "192.0.2.1"):
        answer = api.patch(services(ns, "a"), with_address(wrong))
        assert (answer.status, answer["details.causes.0.field"]) == (422, "spec.clusterIPs")
        assert api.get(services(ns, "a"))["spec"] == named["spec"]
    api.delete(services(ns, "b"))
    wanted = f"10.96.98.{number}"
    changed = api.patch(services(ns, "a"), with_address(wanted))
    assert changed["spec"] == {**first, "clusterIP": wanted, "clusterIPs": [wanted]}
    assert changed["metadata.uid"] == before["metadata.uid"]
    assert api.make(
        services(ns), {"metadata": {"name": "c"}, "spec": {"ports": [{"port": 80}], "clusterIP": first["clusterIP"]}}
    ), "the old address is free"


def test_external_name_draws_an_address_where_none_is_asked_for(api: Api, ns: str) -> None:
    make(api, ns)
    api.patch(services(ns, "a"), MERE_NAME)
    drawn = api.patch(services(ns, "a"), {"spec": {"type": "ClusterIP", "externalName": None}})
    assert drawn["spec.clusterIP"].startswith("10.96.")
    assert drawn["spec.ipFamilies"] == ["IPv4"]
