package hub_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// TestNamespaceQuota checks that the hub limits the contents of each member's namespace, that it corrects the
// ResourceQuota after changes of other clients with a pause between two corrections, and that a hub without the option
// keeps the ResourceQuota.
func TestNamespaceQuota(t *testing.T) { testkit.Virtual(t, testNamespaceQuota) }

func testNamespaceQuota(t *testing.T) {
	const name = "limited"
	limit := func(n string) corev1.ResourceList {
		return corev1.ResourceList{"count/secrets": resource.MustParse(n)}
	}
	requests := &requests{}
	h := startHub(t, newMemory(t), hub.Options{NamespaceQuota: limit("3")}, requests.wrap)
	h.Create(&v1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MemberClusterSpec{Accepted: new(true)},
	})
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "not-of-" + name, Labels: map[string]string{membership.MemberLabel: name},
	}}
	h.Create(other)
	t.Cleanup(func() { _ = h.Client.Delete(t.Context(), other) })
	h.untilPhase(name, v1alpha1.PhaseAccepted)

	quota := &corev1.ResourceQuota{}
	key := client.ObjectKey{Namespace: "member-" + name, Name: hub.NamespaceQuotaName}
	limited := func(h *testHub, n string) {
		h.Eventually("the ResourceQuota allows "+n+" Secrets", func() error {
			if err := h.Client.Get(t.Context(), key, quota); err != nil {
				return err
			}
			ok := quota.Spec.Hard.Name("count/secrets", resource.DecimalSI).String() == n && len(quota.Spec.Hard) == 1 &&
				quota.Labels[membership.MemberLabel] == name
			return orError(ok, "labels %v, spec %+v", quota.Labels, quota.Spec)
		})
	}
	limited(h, "3")
	// The API server may take a moment to observe the ResourceQuota.
	created := 0
	h.Eventually("the API server refuses more", func() error {
		err := h.Client.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: fmt.Sprint("a", created)},
		})
		if err == nil {
			created++
		}
		return orError(apierrors.IsForbidden(err) && created >= 3, "%d were created, then: %v", created, err)
	})

	require.LessOrEqual(t, created, 10)

	first := time.Now()
	mustertest.Change(t, h.Client, quota, func(quota *corev1.ResourceQuota) { quota.Spec.Hard = limit("100") })
	limited(h, "3")
	mustertest.Change(t, h.Client, quota, func(quota *corev1.ResourceQuota) { quota.Labels = nil })
	limited(h, "3")
	require.GreaterOrEqual(t, time.Since(first), 9*time.Second, "the second correction waits")
	require.NoError(t, h.Client.Delete(t.Context(), quota))
	limited(h, "3")

	require.True(t, apierrors.IsNotFound(h.Client.Get(t.Context(),
		client.ObjectKey{Namespace: other.Name, Name: key.Name}, &corev1.ResourceQuota{})),
		"a namespace with the label is a member's only if it has the member's name")
	requests.take()
	mustertest.Change(t, h.Client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "a0"}},
		func(object *corev1.Secret) { object.Data = map[string][]byte{"a": []byte("b")} })
	require.NoError(t, h.Client.Delete(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "a0"}}))
	h.Eventually("the usage is counted", func() error {
		if err := h.Client.Get(t.Context(), key, quota); err != nil {
			return err
		}
		used := quota.Status.Used.Name("count/secrets", resource.DecimalSI)
		return orError(used.Value() == int64(created-1), "%+v", quota.Status)
	})
	require.NotContains(t, writes(requests.take()), "PUT resourcequotas", "a change of the usage causes no write")
	h.stop()

	larger := startHub(t, h.plane, hub.Options{NamespaceQuota: limit("5")})
	limited(larger, "5")
	larger.stop()
	without := startHub(t, h.plane, hub.Options{})
	without.token(name, v1alpha1.JoinTokenSpec{}) // the hub is up
	limited(without, "5")
	without.remove(name)
}
