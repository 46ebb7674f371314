package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/internal/readycondition"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// report writes the changes of a member: its status, its taints, and Events. It returns the time until the next
// reconcile for the member's health.
func (r *members) report(ctx context.Context, o memberObserved, step lifecycle.HubStep, out outcome) (time.Duration,
	error) {
	cluster := o.cluster
	before := cluster.DeepCopy()
	status := &cluster.Status

	status.Phase = step.Phase
	status.Leave = step.Leave
	status.Namespace, status.Subject = "", nil
	if o.lifecycle.Namespace != lifecycle.Absent || step.Phase != v1alpha1.PhaseLeft &&
		step.Phase != v1alpha1.PhasePending {
		status.Namespace, status.Subject = o.member.Namespace, o.subject
	}
	problem := o.unbound
	if out.failed != nil && passing(out.failed) == nil {
		problem = errors.Join(problem, out.failed)
	}
	if problem != nil {
		step = step.WithError(problem.Error())
	}
	for _, condition := range step.Conditions {
		r.set(cluster, condition)
	}
	mirror(status, o)
	r.reportOrphans(cluster)
	r.reportCollected(cluster, o.membership)
	status.CredentialExpirationTime = credentialEnd(status.CredentialExpirationTime, o)
	r.credential(cluster, o.membership, out.renewing)
	r.unique(cluster, o.rivals)
	again := r.health(o, step)
	r.ready(cluster)

	if !equality.Semantic.DeepEqual(before.Status, cluster.Status) {
		r.setLastHeartbeat(cluster)
		// With a lock: a lagging cache must not start a leave again that has started already.
		lock := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		written := cluster.DeepCopy()
		if err := r.client.Status().Patch(ctx, written, lock); err != nil {
			return 0, client.IgnoreNotFound(err)
		}
		cluster.ResourceVersion = written.ResourceVersion
		r.memory.written.Record(written)
		r.note(ctx, before, cluster)
	}
	if !equality.Semantic.DeepEqual(before.Spec.Taints, cluster.Spec.Taints) {
		latest := cluster.DeepCopy()
		latest.Spec.Taints = before.Spec.Taints
		if err := r.patch(ctx, latest, func() { latest.Spec.Taints = cluster.Spec.Taints }); err != nil {
			return 0, fmt.Errorf("taint member %s: %w", cluster.Name, err)
		}
		r.noteTaints(ctx, before, cluster)
	}
	r.memory.phases.set(cluster.Name, status.Phase)
	r.memory.orphans.set(cluster.Name, status.Orphans)
	return again, nil
}

func (r *members) set(cluster *v1alpha1.MemberCluster, condition metav1.Condition) {
	condition.ObservedGeneration = cluster.Generation
	condition.LastTransitionTime = metav1.NewTime(r.options.Clock.Now())
	meta.SetStatusCondition(&cluster.Status.Conditions, condition)
}

// readyRule derives the condition Ready of a MemberCluster.
var readyRule = readycondition.Rule{
	Required: []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionJoined, v1alpha1.ConditionHealthy},
}

// ready sets the condition Ready, and Stalled for a member that was denied.
func (r *members) ready(cluster *v1alpha1.MemberCluster) {
	var failure *metav1.Condition
	if cluster.Status.Phase == v1alpha1.PhaseDenied {
		failure = meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionAccepted)
	}
	readyRule.Set(&cluster.Status.Conditions, cluster.Generation, r.options.Clock.Now(), failure)
}

// mirror copies the reports of the agents to the MemberCluster.
func mirror(status *v1alpha1.MemberClusterStatus, o memberObserved) {
	if o.membership == nil {
		return
	}
	said := o.membership.Status
	status.Version, status.Resources, status.Properties, status.APIs = said.Version, said.Resources, said.Properties,
		said.APIs
	status.Orphans, status.MemberPolicy = said.Orphans.DeepCopy(), said.MemberPolicy.DeepCopy()
	heard := map[string]*metav1.MicroTime{}
	for _, agent := range status.Agents {
		heard[agent.Type] = agent.LastHeartbeat
	}
	status.Agents = nil
	for _, agent := range said.Agents {
		agent.LastHeartbeat = heard[agent.Type]
		status.Agents = append(status.Agents, agent)
	}
}

