package hub

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// AgentRole returns the ClusterRole that all agents share. A RoleBinding in each member's namespace grants it to that
// member's agent in this namespace only.
func AgentRole(more ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: membership.AgentClusterRole},
		Rules: append([]rbacv1.PolicyRule{
			{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"memberships"},
				Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"memberships/status"},
				Verbs: []string{"get", "patch", "update"}},
			// The hub creates the Lease. Agents check with a dry run of a create whether the namespace is being deleted, and
			// earlier versions create the Lease. The policy leases.membership.muster.dev denies every other create.
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
				ResourceNames: []string{membership.LeaseName}, Verbs: []string{"get", "update"}},
		}, more...),
	}
}

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;create;update
// +kubebuilder:rbac:groups="",resources=resourcequotas/status,verbs=update
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,verbs=get;create;update
//
// The hub needs the permissions of agents itself, because the API server does not allow it to grant others:
// +kubebuilder:rbac:groups=membership.muster.dev,resources=memberships/status,verbs=get;patch;update
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update

// Shared ClusterRoles are watched by name:
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=muster-agent;muster-bootstrap,verbs=list;watch

// shared creates and corrects the objects on the hub that all members share when the hub starts. It also corrects the
// ClusterRoles while the hub runs.
type shared struct {
	identity   *hubIdentity
	tombstones *tombstones

	client  client.Client
	reader  client.Reader
	roles   rest.Interface // for ClusterRoles
	options Options
}

func (s *shared) ensure(ctx context.Context) error {
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: quotaName, Namespace: s.options.RegistrationNamespace},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			countRequests: *resource.NewQuantity(int64(s.options.MaxRequests), resource.DecimalSI),
		}},
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.options.RegistrationNamespace}}
	for _, object := range append([]client.Object{namespace, quota}, s.clusterRoles()...) {
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

func (s *shared) clusterRoles() []client.Object {
	return []client.Object{registration.BootstrapRole(), AgentRole(s.options.AgentRules...)}
}

// rolePause is the time between two corrections of the same ClusterRole. Two hubs with different AgentRules would
// otherwise write without a pause.
const rolePause = 10 * time.Second

// watchRoles corrects the shared ClusterRoles after each change of another client, until the context ends.
func (s *shared) watchRoles(ctx context.Context, log logr.Logger) {
	var running sync.WaitGroup
	for _, role := range s.clusterRoles() {
		changed := make(chan struct{}, 1)
		notify := func() {
			select {
			case changed <- struct{}{}:
			default: // a correction is pending
			}
		}
		informer := cache.NewSharedInformer(
			cache.NewListWatchFromClient(s.roles, "clusterroles", "", fields.OneTermEqualSelector("metadata.name",
				role.GetName())),
			&rbacv1.ClusterRole{}, 0)
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { notify() }, UpdateFunc: func(any, any) { notify() }, DeleteFunc: func(any) { notify() },
		})
		if err != nil {
			log.Error(err, "Cannot watch a ClusterRole", "clusterrole", role.GetName())
			continue
		}
		running.Go(func() { informer.RunWithContext(klog.NewContext(ctx, log)) })
		running.Go(func() {
			// No event reports a ClusterRole that was deleted before the first list.
			if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
				notify()
			}
		})
		running.Go(func() { s.keepRole(ctx, log, role, changed) })
	}
	running.Wait()
}

func (s *shared) keepRole(ctx context.Context, log logr.Logger, role client.Object, changed chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		attempt, cancel := context.WithTimeout(ctx, reconcileTimeout)
		corrected, err := s.correctRole(attempt, role)
		cancel()
		switch {
		case err != nil && ctx.Err() == nil:
			log.Error(err, "Cannot correct a ClusterRole, trying again", "clusterrole", role.GetName())
			select {
			case changed <- struct{}{}:
			default:
			}
		case !corrected:
			continue
		default:
			log.Info("Corrected a ClusterRole that another client had changed or deleted", "clusterrole", role.GetName())
		}
		select {
		case <-ctx.Done():
			return
		case <-s.options.Clock.After(rolePause):
		}
	}
}

// correctRole corrects a ClusterRole, and reports whether it differed from the desired one.
func (s *shared) correctRole(ctx context.Context, role client.Object) (bool, error) {
	found := &rbacv1.ClusterRole{}
	err := s.reader.Get(ctx, client.ObjectKeyFromObject(role), found)
	if err == nil && equality.Semantic.DeepEqual(found.Rules, role.(*rbacv1.ClusterRole).Rules) {
		return false, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return false, err
	}
	return true, s.ensureObject(ctx, role.DeepCopyObject().(client.Object))
}

// quotaName is the name of the ResourceQuota for JoinRequests.
const quotaName = "muster-registration"

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
