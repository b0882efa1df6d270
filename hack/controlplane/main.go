// Command controlplane is a Kubernetes cluster in one static binary: etcd with etcdctl and etcdutl,
// kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy and kubectl, chosen by
// the first argument or, through symlinks, by the name it is called by.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // CronJobs name time zones, and an image FROM scratch has no zone files
)

// components maps a program's name to its main function, which returns the exit status.
var components = map[string]func() int{
	"etcd":                    etcd,
	"etcdctl":                 etcdctl,
	"etcdutl":                 etcdutlSnapshot,
	"kube-apiserver":          apiserver,
	"kube-controller-manager": controllerManager,
	"kube-scheduler":          scheduler,
	"kubelet":                 kubelet,
	"kube-proxy":              proxy,
	"kubectl":                 kubectl,
}

func main() {
	os.Exit(run())
}

// run looks at the program's own name first (symlinks), then at the first argument, which it takes away.
func run() int {
	if component, found := components[filepath.Base(os.Args[0])]; found {
		return component()
	}
	if len(os.Args) > 1 {
		if component, found := components[os.Args[1]]; found {
			os.Args = os.Args[1:]
			return component()
		}
		fmt.Fprintf(os.Stderr, "controlplane: no component %q\n", os.Args[1])
	}
	fmt.Fprintf(os.Stderr, "usage: controlplane COMPONENT [ARGUMENTS]\ncomponents: %s\n", strings.Join(names(), ", "))
	return 2
}

func names() []string {
	all := make([]string, 0, len(components))
	for name := range components {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