// credentialEnd returns the time at which the last known credential of the joined agent expires; nil: never, or
// unknown. It is the latest of the recorded time and the times in answers to JoinRequests and renewals: until then one
// of these credentials may work.
func credentialEnd(recorded *metav1.Time, o memberObserved) *metav1.Time {
	if o.lifecycle.Membership == nil || o.lifecycle.Membership.Report == lifecycle.ReportedNothing {
		return nil
	}
	issued := o.issued
	if renewed := o.membership.Spec.Renewal; renewed != nil && renewed.Credential != nil {
		issued = append(issued, *renewed.Credential)
	}
	end := recorded
	for _, credential := range issued {
		if each := credential.ExpirationTime; end == nil || end.Before(each) {
			end = each
		}
	}
	return end
}

// credential sets the condition CredentialValid from the renewal of the agent's credential. The error is the reason
// why the requested renewal is not answered yet.
func (r *members) credential(cluster *v1alpha1.MemberCluster, self *v1alpha1.Membership, renewing error) {
	if self == nil {
		meta.RemoveStatusCondition(&cluster.Status.Conditions, v1alpha1.ConditionCredentialValid)
		return
	}
	asked, answered := self.Status.Renewal, self.Spec.Renewal
	condition := metav1.Condition{Type: v1alpha1.ConditionCredentialValid, Status: metav1.ConditionFalse}
	switch {
	case answered != nil && answered.Refused != "":
		condition.Reason, condition.Message = v1alpha1.ReasonRenewalRefused, lifecycle.FormatMessage(answered.Refused)
	case asked != nil && (answered == nil || answered.ID != asked.ID):
		if renewing == nil || passing(renewing) != nil {
			return
		}
		condition.Reason, condition.Message = v1alpha1.ReasonRenewalFailed, lifecycle.FormatMessage(renewing.Error())
	case answered != nil && answered.Credential != nil:
		condition.Status = metav1.ConditionTrue
		condition.Reason, condition.Message = v1alpha1.ReasonIssued, "The credential was renewed."
	default:
		return
	}
	r.set(cluster, condition)
}

