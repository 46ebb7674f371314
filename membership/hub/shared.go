package hub

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// AgentRole returns the ClusterRole that all agents share. A RoleBinding in each member's namespace grants it to that
// member's agent there only.
func AgentRole(more ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: membership.AgentClusterRole},
		Rules: append([]rbacv1.PolicyRule{
			{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"memberships"},
				Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"memberships/status"},
				Verbs: []string{"get", "patch", "update"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
				ResourceNames: []string{membership.LeaseName}, Verbs: []string{"get", "update"}},
		}, more...),
	}
}

// +kubebuilder:rbac:groups="",resources=namespaces;resourcequotas,verbs=get;create;update
// +kubebuilder:rbac:groups="",resources=resourcequotas/status,verbs=update
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,verbs=get;create;update
//
// The hub needs the permissions of agents itself, because the API server does not allow it to grant others:
// +kubebuilder:rbac:groups=membership.muster.dev,resources=memberships/status,verbs=get;patch;update
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update

// shared are the objects on the hub that all members share. They are created and corrected when the hub starts.
type shared struct {
	identity   *hubIdentity
	tombstones *tombstones

	client  client.Client
	reader  client.Reader
	options Options
}

func (s *shared) ensure(ctx context.Context) error {
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "muster-registration", Namespace: s.options.RegistrationNamespace},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			countRequests: *resource.NewQuantity(int64(s.options.MaxRequests), resource.DecimalSI),
		}},
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.options.RegistrationNamespace}}
	for _, object := range []client.Object{namespace, quota, registration.BootstrapRole(),
		AgentRole(s.options.AgentRules...)} {
		if err := s.ensureObject(ctx, object); err != nil {
			return fmt.Errorf("ensure %T %s: %w", object, object.GetName(), err)
		}
	}
	if err := s.primeQuota(ctx, client.ObjectKeyFromObject(quota)); err != nil {
		return fmt.Errorf("prime ResourceQuota %s: %w", quota.Name, err)
	}
	if _, err := s.identity.get(ctx); err != nil {
		return err
	}
	return s.tombstones.expire(ctx)
}

const countRequests = corev1.ResourceName("count/joinrequests." + v1alpha1.GroupName)

// primeQuota initializes the usage of the quota, if it is not set yet. The quota controller discovers a new resource
// every 30 seconds, and until then the API server refuses all JoinRequests.
func (s *shared) primeQuota(ctx context.Context, key client.ObjectKey) error {
	var quota corev1.ResourceQuota
	if err := s.reader.Get(ctx, key, &quota); err != nil {
		return err
	}
	if _, known := quota.Status.Used[countRequests]; known {
		return nil
	}
	var requests v1alpha1.JoinRequestList
	if err := s.reader.List(ctx, &requests, client.InNamespace(key.Namespace)); err != nil {
		return err
	}
	quota.Status.Hard = quota.Spec.Hard
	quota.Status.Used = corev1.ResourceList{countRequests: *resource.NewQuantity(int64(len(requests.Items)),
		resource.DecimalSI)}
	return s.client.Status().Update(ctx, &quota)
}

func (s *shared) ensureObject(ctx context.Context, want client.Object) error {
	found := want.DeepCopyObject().(client.Object)
	err := s.reader.Get(ctx, client.ObjectKeyFromObject(want), found)
	if apierrors.IsNotFound(err) {
		return s.client.Create(ctx, want)
	}
	if err != nil {
		return err
	}
	switch found := found.(type) {
	case *rbacv1.ClusterRole:
		rules := want.(*rbacv1.ClusterRole).Rules
		if equality.Semantic.DeepEqual(found.Rules, rules) {
			return nil
		}
		found.Rules = rules
		return s.client.Update(ctx, found)
	case *corev1.ResourceQuota:
		hard := want.(*corev1.ResourceQuota).Spec.Hard
		if equality.Semantic.DeepEqual(found.Spec.Hard, hard) {
			return nil
		}
		found.Spec.Hard = hard
		return s.client.Update(ctx, found)
	default:
		return nil
	}
}
