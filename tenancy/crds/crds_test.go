package crds_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/crdinstall/crdtest"
	membershipcrds "github.com/muster-sdk/muster/membership/crds"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/tenancy/crds"
	"github.com/muster-sdk/muster/tenancy/v1alpha1"
)

var plane = localplane.Shared{Options: localplane.Options{Name: "tenancy-crds"}}

func TestMain(m *testing.M) { mustertest.Main(m, &plane) }

var scheme = mustertest.Scheme(v1alpha1.AddToScheme, membershipv1alpha1.AddToScheme, apiextensionsv1.AddToScheme)

func installed(t *testing.T) client.Client {
	t.Helper()
	return mustertest.Client(t, plane.ForTest(t).Config(), scheme, crds.Install)
}

func set(name string, selector *metav1.LabelSelector) *v1alpha1.ClusterSet {
	return &v1alpha1.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ClusterSetSpec{Selector: selector}}
}

func binding(namespace, name, set string) *v1alpha1.ClusterSetBinding {
	return &v1alpha1.ClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.ClusterSetBindingSpec{ClusterSetName: set},
	}
}

func limited(change func(*v1alpha1.ClusterSetBindingSpec)) *v1alpha1.ClusterSetBinding {
	b := binding("default", "invalid", "europe")
	change(&b.Spec)
	return b
}

func TestInstall_IsServedAndIdempotent(t *testing.T) {
	c := installed(t)
	require.NoError(t, c.List(t.Context(), &v1alpha1.ClusterSetList{}))
	require.NoError(t, c.List(t.Context(), &v1alpha1.ClusterSetBindingList{}))
	before := crdtest.Versions(t, c)
	require.Equal(t, []string{"clustersetbindings.tenancy.muster.dev", "clustersets.tenancy.muster.dev",
		"selectiongrants.tenancy.muster.dev"}, slices.Sorted(maps.Keys(before)))
	crdtest.InstallsNothing(t, c, crds.Install)
	require.Equal(t, before, crdtest.Versions(t, c), "a second installation must not write")
}

func TestAPIServer_RefusesInvalidObjects(t *testing.T) {
	c := installed(t)
	expression := func(operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "region", Operator: operator, Values: values},
		}}
	}
	for name, test := range map[string]struct {
		object client.Object
		want   crdtest.Complaint
	}{
		"no selector": {set("invalid", nil), crdtest.Complaint{Field: "spec.selector", Message: "Required value"}},
		"an unknown operator": {set("invalid", expression("Like", "eu")), crdtest.Complaint{Field: "spec.selector",
			Message: "operator"}},
		"In without values": {set("invalid", expression("In")), crdtest.Complaint{Field: "spec.selector",
			Message: "values"}},
		"Exists with values": {set("invalid", expression("Exists", "eu")), crdtest.Complaint{Field: "spec.selector",
			Message: "values"}},
		"no set": {
			binding("default", "invalid", ""), crdtest.Complaint{Field: "spec.clusterSetName", Message: "at least 1"},
		},
		"a kind without a name": {
			limited(func(s *v1alpha1.ClusterSetBindingSpec) { s.Kinds = []v1alpha1.ObjectKind{{Group: "apps"}} }),
			crdtest.Complaint{Field: "spec.kinds[0].kind", Message: "at least 1"},
		},
		"a ServiceAccount without a namespace": {
			limited(func(s *v1alpha1.ClusterSetBindingSpec) { s.ServiceAccount = &v1alpha1.ServiceAccount{Name: "deployer"} }),
			crdtest.Complaint{Field: "spec.serviceAccount.namespace", Message: "at least 1"},
		},
		"a grant for no namespace": {
			grant(v1alpha1.SelectionGrantSpec{Objects: anyObject}),
			crdtest.Complaint{Field: "spec.namespaces", Message: "Required value"},
		},
		"a grant for an invalid namespace": {
			grant(v1alpha1.SelectionGrantSpec{Namespaces: []string{"Shop"}, Objects: anyObject}),
			crdtest.Complaint{Field: "spec.namespaces[0]", Message: "should match"},
		},
		"a grant of no object": {
			grant(v1alpha1.SelectionGrantSpec{Namespaces: []string{"shop"}}),
			crdtest.Complaint{Field: "spec.objects", Message: "Required value"},
		},
	} {
		err := c.Create(t.Context(), test.object, client.DryRunAll)
		require.True(t, apierrors.IsInvalid(err), "%s: %v", name, err)
		require.ErrorContains(t, err, test.want.Field, name)
		require.ErrorContains(t, err, test.want.Message, name)
	}
	for name, selector := range map[string]*metav1.LabelSelector{
		"everything": {}, "a label": {MatchLabels: map[string]string{"region": "eu"}}, "values": expression("NotIn", "eu",
			"us"),
		"no values": expression("DoesNotExist"),
	} {
		require.NoError(t, c.Create(t.Context(), set("valid", selector), client.DryRunAll), name)
	}
}

