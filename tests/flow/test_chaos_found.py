"""Scripts found by chaos: each failed once, and names the fault."""

from chaos.steps import Calm, Delete, Put, Spoil, perform


def test_kind_that_is_only_faked_is_patrolled_like_any_other() -> None:
    """The patroller counted the host's objects of a kind that the host isn't watched for, and ended its scan."""
    perform(Calm("host"))


def test_copy_that_loses_its_marks_just_before_its_deletion_stays() -> None:
    """The deletion named the uid alone, so it also removed what had ceased to be ours meanwhile."""
    perform(
        Delete(tenant="red", kind="serviceaccounts", space="blog", name="default", again=True),
        Spoil(tenant="red", kind="serviceaccounts", space="blog", name="default", how="unmark"),
    )


def test_token_waits_for_a_service_account_that_has_gone() -> None:
    """Its request failed again and again, with an event on the Pod each time it was started again."""
    perform(
        Put(tenant="red", kind="serviceaccounts", space="shop", name="a", look=0),
        Put(tenant="red", kind="pods", space="shop", name="b", look=3),
        Delete(tenant="red", kind="serviceaccounts", space="shop", name="a", again=False),
    )
