//go:build tools

// Package tools names the programs that check the charts, so that go.mod holds their modules. promtool and Prometheus are built with
// the tag remove_all_sd; go mod tidy knows no tags, so it adds a hundred modules that nothing is built from: take `go get` instead.
package tools

import (
	_ "github.com/prometheus/prometheus/cmd/prometheus"
	_ "github.com/prometheus/prometheus/cmd/promtool"
	_ "github.com/yannh/kubeconform/cmd/kubeconform"
	_ "helm.sh/helm/v4/cmd/helm"
)
