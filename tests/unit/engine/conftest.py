"""The tests of the flow, one folder a step; as pytest looks for modules beside a conftest, each finds the fakes."""
