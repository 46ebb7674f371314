package clusterprofile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"pgregory.net/rapid"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

// atEndpoint returns a change that sets the endpoint and the Secret of a member.
func atEndpoint(server string, ref membershipv1alpha1.KubeConfigSecretRef) func(*membershipv1alpha1.MemberCluster) {
	return func(m *membershipv1alpha1.MemberCluster) {
		m.Spec.KubeConfigSecretRef, m.Status.Endpoint = &ref,
			&membershipv1alpha1.Endpoint{Server: server, CABundle: []byte("ca")}
	}
}

// providerOf returns a provider that returns the endpoint of a member, and nil for a member without one.
func providerOf(name string) AccessProvider {
	return AccessProvider{Name: name, Cluster: func(m *membershipv1alpha1.MemberCluster) *clientcmdv1.Cluster {
		if m.Status.Endpoint == nil {
			return nil
		}
		return &clientcmdv1.Cluster{Server: m.Status.Endpoint.Server}
	}}
}

func TestKubeconfigSecretReader(t *testing.T) {
	entry := func(server, namespace, key string) []any {
		return []any{map[string]any{"name": "kubeconfig-secretreader", "cluster": map[string]any{
			"server": server, "certificate-authority-data": "Y2E=", "extensions": []any{map[string]any{
				"name": "client.authentication.k8s.io/exec", "extension": map[string]any{"name": "east-kubeconfig",
					"namespace": namespace, "key": key},
			}},
		}}}
	}
	for _, test := range []struct {
		reason string
		member *membershipv1alpha1.MemberCluster
		want   []any
	}{
		{"a Secret in the default namespace, with the default key",
			east(atEndpoint("https://east", membershipv1alpha1.KubeConfigSecretRef{Name: "east-kubeconfig"})),
			entry("https://east", "connections", "value")},
		{
			"a Secret in another namespace, with another key",
			east(atEndpoint("https://east", membershipv1alpha1.KubeConfigSecretRef{Name: "east-kubeconfig", Namespace: "capi",
				Key: "admin"})),
			entry("https://east", "capi", "admin"),
		},
		{"a member without a Secret", east(), nil},
		{"a member without an endpoint", east(func(m *membershipv1alpha1.MemberCluster) {
			m.Spec.KubeConfigSecretRef = &membershipv1alpha1.KubeConfigSecretRef{Name: "east-kubeconfig"}
		}), nil},
	} {
		profile := ProfileOf(test.member, Options{AccessProviders: []AccessProvider{KubeconfigSecretReader("connections")}})
		got, _, err := unstructured.NestedSlice(profile.Object, "status", "accessProviders")
		require.NoError(t, err, test.reason)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.reason, diff)
		}
	}
}

func TestProfileOf_InvalidExtension(t *testing.T) {
	broken := AccessProvider{Name: "broken", Cluster: func(*membershipv1alpha1.MemberCluster) *clientcmdv1.Cluster {
		return &clientcmdv1.Cluster{Server: "https://east",
			Extensions: []clientcmdv1.NamedExtension{{Name: "x", Extension: runtime.RawExtension{Raw: []byte("{")}}}}
	}}
	profile := ProfileOf(east(atEndpoint("https://east", membershipv1alpha1.KubeConfigSecretRef{Name: "s"})),
		Options{AccessProviders: []AccessProvider{broken, providerOf("a")}})
	names, _, _ := unstructured.NestedSlice(profile.Object, "status", "accessProviders")
	require.Len(t, names, 1, "other access providers are written")
}

func TestAmendProfile_AccessProviders(t *testing.T) {
	provider := func(name, server string) any {
		return map[string]any{"name": name, "cluster": map[string]any{"server": server}}
	}
	here := east(atEndpoint("https://east", membershipv1alpha1.KubeConfigSecretRef{Name: "s"}))
	for _, test := range []struct {
		reason string
		have   []any
		member *membershipv1alpha1.MemberCluster
		want   []any // nil: nothing to write
	}{
		{"a missing entry is added", nil, here, []any{provider("ours", "https://east")}},
		{"an existing entry is not changed", []any{provider("ours", "https://east")}, here, nil},
		{"a changed entry is updated, and other entries keep their positions",
			[]any{provider("theirs", "x"), provider("ours", "https://west"),
				"odd"}, here, []any{provider("theirs", "x"), provider("ours", "https://east"), "odd"}},
		{"the entry of a member without an endpoint is removed, and others stay",
			[]any{provider("ours", "https://east"), provider("theirs", "x")},
			east(), []any{provider("theirs", "x")}},
		{"entries of other providers cause no write", []any{provider("theirs", "x")}, east(), nil},
	} {
		o := Options{AccessProviders: []AccessProvider{providerOf("ours")}}
		have := ProfileOf(east(), o)
		if test.have != nil {
			have.Object["status"].(map[string]any)["accessProviders"] = test.have
		}
		_, status, transition := amendProfile(have, ProfileOf(test.member, o), o.AccessProviders)
		require.False(t, transition, test.reason)
		if test.want == nil {
			require.Nil(t, status, test.reason)
			continue
		}
		if diff := cmp.Diff(map[string]any{"status": map[string]any{"accessProviders": test.want}}, status); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.reason, diff)
		}
	}
}

// TestAmendProfile_AccessProvidersIdempotent checks that after the changes are applied, no further change is necessary,
// and that entries of other providers stay.
func TestAmendProfile_AccessProvidersIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{AccessProviders: []AccessProvider{providerOf("a"), providerOf("b")}}
		have := ProfileOf(east(), o)
		var theirs []any
		var entries []any
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4, rapid.ID).Draw(t,
			"entries") {
			item := map[string]any{"name": name, "cluster": map[string]any{"server": "old"}}
			entries = append(entries, item)
			if name > "b" {
				theirs = append(theirs, item)
			}
		}
		have.Object["status"].(map[string]any)["accessProviders"] = entries
		member := east()
		if rapid.Bool().Draw(t, "has an endpoint") {
			member = east(atEndpoint("https://east", membershipv1alpha1.KubeConfigSecretRef{Name: "s"}))
		}
		_, status, _ := amendProfile(have, ProfileOf(member, o), o.AccessProviders)
		have.Object = merge(have.Object, status)
		_, status, _ = amendProfile(have, ProfileOf(member, o), o.AccessProviders)
		require.Nil(t, status)
		for _, item := range theirs {
			require.Contains(t, list(have.Object["status"].(map[string]any), "accessProviders"), item)
		}
	})
}
