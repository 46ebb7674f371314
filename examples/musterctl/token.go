package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/admin"
	"github.com/muster-sdk/muster/membership/registration/jointoken"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func (a *app) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "Manage join tokens, with which clusters request to join"}
	cmd.AddCommand(a.tokenCreateCommand(), a.tokenListCommand(), a.tokenValuesCommand(), a.tokenDeleteCommand())
	return requireSubcommand(cmd)
}

// allowedLabels returns the labels of the flag --allow-label, with the values of each key in the order of the flags. A
// key without a value allows every value.
func allowedLabels(flags []string) (labels []v1alpha1.AllowedLabel) {
	every := map[string]bool{}
	for _, flag := range flags {
		key, value, hasValue := strings.Cut(flag, "=")
		i := slices.IndexFunc(labels, func(l v1alpha1.AllowedLabel) bool { return l.Key == key })
		if i < 0 {
			i, labels = len(labels), append(labels, v1alpha1.AllowedLabel{Key: key})
		}
		every[key] = every[key] || !hasValue
		if every[key] {
			labels[i].Values = nil
		} else {
			labels[i].Values = append(labels[i].Values, value)
		}
	}
	return labels
}

func (a *app) tokenCreateCommand() *cobra.Command {
	o := admin.TokenOptions{}
	var ttl, credentialTTL time.Duration
	var maxUses int32
	var printed registerFlags
	var allowed []string
	var short, printCommand bool
	cmd := &cobra.Command{
		Use:   "create [NAME]",
		Short: "Create a join token",
		Long: `Create a join token. With --join-file, write a file with which a cluster can request to join. The file is a
secret. An administrator must accept each request, unless --auto-accept is set.`,
		Example: `  musterctl token create --ttl 24h --max-uses 1 --join-file join.yaml
  musterctl token create --print-register-command
  musterctl token create edge --auto-accept --label region=eu --join-file - | musterctl register --join-file - --member-context east`,
		Args: cobra.MaximumNArgs(1),
	}
	flags, format := cmd.Flags(), objectOutputFlag(cmd)
	namespaceFlag(cmd, &o.Namespace)
	flags.DurationVar(&ttl, "ttl", 24*time.Hour, "lifetime of the token; 0 or a negative value means no limit")
	flags.DurationVar(&credentialTTL, "credential-ttl", 0,
		"lifetime of the credential in the token's Secret, which the hub renews (default 24h)")
	flags.Int32Var(&maxUses, "max-uses", 0, "maximum number of clusters that can join with the token; 0 means no limit")
	flags.BoolVar(&o.Spec.AutoAccept, "auto-accept", false, "accept clusters that use this token automatically")
	flags.StringVar(&o.Spec.ClusterID, "cluster-id", "", "accept only the cluster with this ID")
	flags.StringToStringVar(&o.Spec.Labels, "label", nil, "labels of the members that join with the token, key=value")
	flags.StringArrayVar(&allowed, "allow-label", nil,
		"label that a cluster may request: key=value, or key for any value; can be repeated")
	flags.StringVar(&printed.file, "join-file", "",
		`file to which the credential for clusters is written; "-" writes only the credential to standard output`)
	flags.DurationVar(&o.Timeout, "timeout", time.Minute, "maximum time to wait until the hub has created the credential")
	flags.BoolVar(&short, "short", false, "create a short token, id.secret, that can be typed; requires a hub with "+
		"bootstrap tokens; NAME is bootstrap-token-<id>")
	flags.BoolVar(&printCommand, "print-register-command", false,
		`print the command that registers a cluster; the command contains a secret: a short token if the hub is
published (see init --publish-cluster-info) and supports bootstrap tokens, otherwise a join file`)
	printed.addImage(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if short {
			o.Spec.Type = v1alpha1.JoinTokenBootstrapToken
		}
		if ttl > 0 && ttl < time.Second {
			return usage("--ttl must be at least 1s, or 0 for no limit")
		}
		if credentialTTL != 0 && credentialTTL < 10*time.Minute {
			return usage("--credential-ttl must be at least 10m, which is the minimum of the API server")
		}
		o.Spec.CredentialTTLSeconds = int64(credentialTTL / time.Second)
		if maxUses < 0 {
			return usage("--max-uses must be 1 or more, or 0 for no limit")
		}
		if printed.agentImage != "" && !printCommand {
			return usage("--agent-image requires --print-register-command")
		}
		if printCommand && printed.file == "-" {
			return usage("--join-file - and --print-register-command both write to standard output")
		}
		if len(args) > 0 {
			o.Name = args[0]
		}
		if ttl > 0 {
			o.Spec.TTLSeconds = new(int64(ttl / time.Second))
		}
		if maxUses > 0 {
			o.Spec.MaxUses = &maxUses
		}
		o.Spec.AllowedLabels = allowedLabels(allowed)
		hub, err := a.hub()
		if err != nil {
			return err
		}
		if printCommand {
			return a.printRegisterCommand(cmd.Context(), hub, o, printed)
		}
		token, bootstrap, err := a.createToken(cmd.Context(), hub, o)
		if err != nil {
			return err
		}
		if file := printed.file; file != "" {
			data, err := bootstrap.Marshal()
			if err != nil {
				return err
			}
			if file == "-" {
				_, err := a.out.Write(data)
				return err
			}
			if err := writeSecretFile(file, data); err != nil {
				return err
			}
			a.note("%s is a secret, and is valid until %s. Register a cluster with it: %s register --join-file %s "+
				"--member-context ...",
				file, bootstrap.ExpirationTime.UTC().Format(time.RFC3339), a.program, file)
		}
		return format.print(a.out, asObject(token), tokensTable(time.Now(), *token))
	}
	return cmd
}

