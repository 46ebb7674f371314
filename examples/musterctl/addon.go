package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership/admin"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func (a *app) addonCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "addon", Short: "Install an add-on on individual members or remove it"}
	cmd.AddCommand(a.addonEnableCommand(), a.addonDisableCommand())
	return requireSubcommand(cmd)
}

// addonFlags are the flags of enable and disable.
type addonFlags struct {
	members []string
	timeout time.Duration
}

func (f *addonFlags) add(cmd *cobra.Command, wait string) {
	cmd.Args = cobra.ExactArgs(1)
	cmd.Flags().StringSliceVar(&f.members, "members", nil, "members, separated by commas; required")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, wait+" (default do not wait)")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if len(f.members) == 0 {
			return usage("--members is required: name the members, such as --members east,west")
		}
		return nil
	}
}

func (a *app) addonEnableCommand() *cobra.Command {
	f := &addonFlags{}
	var namespace string
	cmd := &cobra.Command{
		Use: "enable ADDON", Short: "Install an add-on on members",
		Long: `Install an add-on on members: create a MemberAddon in the namespace of each member. The hub installs
an Addon of type Placements on the clusters of its Placements without this command.`,
		Example: "  musterctl addon enable collector --members east,west --timeout 2m",
	}
	f.add(cmd, "maximum time to wait until the add-on is available")
	cmd.Flags().StringVar(&namespace, "install-namespace", "", "namespace on the member (default that of the Addon)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		hub, err := a.hubClient()
		if err != nil {
			return err
		}
		addon := &addonv1alpha1.Addon{}
		if err := hub.Get(cmd.Context(), client.ObjectKey{Name: args[0]}, addon); err != nil {
			if apierrors.IsNotFound(err) {
				return fmt.Errorf("addon %s: %w", args[0], errNotFoundHere)
			}
			return err
		}
		enable := func(ctx context.Context, key client.ObjectKey) (string, error) {
			memberAddon := &addonv1alpha1.MemberAddon{
				ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
				Spec:       addonv1alpha1.MemberAddonSpec{InstallNamespace: namespace},
			}
			err := hub.Create(ctx, memberAddon)
			if apierrors.IsAlreadyExists(err) {
				return "already enabled", nil
			}
			return "enabled", err
		}
		return a.eachMemberAddon(cmd.Context(), hub, addon.Name, f, memberAddonSteps{enable, func(
			ctx context.Context, key client.ObjectKey,
		) (waiting string, err error) {
			memberAddon := &addonv1alpha1.MemberAddon{}
			if err := hub.Get(ctx, key, memberAddon); err != nil {
				return "", err
			}
			ready := meta.FindStatusCondition(memberAddon.Status.Conditions, addonv1alpha1.ConditionReady)
			switch {
			case ready == nil || ready.ObservedGeneration < memberAddon.Generation:
				return "the hub has not observed the MemberAddon", nil
			case ready.Status != metav1.ConditionTrue:
				return ready.Message, nil
			}
			return "", nil
		}})
	}
	return cmd
}

func (a *app) addonDisableCommand() *cobra.Command {
	f := &addonFlags{}
	cmd := &cobra.Command{
		Use: "disable ADDON", Short: "Remove an add-on from members",
		Long: `Remove an add-on from members: delete its MemberAddons, and the objects that the add-on has installed. The
command fails for an add-on that a Placement installs, because the hub would install it again.`,
		Example: "  musterctl addon disable collector --members east",
	}
	f.add(cmd, "maximum time to wait until the add-on is removed")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		hub, err := a.hubClient()
		if err != nil {
			return err
		}
		disable := func(ctx context.Context, key client.ObjectKey) (string, error) {
			memberAddon := &addonv1alpha1.MemberAddon{}
			if err := hub.Get(ctx, key, memberAddon); err != nil {
				if apierrors.IsNotFound(err) {
					return "not enabled", nil
				}
				return "", err
			}
			if placement := memberAddon.Annotations[addonv1alpha1.InstalledByAnnotation]; placement != "" {
				if name, clusterScoped := strings.CutPrefix(placement, "/"); clusterScoped {
					placement = "cluster-scoped " + name
				}
				return "", fmt.Errorf("the add-on is installed by Placement %s: exclude the member from the Placement, "+
					"such as with a taint: %w", placement, errManaged)
			}
			precondition := client.Preconditions{UID: &memberAddon.UID, ResourceVersion: &memberAddon.ResourceVersion}
			return "disabled", hub.Delete(ctx, memberAddon, precondition)
		}
		return a.eachMemberAddon(cmd.Context(), hub, args[0], f, memberAddonSteps{disable, func(
			ctx context.Context, key client.ObjectKey,
		) (waiting string, err error) {
			memberAddon := &addonv1alpha1.MemberAddon{}
			err = hub.Get(ctx, key, memberAddon)
			switch {
			case apierrors.IsNotFound(err):
				return "", nil
			case err != nil:
				return "", err
			default:
				return "the MemberAddon exists: " + memberAddon.Status.Message, nil
			}
		}})
	}
	return cmd
}

// memberAddonSteps contains the functions that change a MemberAddon and check whether the change is complete.
type memberAddonSteps struct {
	change  func(context.Context, client.ObjectKey) (done string, err error)
	observe func(context.Context, client.ObjectKey) (waiting string, err error)
}

// eachMemberAddon changes the MemberAddon of each member, and then waits for all of them.
func (a *app) eachMemberAddon(
	ctx context.Context, hub *hubClient, addon string, f *addonFlags, steps memberAddonSteps,
) error {
	var keys []client.ObjectKey
	for _, name := range f.members {
		member := &v1alpha1.MemberCluster{}
		if err := hub.Get(ctx, client.ObjectKey{Name: name}, member); err != nil {
			if apierrors.IsNotFound(err) {
				return fmt.Errorf("member %s: %w", name, admin.ErrNotFound)
			}
			return err
		}
		if member.Status.Namespace == "" {
			return fmt.Errorf("member %s has not joined: it has no namespace on the hub", name)
		}
		keys = append(keys, client.ObjectKey{Namespace: member.Status.Namespace, Name: addon})
	}
	for i, key := range keys {
		done, err := steps.change(ctx, key)
		if err != nil {
			return fmt.Errorf("member %s: %w", f.members[i], hub.explain(err))
		}
		if err := a.line("member %s: addon %s %s", f.members[i], addon, done); err != nil {
			return err
		}
	}
	if f.timeout <= 0 {
		return nil
	}
	report, end := a.progress()
	defer end()
	for i, key := range keys {
		err := await(ctx, report, fmt.Sprintf("wait for add-on %s on %s", addon, f.members[i]), f.timeout,
			func(ctx context.Context) (string, error) { return steps.observe(ctx, key) })
		if err != nil {
			return err
		}
	}
	return nil
}
