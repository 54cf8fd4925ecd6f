package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
)

// serve runs the plugin until SIGTERM. Its folders must exist.
func serve(arguments []string) error {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	driver := flags.String("driver", "", "name of the driver")
	node := flags.String("node", "", "name of the Node object")
	root := flags.String("kubelet-root", "", "the kubelet's root directory")
	cdi := flags.String("cdi-dir", "", "where CDI files go")
	uid := flags.String("pod-uid", "", "UID of this pod")
	syncDelay := flags.Duration("sync-delay", 0, "added to each sync, as on a slower disk")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	config.QPS = -1 // the default of 5 a second would be all that is measured
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	data := filepath.Join(*root, "plugins", *driver)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	helper, err := kubeletplugin.Start(
		ctx,
		&plugin{store: store{filepath.Join(data, "checkpoint.json"), *syncDelay}, cdi: cdiFiles{*cdi}},
		kubeletplugin.DriverName(*driver),
		kubeletplugin.NodeName(*node),
		kubeletplugin.KubeClient(client),
		kubeletplugin.RegistrarDirectoryPath(filepath.Join(*root, "plugins_registry")),
		kubeletplugin.PluginDataDirectoryPath(data),
		kubeletplugin.RollingUpdate(types.UID(*uid)), // ours allows two at a time, too
	)
	if err != nil {
		return err
	}
	<-ctx.Done()
	helper.Stop()
	return nil
}
