"""A real Kubernetes node on this machine: kubelet, containerd, kube-proxy, CoreDNS, a network that
enforces NetworkPolicies, and a control plane, in namespaces of their own.
"""
