// The Kubernetes programs, each as upstream's own main does it.
package main

import (
	"context"
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl's credential plugins
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the clients' own metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // the version as a metric
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserverapp "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllerapp "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxyapp "k8s.io/kubernetes/cmd/kube-proxy/app"
	schedulerapp "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeletapp "k8s.io/kubernetes/cmd/kubelet/app"
)

func apiserver() int {
	return cli.Run(apiserverapp.NewAPIServerCommand())
}

func controllerManager() int {
	return cli.Run(controllerapp.NewControllerManagerCommand())
}

func scheduler() int {
	return cli.Run(schedulerapp.NewSchedulerCommand())
}

func proxy() int {
	return cli.Run(proxyapp.NewProxyCommand())
}

func kubelet() int {
	return cli.Run(kubeletapp.NewKubeletCommand(context.Background()))
}

func kubectl() int {
	logs.GlogSetter(cmd.GetLogVerbosity(os.Args)) // the verbosity is needed before the flags are parsed
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err) // prints, and ends the process
	}
	return 0
}