var anyObject = []v1alpha1.SelectableObjects{{Kind: "Secret", Namespace: "platform"}}

func grant(spec v1alpha1.SelectionGrantSpec) *v1alpha1.SelectionGrant {
	return &v1alpha1.SelectionGrant{ObjectMeta: metav1.ObjectMeta{Name: "grant"}, Spec: spec}
}

// TestSelectionGrant_TenantsCannotWrite checks that a user with every verb in a namespace cannot create a
// SelectionGrant: the kind is cluster-scoped.
func TestSelectionGrant_TenantsCannotWrite(t *testing.T) {
	c := installed(t)
	namespace := mustertest.Namespace(t, c)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "everything"}}
	role.Rules = []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}
	require.NoError(t, mustertest.Grant(t.Context(), c, "tenant-"+namespace, role))
	tenant := mustertest.Client(t, plane.ForTest(t).User("tenant-"+namespace), scheme)
	mustertest.Eventually(t, time.Minute, "the role is in force", func() error {
		return tenant.List(t.Context(), &v1alpha1.ClusterSetBindingList{}, client.InNamespace(namespace))
	})
	valid := grant(v1alpha1.SelectionGrantSpec{Namespaces: []string{"*"}, Objects: anyObject})
	err := tenant.Create(t.Context(), valid.DeepCopy())
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.NoError(t, c.Create(t.Context(), valid, client.DryRunAll))
}

func TestClusterSetBinding_SetIsImmutable(t *testing.T) {
	c := installed(t)
	b := binding(mustertest.Namespace(t, c), "use", "europe")
	require.NoError(t, c.Create(t.Context(), b))
	b.Spec.ClusterSetName = "asia"
	require.ErrorContains(t, c.Update(t.Context(), b), "clusterSetName is immutable")
}

