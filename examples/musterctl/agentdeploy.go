package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/deploy"
	"github.com/muster-sdk/muster/membership/admin"
)

// Values of --mode.
const (
	modeDefault   = "default"
	modeSingleton = "singleton"
	modeHosted    = "hosted"
)

// The Secrets with kubeconfigs for the agent, and their mount paths in its container.
const (
	memberSecret, memberPath = "muster-member-kubeconfig", "/etc/muster/member"
	hubSecret, hubPath       = "muster-hub-kubeconfig", "/etc/muster/hub"
	kubeconfigKey            = "value"
)

// agentFlags are the flags of register that deploy the agent.
type agentFlags struct {
	deployFlags
	clusterName   string
	labels        map[string]string
	applyAnything bool
	keepBootstrap bool
	method        string
	mode          string
	proxyURL      string
	hubKubeconfig string
	hostingFile   string // kubeconfig of the hosting cluster
	hostingCtx    string
}

// agentMethods are the values of --method.
var agentMethods = []string{"token", "csr", "identity"}

func (f *agentFlags) addAgent(cmd *cobra.Command) {
	f.add(cmd, "image of the agent program; if set, register deploys the agent")
	f.addManifests(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.mode, "mode", modeDefault,
		`location of the agent: "default" and "singleton" run one program on the member;
"hosted" runs the agent outside of the member, on the cluster of the hub or that of --hosting-context`)
	flags.StringVar(&f.hostingFile, "hosting-kubeconfig", "",
		"kubeconfig of the cluster where the agent runs, for --mode hosted (default that of the hub)")
	flags.StringVar(&f.hostingCtx, "hosting-context", "", "context in the kubeconfig of the cluster where the agent runs")
	flags.StringVar(&f.clusterName, "cluster-name", "",
		"name that the agent requests for its MemberCluster (default derived from the cluster ID)")
	flags.StringToStringVar(&f.labels, "labels", nil, "labels that the agent requests for its MemberCluster, key=value")
	flags.StringVar(&f.method, "method", "",
		"method by which the agent gets its credential: token, csr or identity (default token)")
	flags.StringVar(&f.hubKubeconfig, "hub-kubeconfig", "",
		"kubeconfig with the agent's own credential for the hub, for --method identity: the credential of the\n"+
			"ServiceAccount, User or Group in spec.identity of its MemberCluster")
	flags.StringVar(&f.proxyURL, "proxy-url", "", "proxy through which the agent reaches the hub, also used by register")
	flags.BoolVar(&f.keepBootstrap, "keep-bootstrap", false,
		"keep the join token on the member after the cluster has joined, so that the agent can register again\n"+
			"while the token is valid (default: the agent removes the token)")
	flags.BoolVar(&f.applyAnything, "apply-anything", false,
		`give the agent the permissions of cluster-admin, so that Works may contain any object
(default: the permissions of ClusterRoles with the label `+deploy.WorksLabel+`: "true")`)
}

// arguments returns the arguments of the agent that the flags set, in a stable order.
func (f *agentFlags) arguments() []string {
	var arguments []string
	for _, argument := range []struct{ flag, value string }{
		{"--name=", f.clusterName}, {"--method=", f.method}, {"--proxy-url=", f.proxyURL},
	} {
		if argument.value != "" {
			arguments = append(arguments, argument.flag+argument.value)
		}
	}
	if f.hubKubeconfig != "" {
		arguments = append(arguments, hubKubeconfigArgument)
	}
	if f.keepBootstrap {
		arguments = append(arguments, "--keep-bootstrap")
	}
	for _, key := range slices.Sorted(maps.Keys(f.labels)) {
		arguments = append(arguments, "--label="+key+"="+f.labels[key])
	}
	return arguments
}

const hubKubeconfigArgument = "--hub-kubeconfig=" + hubPath + "/" + kubeconfigKey

func (f *agentFlags) hosted() bool { return f.mode == modeHosted }

