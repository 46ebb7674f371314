package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/internal/tracing"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration/identity"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// +kubebuilder:rbac:groups=membership.muster.dev,namespace=muster-registration,resources=jointokens,verbs=create;update;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,namespace=muster-registration,resources=roles,verbs=get;create;update;delete

// identityTokens permits the subject in spec.identity of a MemberCluster to join without a JoinToken of an
// administrator. While the member has not joined, it maintains a JoinToken that admits only this member, and a Role
// and a RoleBinding with which only this subject can read the Secret of the JoinToken. The API server authenticates
// the subject: a JoinRequest does not show which user created it.
type identityTokens struct {
	client    client.Client
	reader    client.Reader // without a cache
	namespace string
}

// checkOffer is the interval at which objects that the controller does not watch are compared, while a member has not
// joined.
const checkOffer = time.Minute

func (r *identityTokens) setup(mgr manager.Manager, hub cluster.Cluster, workers int) error {
	options := controllerOptions(workers)
	options.Reconciler = tracing.Reconciler("muster-identity", r)
	c, err := controller.New("muster-identity", mgr, options)
	if err != nil {
		return err
	}
	changed := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1alpha1.MemberCluster), e.ObjectNew.(*v1alpha1.MemberCluster)
		return !equality.Semantic.DeepEqual(offerFor(before), offerFor(after))
	}}
	ofBinding := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		if object.GetNamespace() != r.namespace {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: object.GetLabels()[membership.MemberLabel]}}}
	})
	if err := c.Watch(source.Kind[client.Object](hub.GetCache(), &v1alpha1.MemberCluster{},
		&handler.EnqueueRequestForObject{}, changed)); err != nil {
		return err
	}
	return c.Watch(source.Kind[client.Object](hub.GetCache(), &rbacv1.RoleBinding{}, ofBinding))
}

// offer describes how the subject of a member may join.
type offer struct {
	Subject    rbacv1.Subject
	ClusterID  string
	AutoAccept bool
}

// offerFor returns the offer of a member. It returns nil for a member whose agent must not join by its identity: the
// member has no valid identity, has joined, is leaving or is denied, or the hub starts its agent. An offer does not
// accept the member; an administrator does.
func offerFor(cluster *v1alpha1.MemberCluster) *offer {
	spec := &cluster.Spec
	denied := spec.Accepted != nil && !*spec.Accepted
	if spec.Identity == nil || denied || spec.State == v1alpha1.StateLeave || cluster.DeletionTimestamp != nil ||
		spec.JoinMode != "" && spec.JoinMode != v1alpha1.JoinPull ||
		meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionJoined) {
		return nil
	}
	subject, err := identity.Issuer{}.Subject(membership.Member{Name: cluster.Name, Identity: spec.Identity})
	if err != nil {
		return nil // the JoinRequest is pending with the reason
	}
	return &offer{Subject: subject, ClusterID: spec.ClusterID, AutoAccept: spec.Accepted != nil}
}

// Reconcile creates, changes or deletes the offer for a member.
func (r *identityTokens) Reconcile(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	cluster, err := found(ctx, r.client, key.NamespacedName, &v1alpha1.MemberCluster{})
	if err != nil || cluster == nil {
		return reconcile.Result{}, err // the garbage collector deletes the offer of a deleted MemberCluster
	}
	binding, err := found(ctx, r.client, r.key(cluster), &rbacv1.RoleBinding{})
	if err != nil {
		return reconcile.Result{}, err
	}
	offer := offerFor(cluster)
	switch {
	case offer != nil:
		if err := r.foreign(ctx, cluster); err != nil {
			return reconcile.Result{}, errors.Join(err, r.withdraw(ctx, cluster))
		}
		return reconcile.Result{RequeueAfter: checkOffer}, r.keep(ctx, cluster, offer)
	case binding != nil:
		return reconcile.Result{}, r.withdraw(ctx, cluster)
	}
	return reconcile.Result{}, nil
}

// foreign returns an error if another JoinToken, or another Secret, has the name of the offer: the subject must not
// read that Secret.
func (r *identityTokens) foreign(ctx context.Context, cluster *v1alpha1.MemberCluster) error {
	token, err := found(ctx, r.reader, r.key(cluster), &v1alpha1.JoinToken{})
	if err != nil {
		return err
	}
	secret, err := found(ctx, r.reader, r.key(cluster), &corev1.Secret{})
	if err != nil {
		return err
	}
	if token != nil && !ownedBy(token, cluster) ||
		secret != nil && (token == nil || !metav1.IsControlledBy(secret, token)) {
		return fmt.Errorf("member %s cannot join by its identity: JoinToken or Secret %s has another owner: delete that "+
			"object",
			cluster.Name, r.key(cluster))
	}
	return nil
}