// passing returns an error that only means that the action is retried, and nil for an error that must be reported to
// users.
func passing(err error) error {
	if errors.Is(err, membership.ErrPending) || apierrors.IsConflict(err) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Reasons of Events about a MemberCluster that are not reasons of a condition or phases.
const (
	// reasonNamespaceCreated: the hub created the member's namespace.
	reasonNamespaceCreated = "NamespaceCreated"
	// reasonNamespaceDeleted: the hub deleted the member's namespace, because the member has left.
	reasonNamespaceDeleted = "NamespaceDeleted"
	// reasonAccessGranted: the hub created the RoleBinding of the agent.
	reasonAccessGranted = "AccessGranted"
	// reasonAccessRevoked: the hub deleted the RoleBinding of the agent.
	reasonAccessRevoked = "AccessRevoked"
	// reasonTainted: the hub added a taint, so that placements avoid the member.
	reasonTainted = "Tainted"
	// reasonUntainted: the hub removed a taint of its own.
	reasonUntainted = "Untainted"
)

// event records an Event of type Normal about a MemberCluster, and logs it.
func (r *members) event(ctx context.Context, about *v1alpha1.MemberCluster, reason, action, message string) {
	r.recorder.Eventf(about, nil, corev1.EventTypeNormal, reason, action, "%s", bounded.Text(message, maxNote))
	logChange(ctx, about, reason, message)
}

// warn records an Event of type Warning about a MemberCluster, and logs it.
func (r *members) warn(ctx context.Context, about *v1alpha1.MemberCluster, reason, action, message string) {
	r.recorder.Eventf(about, nil, corev1.EventTypeWarning, reason, action, "%s", bounded.Text(message, maxNote))
	logChange(ctx, about, reason, message)
}

func logChange(ctx context.Context, about *v1alpha1.MemberCluster, reason, message string) {
	logf.FromContext(ctx).Info("MemberCluster changed", "membercluster", about.Name, "reason", reason, "message", message)
}

// maxNote is the maximum length in bytes of the note of an Event.
const maxNote = 1024

// noteTaints records Events about the taints that the hub has added and removed.
func (r *members) noteTaints(ctx context.Context, before, after *v1alpha1.MemberCluster) {
	added := func(reason, format string, from, to []v1alpha1.Taint) {
		for _, taint := range to {
			same := func(t v1alpha1.Taint) bool { return t.Key == taint.Key && t.Effect == taint.Effect }
			if !slices.ContainsFunc(from, same) {
				r.event(ctx, after, reason, "Taint", fmt.Sprintf(format, taint.Key, taint.Effect))
			}
		}
	}
	added(reasonTainted, "Taint %s:%s was added.", before.Spec.Taints, after.Spec.Taints)
	added(reasonUntainted, "Taint %s:%s was removed.", after.Spec.Taints, before.Spec.Taints)
}

// note records Events for the changes of a member.
func (r *members) note(ctx context.Context, before, after *v1alpha1.MemberCluster) {
	if before.Status.Phase != after.Status.Phase {
		// +event:reason=Pending, Accepted, Denied, Joining, Joined, Leaving, Left
		// +event:message=the message of the condition Accepted or Joined
		r.event(ctx, after, string(after.Status.Phase), "Lifecycle", phaseMessage(after))
	}
	if was, is := before.Status.Leave, after.Status.Leave; is != nil && is.Forced && (was == nil || !was.Forced) {
		r.warn(ctx, after, v1alpha1.ReasonLeaveForced, "Leave",
			fmt.Sprintf("The deadline passed while waiting for %s. The member is removed without waiting any longer.",
				is.Waiting))
	}
	for _, kind := range []string{
		v1alpha1.ConditionHealthy, v1alpha1.ConditionCredentialValid, v1alpha1.ConditionClusterIDUnique,
		v1alpha1.ConditionNoOrphans,
	} {
		was, is := meta.FindStatusCondition(before.Status.Conditions, kind),
			meta.FindStatusCondition(after.Status.Conditions, kind)
		if is == nil || was != nil && was.Status == is.Status || was == nil && is.Status != metav1.ConditionFalse {
			continue
		}
		event := r.warn
		if is.Status == metav1.ConditionTrue || is.Reason == v1alpha1.ReasonNotJoined {
			event = r.event
		}
		// +event:reason=the reason of the condition Healthy, CredentialValid, ClusterIDUnique or NoOrphans
		// +event:type=Warning if the condition is not True and the reason is not NotJoined, else Normal
		// +event:message=the message of the condition
		event(ctx, after, is.Reason, kind, is.Message)
	}
}

func phaseMessage(cluster *v1alpha1.MemberCluster) string {
	kind := v1alpha1.ConditionJoined
	switch cluster.Status.Phase {
	case v1alpha1.PhasePending, v1alpha1.PhaseDenied, v1alpha1.PhaseAccepted:
		kind = v1alpha1.ConditionAccepted
	}
	if condition := meta.FindStatusCondition(cluster.Status.Conditions, kind); condition != nil {
		return condition.Message
	}
	return string(cluster.Status.Phase)
}

// reportCollected copies the condition PropertiesCollected of a Membership while it is False, because the reported
// properties may then be incomplete.
func (r *members) reportCollected(cluster *v1alpha1.MemberCluster, self *v1alpha1.Membership) {
	const kind = v1alpha1.ConditionPropertiesCollected
	if self == nil {
		return
	}
	if collected := meta.FindStatusCondition(self.Status.Conditions, kind); collected != nil &&
		collected.Status == metav1.ConditionFalse {
		r.set(cluster, metav1.Condition{Type: kind, Status: collected.Status, Reason: collected.Reason,
			Message: collected.Message})
		return
	}
	meta.RemoveStatusCondition(&cluster.Status.Conditions, kind)
}
