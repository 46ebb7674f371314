package placement

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/placement/internal/decision"
	"github.com/muster-sdk/muster/placement/internal/scope"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/tenancy"
)

// Tenancy decides which clusters the Placements of a namespace can choose. [*tenancy.Grants] implements it. Its methods
// may be called concurrently.
type Tenancy interface {
	// Watch calls changed with each namespace whose rules may have changed, until the caller calls end. It returns when
	// all existing objects are observed. The controller decides nothing before.
	Watch(ctx context.Context, changed func(namespace string)) (end func(), err error)
	// Rules returns the rules of a namespace, and the same pointer while they have not changed. Nil: no rules were
	// observed.
	Rules(namespace string) *tenancy.Rules
}

// access is the result of applying the rules of a namespace to one decision. The zero value restricts nothing.
type access struct {
	restricted bool
	namespace  string
	rules      *tenancy.Rules
	recorded   map[string]string   // by cluster: the binding by which it was chosen
	withdrawn  map[string][]string // by message: the chosen clusters that are denied
	unknown    []string            // chosen clusters that stay without an observed permission, sorted
	left       []string            // messages about withdrawals that were written since the last status
}

// accessOf returns the access of a placement, with the rules applied to the clusters that it is on.
func accessOf(rules *tenancy.Rules, namespace string, laid []decision.Slice, on map[string]bool,
	fleet *scheduler.Snapshot) access {
	a := access{restricted: true, namespace: namespace, rules: rules, recorded: map[string]string{},
		withdrawn: map[string][]string{}}
	for _, slice := range laid {
		for _, d := range slice.Decisions {
			a.recorded[d.ClusterName] = d.Binding
		}
	}
	for _, name := range slices.Sorted(maps.Keys(on)) {
		slot, there := fleet.Slot(name)
		if !there {
			continue
		}
		switch d := a.decide(fleet.Cluster(slot)); d.Access {
		case tenancy.Denied:
			a.withdrawn[d.Message] = append(a.withdrawn[d.Message], name)
		case tenancy.Unknown:
			a.unknown = append(a.unknown, name)
		}
	}
	return a
}

func (a *access) decide(cluster *scheduler.Cluster) tenancy.Decision {
	return a.rules.Decide(tenancy.Cluster{
		Labels: labels.Set(cluster.Labels), Absent: cluster.Absent, Binding: a.recorded[cluster.Name],
	})
}

func (a *access) denies(cluster string) bool {
	for _, names := range a.withdrawn {
		if slices.Contains(names, cluster) {
			return true
		}
	}
	return false
}

// view returns an identifier of the candidates: the clusters that the rules allow, and the chosen ones that stay.
func (a *access) view() string { return fmt.Sprintf("%p|%s|", a.rules, strings.Join(a.unknown, ",")) }

// excludes returns a function that reports whether a cluster is not a candidate.
func (a *access) excludes() func(*scheduler.Cluster) bool {
	rules, stay := a.rules, setOf(a.unknown)
	return func(cluster *scheduler.Cluster) bool { return !stay[cluster.Name] && !allows(rules, cluster) }
}

// allows reports whether the Placements of a namespace can newly choose a cluster.
func allows(rules *tenancy.Rules, cluster *scheduler.Cluster) bool {
	return rules.Decide(tenancy.Cluster{Labels: labels.Set(cluster.Labels), Absent: cluster.Absent}).
		Access == tenancy.Allowed
}

// rulesOf returns the rules of a namespace or, for the empty namespace, those of cluster-scoped objects.
func rulesOf(t Tenancy, namespace string) *tenancy.Rules {
	if namespace == "" {
		return tenancy.ClusterScope()
	}
	return t.Rules(namespace)
}

// restrict applies the rules of the namespace to an attempt. The snapshot then contains only candidates.
func (d *decisionController) restrict(a *attempt, on map[string]bool) {
	if d.Tenancy == nil {
		return
	}
	a.access = accessOf(rulesOf(d.Tenancy, a.placement.Namespace), a.placement.Namespace, a.p.last.slices, on, a.snapshot)
	view := a.access.view()
	a.snapshot = d.fleet.withoutDenied.use(a.k, view, a.access.excludes()).of(a.snapshot)
	d.fleet.withoutDenied.keep(a.k, view)
	maps.DeleteFunc(on, func(name string, _ bool) bool { return a.access.denies(name) })
}

// record sets in each decision the binding by which the cluster is chosen.
func (a *access) record(decisions []v1alpha1.ClusterDecision, all []published) []v1alpha1.ClusterDecision {
	if !a.restricted {
		return decisions
	}
	clusters := make(map[string]*scheduler.Cluster, len(all))
	for _, p := range all {
		clusters[p.cluster.Name] = p.cluster
	}
	for i := range decisions {
		d := &decisions[i]
		d.Binding = a.recorded[d.ClusterName]
		if decided := a.decide(clusters[d.ClusterName]); decided.Access == tenancy.Allowed {
			d.Binding = decided.Binding
		}
	}
	return decisions
}