func (r *identityTokens) key(cluster *v1alpha1.MemberCluster) client.ObjectKey {
	return client.ObjectKey{Namespace: r.namespace, Name: identity.TokenName(cluster.Name)}
}

// meta returns the metadata of all objects of an offer. The MemberCluster owns them: the JoinToken admits no other
// member.
func (r *identityTokens) meta(cluster *v1alpha1.MemberCluster) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: r.namespace, Name: identity.TokenName(cluster.Name),
		Labels: map[string]string{membership.MemberLabel: cluster.Name},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "MemberCluster", Name: cluster.Name, UID: cluster.UID,
		}},
	}
}

// keep creates or changes the objects of an offer. The API server requires the Role before the RoleBinding. The
// JoinToken is created last and deleted first, so that the cached RoleBinding shows that a JoinToken may exist.
func (r *identityTokens) keep(ctx context.Context, cluster *v1alpha1.MemberCluster, offer *offer) error {
	name := identity.TokenName(cluster.Name)
	role, isRole := &rbacv1.Role{ObjectMeta: r.meta(cluster), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{name}, Verbs: []string{"get"},
	}}}, &rbacv1.Role{}
	if err := r.keepOne(ctx, cluster, role, isRole, func() bool {
		same := equality.Semantic.DeepEqual(isRole.Rules, role.Rules)
		isRole.Rules = role.Rules
		return same
	}); err != nil {
		return err
	}
	binding, isBinding := &rbacv1.RoleBinding{
		ObjectMeta: r.meta(cluster), Subjects: []rbacv1.Subject{offer.Subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}, &rbacv1.RoleBinding{}
	replaced := false
	if err := r.keepOne(ctx, cluster, binding, isBinding, func() bool {
		replaced = !slices.Equal(isBinding.Subjects, binding.Subjects)
		return true
	}); err != nil {
		return err
	}
	if replaced {
		// The earlier subject may have read the Secret: its JoinToken ends. The deletion of the RoleBinding, which is
		// watched, starts the offer for the new subject.
		return r.withdraw(ctx, cluster)
	}
	token, isToken := &v1alpha1.JoinToken{ObjectMeta: r.meta(cluster), Spec: v1alpha1.JoinTokenSpec{
		TTLSeconds: new(int64(-1)), ClusterID: offer.ClusterID, AutoAccept: offer.AutoAccept,
	}}, &v1alpha1.JoinToken{}
	return r.keepOne(ctx, cluster, token, isToken, func() bool {
		same := isToken.Spec.ClusterID == offer.ClusterID && isToken.Spec.AutoAccept == offer.AutoAccept
		isToken.Spec.ClusterID, isToken.Spec.AutoAccept = offer.ClusterID, offer.AutoAccept
		return same
	})
}

// keepOne creates an object, or changes the existing one, which it reads into is. The function complete sets the
// desired fields of the existing object, and reports whether they were set already.
func (r *identityTokens) keepOne(ctx context.Context, cluster *v1alpha1.MemberCluster, desired, is client.Object,
	complete func() bool) error {
	err := r.reader.Get(ctx, client.ObjectKeyFromObject(desired), is)
	switch {
	case apierrors.IsNotFound(err):
		err = r.client.Create(ctx, desired)
	case err == nil && !ownedBy(is, cluster):
		err = errors.New("an object with this name has another owner: delete it to let the member join by its identity")
	case err == nil && !complete():
		err = r.client.Update(ctx, is)
	}
	if err != nil {
		return fmt.Errorf("ensure %T %s for the identity of member %s: %w", desired, desired.GetName(), cluster.Name, err)
	}
	return nil
}

func ownedBy(object client.Object, cluster *v1alpha1.MemberCluster) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return owner.UID == cluster.UID
	})
}

// withdraw deletes the objects of an offer that the member owns. It deletes the JoinToken first.
func (r *identityTokens) withdraw(ctx context.Context, cluster *v1alpha1.MemberCluster) error {
	for _, object := range []client.Object{&v1alpha1.JoinToken{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}} {
		err := r.reader.Get(ctx, r.key(cluster), object)
		if err == nil && ownedBy(object, cluster) {
			err = r.client.Delete(ctx, object, precondition.Unchanged(object))
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the JoinToken for the identity of member %s: %w", cluster.Name, err)
		}
	}
	return nil
}
