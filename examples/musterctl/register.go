package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/deploy"
	"github.com/muster-sdk/muster/membership/admin"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/discovery"
	"github.com/muster-sdk/muster/membership/registration/identity"
	workcrds "github.com/muster-sdk/muster/work/crds"
)

// credentialSource specifies the source of the bootstrap credential.
type credentialSource struct {
	file        string
	caFile      string
	proxyCAFile string
	proxyURL    string
	discovery   discovery.Options
	ownFile     string // kubeconfig of the agent's own credential for the hub
	member      string // the MemberCluster whose spec.identity is the subject of that credential
}

// byIdentity reports whether the bootstrap credential is the one that the hub offers to the agent's own identity.
func (c credentialSource) byIdentity() bool {
	return c.file == "" && c.discovery.Token == "" && c.ownFile != "" && c.member != ""
}

// check returns an error unless exactly one source of the credential is set.
func (c credentialSource) check() error {
	if !c.byIdentity() && (c.file == "") == (c.discovery.Token == "") {
		return usage("specify the join credential: --join-file, or --server and --token, or --method identity with " +
			"--hub-kubeconfig and --cluster-name")
	}
	return nil
}

func (a *app) registerCommand() *cobra.Command {
	o := admin.RegisterOptions{}
	from := credentialSource{}
	f := &agentFlags{}
	var works bool
	cmd := &cobra.Command{
		Use:   "register",
		Short: "Register a cluster that runs its own agent, and deploy the agent",
		Long: `Store the join token of a hub on a cluster, so that the agent of the cluster joins the hub (joinMode Pull).
Register accesses the hub only with the token.

With --image, register also deploys the agent. The image contains examples/agent, or your own program with the same
flags. Without --image, deploy the agent in another way, before or after register.

With --mode hosted, the agent runs outside of its member, in the namespace muster-member-NAME of another cluster. It
reaches the member with the kubeconfig of --member-kubeconfig, which register stores there in a Secret. Register applies
the permissions of the ServiceAccount muster-agent on the member: a kubeconfig of that account is enough.

With --method identity, the agent uses its own credential for the hub, from --hub-kubeconfig. An administrator of the
hub sets the subject of the credential in spec.identity of the MemberCluster. If the MemberCluster exists with this
subject, and --cluster-name is its name, no join token is needed.`,
		Example: `  musterctl register --join-file join.yaml --member-context east --image registry.example.com/agent:v1
  musterctl register --join-file join.yaml --image registry.example.com/agent:v1 --manifests > agent.yaml
  musterctl register --join-file join.yaml --member-context east --wait 2m
  musterctl register --join-file join.yaml --image registry.example.com/agent:v1 --mode hosted --cluster-name east \
    --member-kubeconfig east.kubeconfig
  musterctl register --method identity --hub-kubeconfig agent.kubeconfig --cluster-name east \
    --image registry.example.com/agent:v1 --member-context east
  musterctl register --server https://hub.example.com:6443 --token abcdef.0123456789abcdef \
    --discovery-token-ca-cert-hash sha256:... --member-context east`,
		Args: cobra.NoArgs,
	}
	a.memberFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&from.file, "join-file", "", `file that "token create --join-file" wrote; "-" for the standard input`)
	flags.StringVar(&from.discovery.Server, "server", "",
		"URL of the hub, for --token, or to replace the URL in the join file")
	flags.StringVar(&from.discovery.Token, "token", "",
		"short join token, id.secret, that finds and verifies the hub")
	flags.StringSliceVar(&from.discovery.CACertHashes, "discovery-token-ca-cert-hash", nil,
		"hashes of the hub's certificate authority, for --token: sha256:...")
	flags.BoolVar(&from.discovery.UnsafeSkipCAVerification, "discovery-token-unsafe-skip-ca-verification", false,
		"do not verify the hub with hashes: any server that knows the token can impersonate the hub")
	flags.StringVar(&from.discovery.RegistrationNamespace, "registration-namespace", "",
		"namespace of the join tokens on the hub, for --token (default muster-registration)")
	flags.StringVar(&o.Namespace, "namespace", "muster-system", "namespace of the agent")
	flags.StringVar(&o.Hub, "hub", "",
		"name of the hub in the options of the agent, for an agent of several hubs (default none)")
	flags.BoolVar(&o.Replace, "replace", false,
		"replace the join token of another hub with the same --hub, or of another hub without a name")
	flags.BoolVar(&o.Unchecked, "unchecked", false,
		"do not check the token at the hub, for a hub that only the member can reach")
	flags.BoolVar(&works, "works", true, "install the objects on the member that an agent needs to apply Works")
	flags.StringVar(&from.caFile, "ca-file", "",
		"file with the certificate authority of the hub; replaces the one in the join file, or the hashes for --token")
	flags.StringVar(&from.proxyCAFile, "proxy-ca-file", "",
		"file with the certificate authority of the proxy in --proxy-url")
	flags.BoolVar(&from.discovery.PublishedServer, "force-internal-endpoint-lookup", false,
		"configure the agent with the address in the hub's cluster-info instead of --server; requires --token")
	f.addAgent(cmd)
	flags.DurationVar(&o.Wait, "wait", 0, "maximum time to wait until the agent has joined (default do not wait)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.validate(o.Hub, works); err != nil {
			return err
		}
		from.ownFile, from.member = f.hubKubeconfig, f.clusterName
		if from.proxyURL = f.proxyURL; from.proxyCAFile != "" && f.proxyURL == "" {
			return usage("--proxy-ca-file requires --proxy-url")
		}
		if from.discovery.PublishedServer && from.discovery.Token == "" {
			return usage("--force-internal-endpoint-lookup requires --token")
		}
		if f.hosted() {
			if !a.namesMember() {
				return usage("--mode hosted requires the member: --member-kubeconfig or --member-context")
			}
			if !cmd.Flags().Changed("namespace") {
				o.Namespace = f.hostedNamespace()
			}
		}
		if works {
			o.Prepare = workcrds.InstallOnMember
		}
		return a.register(cmd.Context(), f, from, o, works)
	}
	return cmd
}

