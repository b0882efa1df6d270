//go:build tools

// Package metrics names the program that serves metrics.k8s.io, so that go.mod holds its modules.
package metrics

import (
	_ "sigs.k8s.io/metrics-server/cmd/metrics-server"
)
