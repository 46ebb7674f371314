package disaster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership/agent"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest/localplane"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

// workloadKinds are the kinds whose deletion on a member the tests record.
func workloadKinds() map[string]client.ObjectList {
	return map[string]client.ObjectList{
		"Namespace": &corev1.NamespaceList{}, "ConfigMap": &corev1.ConfigMapList{}, "Deployment": &appsv1.DeploymentList{},
		"PersistentVolumeClaim": &corev1.PersistentVolumeClaimList{}, "PersistentVolume": &corev1.PersistentVolumeList{},
	}
}

// record watches the member and notes each object that is deleted, or that begins to be deleted, until the test ends. A
// watch that ends earlier would miss deletions, so its end is recorded as well.
func (m *member) record(t testing.TB) {
	t.Helper()
	for kind, list := range workloadKinds() {
		events, err := m.client.Watch(t.Context(), list)
		require.NoError(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for event := range events.ResultChan() {
				o, ok := event.Object.(client.Object)
				if !ok || event.Type != watch.Deleted && o.GetDeletionTimestamp() == nil || infrastructure(o) {
					continue
				}
				m.note(fmt.Sprintf("%s %s/%s (%s)", kind, o.GetNamespace(), o.GetName(), event.Type))
			}
			if t.Context().Err() == nil {
				m.note("the watch of kind " + kind + " ended")
			}
		}()
		t.Cleanup(func() { events.Stop(); <-done })
	}
}

func (m *member) note(deletion string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deleted = append(m.deleted, deletion)
	select {
	case m.noted <- struct{}{}:
	default: // The reader has not read the former signal yet.
	}
}

// recorded returns the deletions that were recorded.
func (m *member) recorded() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.deleted)
}

// restartRecord discards the recorded deletions, which a user requested.
func (m *member) restartRecord() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deleted = nil
}

// finalized are the kinds of a member's namespace on the hub that have finalizers.
func finalized() []client.ObjectList {
	return []client.ObjectList{
		&workv1alpha1.WorkList{}, &membershipv1alpha1.MembershipList{}, &addonv1alpha1.MemberAddonList{},
		&corev1.ServiceAccountList{}, &coordinationv1.LeaseList{}, &rbacv1.RoleBindingList{},
	}
}

// through returns an option of an agent that reaches its hub through a proxy.
func through(proxy *localplane.Proxy) func(*rest.Config) {
	return func(config *rest.Config) { *config = *proxy.Config(config) }
}

// infrastructure reports whether an object belongs to Kubernetes or to the agent itself.
func infrastructure(o client.Object) bool {
	return o.GetNamespace() == agent.DefaultNamespace || strings.HasPrefix(o.GetNamespace(), "kube-") ||
		strings.HasPrefix(o.GetName(), "kube-")
}

// uids returns the UID of each workload object on the member.
func (m *member) uids(t testing.TB) map[string]types.UID {
	t.Helper()
	uids := map[string]types.UID{}
	for kind, list := range workloadKinds() {
		require.NoError(t, m.client.List(context.WithoutCancel(t.Context()), list))
		for _, o := range items(list) {
			if !infrastructure(o) {
				uids[fmt.Sprintf("%s %s/%s", kind, o.GetNamespace(), o.GetName())] = o.GetUID()
			}
		}
	}
	return uids
}

// items returns the objects of a list.
func items(list client.ObjectList) []client.Object {
	var objects []client.Object
	_ = meta.EachListItem(list, func(o runtime.Object) error { // The function returns no error.
		objects = append(objects, o.(client.Object))
		return nil
	})
	return objects
}

// requireUnchanged checks that no workload object of the member was deleted or re-created since uids was called.
func (m *member) requireUnchanged(t testing.TB, before map[string]types.UID) {
	t.Helper()
	require.Empty(t, m.recorded(), "objects deleted on %s", m.name)
	now := m.uids(t)
	for name, uid := range before {
		require.Equal(t, uid, now[name], "%s on %s was deleted or re-created", name, m.name)
	}
}

// requireUnchangedFor checks for a duration that no workload object of the member is deleted or re-created. No event
// announces that an object remains, so the check waits. It reads the record of deletions after each change of the
// record, and the UIDs at the end, which show each object that was re-created in between.
func (m *member) requireUnchangedFor(t testing.TB, before map[string]types.UID, while time.Duration) {
	t.Helper()
	end := time.After(while)
	for waiting := true; waiting && len(m.recorded()) == 0; {
		select {
		case <-m.noted:
		case <-end:
			waiting = false
		}
	}
	m.requireUnchanged(t, before)
}
