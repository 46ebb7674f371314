package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// live joins the members and shows the fleet until the user ends the program.
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
	kubeconfig, remove, err := f.writeKubeconfig()
	if err != nil {
		return err
	}
	defer remove()
	export := "export KUBECONFIG=" + kubeconfig
	screen := int(os.Stdout.Fd())
	if !term.IsTerminal(screen) {
		say("%s", export)
		return f.report(ctx)
	}
	fmt.Print("\x1b[?25l\x1b[2J")         // hide the cursor, and clear the screen
	defer fmt.Print("\x1b[?25h\r\n")      // show it again below the last frame
	colors := os.Getenv("NO_COLOR") == "" // see no-color.org
	for {
		if v, err := f.view(ctx); err == nil {
			v.export = export
			width, height, err := term.GetSize(screen)
			if err != nil {
				width, height = 80, 24
			}
			fmt.Print(frame(v.lines(width, height, colors)))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// report prints the view at intervals, for an output that is not a terminal.
func (f *fleet) report(ctx context.Context) error {
	for {
		if v, err := f.view(ctx); err == nil {
			say("\n%s", strings.Join(slices.Concat(v.table, v.summary), "\n"))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(10 * time.Second):
		}
	}
}

// view reads the state that the screen shows.
func (f *fleet) view(ctx context.Context) (v view, err error) {
	table, err := f.table(ctx)
	if err != nil {
		return v, err
	}
	v.table = strings.Split(strings.TrimRight(table, "\n"), "\n")
	for _, line := range []string{f.placed(ctx), f.installed(ctx)} {
		if line != "" {
			v.summary = append(v.summary, strings.TrimRight(line, "\n"))
		}
	}
	first := f.members[0].name
	v.hints = []string{
		"Try in another terminal, after the export. Ctrl-C ends the program.",
		"  kubectl get memberclusters,placements,worksets,addons,works -A",
		"  kubectl --context " + first + " -n shop delete deployment web",
		"  kubectl patch mc " + first + ` --type merge -p '{"spec":{"accepted":false}}'`,
		"  kubectl delete membercluster " + first,
	}
	v.events, err = f.events(ctx)
	return v, err
}

// events returns a line for each Event of muster on the hub, oldest first.
func (f *fleet) events(ctx context.Context) (lines []string, err error) {
	var list eventsv1.EventList
	if err := f.client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list Events: %w", err)
	}
	at := func(e eventsv1.Event) time.Time {
		if e.Series != nil {
			return e.Series.LastObservedTime.Time
		}
		return e.EventTime.Time
	}
	slices.SortStableFunc(list.Items, func(a, b eventsv1.Event) int { return at(a).Compare(at(b)) })
	for _, e := range list.Items {
		if group, _, _ := strings.Cut(e.Regarding.APIVersion, "/"); strings.HasSuffix(group, ".muster.dev") {
			lines = append(lines, fmt.Sprintf("%s  %s %s/%s: %s", at(e).Format(time.TimeOnly), e.Type,
				strings.ToLower(e.Regarding.Kind), e.Regarding.Name, strings.Join(strings.Fields(e.Note), " ")))
		}
	}
	return lines, nil
}

// writeKubeconfig writes one kubeconfig with a context for the hub and for each member.
func (f *fleet) writeKubeconfig() (path string, remove func(), err error) {
	all := clientcmdapi.NewConfig()
	all.CurrentContext = "hub"
	files := map[string]string{"hub": f.kubeconfig}
	for _, m := range f.members {
		files[m.name] = m.kubeconfig
	}
	for name, file := range files {
		one, err := clientcmd.LoadFromFile(file)
		if err != nil {
			return "", nil, fmt.Errorf("read the kubeconfig of %s: %w", name, err)
		}
		context := one.Contexts[one.CurrentContext]
		if context == nil {
			return "", nil, fmt.Errorf("the kubeconfig of %s has no current context", name)
		}
		all.Clusters[name], all.AuthInfos[name] = one.Clusters[context.Cluster], one.AuthInfos[context.AuthInfo]
		all.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	folder, err := os.MkdirTemp("", "muster-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(folder) }
	path = filepath.Join(folder, "kubeconfig")
	if err := clientcmd.WriteToFile(*all, path); err != nil {
		remove()
		return "", nil, fmt.Errorf("write the kubeconfig of all clusters: %w", err)
	}
	return path, remove, nil
}

// table returns a table with a row for each member.
func (f *fleet) table(ctx context.Context) (string, error) {
	var clusters v1alpha1.MemberClusterList
	if err := f.client.List(ctx, &clusters); err != nil {
		return "", fmt.Errorf("list MemberClusters: %w", err)
	}
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	row(w, "NAME", "ACCEPTED", "JOINED", "HEALTHY", "HEARTBEAT", "VERSION", "CPU", "WORKS")
	for _, cluster := range clusters.Items {
		status := cluster.Status
		row(w, cluster.Name,
			condition(cluster, v1alpha1.ConditionAccepted), condition(cluster, v1alpha1.ConditionJoined),
			condition(cluster, v1alpha1.ConditionHealthy),
			f.heartbeat(ctx, status.Namespace), orDash(status.Version.Kubernetes),
			share(status.Resources, corev1.ResourceCPU), f.worksOf(ctx, status.Namespace))
	}
	err := w.Flush()
	return out.String(), err
}

func row(w io.Writer, cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) }

func condition(cluster v1alpha1.MemberCluster, kind string) string {
	if condition := meta.FindStatusCondition(cluster.Status.Conditions, kind); condition != nil {
		return string(condition.Status)
	}
	return "-"
}

// heartbeat returns the time since the last renewal of the member's Lease. In an idle fleet, only this value changes.
func (f *fleet) heartbeat(ctx context.Context, namespace string) string {
	var lease coordinationv1.Lease
	err := f.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: membership.LeaseName}, &lease)
	if err != nil || lease.Spec.RenewTime == nil {
		return "-"
	}
	return duration.HumanDuration(time.Since(lease.Spec.RenewTime.Time).Abs()) + " ago"
}

// share returns the available and the allocatable quantity of a resource.
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
