package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// live lets the members join and shows the fleet until the user ends the program.
func (f *fleet) live(ctx context.Context) error {
	if err := f.join(ctx); err != nil {
		return err
	}
	if err := f.distribute(ctx); err != nil {
		return err
	}
	if err := f.install(ctx); err != nil {
		return err
	}
	say("\nThe hub's kubeconfig is %s", f.kubeconfig)
	for _, m := range f.members {
		say("The kubeconfig of %s is %s", m.name, m.kubeconfig)
	}
	first := f.members[0].name
	say("\nTry in another terminal:")
	say("  kubectl --kubeconfig %s get memberclusters", f.kubeconfig)
	say(`  kubectl --kubeconfig %s patch membercluster %s --type merge -p '{"spec":{"accepted":false}}'`, f.kubeconfig, first)
	say("  kubectl --kubeconfig %s get placements,worksets,addons,memberaddons,works -A", f.kubeconfig)
	say(`  kubectl --kubeconfig %s patch membercluster %s --type merge -p '{"spec":{"taints":[{"key":"example.com/maintenance","effect":"NoExecute"}]}}'`, f.kubeconfig, first)
	say("  kubectl --kubeconfig %s -n shop delete deployment web", f.members[0].kubeconfig)
	say("  kubectl --kubeconfig %s delete membercluster %s", f.kubeconfig, first)
	say("\nCtrl-C ends it.\n")

	terminal := term.IsTerminal(int(os.Stdout.Fd()))
	lines := 0
	for {
		table, err := f.table(ctx)
		if err == nil {
			if terminal && lines > 0 {
				fmt.Printf("\x1b[%dA\x1b[J", lines)
			}
			fmt.Print(table)
			lines = strings.Count(table, "\n")
		}
		pause := 10 * time.Second
		if terminal {
			pause = time.Second
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// table shows each member in a line.
func (f *fleet) table(ctx context.Context) (string, error) {
	var clusters v1alpha1.MemberClusterList
	if err := f.client.List(ctx, &clusters); err != nil {
		return "", fmt.Errorf("list MemberClusters: %w", err)
	}
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	row(w, "NAME", "ACCEPTED", "JOINED", "HEALTHY", "HEARTBEAT", "VERSION", "CPU", "MEMORY", "WORKS")
	for _, cluster := range clusters.Items {
		status := cluster.Status
		row(w, cluster.Name,
			condition(cluster, v1alpha1.ConditionAccepted), condition(cluster, v1alpha1.ConditionJoined), condition(cluster, v1alpha1.ConditionHealthy),
			f.heartbeat(ctx, status.Namespace), orDash(status.Version.Kubernetes),
			share(status.Resources, corev1.ResourceCPU), share(status.Resources, corev1.ResourceMemory), f.worksOf(ctx, status.Namespace))
	}
	err := w.Flush()
	out.WriteString(f.placed(ctx))
	out.WriteString(f.installed(ctx))
	return out.String(), err
}

func row(w io.Writer, cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) }

func condition(cluster v1alpha1.MemberCluster, kind string) string {
	if condition := meta.FindStatusCondition(cluster.Status.Conditions, kind); condition != nil {
		return string(condition.Status)
	}
	return "-"
}

// heartbeat is how long ago the last one was, by the Lease: the one thing that changes in a quiet fleet.
func (f *fleet) heartbeat(ctx context.Context, namespace string) string {
	var lease coordinationv1.Lease
	err := f.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: membership.LeaseName}, &lease)
	if err != nil || lease.Spec.RenewTime == nil {
		return "-"
	}
	return duration.HumanDuration(time.Since(lease.Spec.RenewTime.Time).Abs()) + " ago"
}

// share is what is available of what may be used.
func share(usage v1alpha1.ResourceUsage, name corev1.ResourceName) string {
	allocatable, ok := usage.Allocatable[name]
	if !ok {
		return "-"
	}
	available := usage.Available[name]
	return fmt.Sprintf("%s of %s", available.String(), allocatable.String())
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
