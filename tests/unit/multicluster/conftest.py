"""Clusters in this process; pytest looks for modules beside a conftest, so that all find the scene."""
