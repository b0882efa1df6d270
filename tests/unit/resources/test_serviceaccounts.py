"""ServiceAccounts: identities without rights and without credentials."""

from syncer.testing import World
from syncer.testing.objects import serviceaccount


def test_metadata_alone_crosses_and_no_token_is_mounted(world: World) -> None:
    account = serviceaccount(
        "robot",
        metadata={"labels": {"team": "a"}},
        secrets=[{"name": "robot-token"}],
        imagePullSecrets=[{"name": "pull"}],
        automountServiceAccountToken=True,
    )
    world.given(virtual=[account]).settle("serviceaccounts", "shop/robot")
    copy = world.host("ServiceAccount", "vc-ns/robot-x-shop-x-vc") or {}
    assert copy["metadata"]["labels"]["team"] == "a"
    assert copy["automountServiceAccountToken"] is False
    assert not {"secrets", "imagePullSecrets"} & copy.keys()
