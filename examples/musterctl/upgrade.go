package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/deploy"
	"github.com/muster-sdk/muster/membership/admin"
	"github.com/muster-sdk/muster/membership/agent"
	workcrds "github.com/muster-sdk/muster/work/crds"
)

// upgradeFlags are the flags of upgrade.
type upgradeFlags struct {
	deployFlags
	namespace string
	timeout   time.Duration
}

func (f *upgradeFlags) add(cmd *cobra.Command, image string) {
	f.deployFlags.add(cmd, image)
	cmd.Flags().DurationVar(&f.timeout, "timeout", 5*time.Minute,
		"maximum time to wait until the new version is available")
}

func (a *app) upgradeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "upgrade", Short: "Upgrade a program that init or register has deployed"}
	cmd.AddCommand(a.upgradeHubCommand(), a.upgradeAgentCommand())
	return requireSubcommand(cmd)
}

func (a *app) upgradeHubCommand() *cobra.Command {
	f := &upgradeFlags{namespace: agent.DefaultNamespace}
	cmd := &cobra.Command{
		Use:   "hub",
		Short: "Upgrade the hub program that init has deployed",
		Long: `Upgrade the hub program that init has deployed: its image, its permissions and the CustomResourceDefinitions
of this version of musterctl. Components and arguments stay. Upgrade the hub before the agents.`,
		Example: `  musterctl upgrade hub --image registry.example.com/hub:v2`,
		Args:    cobra.NoArgs,
	}
	f.add(cmd, "image of the new hub program")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if f.image == "" {
			return usage("--image is required")
		}
		hub, err := a.hubClient()
		if err != nil {
			return err
		}
		program := deployedProgram{name: hubName, objects: f.hubObjects, prepare: prepareHub}
		err = a.upgrade(cmd.Context(), hub.Client, f, program)
		return hub.explain(err)
	}
	return cmd
}

func (a *app) upgradeAgentCommand() *cobra.Command {
	f := &upgradeFlags{}
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Upgrade the agent that register has deployed on a member",
		Long: `Upgrade the agent that register has deployed on a member: its image, its permissions and the
CustomResourceDefinition of AppliedWork of this version of musterctl. The arguments of the agent stay.`,
		Example: `  musterctl upgrade agent --image registry.example.com/agent:v2 --member-context east`,
		Args:    cobra.NoArgs,
	}
	a.memberFlags(cmd)
	f.add(cmd, "image of the new agent program")
	cmd.Flags().StringVar(&f.namespace, "namespace", agent.DefaultNamespace, "namespace of the agent")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if f.image == "" {
			return usage("--image is required")
		}
		if !a.namesMember() {
			return usage("name the cluster of the agent: --member-kubeconfig or --member-context")
		}
		member, err := a.memberClient()
		if err != nil {
			return err
		}
		program := deployedProgram{name: agentName, objects: f.agentObjects, prepare: prepareAgent}
		return a.upgrade(cmd.Context(), member, f, program)
	}
	return cmd
}

// hubObjects returns the manifests of the hub with its installed components and additional arguments.
func (f *upgradeFlags) hubObjects(ctx context.Context, c client.Client,
	args []string) ([]*unstructured.Unstructured, error) {
	components, err := installedComponents(ctx, c)
	if err != nil {
		return nil, err
	}
	objects, err := deploy.Hub(components...)
	if err != nil {
		return nil, err
	}
	more := additional(args, argumentsOf(objects))
	return deploy.Customize(objects, deploy.Customization{Image: f.image, Arguments: more})
}

// agentObjects returns the manifests of the agent with its additional arguments.
func (f *upgradeFlags) agentObjects(_ context.Context, _ client.Client,
	args []string) ([]*unstructured.Unstructured, error) {
	program := deploy.Customization{Image: f.image, Namespace: f.namespace}
	manifests := func() ([]*unstructured.Unstructured, error) {
		if isHosted(args) {
			return hostedObjects(program, appliesWorks(args))
		}
		return agentObjects(program, appliesWorks(args), false)
	}
	objects, err := manifests()
	if err != nil {
		return nil, err
	}
	program.Arguments = additional(args, argumentsOf(objects))
	return manifests()
}

// isHosted reports whether an agent with these arguments runs outside of its member.
func isHosted(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--member-kubeconfig=") })
}

// appliesWorks reports whether an agent with these arguments applies Works.
func appliesWorks(args []string) bool { return slices.Contains(args, "--works") }

func prepareHub(ctx context.Context, hub client.Client, _ []string, notify func(admin.Step)) error {
	_, err := prepare(ctx, hub, notify)
	return err
}

func prepareAgent(ctx context.Context, member client.Client, args []string, notify func(admin.Step)) error {
	if !appliesWorks(args) || isHosted(args) { // the definition is on the member, which is another cluster
		return nil
	}
	step := admin.Step{Doing: "install the CustomResourceDefinition of AppliedWork"}
	notify(step)
	if err := workcrds.InstallOnMember(ctx, member); err != nil {
		return err
	}
	step.Done = true
	notify(step)
	return nil
}

// deployedProgram is a program that init or register has deployed. Its functions receive the arguments of the current
// Deployment.
type deployedProgram struct {
	name string // of the Deployment
	// objects returns the manifests of the new version.
	objects func(ctx context.Context, c client.Client, args []string) ([]*unstructured.Unstructured, error)
	// prepare installs the CustomResourceDefinitions of the new version.
	prepare func(ctx context.Context, c client.Client, args []string, notify func(admin.Step)) error
}

// upgrade prepares the cluster for the new version of a program, applies its objects and waits for the rollout.
func (a *app) upgrade(ctx context.Context, c client.Client, f *upgradeFlags, p deployedProgram) error {
	key := client.ObjectKey{Namespace: f.namespace, Name: p.name}
	args, err := deployedArguments(ctx, c, key)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("deployment %s does not exist: install it with init or register --image: %w", key, err)
	} else if err != nil {
		return err
	}
	objects, err := p.objects(ctx, c, args)
	if err != nil {
		return err
	}
	if f.dryRun {
		results, err := f.apply(ctx, c, objects)
		if err != nil {
			return err
		}
		rows := appliedTable(results)
		return rows.write(a.out)
	}
	notify, end := a.progress()
	defer end()
	if err := p.prepare(ctx, c, args, notify); err != nil {
		return err
	}
	step := admin.Step{Doing: "deploy " + f.image}
	notify(step)
	results, err := f.apply(ctx, c, objects)
	if err != nil {
		return err
	}
	step.Detail, step.Done = summary(results), true
	notify(step)
	return waitForRollout(ctx, c, key, f.timeout, notify)
}

// installedComponents returns the components of the hub whose objects all exist.
func installedComponents(ctx context.Context, c client.Client) (installed []string, err error) {
	base, err := deploy.Hub()
	if err != nil {
		return nil, err
	}
	for _, component := range deploy.HubComponents() {
		objects, err := deploy.Hub(component)
		if err != nil {
			return nil, err
		}
		exists := true
		for _, object := range objects[len(base):] {
			current := &unstructured.Unstructured{}
			current.SetGroupVersionKind(object.GroupVersionKind())
			err := c.Get(ctx, client.ObjectKeyFromObject(object), current)
			if client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
				return nil, fmt.Errorf("read %s %s of component %s: %w", object.GetKind(), object.GetName(), component, err)
			}
			exists = exists && err == nil
		}
		if exists {
			installed = append(installed, component)
		}
	}
	return installed, nil
}