func (f *agentFlags) validate(hub string, works bool) error {
	configured := len(f.labels) > 0 || f.applyAnything || f.mode != modeDefault || f.proxyURL != "" ||
		f.keepBootstrap
	if identity := f.method == "identity" && f.hubKubeconfig != "" && f.clusterName != ""; !identity {
		// Otherwise these flags specify the bootstrap credential, for an agent that is deployed in another way.
		configured = configured || f.clusterName != "" || f.method != "" || f.hubKubeconfig != ""
	}
	switch {
	case !slices.Contains([]string{modeDefault, modeSingleton, modeHosted}, f.mode):
		return usage("--mode must be %s, %s or %s, got %s", modeDefault, modeSingleton, modeHosted, f.mode)
	case f.image == "" && configured:
		return usage("--mode, --cluster-name, --labels, --method, --hub-kubeconfig, --proxy-url, --keep-bootstrap and " +
			"--apply-anything require --image: they configure the agent that register deploys")
	case f.method != "" && !slices.Contains(agentMethods, f.method):
		return usage("--method must be one of %s, got %s", strings.Join(agentMethods, ", "), f.method)
	case (f.method == "identity") != (f.hubKubeconfig != ""):
		return usage("--method identity and --hub-kubeconfig require each other: the file is the credential of the agent")
	case !f.hosted() && (f.hostingFile != "" || f.hostingCtx != ""):
		return usage("--hosting-kubeconfig and --hosting-context require --mode hosted")
	case f.hosted() && f.manifests:
		return usage("--manifests cannot be combined with --mode hosted, whose objects are on two clusters: apply " +
			"the overlays in deploy/agent/overlays/hosted")
	case f.hosted() && f.clusterName == "":
		return usage("--mode hosted requires --cluster-name, which also names the namespace of the agent")
	case f.image != "" && hub != "":
		return usage("--image cannot be combined with --hub: deploy an agent of several hubs with the chart or with " +
			"kustomize")
	case f.applyAnything && !works:
		return usage("--apply-anything requires --works")
	}
	if _, err := (credentialSource{proxyURL: f.proxyURL}).proxy(); err != nil {
		return err
	}
	return f.deployFlags.validate()
}

// hostedNamespace is the default namespace of an agent outside of its member.
func (f *agentFlags) hostedNamespace() string { return "muster-member-" + f.clusterName }

// agentObjects returns the manifests of an agent on its member.
func agentObjects(c deploy.Customization, works, applyAnything bool) ([]*unstructured.Unstructured, error) {
	overlay := string(deploy.Membership)
	if works {
		overlay = string(deploy.Singleton)
	}
	var components []string
	if applyAnything {
		components = append(components, "apply-anything")
	}
	objects, err := deploy.Objects(overlay, components...)
	if err != nil {
		return nil, err
	}
	return customizeAgent(objects, c)
}

// hostedObjects returns the manifests of an agent outside of its member, for the cluster where it runs.
func hostedObjects(c deploy.Customization, works bool) ([]*unstructured.Unstructured, error) {
	objects, err := deploy.Objects("hosted/hosting")
	if err != nil {
		return nil, err
	}
	if !works {
		if err := eachContainer(objects, func(container, _ map[string]any) error {
			args, _, err := unstructured.NestedStringSlice(container, "args")
			if err != nil {
				return err
			}
			args = slices.DeleteFunc(args, func(arg string) bool { return arg == "--works" })
			return unstructured.SetNestedStringSlice(container, args, "args")
		}); err != nil {
			return nil, err
		}
	}
	return customizeAgent(objects, c)
}

// customizeAgent mounts the Secret with the credential for the hub, if an argument names it.
func customizeAgent(objects []*unstructured.Unstructured, c deploy.Customization,
) ([]*unstructured.Unstructured, error) {
	objects, err := deploy.Customize(objects, c)
	if err != nil || !slices.Contains(c.Arguments, hubKubeconfigArgument) {
		return objects, err
	}
	return objects, eachContainer(objects, func(container, pod map[string]any) error {
		mounts, _, err := unstructured.NestedSlice(container, "volumeMounts")
		if err != nil {
			return err
		}
		volumes, _, err := unstructured.NestedSlice(pod, "volumes")
		if err != nil {
			return err
		}
		mounts = append(mounts, map[string]any{"name": "hub", "mountPath": hubPath, "readOnly": true})
		volumes = append(volumes, map[string]any{"name": "hub", "secret": map[string]any{"secretName": hubSecret}})
		return errors.Join(unstructured.SetNestedSlice(container, mounts, "volumeMounts"),
			unstructured.SetNestedSlice(pod, volumes, "volumes"))
	})
}

