"""Put tokens of the virtual API server into an object just before it is written."""

import base64

from syncer.api.decision import Write
from syncer.api.marks import Marks
from syncer.api.objects import Key, Obj
from syncer.clusters.client import SideClient
from syncer.resources.kinds import SERVICE_ACCOUNTS


async def with_tokens(write: Write, body: Obj, *, virtual: SideClient, marks: Marks) -> Obj:
    """Return the object with the tokens that the write requests.

    An annotation has their first expiry.
    """
    data = dict(body.get("data") or {})
    ends = []
    for token in write.tokens:
        request: Obj = {"audiences": list(token.audiences), "expirationSeconds": token.seconds}
        if token.bound_to is not None:
            metadata = token.bound_to["metadata"]
            bound = {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": metadata["name"],
                "uid": metadata["uid"],
            }
            request["boundObjectRef"] = bound
        token_request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": request,
        }
        key = Key(token.namespace, token.service_account)
        answer = await virtual.create(SERVICE_ACCOUNTS, token_request, subresource="token", key=key)
        data[token.field] = base64.b64encode(answer["status"]["token"].encode()).decode()
        ends.append(answer["status"]["expirationTimestamp"])
    metadata = body["metadata"]
    annotations = {**(metadata.get("annotations") or {}), marks.token_expires: min(ends)}
    return {**body, "metadata": {**metadata, "annotations": annotations}, "data": data}
