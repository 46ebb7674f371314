package clusterprofile_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/testkit"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/placement/clusterprofile"
)

func complete(u *unstructured.Unstructured) bool { return status(u, "Joined") != "" }

// status returns the status of a condition of a profile.
func status(profile *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(profile.Object, "status", "conditions")
	for _, condition := range conditions {
		if c := condition.(map[string]any); c["type"] == kind {
			return c["status"].(string)
		}
	}
	return ""
}

// property returns the value of the only property.
func property(profile *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(profile.Object, "status", "properties")
	if len(list) == 0 {
		return ""
	}
	return list[0].(map[string]any)["value"].(string)
}

func hasProperty(value string) func(*unstructured.Unstructured) bool {
	return func(u *unstructured.Unstructured) bool { return property(u) == value }
}

func (h *hub) patch(u *unstructured.Unstructured, patch string, subresources ...string) {
	h.T.Helper()
	u = u.DeepCopy()
	if len(subresources) > 0 {
		require.NoError(h.T, h.Client.Status().Patch(h.T.Context(), u, client.RawPatch(types.MergePatchType, []byte(patch))))
		return
	}
	require.NoError(h.T, h.Client.Patch(h.T.Context(), u, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// TestExport_Profiles checks that a member has a profile from its acceptance until its deletion, and that a member that
// was never accepted has none.
func TestExport_Profiles(t *testing.T) { testkit.Virtual(t, testExportProfiles) }

func testExportProfiles(t *testing.T) {
	h := newHub(t, profiles)
	h.member("nobody", func(m *membershipv1alpha1.MemberCluster) { m.Spec.Accepted = nil })
	east := h.member("east")
	r := h.start() // after the status of the member is set
	profile := h.requireObject(profiles, "east", complete)

	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(east), east))
	want := clusterprofile.ProfileOf(east, h.options)
	for _, field := range []string{"spec", "status"} {
		if diff := cmp.Diff(want.Object[field], profile.Object[field]); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", field, diff)
		}
	}
	require.Equal(t, want.GetLabels(), profile.GetLabels())
	require.Equal(t, []string{ // the first attempt finds no namespace
		"create multicluster.x-k8s.io/clusterprofiles", "create /namespaces", "create multicluster.x-k8s.io/clusterprofiles",
		"patch multicluster.x-k8s.io/clusterprofiles/status",
	}, r.awaitQuiet(t))
	require.Nil(t, h.get(profiles, "nobody"))

	east.Spec.Accepted = new(false)
	require.NoError(t, h.Client.Update(t.Context(), east))
	h.status("east", func(s *membershipv1alpha1.MemberClusterStatus) { s.Conditions[0].Status = metav1.ConditionFalse })
	h.requireObject(profiles, "east", func(u *unstructured.Unstructured) bool { return status(u, "Joined") == "False" })

	require.NoError(t, h.Client.Delete(t.Context(), east))
	h.requireGone(profiles, "east")
	second := h.member("east")
	profile = h.requireObject(profiles, "east", complete)
	require.Equal(t, second.UID, profile.GetOwnerReferences()[0].UID)
}

// TestExport_CoalescesChanges checks that frequent changes are written once in 30 s, and a changed status of a
// condition immediately.
func TestExport_CoalescesChanges(t *testing.T) { testkit.Virtual(t, testExportCoalescesChanges) }

