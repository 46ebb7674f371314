// Command controlplane contains etcd, kube-apiserver, kube-controller-manager and kube-scheduler in one file. It runs
// as the program whose name it is called by. One binary links the shared packages once, which reduces the total size to
// a fifth, and the build time accordingly.
//
// Package mustertest/localplane builds it together with kwok, and starts control planes from both.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	commands := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	}
	if name == "kube-controller-manager" && os.Getenv(promptNamespaces) != "" {
		args, err := replaceNamespaceController(context.Background(), os.Args)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: replace the namespace controller: %v\n", name, err)
			os.Exit(1)
		}
		os.Args = args
	}
	switch newCommand, known := commands[name]; {
	case known:
		os.Exit(cli.Run(newCommand()))
	case name == "etcd":
		etcdmain.Main(os.Args)
	default:
		fmt.Fprintf(os.Stderr, "%s: call this program by the name of what it shall be: etcd, kube-apiserver, "+
			"kube-controller-manager or kube-scheduler\n", name)
		os.Exit(2)
	}
}
