package hub

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/muster-sdk/muster/internal/deletion"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// memberObserved is a member as this round sees it.
type memberObserved struct {
	cluster    *v1alpha1.MemberCluster
	member     membership.Member
	subject    *rbacv1.Subject // whom to give access; nil: not known yet
	unbound    error           // why it is not known, where that is worth saying
	membership *v1alpha1.Membership
	namespace  *corev1.Namespace // nil: there is none of this member
	binding    *rbacv1.RoleBinding
	rivals     []string              // what else has its cluster ID
	issued     []v1alpha1.Credential // to the agent that has joined, at the door of late
	lifecycle  lifecycle.HubObserved
	renewing   error // why the renewal that the agent asks for is not answered yet
	confirming error // why the hub does not confirm yet that it is consistent
	gone       bool  // the MemberCluster is gone by what this round did
}

// memberOf is a MemberCluster in the words of package membership.
func memberOf(cluster *v1alpha1.MemberCluster, namespacePrefix string) membership.Member {
	return membership.Member{
		Name: cluster.Name, UID: cluster.UID, ClusterID: cluster.Spec.ClusterID,
		Namespace: membership.NamespaceFor(namespacePrefix, cluster.Name),
		Claim:     cluster.Spec.Claim, Identity: cluster.Spec.Identity, Leave: cluster.Spec.Leave,
	}
}

// observe looks, through the reader, at all that the hub has of a member. Through the caches it costs no request: all of it
// is in them.
func (r *members) observe(ctx context.Context, from client.Reader, cluster *v1alpha1.MemberCluster) (memberObserved, error) {
	o := memberObserved{cluster: cluster, member: memberOf(cluster, r.options.NamespacePrefix)}
	o.subject, o.unbound = subjectOf(o.member, cluster.Spec.Credential, r.options.Issuers)
	r.names.know(o.member.Namespace, cluster.Name)

	namespace, err := found(ctx, from, client.ObjectKey{Name: o.member.Namespace}, &corev1.Namespace{})
	if err != nil {
		return o, err
	}
	if namespace != nil && namespace.Labels[membership.MemberLabel] != cluster.Name {
		namespace = nil // of another member, or of another program
	}
	o.namespace = namespace
	if o.binding, err = found(ctx, from, client.ObjectKey{Namespace: o.member.Namespace, Name: membership.AgentName}, &rbacv1.RoleBinding{}); err != nil {
		return o, err
	}
	if o.membership, err = found(ctx, from, client.ObjectKey{Namespace: o.member.Namespace, Name: membership.MembershipName}, &v1alpha1.Membership{}); err != nil {
		return o, err
	}
	// What stands in a namespace that goes is as good as gone, and what another member of this name left is none of this one's.
	if o.membership != nil && (o.membership.Spec.MemberUID != cluster.UID || o.membership.DeletionTimestamp != nil) {
		o.membership = nil
	}

	if o.rivals, err = r.rivals(ctx, cluster); err != nil {
		return o, err
	}
	accepted := cluster.Spec.Accepted
	o.lifecycle = lifecycle.HubObserved{
		Now:       r.options.Clock.Now(),
		Deleting:  cluster.DeletionTimestamp != nil,
		JoinMode:  cluster.Spec.JoinMode,
		Desired:   cluster.Spec.State,
		Accepted:  accepted,
		Claimed:   cluster.Spec.Claim != "",
		Finalizer: controllerutil.ContainsFinalizer(cluster, membership.Finalizer),
		Deadline:  time.Duration(cluster.Spec.Leave.DeadlineSeconds) * time.Second,
		Leave:     cluster.Status.Leave,
		Phase:     cluster.Status.Phase,
		Namespace: presence(namespace),
		Access:    o.access(accepted != nil && *accepted),
	}
	if o.lifecycle.DependsOnDefinition() {
		if err := r.observeDeletion(ctx, cluster, &o.lifecycle); err != nil {
			return o, err
		}
	}
	if o.membership != nil {
		o.lifecycle.Membership = &lifecycle.MembershipSeen{
			State:  o.membership.Spec.State,
			Rejoin: o.membership.Spec.Rejoin,
			Clean:  o.membership.Spec.Clean,
			Report: reportOf(o.membership, cluster.Spec.Claim),
		}
		if o.lifecycle.Membership.Report != lifecycle.ReportedNothing {
			if o.issued, err = r.issued(ctx, cluster); err != nil {
				return o, err
			}
		}
	}
	return o, nil
}