// tenantChanged enqueues the placements of a namespace.
func (d *decisionController) tenantChanged(namespace string) {
	d.placements.mu.Lock()
	var keys []key
	for k := range d.placements.states {
		if strings.HasPrefix(k, namespace+"/") {
			keys = append(keys, k)
		}
	}
	d.placements.mu.Unlock()
	for _, k := range keys {
		d.queue.Add(k, 0)
	}
}

// candidacy reports whether a changed cluster is a candidate for a placement, and whether it is a new one.
func (d *decisionController) candidacy(k key, event scheduler.Event) (is, isNew bool) {
	if event.New == nil {
		return true, false
	}
	if d.Tenancy == nil {
		return true, event.Old == nil
	}
	namespace, _, _ := strings.Cut(k, "/")
	rules := rulesOf(d.Tenancy, namespace)
	is = allows(rules, event.New)
	return is, is && (event.Old == nil || !allows(rules, event.Old))
}

// withdrawals contains messages about clusters that a placement leaves, until users are informed. They are kept if the
// writes of a decision fail, because the next decision no longer contains these clusters.
type withdrawals struct {
	pending []string // not written to the PlacementDecisions yet
	written []string // not in the status yet
}

// add adds one message for each reason for which chosen clusters are withdrawn.
func (w *withdrawals) add(a *access) {
	for _, message := range slices.Sorted(maps.Keys(a.withdrawn)) {
		w.pending = append(w.pending, fmt.Sprintf("Clusters are withdrawn: %s: %s.", listed(a.withdrawn[message]), message))
	}
}

// announce records an Event for each withdrawal that the PlacementDecisions contain now.
func (d *decisionController) announce(placement *v1alpha1.Placement, w *withdrawals) {
	for _, message := range w.pending {
		// +event:message=Clusters are withdrawn: …: ….
		d.recorder.Eventf(scope.PlacementObject(placement), nil, corev1.EventTypeWarning, v1alpha1.ReasonClustersWithdrawn,
			"Decide", "%s", bounded.Text(message, maxMessage))
	}
	w.written, w.pending = append(w.written, w.pending...), nil
}

// listed returns the first names of a list, and the number of the others.
func listed(names []string) string {
	text := strings.Join(names[:min(len(names), maxAbsentNames)], ", ")
	if more := len(names) - maxAbsentNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// notBound returns the message for a namespace without a binding. Empty: the namespace has a binding, or is not
// restricted.
func (a *access) notBound() string {
	if !a.restricted || a.rules.Bound() {
		return ""
	}
	return tenancy.NotBound(a.namespace)
}

// aboutBindings is part of every message that depends on bindings.
const aboutBindings = "ClusterSetBinding"

// candidates returns the part of the message that states which clusters are candidates. Empty: no clusters are missing,
// or the placement is not restricted by bindings.
func (a *access) candidates(result *scheduler.Result) string {
	if !a.restricted || a.namespace == "" || result.Missing() <= 0 && (result.Wanted >= 0 || len(result.Chosen) > 0) {
		return ""
	}
	return fmt.Sprintf("; candidates are the clusters that a %s of namespace %s grants", aboutBindings, a.namespace)
}

// set sets the condition ClustersAllowed in a status. It removes the condition if the placement is not restricted.
func (a *access) set(status *v1alpha1.PlacementStatus, generation int64, now metav1.Time) {
	if !a.restricted {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionClustersAllowed)
		return
	}
	condition := metav1.Condition{
		Type: v1alpha1.ConditionClustersAllowed, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonClustersAllowed,
		Message:            fmt.Sprintf("ClusterSetBindings of namespace %s grant every chosen cluster.", a.namespace),
		ObservedGeneration: generation, LastTransitionTime: now,
	}
	if a.namespace == "" {
		condition.Message = "A ClusterPlacement can choose every cluster."
	}
	stay := ""
	if len(a.unknown) > 0 {
		stay = fmt.Sprintf("Chosen clusters stay although no ClusterSetBinding of namespace %s grants them, since no "+
			"request that "+
			"ended a permission was observed: %s. Restore the ClusterSetBinding or its ClusterSet, or remove the clusters "+
			"from the "+
			"placement with a PlacementEviction.", a.namespace, listed(a.unknown))
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, v1alpha1.ReasonGrantNotObserved, stay
	}
	withdrawn := strings.Join(a.left, " ")
	before := meta.FindStatusCondition(status.Conditions, condition.Type)
	switch notBound := a.notBound(); {
	case notBound != "":
		condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonNoBinding
		condition.Message = strings.TrimSpace(notBound + " " + stay)
	case withdrawn != "" && condition.Status == metav1.ConditionTrue:
		condition.Reason, condition.Message = v1alpha1.ReasonClustersWithdrawn, withdrawn
	case condition.Status == metav1.ConditionTrue && before != nil && before.Reason == v1alpha1.ReasonClustersWithdrawn:
		// The last withdrawal stays visible until another state follows.
		condition.Reason, condition.Message = before.Reason, before.Message
	}
	condition.Message = bounded.Text(condition.Message, maxMessage)
	meta.SetStatusCondition(&status.Conditions, condition)
}