// TestBind checks that only users with the verb bind on a set can create a binding of it.
func TestBind(t *testing.T) {
	c := installed(t)
	namespace := mustertest.Namespace(t, c)
	user := func(name string, rules ...rbacv1.PolicyRule) client.Client {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"clustersetbindings"},
			Verbs: []string{"create", "update", "get"},
		})
		name += "-" + namespace
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
		require.NoError(t, mustertest.Grant(t.Context(), c, name, role))
		return mustertest.Client(t, plane.ForTest(t).User(name), scheme)
	}
	bind := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"clustersets"},
		Verbs: []string{"bind"}}
	europe := *bind.DeepCopy()
	europe.ResourceNames = []string{"europe"}
	read := *bind.DeepCopy()
	read.Verbs = []string{"get", "create", "update", "delete"}
	none, one, all := user("none", read), user("one", europe), user("all", bind)

	var err error
	mustertest.Holds(t, time.Minute, "the API server enforces the policy", func() bool {
		err = none.Create(t.Context(), binding(namespace, "none", "europe"), client.DryRunAll)
		return err != nil && !apierrors.IsInternalError(err)
	})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	for _, want := range []string{
		"spec.clusterSetName", "none-" + namespace, `the verb bind on clustersets.tenancy.muster.dev`,
		`resourceName "europe"`,
	} {
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, one.Create(t.Context(), binding(namespace, "one", "europe")))
	err = one.Create(t.Context(), binding(namespace, "other", "asia"))
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `may not bind ClusterSet "asia"`)
	require.NoError(t, all.Create(t.Context(), binding(namespace, "all", "asia")))

	// A change of labels needs no permission to bind: the set stays the same.
	b := &v1alpha1.ClusterSetBinding{}
	require.NoError(t, none.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "one"}, b))
	b.Labels = map[string]string{"team": "shop"}
	require.NoError(t, none.Update(t.Context(), b))

	// A change of the limits is a grant.
	b.Spec.ServiceAccount = &v1alpha1.ServiceAccount{Namespace: "kube-system", Name: "admin"}
	err = none.Update(t.Context(), b)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.NoError(t, one.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	b.Spec.Kinds = []v1alpha1.ObjectKind{{Group: "*", Kind: "*"}}
	require.NoError(t, one.Update(t.Context(), b))
	b.Spec.Kinds = nil
	err = none.Update(t.Context(), b)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

// TestLabels checks that only users with the verb bind on each set that a MemberCluster joins or leaves can change its
// labels accordingly.
func TestLabels(t *testing.T) {
	c := mustertest.Client(t, plane.ForTest(t).Config(), scheme, membershipcrds.Install, crds.Install)
	prefix := mustertest.Namespace(t, c)
	user := func(name string, sets ...string) client.Client {
		rules := []rbacv1.PolicyRule{{
			APIGroups: []string{membershipv1alpha1.GroupName}, Resources: []string{"memberclusters"},
			Verbs: []string{"create", "get", "update"},
		}}
		if len(sets) > 0 {
			rules = append(rules, rbacv1.PolicyRule{
				APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"clustersets"}, Verbs: []string{"bind"},
				ResourceNames: sets,
			})
		}
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + prefix}, Rules: rules}
		require.NoError(t, mustertest.Grant(t.Context(), c, role.Name, role))
		return mustertest.Client(t, plane.ForTest(t).User(role.Name), scheme)
	}
	requirement := func(operator metav1.LabelSelectorOperator, key string, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator,
			Values: values}}}
	}
	for name, selector := range map[string]*metav1.LabelSelector{
		"every":    {},
		"europe":   {MatchLabels: map[string]string{"region": "eu"}},
		"overseas": requirement(metav1.LabelSelectorOpIn, "region", "us", "asia"),
		"large":    requirement(metav1.LabelSelectorOpExists, "large"),
		"regular":  requirement(metav1.LabelSelectorOpNotIn, "tier", "free"),
		"intact":   requirement(metav1.LabelSelectorOpDoesNotExist, "broken"),
	} {
		s := set(name, selector)
		require.NoError(t, c.Create(t.Context(), s))
		t.Cleanup(func() { _ = c.Delete(context.Background(), s) })
	}
	member := func(labels map[string]string) *membershipv1alpha1.MemberCluster {
		return &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: prefix, Labels: labels}}
	}
	none, all := user("none"), user("all", "europe", "overseas", "large", "regular", "intact")
	mustertest.Holds(t, time.Minute, "the API server enforces the policy for each set", func() bool {
		for key, value := range map[string]string{"region": "eu", "large": "", "tier": "free", "broken": ""} {
			if err := none.Create(t.Context(), member(map[string]string{key: value}), client.DryRunAll); !apierrors.IsForbidden(
				err) {
				return false
			}
		}
		err := none.Create(t.Context(), member(map[string]string{"region": "us"}), client.DryRunAll)
		return apierrors.IsForbidden(err) && all.Create(t.Context(), member(map[string]string{"region": "us"}),
			client.DryRunAll) == nil
	})
	require.NoError(t, none.Create(t.Context(), member(map[string]string{"team": "shop"})), "no set selects the label")
	for name, test := range map[string]struct {
		before, after map[string]string
		bind          []string // the sets that the user needs permission to bind
		message       string
	}{
		"another label": {nil, map[string]string{"team": "toys"}, nil, ""},
		"another value that is in no set": {map[string]string{"region": "mars"}, map[string]string{"region": "moon"}, nil,
			""},
		"another value of the same set": {map[string]string{"region": "us"}, map[string]string{"region": "asia"}, nil, ""},
		"a cluster joins a set": {nil, map[string]string{"region": "eu"}, []string{"europe"},
			`adds the cluster to ClusterSet "europe"`},
		"a cluster leaves a set": {map[string]string{"region": "eu"}, nil, []string{"europe"},
			`removes the cluster from ClusterSet "europe"`},
		"a cluster moves between sets": {map[string]string{"region": "eu"}, map[string]string{"region": "us"},
			[]string{"europe", "overseas"}, ""},
		"a key that must exist": {nil, map[string]string{"large": ""}, []string{"large"},
			`adds the cluster to ClusterSet "large"`},
		"a key that must not exist": {nil, map[string]string{"broken": "x"}, []string{"intact"},
			`removes the cluster from ClusterSet "intact"`},
		"a value that is excluded": {
			map[string]string{"tier": "free"}, map[string]string{"tier": "gold"}, []string{"regular"},
			`adds the cluster to ClusterSet "regular"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			change := func(as client.Client, o ...client.UpdateOption) error {
				m := member(nil)
				require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(m), m))
				m.Labels = test.before
				require.NoError(t, c.Update(t.Context(), m))
				m.Labels = test.after
				return as.Update(t.Context(), m, o...)
			}
			if len(test.bind) == 0 {
				require.NoError(t, change(none))
				return
			}
			permitted := user(strings.Join(test.bind, "-"), test.bind...)
			mustertest.Eventually(t, time.Minute, "a user with each permission changes labels", func() error {
				return change(permitted)
			})
			for i := range test.bind {
				others := slices.Delete(slices.Clone(test.bind), i, i+1)
				limited := user("lacks-"+strings.Join(test.bind, "-")+"-"+test.bind[i], others...)
				resource := fmt.Sprintf("resourceName %q", test.bind[i])
				mustertest.Eventually(t, time.Minute, "the API server observes the permissions", func() error {
					switch err := change(limited); {
					case err == nil:
						require.Fail(t, "a user without a permission changes labels", test.bind[i])
					case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.message) || !strings.Contains(err.Error(),
						resource):
						return err
					}
					return nil
				})
			}
		})
	}
	// A change of the specification needs no permission on sets.
	m := member(nil)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(m), m))
	m.Spec.Accepted = new(true)
	require.NoError(t, none.Update(t.Context(), m))
}

func TestColumnsAndShortNames(t *testing.T) {
	c := installed(t)
	s := set("columns", &metav1.LabelSelector{})
	require.NoError(t, c.Create(t.Context(), s))
	t.Cleanup(func() { _ = c.Delete(context.Background(), s) })
	s.Status = v1alpha1.ClusterSetStatus{Clusters: 3, ReadyClusters: 2, Bindings: 0}
	require.NoError(t, c.Status().Update(t.Context(), s))
	order, cells := crdtest.Columns(t, plane.ForTest(t).Config(), "/apis/tenancy.muster.dev/v1alpha1/clustersets/columns")
	require.Equal(t, []string{"Name", "Clusters", "Ready", "Bindings", "Message", "Age"}, order)
	want := map[string]any{"Name": "columns", "Clusters": 3.0, "Ready": 2.0, "Bindings": 0.0, "Message": nil}
	if diff := cmp.Diff(want, cells); diff != "" {
		t.Errorf("cells of a ClusterSet (-want +got):\n%s", diff)
	}
	for name, short := range map[string]string{"clustersets.tenancy.muster.dev": "cset",
		"clustersetbindings.tenancy.muster.dev": "csb"} {
		var definition apiextensionsv1.CustomResourceDefinition
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: name}, &definition))
		require.Equal(t, []string{short}, definition.Status.AcceptedNames.ShortNames, name)
	}
}