// eachContainer calls change for each container of the Deployments and for its Pod template spec, and stores both.
func eachContainer(objects []*unstructured.Unstructured, change func(container, pod map[string]any) error) error {
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		path := []string{"spec", "template", "spec"}
		pod, _, err := unstructured.NestedMap(object.Object, path...)
		if err != nil {
			return err
		}
		containers, _, err := unstructured.NestedSlice(pod, "containers")
		if err != nil {
			return err
		}
		for _, container := range containers {
			if container, is := container.(map[string]any); is {
				if err := change(container, pod); err != nil {
					return err
				}
			}
		}
		if err := unstructured.SetNestedSlice(pod, containers, "containers"); err != nil {
			return err
		}
		if err := unstructured.SetNestedMap(object.Object, pod, path...); err != nil {
			return err
		}
	}
	return nil
}

// kubeconfigSecret returns a Secret with one context of a kubeconfig, including the content of the files that it
// references. If file is empty, it uses the default kubeconfig; if the context is empty, the current context.
func kubeconfigSecret(flag, file, kubeContext, namespace, name string) (*unstructured.Unstructured, error) {
	raw, err := clientConfig(file, kubeContext).RawConfig()
	if err != nil {
		return nil, usage("--%s: read the kubeconfig: %w", flag, err)
	}
	if kubeContext != "" {
		raw.CurrentContext = kubeContext
	}
	if err := errors.Join(clientcmdapi.MinifyConfig(&raw), clientcmdapi.FlattenConfig(&raw)); err != nil {
		return nil, usage("--%s: read the kubeconfig: %w", flag, err)
	}
	for _, user := range raw.AuthInfos {
		if user.Exec != nil || user.AuthProvider != nil {
			return nil, usage("--%s: the kubeconfig uses a credential plugin, which the Pod of the agent does not "+
				"contain: use a kubeconfig with a token or a certificate, such as that of a ServiceAccount", flag)
		}
	}
	data, err := clientcmd.Write(raw)
	if err != nil {
		return nil, err
	}
	secret, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string][]byte{kubeconfigKey: data},
	})
	return &unstructured.Unstructured{Object: secret}, err
}

// beforeDeployment inserts objects before the first Deployment.
func beforeDeployment(objects []*unstructured.Unstructured, more ...*unstructured.Unstructured,
) []*unstructured.Unstructured {
	isDeployment := func(object *unstructured.Unstructured) bool { return object.GetKind() == "Deployment" }
	i := slices.IndexFunc(objects, isDeployment)
	return slices.Insert(objects, max(i, 0), more...)
}

// deployAgent returns a function that deploys the objects of an agent and reports its steps to progress.
func (f *agentFlags) deployAgent(objects []*unstructured.Unstructured, progress func(admin.Step),
) func(context.Context, client.Client) error {
	return func(ctx context.Context, member client.Client) error {
		step := admin.Step{Doing: "deploy the agent"}
		progress(step)
		results, err := f.apply(ctx, member, objects)
		if err != nil {
			return err
		}
		step.Detail, step.Done = summary(results), true
		progress(step)
		return nil
	}
}

// noteRollout prints why the Deployment of the agent is not available, if err is a timeout.
func (a *app) noteRollout(ctx context.Context, member client.Client, namespace string, err error) {
	if _, timeout := errors.AsType[*admin.TimeoutError](err); !timeout {
		return
	}
	key := client.ObjectKey{Namespace: namespace, Name: agentName}
	if done, pending, err := rolloutState(ctx, member, key); err == nil && !done {
		a.note("Deployment %s is not available: %s.", key, pending)
	}
}
