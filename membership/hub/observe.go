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

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// memberObserved is a member as observed in this reconcile.
type memberObserved struct {
	cluster    *v1alpha1.MemberCluster
	member     membership.Member
	subject    *rbacv1.Subject // the subject of the access; nil: not known yet
	unbound    error           // why the subject is not known, if users need to know
	membership *v1alpha1.Membership
	namespace  *corev1.Namespace // nil: it does not exist, or is not this member's
	binding    *rbacv1.RoleBinding
	rivals     []string              // other objects with its cluster ID
	issued     []v1alpha1.Credential // issued to the joined agent in answers to JoinRequests
	lifecycle  lifecycle.HubObserved
}

// outcome is the result of the actions of a reconcile.
type outcome struct {
	failed     error // of the actions
	renewing   error // why the requested renewal is not answered yet
	confirming error // why the hub does not confirm its consistency yet
	gone       bool  // the MemberCluster was removed
}

// memberOf converts a MemberCluster to the type of package membership.
func memberOf(cluster *v1alpha1.MemberCluster, namespacePrefix string) membership.Member {
	return membership.Member{
		Name: cluster.Name, UID: cluster.UID, ClusterID: cluster.Spec.ClusterID,
		Namespace: membership.NamespaceFor(namespacePrefix, cluster.Name),
		Claim:     cluster.Spec.Claim, Identity: cluster.Spec.Identity, Leave: cluster.Spec.Leave,
	}
}

// observe reads all objects of a member on the hub. If from is a cache, it sends no request.
func (r *members) observe(ctx context.Context, from client.Reader, cluster *v1alpha1.MemberCluster) (memberObserved,
	error) {
	o := memberObserved{cluster: cluster, member: memberOf(cluster, r.options.NamespacePrefix)}
	o.subject, o.unbound = subjectOf(o.member, cluster.Spec.Credential, r.options.Issuers)
	r.memory.names.set(o.member.Namespace, cluster.Name)

	namespace, err := found(ctx, from, client.ObjectKey{Name: o.member.Namespace}, &corev1.Namespace{})
	if err != nil {
		return o, err
	}
	if namespace != nil && namespace.Labels[membership.MemberLabel] != cluster.Name {
		namespace = nil // it belongs to another member, or to another program
	}
	o.namespace = namespace
	if o.binding, err = found(ctx, from, client.ObjectKey{Namespace: o.member.Namespace, Name: membership.AgentName},
		&rbacv1.RoleBinding{}); err != nil {
		return o, err
	}
	if o.membership, err = found(ctx, from,
		client.ObjectKey{Namespace: o.member.Namespace, Name: membership.MembershipName},
		&v1alpha1.Membership{}); err != nil {
		return o, err
	}
	// A Membership in a terminating namespace is treated as deleted, and a Membership of an earlier member with this name
	// is not this member's.
	if o.membership != nil && (o.membership.Spec.MemberUID != cluster.UID || o.membership.DeletionTimestamp != nil) {
		o.membership = nil
	}

	if o.rivals, err = r.rivals(ctx, cluster); err != nil {
		return o, err
	}
	accepted := cluster.Spec.Accepted
	o.lifecycle = lifecycle.HubObserved{
		Now:      r.options.Clock.Now(),
		Deletion: lifecycle.DeletionSeen{Requested: cluster.DeletionTimestamp != nil},
		Spec: lifecycle.SpecSeen{
			Desired: cluster.Spec.State, Accepted: accepted, JoinMode: cluster.Spec.JoinMode,
			Claimed:  cluster.Spec.Claim != "",
			Deadline: time.Duration(cluster.Spec.Leave.DeadlineSeconds) * time.Second,
		},
		Finalizer: controllerutil.ContainsFinalizer(cluster, membership.Finalizer),
		Leave:     cluster.Status.Leave,
		Phase:     cluster.Status.Phase,
		Namespace: presence(namespace),
		Access:    o.access(accepted != nil && *accepted),
	}
	if o.lifecycle.DependsOnDefinition() {
		if err := r.deletions.observe(ctx, cluster, &o.lifecycle); err != nil {
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

// issued returns the credentials in answers to JoinRequests of the member's agent, as long as the requests exist. It
// reads the cache, whose changes trigger a reconcile: a request is kept until the expiration of its credential is
// recorded.
func (r *members) issued(ctx context.Context, cluster *v1alpha1.MemberCluster) ([]v1alpha1.Credential, error) {
	if cluster.Spec.ClusterID == "" {
		return nil, nil
	}
	var requests v1alpha1.JoinRequestList
	err := r.client.List(ctx, &requests, client.InNamespace(r.options.RegistrationNamespace),
		client.MatchingFields{byClusterID: cluster.Spec.ClusterID})
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

// found gets an object; nil: it does not exist.
func found[T client.Object](ctx context.Context, c client.Reader, key client.ObjectKey, into T) (T, error) {
	err := c.Get(ctx, key, into)
	if err != nil {
		var none T
		return none, client.IgnoreNotFound(err)
	}
	return into, nil
}

// subjectOf returns the subject of a member's access; nil: no agent has claimed the member, or the error is the
// reason.
func subjectOf(member membership.Member, kind v1alpha1.CredentialType,
	issuers map[v1alpha1.CredentialType]membership.Issuer) (*rbacv1.Subject, error) {
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

// access reports whether the member has the desired access or, if it must have none, any access.
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

// reportOf returns the progress that the member's agent reports.
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

// ignore returns nil for errors that mean that the desired state already exists.
func ignore(err error, is func(error) bool) error {
	if is(err) {
		return nil
	}
	return err
}
