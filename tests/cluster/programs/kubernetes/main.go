// One program that is etcd, kubectl and every Kubernetes component, after the name it is called by.
//
// Linking them together costs a tenth of linking each alone: they share almost all of their packages.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // CronJob time zones, as in the components' own main packages

	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl's authentication plugins
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	name := filepath.Base(os.Args[0])
	switch name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kubectl":
		// Not cli.Run: kubectl prints its own errors and chooses its own exit codes.
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			util.CheckErr(err)
		}
	default:
		command, known := components[name]
		if !known {
			fmt.Fprintf(os.Stderr, "%s: no such component; call this program by a component's name\n", name)
			os.Exit(2)
		}
		os.Exit(cli.Run(command()))
	}
}
