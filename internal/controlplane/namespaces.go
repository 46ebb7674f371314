package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/namespace/deletion"
)

// promptNamespaces is an environment variable. If it is set, kube-controller-manager empties a namespace as soon as it
// is deleted. Kubernetes' own namespace controller first waits 5 seconds, so that all API servers of a cluster have
// seen the deletion, and then 8 seconds more each time that an object with a finalizer remains. A plane has one API
// server, and its tests delete many namespaces.
const promptNamespaces = "MUSTER_PROMPT_NAMESPACES"

// namespaceDelayAnnotation on a namespace is a duration: how long the controller waits before it empties this
// namespace.
const namespaceDelayAnnotation = "localplane.muster.dev/namespace-delay"

const (
	// The API server rejects objects in a namespace that its cache shows as deleted. The cache lags by milliseconds.
	namespaceDelay = 100 * time.Millisecond
	// The delays before the controller processes a namespace with remaining objects again.
	namespaceRetry, namespaceRetryMax = 50 * time.Millisecond, time.Second
	namespaceWorkers                  = 10
)

// replaceNamespaceController disables the namespace controller in the arguments of kube-controller-manager, and runs
// one without the delays instead. The deletion of the content of a namespace is Kubernetes' own code.
func replaceNamespaceController(ctx context.Context, args []string) ([]string, error) {
	kubeconfig := ""
	for _, arg := range args {
		if path, ok := strings.CutPrefix(arg, "--kubeconfig="); ok {
			kubeconfig = path
		}
	}
	if kubeconfig == "" {
		return nil, errors.New(promptNamespaces + " needs --kubeconfig=PATH")
	}
	if err := configureLogging(args); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	deleter := deletion.NewNamespacedResourcesDeleter(ctx, client.CoreV1().Namespaces(), metadataClient, client.CoreV1(),
		client.Discovery().ServerPreferredNamespacedResources, corev1.FinalizerKubernetes)
	go runNamespaceController(ctx, client, deleter)
	return append(args, "--controllers=-namespace-controller"), nil
}

// configureLogging configures klog as kube-controller-manager does with the same arguments. It is called before the
// controller starts, because klog must not be configured while goroutines use it. The later call of
// kube-controller-manager changes nothing.
func configureLogging(args []string) error {
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	config := logsapi.NewLoggingConfiguration()
	flags := pflag.NewFlagSet(args[0], pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	logsapi.AddFlags(config, flags)
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	return logsapi.ValidateAndApply(config, nil)
}

func runNamespaceController(ctx context.Context, client kubernetes.Interface,
	deleter deletion.NamespacedResourcesDeleterInterface) {
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](namespaceRetry, namespaceRetryMax))
	enqueue := func(object any) {
		if namespace, ok := object.(*corev1.Namespace); ok && namespace.DeletionTimestamp != nil {
			delay, err := time.ParseDuration(namespace.Annotations[namespaceDelayAnnotation])
			if err != nil {
				delay = namespaceDelay
			}
			queue.AddAfter(namespace.Name, delay)
		}
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	if _, err := factory.Core().V1().Namespaces().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
	}); err != nil {
		klog.ErrorS(err, "Failed to watch namespaces")
		os.Exit(1)
	}
	factory.Start(ctx.Done())
	for range namespaceWorkers {
		go func() {
			for {
				name, shutdown := queue.Get()
				if shutdown {
					return
				}
				// The error can also be "some content remains". The deleter reads the namespace itself, and returns nil if it is
				// missing.
				if err := deleter.Delete(ctx, name); err != nil {
					klog.V(2).InfoS("Namespace is not deleted yet", "namespace", name, "err", err)
					queue.AddRateLimited(name)
				} else {
					queue.Forget(name)
				}
				queue.Done(name)
			}
		}()
	}
}