// observeDeletion finds out whether a MemberCluster is deleted together with its definition. The hub concludes that it is not
// only when the definition has been served since [lifecycle.ConfirmDeletion] after it first observed the deletion.
func (r *members) observeDeletion(ctx context.Context, cluster *v1alpha1.MemberCluster, o *lifecycle.HubObserved) error {
	since := r.deletions.first(cluster, o.Now)
	definition, err := deletion.DefinitionOf(ctx, r.discovery, v1alpha1.GroupVersion.WithResource("memberclusters"))
	if err != nil {
		return err
	}
	// Absent contradicts the MemberCluster that was just read: the definition is removed or installed at this moment.
	o.WithDefinition = definition == deletion.Terminating
	o.Unconfirmed = definition == deletion.Absent ||
		definition == deletion.Served && o.Now.Before(since.Add(lifecycle.ConfirmDeletion))
	return nil
}

// issued lists what the agent that speaks for a member was given at the door, as long as its requests are there. It looks into the cache, and the
// controller is woken up by what that gets to know: the door keeps a request until what is in it is on record.
func (r *members) issued(ctx context.Context, cluster *v1alpha1.MemberCluster) ([]v1alpha1.Credential, error) {
	if cluster.Spec.ClusterID == "" {
		return nil, nil
	}
	var requests v1alpha1.JoinRequestList
	err := r.client.List(ctx, &requests, client.InNamespace(r.options.RegistrationNamespace), client.MatchingFields{byClusterID: cluster.Spec.ClusterID})
	if err != nil {
		return nil, err
	}
	var out []v1alpha1.Credential
	for i := range requests.Items {
		status := &requests.Items[i].Status
		if status.Credential != nil && status.MemberUID == cluster.UID && status.Claim == cluster.Spec.Claim {
			out = append(out, *status.Credential)
		}
	}
	return out, nil
}

// found gets an object; nil: it is not there.
func found[T client.Object](ctx context.Context, c client.Reader, key client.ObjectKey, into T) (T, error) {
	err := c.Get(ctx, key, into)
	if err != nil {
		var none T
		return none, client.IgnoreNotFound(err)
	}
	return into, nil
}

// subjectOf returns whom to give access to a member; nil: no agent has claimed it, or the error says why not.
func subjectOf(member membership.Member, kind v1alpha1.CredentialType, issuers map[v1alpha1.CredentialType]membership.Issuer) (*rbacv1.Subject, error) {
	issuer, known := issuers[kind]
	if member.Claim == "" || !known {
		return nil, nil
	}
	subject, err := issuer.Subject(member)
	if err != nil {
		return nil, err
	}
	return &subject, nil
}

// access reports whether the member has the access that it shall have, or any where it shall have none.
func (o *memberObserved) access(accepted bool) bool {
	if o.binding == nil || o.binding.DeletionTimestamp != nil {
		return false
	}
	return !accepted || o.subject == nil || slices.Equal(o.binding.Subjects, []rbacv1.Subject{*o.subject})
}

func presence(namespace *corev1.Namespace) lifecycle.Presence {
	switch {
	case namespace == nil:
		return lifecycle.Absent
	case namespace.DeletionTimestamp != nil:
		return lifecycle.Terminating
	default:
		return lifecycle.Present
	}
}

// reportOf reads how far the agent that speaks for the member says that it is.
func reportOf(self *v1alpha1.Membership, claim string) lifecycle.AgentReport {
	joined := meta.FindStatusCondition(self.Status.Conditions, v1alpha1.ConditionJoined)
	switch {
	case joined == nil || self.Status.Claim != claim:
		return lifecycle.ReportedNothing
	case joined.Status == metav1.ConditionTrue:
		return lifecycle.ReportedJoined
	case joined.Reason == v1alpha1.ReasonCleanedUp:
		return lifecycle.ReportedClean
	default:
		return lifecycle.ReportedNothing
	}
}

// ignore returns nil for the errors that mean that what an action was to bring about is so already.
func ignore(err error, is func(error) bool) error {
	if is(err) {
		return nil
	}
	return err
}
