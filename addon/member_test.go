package addon_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/internal/testkit"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

// byMember is an add-on in the color of the input of its member.
type byMember struct {
	name  string
	calls *atomic.Int64
}

func (b byMember) Name() string { return b.name }

func (b byMember) Manifests(_ context.Context, in addon.Input) ([]client.Object, error) {
	b.calls.Add(1)
	color := in.Member.Annotations["example.com/zone"] + "/" + in.Member.Status.Version.Kubernetes
	for _, p := range in.Member.Status.Properties {
		color += "/" + p.Value
	}
	return []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: in.InstallNamespace, Name: b.name}, Data: map[string]string{"color": color},
	}}, nil
}

// TestManifests_FollowChangesOfMember checks that changed manifests after a change of a member reach it, and that its
// heartbeats cause no writes.
func TestManifests_FollowChangesOfMember(t *testing.T) {
	testkit.Virtual(t, testManifestsFollowChangesOfMember)
}

func testManifestsFollowChangesOfMember(t *testing.T) {
	h := newHub(t)
	h.members("a")
	h.runAgents()
	h.choose("all", "a")
	calls := &atomic.Int64{}
	r := h.start(addon.Options{Agents: []addon.Agent{byMember{h.name("x"), calls}}})
	h.addon("x", h.byPlacement("all"))
	h.waitForColor("x", "a", "/")
	for _, row := range []struct {
		change func(*membershipv1alpha1.MemberCluster)
		color  string
	}{
		{func(m *membershipv1alpha1.MemberCluster) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, "example.com/zone", "eu")
		}, "eu/"},
		{func(m *membershipv1alpha1.MemberCluster) { m.Status.Version.Kubernetes = "v1.36.3" }, "eu/v1.36.3"},
		{func(m *membershipv1alpha1.MemberCluster) {
			m.Status.Properties = []membershipv1alpha1.Property{{Name: "cloud", Value: "west"}}
		}, "eu/v1.36.3/west"},
	} {
		h.member("a", row.change)
		h.waitForColor("x", "a", row.color)
	}
	r.quiet(t)
	writes, callsBefore := r.wire.Writes(), calls.Load()
	for beat := range int64(20) {
		h.member("a", func(m *membershipv1alpha1.MemberCluster) {
			m.Status.Resources.Allocatable = corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(beat+1,
				resource.DecimalSI)}
			m.Status.Agents = []membershipv1alpha1.AgentStatus{{Type: membershipv1alpha1.MembershipAgent,
				LastHeartbeat: new(metav1.NowMicro())}}
		})
	}
	r.quiet(t)
	require.Equal(t, callsBefore, calls.Load(), "heartbeats must not cause calls of the add-on")
	require.Equal(t, writes, r.wire.Writes(), "heartbeats must not cause writes")
}