func (a *app) register(ctx context.Context, f *agentFlags, from credentialSource, o admin.RegisterOptions,
	works bool) error {
	var objects []*unstructured.Unstructured
	var err error
	if f.image != "" {
		if objects, err = a.objectsOf(f, o.Namespace, works); err != nil {
			return err
		}
	}
	if f.manifests {
		return a.printAgent(ctx, from, o, objects)
	}
	if err := from.check(); err != nil {
		return err
	}
	config, err := a.member()
	if err != nil {
		return err
	}
	bootstrap, err := a.credential(ctx, from)
	if err != nil {
		return err
	}
	home, err := a.memberClient()
	if err != nil {
		return err
	}
	if f.hosted() {
		if o.Hosting, err = a.hosting(f); err != nil {
			return err
		}
		if home, err = newClient(o.Hosting); err != nil {
			return err
		}
		if o.Prepare, err = f.prepareHosted(works); err != nil {
			return err
		}
	}
	if o.HubConfig, err = from.hubConfig(); err != nil {
		return err
	}
	var end func()
	o.Progress, end = a.progress()
	o.DryRun = f.dryRun
	if objects != nil {
		o.Deploy = f.deployAgent(objects, o.Progress)
	}
	err = admin.Register(ctx, config, bootstrap, o)
	end()
	switch {
	case err != nil && objects != nil:
		a.noteRollout(ctx, home, o.Namespace, err)
		return err
	case err != nil || !f.dryRun:
		return err
	}
	results, err := f.apply(ctx, home, objects)
	if err != nil {
		return err
	}
	secret := applied{Kind: "Secret", Namespace: o.Namespace, Name: agent.DefaultBootstrapSecret, Action: actionUpdate}
	key := client.ObjectKey{Namespace: secret.Namespace, Name: secret.Name}
	if err := home.Get(ctx, key, &corev1.Secret{}); apierrors.IsNotFound(err) {
		secret.Action = actionCreate
	} else if err != nil {
		return err
	}
	rows := appliedTable(append(results, secret))
	return rows.write(a.out)
}

