"""The engine's unit tests; pytest looks for modules beside a conftest, so that all find the fakes."""
