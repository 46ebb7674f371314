package clusterprofile

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/tenancy"
)

type fixedTenancy struct{ rules *tenancy.Rules }

func (fixedTenancy) Watch(context.Context, func(string)) (func(), error) { return func() {}, nil }
func (f fixedTenancy) Rules(string) *tenancy.Rules                       { return f.rules }

// liveMember is an API server with one MemberCluster.
type liveMember struct {
	client.Reader
	member *membershipv1alpha1.MemberCluster
}

func (l liveMember) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	*into.(*membershipv1alpha1.MemberCluster) = *l.member
	return nil
}

// liveNamespace is an API server with one namespace. Nil: the namespace does not exist.
type liveNamespace struct {
	metadata.Getter
	namespace *metav1.PartialObjectMetadata
}

func (l liveNamespace) Get(context.Context, string, metav1.GetOptions, ...string) (*metav1.PartialObjectMetadata,
	error) {
	if l.namespace == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "team")
	}
	return l.namespace, nil
}

// TestWantedInSet checks the desired state of an existing profile in the namespace of a set, and that neither a stale
// cache of members nor one of namespaces removes the profile.
func TestWantedInSet(t *testing.T) {
	member := func(env string) *membershipv1alpha1.MemberCluster {
		m := &membershipv1alpha1.MemberCluster{}
		m.Name, m.UID, m.Labels = "east", "1", map[string]string{"env": env}
		return m
	}
	namespace := func(set string) *metav1.PartialObjectMetadata {
		n := &metav1.PartialObjectMetadata{}
		if n.Name = "team"; set != "" {
			n.Labels = map[string]string{setLabel: set}
		}
		return n
	}
	ending := namespace("")
	ending.DeletionTimestamp = new(metav1.Now())
	sets := []tenancy.Set{
		{Name: "prod", Selector: labels.SelectorFromSet(labels.Set{"env": "prod"})},
		{Name: "all", Selector: labels.Everything()},
	}
	both := tenancy.NewRules("team", sets, []tenancy.Binding{
		{Namespace: "team", Name: "a", Set: "all"}, {Namespace: "team", Name: "p", Set: "prod"}})
	o := Options{}.withDefaults()
	existing := profileInSet(member("prod"), o, "team", "prod", "p")
	stripped := existing.DeepCopy()
	stripped.SetLabels(nil)
	for _, test := range []struct {
		reason       string
		rules        *tenancy.Rules
		cached, live *metav1.PartialObjectMetadata
		member       string
		liveMember   string
		have         *unstructured.Unstructured
		want, by     string // the set and the binding of the wanted profile
		behind       bool
	}{
		{reason: "granted by the binding of the set", rules: both, cached: namespace("prod"), member: "prod",
			have: existing, want: "prod", by: "p"},
		{reason: "new, by the binding of the set", rules: both, cached: namespace("prod"), member: "prod",
			want: "prod", by: "p"},
		{reason: "new, not of the set", rules: both, cached: namespace("prod"), member: "dev"},
		{reason: "new, without a label", rules: both, member: "prod"},
		{reason: "another binding grants it, of another set", rules: both, cached: namespace("prod"), member: "dev",
			liveMember: "dev", have: existing},
		{reason: "the cache of members is stale", rules: both, cached: namespace("prod"), member: "dev",
			liveMember: "prod", have: existing, behind: true},
		{reason: "no rules", cached: namespace("prod"), member: "prod", have: existing, want: "prod", by: "p"},
		{reason: "neither rules nor the label of the profile", cached: namespace("prod"), member: "prod", have: stripped,
			want: "prod", by: "p"},
		{reason: "the label is removed", rules: both, live: namespace(""), member: "prod", have: existing},
		{reason: "the cache of namespaces is stale", rules: both, live: namespace("prod"), member: "prod", have: existing,
			behind: true},
		{reason: "the namespace is missing", rules: both, member: "prod", have: existing, behind: true},
		{reason: "the namespace is being deleted", rules: both, live: ending, member: "prod", have: existing, behind: true},
		{reason: "another set, which grants it", rules: both, cached: namespace("all"), member: "prod", have: existing,
			want: "all", by: "a"},
		{reason: "another set, which does not exist", rules: both, cached: namespace("none"), live: namespace("none"),
			member: "prod", have: existing},
	} {
		t.Run(test.reason, func(t *testing.T) {
			store := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
			if test.cached != nil {
				require.NoError(t, store.Add(test.cached))
			}
			e := &exporter{Options: o, live: liveMember{member: member(test.liveMember)},
				namespaces: liveNamespace{namespace: test.live}}
			e.Tenancy = fixedTenancy{test.rules}
			e.sets.Store(&setNamespaces{store})
			got, err := e.wantedInSet(t.Context(), key{Namespace: "team", Name: "east"}, test.have, member(test.member))
			if test.behind {
				require.ErrorIs(t, err, errOutdated)
				return
			}
			require.NoError(t, err)
			if test.want == "" {
				require.Nil(t, got)
				return
			}
			require.Equal(t, test.want, got.GetLabels()[setLabel])
			require.Equal(t, test.by, got.GetAnnotations()[bindingAnnotation])
			require.Equal(t, "team", got.GetNamespace())
		})
	}
}
