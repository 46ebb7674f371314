package apply_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// fakeClockAs gives the owner an engine with the identity of another client and a fake clock.
func (f *fixture) fakeClockAs(config *rest.Config) *clocktesting.FakePassiveClock {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	f.counted = &requests{}
	config.Wrap(f.counted.wrap)
	f.engine = apply.New(newClient(f.T, config), apply.Options{Clock: clock})
	return clock
}

// TestNamespaceOfClusterScopedKind checks that the namespace of an object of a cluster-scoped kind is dropped with a
// warning, also if the same set defines the kind, and that the inventory has the object without a namespace.
func TestNamespaceOfClusterScopedKind(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	group := f.Namespace + ".example.org"
	definition := f.object(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: ` +
		`zones.` + group + `}, spec: {group: ` + group + `,
  scope: Cluster, names: {plural: zones, kind: Zone},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`)
	t.Cleanup(func() { _ = f.Client.Delete(noContext{t}.Context(), definition.Manifest.DeepCopy()) })
	objects := []apply.Object{
		definition,
		f.object("{apiVersion: " + group + "/v1, kind: Zone, metadata: {name: a, namespace: NS}}"),
		f.object("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS-scoped, namespace: NS}}"),
		f.object("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS-scoped, namespace: " +
			"other}}"),
	}
	for range 2 {
		changes := f.apply(objects...)
		for i, kind := range []string{"Zone", "ClusterRole"} {
			change := changes[i+1]
			require.True(t, change.Done(), "%s: %s %v", change.Object, change.Message, change.Err)
			require.Contains(t, change.Message, "metadata.namespace "+f.Namespace+" of the manifest is ignored because "+kind+
				" is cluster-scoped")
			require.Empty(t, change.Object.Namespace)
		}
		require.Equal(t, v1alpha1.ReasonInvalid, changes[3].Reason, "two manifests of one object")
		require.Contains(t, changes[3].Message, "objects[2] is the same object")
	}
	require.Empty(t, apply.Stale(f.inventory, objects), "all applied objects are in the set")
	for _, entry := range f.inventory {
		require.Empty(t, entry.Namespace, entry.ResourceIdentifier)
		require.NotEmpty(t, entry.UID, entry.ResourceIdentifier)
	}
	require.Equal(t, f.Namespace, objects[1].Manifest.GetNamespace(), "the manifests of the caller are not changed")
	// In the foreground, the Zone waits for the garbage collector, which looks for new kinds only twice a minute.
	f.prune(v1alpha1.DeletePolicy{Propagation: metav1.DeletePropagationBackground})
}

// TestForbidden checks that a forbidden object is neither sent nor read on each reconcile, and that a permission
// which is granted later takes effect soon.
func TestForbidden(t *testing.T) {
	t.Parallel()
	for name, verbs := range map[string][]string{"reads are forbidden": nil, "writes are forbidden": {"get", "list"}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			grant := func(verbs []string) {
				role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "user"},
					Rules: []rbacv1.PolicyRule{
						{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: append([]string{"watch"}, verbs...)},
					}}
				if err := f.Client.Create(t.Context(), role); err != nil {
					require.NoError(t, f.Client.Update(t.Context(), role))
				}
			}
			grant(verbs)
			require.NoError(t, f.Client.Create(t.Context(), &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "user"},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: f.Namespace}},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "user"},
			}))
			clock := f.fakeClockAs(plane.ForTest(t).User(f.Namespace))
			var objects []apply.Object
			for _, name := range []string{"a", "b", "c", "d", "e"} { // enough objects for a list request
				objects = append(objects, f.configMap(name, "{k: v}"))
			}
			for range 3 { // the second pass finds that reads are forbidden as well
				for _, change := range f.apply(objects...) {
					require.Equal(t, v1alpha1.ReasonForbidden, change.Reason, change.Message)
				}
			}
			f.counted.take()
			for range 10 {
				for _, change := range f.apply(objects...) {
					require.Equal(t, v1alpha1.ReasonForbidden, change.Reason, change.Message)
					require.Positive(t, change.RetryAfter)
					require.LessOrEqual(t, change.RetryAfter, 30*time.Second)
				}
			}
			reads, writes := f.counted.take()
			require.Zero(t, writes)
			if verbs == nil {
				require.Zero(t, reads)
			}
			grant([]string{"get", "list", "create", "patch"})
			require.Eventually(t, func() bool {
				clock.SetTime(clock.Now().Add(30 * time.Second))
				for _, change := range f.apply(objects...) {
					if !change.Done() {
						return false
					}
				}
				return true
			}, deadline, tick)
			require.NoError(t, f.Client.Get(t.Context(), client.ObjectKeyFromObject(objects[0].Manifest),
				objects[0].Manifest.DeepCopy()))
		})
	}
}

// TestRequests_NewObjectsAreNotRead checks the cost of a new object: one write, and no read before it. The rejection of
// the write reveals an existing object.
func TestRequests_NewObjectsAreNotRead(t *testing.T) {
	testkit.Virtual(t, testRequestsNewObjectsAreNotRead)
}

func testRequestsNewObjectsAreNotRead(t *testing.T) {
	f := newMemoryFixture(t)
	f.counted.take()
	require.Equal(t, apply.Created, f.one(f.configMap("new", "{k: v}")).Action)
	f.requireRequests(t, 0, 1, "a new object is created without a read")

	theirs := f.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: NS}, data: {k: theirs}}")
	before := state(t, theirs)
	other := f.other()
	change := other.one(other.configMap("theirs", "{k: v}"))
	require.Equal(t, v1alpha1.ReasonInTheWay, change.Reason, "%s %v", change.Message, change.Err)
	require.Equal(t, before, state(t, f.get(theirs)), "an object in the way is not changed")
	other.counted.take()
	other.one(other.configMap("theirs", "{k: v}"))
	other.requireRequests(t, 1, 0, "the write is not sent again")
}
