"""What chaos has found: each script went wrong once, and says what was wrong."""

from chaos.steps import Calm, perform


def test_a_kind_that_is_only_faked_is_patrolled_like_any_other() -> None:
    """The patroller counted the host's objects of a kind that the host isn't watched for, and ended its scan."""
    perform(Calm("host"))