// objectsOf returns the objects of an agent for the cluster in which the agent runs.
func (a *app) objectsOf(f *agentFlags, namespace string, works bool) ([]*unstructured.Unstructured, error) {
	program := deploy.Customization{Image: f.image, Namespace: namespace, Arguments: f.arguments()}
	var secrets []*unstructured.Unstructured
	add := func(flag, file, kubeContext, name string) error {
		secret, err := kubeconfigSecret(flag, file, kubeContext, namespace, name)
		secrets = append(secrets, secret)
		return err
	}
	if f.hubKubeconfig != "" {
		if err := add("hub-kubeconfig", f.hubKubeconfig, "", hubSecret); err != nil {
			return nil, err
		}
	}
	build := func() ([]*unstructured.Unstructured, error) { return agentObjects(program, works, f.applyAnything) }
	if f.hosted() {
		file := cmp.Or(a.memberFile, a.hubFile)
		if err := add("member-kubeconfig", file, a.memberContext, memberSecret); err != nil {
			return nil, err
		}
		build = func() ([]*unstructured.Unstructured, error) { return hostedObjects(program, works) }
	}
	objects, err := build()
	if err != nil {
		return nil, err
	}
	return beforeDeployment(objects, secrets...), nil
}

// hosting returns the config of the cluster in which a hosted agent runs.
func (a *app) hosting(f *agentFlags) (*rest.Config, error) {
	if f.hostingFile == "" && f.hostingCtx == "" {
		return a.hub()
	}
	return load("hosting cluster", cmp.Or(f.hostingFile, a.hubFile), f.hostingCtx)
}

// prepareHosted returns a function that applies the objects to a member that a hosted agent requires there.
func (f *agentFlags) prepareHosted(works bool) (func(context.Context, client.Client) error, error) {
	var components []string
	if f.applyAnything {
		components = append(components, "apply-anything")
	}
	objects, err := deploy.Objects("hosted/member", components...)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, member client.Client) error {
		if works {
			if err := workcrds.InstallOnMember(ctx, member); err != nil {
				return err
			}
		}
		_, err := f.apply(ctx, member, objects)
		return err
	}, nil
}

// hubConfig returns a function that sets the proxy in the config of the hub. It returns nil if the environment
// determines the proxy.
func (c credentialSource) hubConfig() (func(*rest.Config), error) {
	proxy, err := c.proxy()
	if err != nil || proxy == nil {
		return nil, err
	}
	return func(config *rest.Config) { config.Proxy = proxy }, nil
}

func (c credentialSource) proxy() (func(*http.Request) (*url.URL, error), error) {
	if c.proxyURL == "" {
		return nil, nil
	}
	address, err := url.Parse(c.proxyURL)
	if err != nil || address.Scheme == "" || address.Host == "" {
		return nil, usage("--proxy-url must be a URL such as http://proxy.example.com:3128, got %q", c.proxyURL)
	}
	return http.ProxyURL(address), nil
}

// printAgent prints the manifests of an agent and, if the flags contain a credential, its Secret.
func (a *app) printAgent(ctx context.Context, from credentialSource, o admin.RegisterOptions,
	objects []*unstructured.Unstructured,
) error {
	if from.file != "" || from.discovery.Token != "" || from.byIdentity() {
		bootstrap, err := a.credential(ctx, from)
		if err != nil {
			return err
		}
		data, err := bootstrap.Marshal()
		if err != nil {
			return err
		}
		secret, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: agent.DefaultBootstrapSecret},
			Data:       map[string][]byte{registration.BootstrapKey: data},
		})
		if err != nil {
			return err
		}
		objects = append(objects, &unstructured.Unstructured{Object: secret})
		a.note("The output contains Secret %s/%s: keep the output secret.", o.Namespace, agent.DefaultBootstrapSecret)
	}
	return printManifests(a.out, objects)
}