func testExportCoalescesChanges(t *testing.T) {
	h := newHub(t, profiles)
	r := h.start()
	h.member("east")
	h.requireObject(profiles, "east", complete)
	r.awaitQuiet(t)
	h.clock.Step(time.Hour) // earlier writes are ignored

	h.property("east", "0")
	h.requireObject(profiles, "east", hasProperty("0"))
	before := len(r.awaitQuiet(t))
	for i := range 20 {
		h.property("east", fmt.Sprint(i+1))
	}
	require.Len(t, r.awaitQuiet(t), before, "the last write was less than 30 s ago")
	h.clock.Step(29 * time.Second)
	require.Len(t, r.awaitQuiet(t), before, "the last write was 29 s ago")
	h.clock.Step(time.Second)
	h.requireObject(profiles, "east", hasProperty("20"))
	require.Len(t, r.awaitQuiet(t), before+1, "twenty changes are one write")

	h.property("east", "a")
	h.status("east", func(s *membershipv1alpha1.MemberClusterStatus) { s.Conditions[1].Status = metav1.ConditionUnknown })
	profile := h.requireObject(profiles, "east", func(u *unstructured.Unstructured) bool {
		return status(u, "ControlPlaneHealthy") == "Unknown"
	})
	require.Equal(t, "a", property(profile), "the waiting change is part of the write")
	require.Len(t, r.awaitQuiet(t), before+2)

	for i := range 40 { // a member that flaps
		h.status("east", func(s *membershipv1alpha1.MemberClusterStatus) {
			s.Conditions[1].Status = []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}[i%2]
		})
		if i < 8 {
			want := []string{"True", "False"}[i%2]
			h.requireObject(profiles, "east", func(u *unstructured.Unstructured) bool {
				return status(u, "ControlPlaneHealthy") == want
			})
		}
	}
	require.Len(t, r.awaitQuiet(t), before+10, "at most ten writes in 30 s")
	require.Equal(t, "False", status(h.get(profiles, "east"), "ControlPlaneHealthy"))
	h.status("east", func(s *membershipv1alpha1.MemberClusterStatus) { s.Conditions[1].Status = metav1.ConditionTrue })
	require.Len(t, r.awaitQuiet(t), before+10)
	h.clock.Step(30 * time.Second)
	h.requireObject(profiles, "east", func(u *unstructured.Unstructured) bool {
		return status(u, "ControlPlaneHealthy") == "True"
	})
	require.Len(t, r.awaitQuiet(t), before+11)
}

// TestExport_ChangesOfOtherClients checks that additions of other clients to a profile stay, that their removals are
// reverted, and that a restart writes nothing.
func TestExport_ChangesOfOtherClients(t *testing.T) {
	testkit.Virtual(t, testExportChangesOfOtherClients)
}

func testExportChangesOfOtherClients(t *testing.T) {
	h := newHub(t, profiles)
	first := h.start()
	h.member("east")
	h.property("east", "1")
	profile := h.requireObject(profiles, "east", complete)
	first.awaitQuiet(t)
	h.patch(profile, `{"metadata":{"labels":{"team":"a"}},"spec":{"displayName":"The East"}}`)
	h.patch(profile, `{"status":{"accessProviders":[{"name":"secrets"}]}}`, "status")
	require.Len(t, first.awaitQuiet(t), 4, "additions of other clients cause no write")
	h.clock.Step(time.Hour)
	h.patch(profile, `{"metadata":{"labels":{"x-k8s.io/cluster-manager":null}}}`)
	h.patch(profile,
		`{"status":{"properties":null,"conditions":[{"type":"Mine","status":"True","reason":"Mine","message":"",`+
			`"lastTransitionTime":"2026-03-01T12:00:00Z"}]}}`, "status")
	h.requireObject(profiles, "east", func(u *unstructured.Unstructured) bool {
		return status(u, "Joined") == "True" && property(u) == "1"
	})
	first.awaitQuiet(t)
	h.clock.Step(time.Hour)
	profile = h.requireObject(profiles, "east", func(u *unstructured.Unstructured) bool {
		return u.GetLabels()["x-k8s.io/cluster-manager"] == "muster"
	})
	require.Equal(t, "a", profile.GetLabels()["team"])
	require.Equal(t, "True", status(profile, "Mine"))
	for _, field := range [][]string{{"spec", "displayName"}, {"status", "accessProviders"}} {
		_, found, err := unstructured.NestedFieldNoCopy(profile.Object, field...)
		require.NoError(t, err)
		require.True(t, found, field)
	}
	name, _, _ := unstructured.NestedString(profile.Object, "spec", "displayName")
	require.Equal(t, "The East", name)

	require.NoError(t, h.Client.Delete(t.Context(), profile))
	h.requireObject(profiles, "east", func(u *unstructured.Unstructured) bool {
		return u.GetUID() != profile.GetUID() && complete(u)
	})
	first.awaitQuiet(t)
	first.stop()
	second := h.start()
	require.Empty(t, second.awaitQuiet(t))
	require.Contains(t, second.recorder.all(), "watch multicluster.x-k8s.io/clusterprofiles")
}

