package main

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/deploy"
	"github.com/muster-sdk/muster/membership/admin"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/discovery"
	workcrds "github.com/muster-sdk/muster/work/crds"
)

// credentialSource is where the bootstrap credential comes from.
type credentialSource struct {
	file      string
	discovery discovery.Options
}

func (a *app) registerCommand() *cobra.Command {
	o := admin.RegisterOptions{}
	from := credentialSource{}
	f := &agentFlags{}
	var works bool
	cmd := &cobra.Command{
		Use:   "register",
		Short: "Give a cluster the join token by which its own agent joins a hub, and deploy the agent",
		Long: `Give a cluster the join token by which its own agent joins a hub (joinMode Pull). Register needs no access to
the hub except with the token.

With --image, register also deploys the agent. The image contains examples/agent, or a program of yours that takes the
same flags. Without --image, deploy the agent in another way, before or after register.`,
		Example: `  musterctl register --join-file join.yaml --member-context east --image registry.example.com/agent:v1
  musterctl register --join-file join.yaml --image registry.example.com/agent:v1 --manifests > agent.yaml
  musterctl register --join-file join.yaml --member-context east --wait 2m
  musterctl register --server https://hub.example.com:6443 --token abcdef.0123456789abcdef \
    --discovery-token-ca-cert-hash sha256:... --member-context east`,
		Args: cobra.NoArgs,
	}
	a.memberFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&from.file, "join-file", "", `file that "token create --join-file" wrote; "-" for the standard input`)
	flags.StringVar(&from.discovery.Server, "server", "", "URL of the hub, for --token")
	flags.StringVar(&from.discovery.Token, "token", "",
		"short join token, id.secret, by which the hub is found and checked")
	flags.StringSliceVar(&from.discovery.CACertHashes, "discovery-token-ca-cert-hash", nil,
		"pins of the hub's certificate authority, for --token: sha256:...")
	flags.BoolVar(&from.discovery.UnsafeSkipCAVerification, "discovery-token-unsafe-skip-ca-verification", false,
		"use no pins: everyone who knows the token can impersonate the hub")
	flags.StringVar(&from.discovery.RegistrationNamespace, "registration-namespace", "",
		"namespace of the hub's join tokens, for --token (default muster-registration)")
	flags.StringVar(&o.Namespace, "namespace", "muster-system", "namespace of the agent")
	flags.StringVar(&o.Hub, "hub", "", "name of the hub in the agent, if the agent has several hubs (default none)")
	flags.BoolVar(&o.Replace, "replace", false, "replace the join token of another hub that had this name, or none")
	flags.BoolVar(&o.Unchecked, "unchecked", false,
		"do not check the token at the hub, for a hub that this machine does not reach")
	flags.BoolVar(&works, "works", true, "install what an agent of Works needs on the member")
	f.add(cmd, "image of the agent program, which register then deploys")
	f.addManifests(cmd)
	flags.StringVar(&f.clusterName, "cluster-name", "",
		"name that the agent requests for its MemberCluster (default derived from the cluster ID)")
	flags.StringToStringVar(&f.labels, "labels", nil, "labels that the agent requests for its MemberCluster, key=value")
	flags.StringVar(&f.method, "method", "", "how the agent gets its credential: token, csr or identity (default token)")
	flags.BoolVar(&f.applyAnything, "apply-anything", false,
		`make the agent cluster-admin, so that Works may contain anything (default: what ClusterRoles with the label
`+deploy.WorksLabel+`: "true" allow)`)
	flags.DurationVar(&o.Wait, "wait", 0, "how long to wait until the agent has joined (default not at all)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.validate(o.Hub, works); err != nil {
			return err
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
		program := deploy.Customization{Image: f.image, Namespace: o.Namespace, Arguments: f.arguments()}
		if objects, err = agentObjects(program, works, f.applyAnything); err != nil {
			return err
		}
	}
	if f.manifests {
		return a.printAgent(ctx, from, o, objects)
	}
	config, err := a.member()
	if err != nil {
		return err
	}
	bootstrap, err := a.credential(ctx, from)
	if err != nil {
		return err
	}
	member, err := a.memberClient()
	if err != nil {
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
		a.noteRollout(ctx, member, o.Namespace, err)
		return err
	case err != nil || !f.dryRun:
		return err
	}
	results, err := f.apply(ctx, member, objects)
	if err != nil {
		return err
	}
	secret := applied{Kind: "Secret", Namespace: o.Namespace, Name: agent.DefaultBootstrapSecret, Action: actionUpdate}
	key := client.ObjectKey{Namespace: secret.Namespace, Name: secret.Name}
	if err := member.Get(ctx, key, &corev1.Secret{}); apierrors.IsNotFound(err) {
		secret.Action = actionCreate
	} else if err != nil {
		return err
	}
	rows := appliedTable(append(results, secret))
	return rows.write(a.out)
}

// printAgent prints the manifests of an agent and, if the flags contain a credential, its Secret.
func (a *app) printAgent(ctx context.Context, from credentialSource, o admin.RegisterOptions,
	objects []*unstructured.Unstructured,
) error {
	if from.file != "" || from.discovery.Token != "" {
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

// credential reads the file, or asks the hub what a short token stands for.
func (a *app) credential(ctx context.Context, from credentialSource) (*registration.Bootstrap, error) {
	switch {
	case (from.file == "") == (from.discovery.Token == ""):
		return nil, usage("say what to join with: --join-file, or --server and --token")
	case from.discovery.Token != "":
		return discover(ctx, from.discovery)
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
		return nil, usage("%s is no join file, or not all of one: %w", from.file, err)
	}
	return bootstrap, nil
}

// signingTime is how long a hub may take to sign with a token that was just made.
const signingTime = 5 * time.Second

// discover finds the hub.
func discover(ctx context.Context, o discovery.Options) (found *registration.Bootstrap, err error) {
	limited, cancel := context.WithTimeout(ctx, signingTime)
	defer cancel()
	_ = wait.PollUntilContextCancel(limited, 500*time.Millisecond, true, func(context.Context) (bool, error) {
		found, err = discovery.Discover(ctx, o)
		return !errors.Is(err, discovery.ErrUnknownToken), nil
	})
	return found, err
}
