package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/membership/admin"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func (a *app) explainCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "explain", Short: "Explain scheduling decisions"}
	cmd.AddCommand(a.explainPlacementCommand())
	return requireSubcommand(cmd)
}

func (a *app) explainPlacementCommand() *cobra.Command {
	var namespace, file string
	var local, clusterScope bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "placement [NAME]",
		Short: "Explain which clusters a Placement selects, and why other clusters are rejected",
		Long: `Explain which clusters a Placement selects, and why other clusters are rejected.

The hub explains its decision in status.explanation of the Placement, with its own plugins and profile. To request the
explanation, the command temporarily sets the annotation placement.muster.dev/explain. With --cluster-scope, the hub
explains a ClusterPlacement.

With --local or --file, or if the user may not patch the Placement, musterctl computes the decision with the plugins of
muster, and changes nothing. The Placement of --file does not have to exist on the hub.`,
		Example: `  musterctl explain placement web -n shop
  musterctl explain placement --file web.yaml`,
		Args: cobra.MaximumNArgs(1),
	}
	format := outputFlag(cmd)
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "default", "namespace of the Placement")
	cmd.Flags().BoolVar(&clusterScope, "cluster-scope", false, "explain a ClusterPlacement")
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with a Placement, which does not have to exist on the hub")
	cmd.Flags().BoolVar(&local, "local", false, "compute the decision with the plugins of musterctl, and change nothing")
	cmd.Flags().DurationVar(&timeout, "timeout", 20*time.Second, "maximum time to wait for the explanation of the hub")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if (len(args) == 0) == (file == "") {
			return usage("name a Placement, or specify a file with --file")
		}
		hub, err := a.hubClient()
		if err != nil {
			return err
		}
		p := &v1alpha1.Placement{}
		if file != "" {
			data, err := os.ReadFile(file)
			if err != nil {
				return usage("read the Placement: %w", err)
			}
			if err := yaml.UnmarshalStrict(data, p); err != nil {
				return usage("read the Placement in %s: %w", file, err)
			}
			switch {
			case p.Kind == "ClusterPlacement":
				p.Namespace = ""
			case p.Namespace == "":
				p.Namespace = namespace
			}
		} else {
			p.Namespace, p.Name = namespace, args[0]
			if clusterScope {
				p.Namespace = ""
			}
			if err := hub.Get(cmd.Context(), client.ObjectKeyFromObject(p), placementObject(p)); err != nil {
				return hub.explain(err)
			}
		}
		if file == "" && !local {
			explanation, err := explainOnHub(cmd.Context(), hub, p, timeout)
			switch {
			case err == nil && !format.isTable():
				return format.print(a.out, explanation, table{})
			case err == nil:
				return a.printExplanation(explanation)
			case !apierrors.IsForbidden(err):
				return err
			}
			a.note("The user may not request the explanation of the hub: %v. Musterctl computes the decision with its own "+
				"plugins instead.", err)
		}
		options := placement.Options{}
		grants, err := loadGrants(cmd.Context(), hub.Client)
		if err != nil {
			return err
		}
		if grants != nil {
			options.Tenancy = grants
		}
		diagnosis, err := placement.Explain(cmd.Context(), hub, options, p)
		if err != nil {
			return err
		}
		if format.format != outputTable {
			return format.print(a.out, diagnosis, table{})
		}
		if err := a.line("%s", strings.TrimRight(diagnosis.String(), "\n")); err != nil {
			return err
		}
		return diagnosis.Table(a.out)
	}
	return cmd
}

// placementObject returns the ClusterPlacement if a Placement has no namespace. Both kinds have the same fields.
func placementObject(p *v1alpha1.Placement) client.Object {
	if p.Namespace == "" {
		return (*v1alpha1.ClusterPlacement)(p)
	}
	return p
}

// explainOnHub requests an explanation from the hub with an annotation, and waits for it. It always removes the
// annotation at the end.
func explainOnHub(ctx context.Context, hub *hubClient, p *v1alpha1.Placement, timeout time.Duration) (
	*v1alpha1.Explanation, error,
) {
	request := string(uuid.NewUUID())
	key := client.ObjectKeyFromObject(p)
	annotate := func(ctx context.Context, value any) error {
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{v1alpha1.ExplainAnnotation: value}},
		})
		if err != nil {
			return err
		}
		object := &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		err = hub.Patch(ctx, placementObject(object), client.RawPatch(types.MergePatchType, patch),
			client.FieldOwner(fieldOwner))
		if err != nil {
			return fmt.Errorf("annotate Placement %s: %w", key, err)
		}
		return nil
	}
	if err := annotate(ctx, request); err != nil {
		return nil, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		_ = annotate(ctx, nil) // An annotation that remains costs the hub nothing.
	}()
	doing := fmt.Sprintf("wait until the hub has explained Placement %s", key)
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		if err := hub.Client.Get(ctx, key, placementObject(p)); err != nil {
			return false, err
		}
		return p.Status.Explanation != nil && p.Status.Explanation.Request == request, nil
	})
	switch {
	case err == nil:
		return p.Status.Explanation, nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		reason := "the hub does not run, or its version does not support explanations: try --local"
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionScheduled); c != nil {
			reason = fmt.Sprintf("condition Scheduled is %s: %s", c.Status, c.Message)
		}
		return nil, &admin.TimeoutError{Doing: doing, After: timeout, Reason: reason}
	default:
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
}

func (a *app) printExplanation(is *v1alpha1.Explanation) error {
	if err := a.line("%s", is.Message); err != nil {
		return err
	}
	rows := table{header: []string{"CLUSTER", "RESULT", "SCORE", "WHY"}}
	for _, cluster := range is.Clusters {
		why := cluster.Reason
		if cluster.Plugin != "" {
			why = cluster.Plugin + ": " + cluster.Reason
		}
		rows.add(cluster.Name, cluster.Result, cluster.Score, why)
	}
	if err := rows.write(a.out); err != nil || is.Omitted == 0 {
		return err
	}
	return a.line("%d more clusters are not listed.", is.Omitted)
}
