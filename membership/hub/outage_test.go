package hub_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestOutage_RecordsEvents checks that the outage guard records an Event about the hub's ConfigMap when it begins to
// withhold taints and failover, and when it stops. A fleet of one member is enough.
func TestOutage_RecordsEvents(t *testing.T) { testkit.Virtual(t, testOutageRecordsEvents) }

func testOutageRecordsEvents(t *testing.T) {
	h := startHub(t, newMemory(t), hub.Options{})
	// The plane is shared: the tests before this one may have left Events about outages of their hubs.
	earlier := map[types.UID]bool{}
	var before eventsv1.EventList
	require.NoError(t, h.Client.List(t.Context(), &before, client.InNamespace(membership.RegistrationNamespace)))
	for _, event := range before.Items {
		earlier[event.UID] = true
	}
	until := func(reason, kind, note string) {
		t.Helper()
		h.Eventually("the hub records the Event "+reason, func() error {
			var list eventsv1.EventList
			if err := h.Client.List(t.Context(), &list, client.InNamespace(membership.RegistrationNamespace)); err != nil {
				return err
			}
			for _, event := range list.Items {
				if !earlier[event.UID] && event.Reason == reason && event.Type == kind &&
					event.Regarding.Name == membership.HubConfigMap {
					require.Contains(t, event.Note, note)
					return nil
				}
			}
			return errors.New("the hub has recorded no such Event")
		})
	}
	a := h.joined(h.token("outage", v1alpha1.JoinTokenSpec{}), agent.Options{Name: "outage"})
	a.stop()
	until("OutageSuspected", "Warning", "1 of 1 members are late with their heartbeats or not ready, so the hub itself "+
		"may be the cause: taints and failover of these members are withheld.")
	a.start()
	until("OutageEnded", "Normal", "Enough of the 1 members are observed again")
	h.remove("outage")
	a.stop()
}