// writeSecretFile writes a file that only its owner may read, even if the file existed with another mode.
func writeSecretFile(file string, data []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return usage("write the join file: %w", err)
	}
	for _, step := range []func() error{
		func() error { return f.Chmod(0o600) },
		func() error { return f.Truncate(0) },
		func() error { _, err := f.Write(data); return err },
	} {
		if err := step(); err != nil {
			_ = f.Close()
			return err
		}
	}
	return f.Close()
}

func (a *app) tokenListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List join tokens", Args: cobra.NoArgs}
	var namespace string
	format := objectOutputFlag(cmd)
	namespaceFlag(cmd, &namespace)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		hub, err := a.hubClient()
		if err != nil {
			return err
		}
		list := &v1alpha1.JoinTokenList{}
		if err := hub.List(cmd.Context(), list, client.InNamespace(namespace)); err != nil {
			return err
		}
		return a.printList(format, list, tokensTable(time.Now(), list.Items...))
	}
	return cmd
}

// getTokensCommand returns the command that lists tokens as a subcommand of get.
func (a *app) getTokensCommand() *cobra.Command {
	cmd := a.tokenListCommand()
	cmd.Use, cmd.Aliases = "tokens", nil
	return cmd
}

func (a *app) getTokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "token NAME",
		Short:   "Print the command that registers a cluster with a join token; the command contains a secret",
		Example: `  musterctl get token edge`,
		Args:    cobra.ExactArgs(1), ValidArgsFunction: a.completeTokens,
	}
	var namespace string
	namespaceFlag(cmd, &namespace)
	printed := registerFlags{}
	printed.addImage(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		hub, err := a.hubClient()
		if err != nil {
			return err
		}
		token := &v1alpha1.JoinToken{}
		if err := hub.Get(cmd.Context(), client.ObjectKey{Namespace: namespace, Name: args[0]}, token); err != nil {
			return hub.explain(err)
		}
		bootstrap, err := jointoken.Read(cmd.Context(), hub, token)
		switch {
		case errors.Is(err, jointoken.ErrEnded):
			return fmt.Errorf("%w: %w", admin.ErrExpired, err)
		case err != nil:
			return err
		}
		return a.printCommandFor(cmd.Context(), bootstrap, token.Spec.Type == v1alpha1.JoinTokenBootstrapToken, "", printed)
	}
	return cmd
}

func (a *app) tokenValuesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "values NAME",
		Short: "Print the Helm values of an agent that registers with a join token; they contain a secret",
		Example: `  musterctl token values edge > values.yaml
  helm install muster-agent deploy/charts/muster-agent --namespace muster-system --create-namespace --values values.yaml`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeTokens,
	}
	var namespace string
	namespaceFlag(cmd, &namespace)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		hub, err := a.hubClient()
		if err != nil {
			return err
		}
		token := &v1alpha1.JoinToken{}
		if err := hub.Get(cmd.Context(), client.ObjectKey{Namespace: namespace, Name: args[0]}, token); err != nil {
			return hub.explain(err)
		}
		values, err := jointoken.ReadValues(cmd.Context(), hub, token)
		if errors.Is(err, jointoken.ErrEnded) {
			return fmt.Errorf("%w: %w", admin.ErrExpired, err)
		}
		if err == nil {
			_, err = a.out.Write(values)
		}
		return err
	}
	return cmd
}

func (a *app) tokenDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete NAME...", Aliases: []string{"rm"},
		Short: "Delete join tokens and invalidate all copies of their credentials",
		Args:  cobra.MinimumNArgs(1), ValidArgsFunction: a.completeTokens,
	}
	var namespace string
	namespaceFlag(cmd, &namespace)
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		hub, err := a.hubClient()
		if err != nil {
			return err
		}
		for _, name := range names {
			err := hub.Delete(cmd.Context(), &v1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
				Name: name}})
			switch {
			case apierrors.IsNotFound(err):
				a.note("There is no token %s.", name)
			case err != nil:
				return err
			default:
				a.note("Token %s was deleted. All copies of its credential expire within seconds. "+
					"Members that have joined stay.", name)
			}
		}
		return nil
	}
	return cmd
}

func tokensTable(now time.Time, tokens ...v1alpha1.JoinToken) table {
	rows := table{header: []string{"NAME", "READY", "USES", "AUTO-ACCEPT", "ENDS", "AGE", "WHY"}}
	for _, token := range tokens {
		uses := strconv.Itoa(int(token.Status.Uses))
		if token.Spec.MaxUses != nil {
			uses += "/" + strconv.Itoa(int(*token.Spec.MaxUses))
		}
		state, why := "Unknown", "the hub has not observed the JoinToken"
		if ready := meta.FindStatusCondition(token.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			state, why = string(ready.Status), ready.Message
			if ready.Status == metav1.ConditionTrue {
				why = ""
			}
		}
		rows.add(token.Name, state, uses, strconv.FormatBool(token.Spec.AutoAccept), until(token.Status.ExpirationTime, now),
			age(token.CreationTimestamp, now), why)
	}
	return rows
}
