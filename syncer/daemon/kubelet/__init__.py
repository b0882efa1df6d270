"""The kubelets of the virtual Nodes, wired to the process."""
