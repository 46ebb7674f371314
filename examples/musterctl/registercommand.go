package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/admin"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/discovery"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// registerFlags are the flags of commands that print a register command.
type registerFlags struct {
	file       string // the join file to write; empty: none
	agentImage string
}

// addImage adds the flag --agent-image.
func (f *registerFlags) addImage(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.agentImage, "agent-image", "",
		"image of the agent, which the printed command then deploys (default: it only stores the credential)")
}

// image returns the flag --image of the printed command, or an empty string.
func (f *registerFlags) image() string {
	if f.agentImage == "" {
		return ""
	}
	return " --image " + quoted(f.agentImage)
}

// createToken creates a token and shows the progress.
func (a *app) createToken(ctx context.Context, hub *rest.Config, o admin.TokenOptions) (
	*v1alpha1.JoinToken, *registration.Bootstrap, error,
) {
	var end func()
	o.Progress, end = a.progress()
	defer end()
	return admin.CreateToken(ctx, hub, o)
}

// printRegisterCommand creates a token and prints the command to run on the member. Every reader of the output can use
// the token. It creates a short token if the hub can be found with it or the user requested it. For any other token,
// the command contains or names a join file.
func (a *app) printRegisterCommand(ctx context.Context, hub *rest.Config, o admin.TokenOptions,
	f registerFlags) error {
	asked := o.Spec.Type == v1alpha1.JoinTokenBootstrapToken || strings.HasPrefix(o.Name,
		bootstrapapi.BootstrapTokenSecretPrefix)
	published, why, err := a.published(ctx)
	if err != nil {
		return err
	}
	if asked || published != nil && o.Name == "" {
		o.Spec.Type = v1alpha1.JoinTokenBootstrapToken
	}
	_, bootstrap, err := a.createToken(ctx, hub, o)
	if _, never := errors.AsType[*membership.InvalidError](err); never && !asked && o.Spec.Type != "" {
		why, o.Spec.Type = "the hub does not support bootstrap tokens", ""
		_, bootstrap, err = a.createToken(ctx, hub, o)
	}
	if err != nil {
		return err
	}
	if published == nil || o.Spec.Type != v1alpha1.JoinTokenBootstrapToken {
		why = cmp.Or(why, "the name of the token does not begin with "+bootstrapapi.BootstrapTokenSecretPrefix)
	}
	return a.printCommandFor(ctx, bootstrap, why == "", why, f)
}

// printCommandFor prints the command that registers a cluster with a credential. If the token is short and clusters can
// find the hub with it, the command is short. Otherwise the command contains or names a join file. Why is the reason
// for the join file, if it is known.
func (a *app) printCommandFor(ctx context.Context, bootstrap *registration.Bootstrap, short bool, why string,
	f registerFlags) error {
	data, err := bootstrap.Marshal()
	if err != nil {
		return err
	}
	if f.file != "" {
		if err := writeSecretFile(f.file, data); err != nil {
			return err
		}
	}
	if short {
		var pins []string
		if pins, why = a.pins(ctx, bootstrap); why == "" {
			return a.line("%s%s", strings.Join(a.discovering(bootstrap, pins), " "), f.image())
		}
	}
	why = cmp.Or(why, "the token is not a bootstrap token")
	a.note("Clusters cannot find the hub with a short token: %s. The command uses a join file instead.", why)
	if f.file != "" {
		return a.line("%s register --join-file %s%s", a.program, quoted(f.file), f.image())
	}
	return a.line("%s register --join-file -%s <<'JOIN'\n%sJOIN", a.program, f.image(), data)
}

// published returns the publication of the hub, or the reason why clusters cannot find the hub with it.
func (a *app) published(ctx context.Context) (there *discovery.Publication, why string, err error) {
	hub, err := a.hubClient()
	if err != nil {
		return nil, "", err
	}
	there, err = discovery.Published(ctx, hub)
	switch {
	case errors.Is(err, discovery.ErrNotAHub), apierrors.IsForbidden(err):
		return nil, err.Error(), nil
	case err != nil:
		return nil, "", hub.explain(err)
	case there == nil:
		return nil, fmt.Sprintf("the hub is not published: run %s init --publish-cluster-info", a.program), nil
	default:
		return there, "", nil
	}
}

// pins waits until clusters can find the hub with a new token. It returns the pins of the hub's CA, or the reason why
// clusters cannot find the hub.
func (a *app) pins(ctx context.Context, bootstrap *registration.Bootstrap) (pins []string, why string) {
	known, err := discovery.CACertHashes(bootstrap.CA)
	if err != nil {
		return nil, err.Error()
	}
	id, _, _ := strings.Cut(bootstrap.Token, ".")
	why = "ConfigMap cluster-info of the hub is not signed: check that the bootstrap signer runs"
	_ = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*signingTime, true,
		func(ctx context.Context) (bool, error) {
			there, unknown, err := a.published(ctx)
			switch {
			case err != nil:
				why = err.Error()
			case there == nil:
				why = unknown
			case there.Signed(id):
				why, pins = "", slices.DeleteFunc(slices.Clone(known), func(pin string) bool {
					return !slices.Contains(there.CACertHashes, pin)
				})
				return true, nil
			}
			return false, nil
		})
	if why == "" && len(pins) == 0 {
		why = "ConfigMap cluster-info of the hub contains another certificate authority"
	}
	return pins, why
}

// discovering returns the register command that finds a hub by discovery.
func (a *app) discovering(bootstrap *registration.Bootstrap, pins []string) []string {
	words := []string{a.program, "register", "--server", bootstrap.Server, "--token", bootstrap.Token}
	for _, pin := range pins {
		words = append(words, "--discovery-token-ca-cert-hash", pin)
	}
	if bootstrap.Namespace != membership.RegistrationNamespace {
		words = append(words, "--registration-namespace", bootstrap.Namespace)
	}
	return words
}

// quoted returns a word quoted for a shell.
func quoted(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./:@_-") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
