package disaster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/admin"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/registration"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestRebuild_LostHub replaces a lost hub by an empty one, from the records of its members. Objects that users apply
// again adopt the objects that the lost hub had applied.
func TestRebuild_LostHub(t *testing.T) {
	inParallel(t, planeCount{hubs: 2, members: 1}, 30)
	w := newSystem(t, hub.Options{}, "east")
	w.deploy()
	m := w.members[0]
	before := m.uids(t)
	w.stopHub()
	require.NoError(t, hubPlanes.stop(w.plane))

	w.prepareHub(hubPlanes.borrow(t))
	done := make(chan error, 1)
	go func() {
		done <- admin.Rebuild(t.Context(), w.plane.Config(), admin.RebuildOptions{
			Members: []*rest.Config{m.plane.Config()}, Timeout: timeout, Wait: timeout,
		})
	}()
	w.eventually("the MemberCluster exists", func() error {
		return w.client.Get(t.Context(), client.ObjectKey{Name: m.name}, &membershipv1alpha1.MemberCluster{})
	})
	w.startHub()
	require.NoError(t, <-done)
	m.requireUnchanged(t, before)
	w.setPeriod(m.name)
	w.waitUntilJoined(m.name)
	w.apply()
	w.update()
	m.requireUnchanged(t, before)
	require.NoError(t, admin.Rebuild(t.Context(), w.plane.Config(), admin.RebuildOptions{
		Members: []*rest.Config{m.plane.Config()}, Timeout: timeout,
	}), "Rebuild may be repeated")
	w.update()
	m.requireUnchanged(t, before)
}

// TestHubs checks that one member survives a credential of another hub, a clone with its credentials, and a move to the
// other hub.
func TestHubs(t *testing.T) {
	inParallel(t, planeCount{hubs: 2, members: 2}, 160)
	w := newSystem(t, hub.Options{}, "east")
	w.deploy()
	other := newSystem(t, hub.Options{})
	w.step("OtherHubsCredential", func(t *testing.T) { w.otherHubsCredential(t, other) }, other)
	w.step("ClonedWithItsSecrets", w.clonedWithItsSecrets)
	w.step("MoveToAnotherHub", func(t *testing.T) { w.moveTo(t, other) }, other)
}

// moveTo moves the member while its hub runs. Workloads keep their UIDs, and the former hub deletes nothing.
func (w *system) moveTo(t *testing.T, other *system) {
	m := w.members[0]
	before := m.uids(t)
	other.members = w.members

	bootstrap, err := registration.ParseBootstrap(other.token(m.name))
	require.NoError(t, err)
	require.NoError(t, admin.Move(t.Context(), m.plane.Config(), bootstrap, admin.RegisterOptions{Wait: timeout}))
	other.setPeriod(m.name)
	other.waitUntilJoined(m.name)
	m.requireUnchanged(t, before)
	other.apply()
	other.update()
	m.requireUnchanged(t, before)

	cluster := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: m.name}}
	require.NoError(t, w.client.Delete(t.Context(), cluster))
	m.requireUnchangedFor(t, before, quiet+5*time.Second)
	other.update()
	m.requireUnchanged(t, before)
}
