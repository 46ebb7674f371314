package main

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/muster-sdk/muster/membership/admin"
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
	var works bool
	cmd := &cobra.Command{
		Use:   "register",
		Short: "Give a cluster the join token by which its own agent joins a hub",
		Long: `Give a cluster the join token by which its own agent joins a hub (joinMode Pull). It needs no access to the hub
but by the token. The agent is part of a program of yours, and may be running already.`,
		Example: `  musterctl register --join-file join.yaml --member-context east --wait 2m
  musterctl register --server https://hub.example.com:6443 --token abcdef.0123456789abcdef \
    --discovery-token-ca-cert-hash sha256:... --member-context east`,
		Args: cobra.NoArgs,
	}
	a.memberFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&from.file, "join-file", "", `file that "token create --join-file" wrote; "-" for the standard input`)
	flags.StringVar(&from.discovery.Server, "server", "", "URL of the hub, for --token")
	flags.StringVar(&from.discovery.Token, "token", "", "short join token, id.secret, by which the hub is found and checked")
	flags.StringSliceVar(&from.discovery.CACertHashes, "discovery-token-ca-cert-hash", nil, "pins of the hub's certificate authority, for --token: sha256:...")
	flags.BoolVar(&from.discovery.UnsafeSkipCAVerification, "discovery-token-unsafe-skip-ca-verification", false,
		"do without pins, so that whoever knows the token can pretend to be the hub")
	flags.StringVar(&from.discovery.RegistrationNamespace, "registration-namespace", "", "namespace of the hub's join tokens, for --token (default muster-registration)")
	flags.StringVar(&o.Namespace, "namespace", "muster-system", "namespace of the agent")
	flags.StringVar(&o.Hub, "hub", "", "name of the hub, where the member has several: the one that its agent has for it (default none)")
	flags.BoolVar(&o.Replace, "replace", false, "replace the join token of another hub that had this name, or none")
	flags.BoolVar(&o.Unchecked, "unchecked", false, "do not ask the hub whether it takes the token, as this machine may not reach it")
	flags.BoolVar(&works, "works", true, "install what an agent of Works needs on the member")
	flags.DurationVar(&o.Wait, "wait", 0, "how long to wait until the agent has joined (default not at all)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		member, err := a.member()
		if err != nil {
			return err
		}
		bootstrap, err := a.credential(cmd.Context(), from)
		if err != nil {
			return err
		}
		if works {
			o.Prepare = workcrds.InstallOnMember
		}
		var end func()
		o.Progress, end = a.progress()
		defer end()
		return admin.Register(cmd.Context(), member, bootstrap, o)
	}
	return cmd
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
