"""The same examples in each run; that one is slow on a busy machine says nothing about the server."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "gate", derandomize=True, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("gate")
# Other examples in each run: pytest --hypothesis-profile=explore
settings.register_profile("explore", settings.get_profile("gate"), derandomize=False)