// TestExport_MissingMembers checks that a profile is not deleted because a cache does not contain its member. If the
// member was deleted while the controller was down, the profile is deleted at the next start. Another cluster with the
// same name gets another profile.
func TestExport_MissingMembers(t *testing.T) { testkit.Virtual(t, testExportMissingMembers) }

func testExportMissingMembers(t *testing.T) {
	h := newHub(t, profiles)
	first := h.start()
	east := h.member("east")
	h.requireObject(profiles, "east", complete)
	first.awaitQuiet(t)
	first.stop()
	withoutMembers := h.start(func(_ *rest.Config, o *manager.Options) {
		o.Cache.ByObject = map[client.Object]cache.ByObject{
			&membershipv1alpha1.MemberCluster{}: {Label: labels.SelectorFromSet(labels.Set{"no": "one"})}}
	})
	h.Holds("the controller reads the member from the API server", func() bool {
		all := withoutMembers.recorder.all()
		return len(all) > 0 && slices.Contains(all, "get membership.muster.dev/memberclusters")
	})
	require.Empty(t, withoutMembers.awaitQuiet(t))
	withoutMembers.stop()
	require.NoError(t, h.Client.Delete(context.Background(), east))
	last := h.start()
	h.requireGone(profiles, "east")

	old := h.member("east")
	h.requireObject(profiles, "east", complete)
	last.awaitQuiet(t)
	last.stop()
	require.NoError(t, h.Client.Delete(t.Context(), old))
	again := h.member("east")
	h.start()
	h.requireObject(profiles, "east", func(u *unstructured.Unstructured) bool {
		return u.GetOwnerReferences()[0].UID == again.UID && complete(u)
	})
}

// TestExport_AccessProviders checks that a profile contains the access information of a member as long as the hub has
// it.
func TestExport_AccessProviders(t *testing.T) { testkit.Virtual(t, testExportAccessProviders) }

func testExportAccessProviders(t *testing.T) {
	h := newHub(t, profiles)
	h.options.AccessProviders = []clusterprofile.AccessProvider{clusterprofile.KubeconfigSecretReader("connections")}
	r := h.start()
	h.member("east", func(m *membershipv1alpha1.MemberCluster) {
		m.Spec.KubeConfigSecretRef = &membershipv1alpha1.KubeConfigSecretRef{Name: "east-kubeconfig"}
	})
	profile := h.requireObject(profiles, "east", complete)
	h.patch(profile, `{"status": {"accessProviders": [{"name": "theirs"}]}}`, "status")
	r.awaitQuiet(t)
	h.clock.Step(time.Hour) // earlier writes are ignored
	h.status("east", func(s *membershipv1alpha1.MemberClusterStatus) {
		s.Endpoint = &membershipv1alpha1.Endpoint{Server: "https://east:6443", CABundle: []byte("ca")}
	})
	access := func(u *unstructured.Unstructured) []any {
		all, _, _ := unstructured.NestedSlice(u.Object, "status", "accessProviders")
		return all
	}
	profile = h.requireObject(profiles, "east", func(u *unstructured.Unstructured) bool { return len(access(u)) == 2 })
	want := clusterprofile.ProfileOf(&membershipv1alpha1.MemberCluster{
		Spec: membershipv1alpha1.MemberClusterSpec{KubeConfigSecretRef: &membershipv1alpha1.KubeConfigSecretRef{
			Name: "east-kubeconfig"}},
		Status: membershipv1alpha1.MemberClusterStatus{Endpoint: &membershipv1alpha1.Endpoint{Server: "https://east:6443",
			CABundle: []byte("ca")}},
	}, h.options)
	require.Equal(t, append([]any{map[string]any{"name": "theirs"}}, access(want)...), access(profile),
		"the entry of the other client stays")
	before := len(r.awaitQuiet(t))
	h.clock.Step(time.Hour)
	require.Len(t, r.awaitQuiet(t), before, "the access provider is written once")

	h.status("east", func(s *membershipv1alpha1.MemberClusterStatus) { s.Endpoint = nil })
	h.requireObject(profiles, "east", func(u *unstructured.Unstructured) bool { return len(access(u)) == 1 })
}