// credential reads the join file, or requests the credential of a short token from the hub. It then applies the other
// flags to the credential.
func (a *app) credential(ctx context.Context, from credentialSource) (*registration.Bootstrap, error) {
	var ca, proxyCA []byte
	for _, file := range []struct {
		flag, name string
		content    *[]byte
	}{{"ca-file", from.caFile, &ca}, {"proxy-ca-file", from.proxyCAFile, &proxyCA}} {
		if file.name == "" {
			continue
		}
		var err error
		if *file.content, err = os.ReadFile(file.name); err != nil {
			return nil, usage("--%s: %w", file.flag, err)
		}
		if _, err := discovery.CACertHashes(*file.content); err != nil {
			return nil, usage("--%s: %w", file.flag, err)
		}
	}
	bootstrap, err := a.bootstrap(ctx, from, ca)
	if err != nil {
		return nil, err
	}
	if from.file != "" || from.byIdentity() {
		bootstrap.Server = cmp.Or(from.discovery.Server, bootstrap.Server)
	}
	if ca != nil {
		bootstrap.CA = ca
	}
	if proxyCA != nil { // verifies the proxy, and servers whose connections the proxy terminates
		bootstrap.CA = slices.Concat(bytes.TrimSpace(bootstrap.CA), []byte("\n"), proxyCA)
	}
	return bootstrap, nil
}

func (a *app) bootstrap(ctx context.Context, from credentialSource, ca []byte) (*registration.Bootstrap, error) {
	if from.byIdentity() {
		return from.offered(ctx)
	}
	if err := from.check(); err != nil {
		return nil, err
	}
	if o := from.discovery; o.Token != "" {
		var err error
		if o.Proxy, err = from.proxy(); err != nil {
			return nil, err
		}
		if ca != nil && len(o.CACertHashes) == 0 {
			if o.CACertHashes, err = discovery.CACertHashes(ca); err != nil {
				return nil, usage("--ca-file: %w", err)
			}
		}
		return discover(ctx, o)
	}
	var data []byte
	var err error
	if from.file == "-" {
		data, err = io.ReadAll(io.LimitReader(a.in, 1<<20))
	} else {
		data, err = os.ReadFile(from.file)
	}
	if err != nil {
		return nil, usage("read the join file: %w", err)
	}
	bootstrap, err := registration.ParseBootstrap(data)
	if err != nil {
		return nil, usage("%s is not a complete join file: %w", from.file, err)
	}
	return bootstrap, nil
}

// offered reads the bootstrap credential that the hub offers to the agent's own identity.
func (c credentialSource) offered(ctx context.Context) (bootstrap *registration.Bootstrap, err error) {
	own, err := load("hub", c.ownFile, "")
	if err != nil {
		return nil, err
	}
	if proxy, err := c.proxy(); err != nil {
		return nil, err
	} else if proxy != nil {
		own.Proxy = proxy
	}
	source, err := identity.NewSource(own, c.member, c.discovery.RegistrationNamespace)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, signingTime)
	defer cancel()
	// The hub has not created the offer yet if the MemberCluster is new.
	_ = wait.PollUntilContextCancel(limited, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		found, failed := source.Load(ctx)
		if ctx.Err() == nil || err == nil {
			bootstrap, err = found, failed
		}
		return failed == nil || !apierrors.IsForbidden(failed) && !apierrors.IsNotFound(failed), nil
	})
	return bootstrap, err
}

// signingTime limits how long a hub may take to sign cluster-info with a new token.
const signingTime = 5 * time.Second

// discover finds the hub with a short token, and retries while the hub does not know the token.
func discover(ctx context.Context, o discovery.Options) (found *registration.Bootstrap, err error) {
	limited, cancel := context.WithTimeout(ctx, signingTime)
	defer cancel()
	_ = wait.PollUntilContextCancel(limited, 500*time.Millisecond, true, func(context.Context) (bool, error) {
		found, err = discovery.Discover(ctx, o)
		return !errors.Is(err, discovery.ErrUnknownToken), nil
	})
	return found, err
}
