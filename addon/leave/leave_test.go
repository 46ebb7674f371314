package leave_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/internal/removal"
	"github.com/muster-sdk/muster/addon/leave"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// removalActions are the actions of a controller for the removal of an add-on with a hook and access to the hub.
var removalActions = []removal.Action{removal.RunHooks, removal.DeleteWorks, removal.DeleteHooks,
	removal.RevokeCredentials,
	removal.RemoveFinalizer}

func TestGate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason, options string
		before          membershipv1alpha1.ResourcePolicy // at the first call of the gate
		after           membershipv1alpha1.ResourcePolicy
		kept            []string
	}{
		"deletes": {"add-ons are removed", "", membershipv1alpha1.DeleteResources,
			membershipv1alpha1.DeleteResources, nil},
		"orphans": {"objects of add-ons are orphaned, objects of hooks are deleted", "", membershipv1alpha1.OrphanResources,
			membershipv1alpha1.OrphanResources, []string{"addon-mesh-0"}},
		"changes": {"objects are orphaned by a change after the start of the leave", "", membershipv1alpha1.DeleteResources,
			membershipv1alpha1.OrphanResources, []string{"addon-mesh-0"}},
		"overrule": {"objects are orphaned although an option of the Work deletes them",
			", manifestOptions: [{select: {name: addon-mesh-0}, delete: Delete}]",
			membershipv1alpha1.OrphanResources, membershipv1alpha1.OrphanResources, []string{"addon-mesh-0"}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) {
				f := newFixture(t, name).withMemberNamespace()
				f.run()
				mesh := f.addon("mesh")
				f.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.member.Namespace, Name: "addon-mesh"}})
				f.work("addon-mesh-0", "mesh", test.options)
				shop := f.work("shop", "", "")
				f.waitForConfigMaps("addon-mesh-0", "shop")

				f.member.Leave.Resources = test.before
				remaining, err := leave.Gate(f.restricted).Remaining(t.Context(), f.member)
				require.NoError(t, err)
				require.Equal(t, []string{"memberaddon/mesh"}, remaining)
				f.eventually(func() error {
					if f.exists(mesh) && mesh.DeletionTimestamp != nil {
						return nil
					}
					// The agent has written the status of the Work between the gate's read and its write.
					_, err := leave.Gate(f.restricted).Remaining(t.Context(), f.member)
					return cmp.Or(err, errors.New("the MemberAddon is not being deleted"))
				})
				remaining, err = leave.Gate(f.restricted).Remaining(t.Context(), f.member)
				require.NoError(t, err)
				require.Equal(t, []string{"memberaddon/mesh: no controller has observed the deletion yet"}, remaining)

				f.member.Leave.Resources = test.after
				_, err = leave.Gate(f.restricted).Remaining(t.Context(), f.member)
				require.NoError(t, err)
				f.played.reconcile()
				remaining, err = leave.Gate(f.restricted).Remaining(t.Context(), f.member)
				require.NoError(t, err)
				require.Len(t, remaining, 1)
				require.Contains(t, remaining[0], "memberaddon/mesh: A pre-delete hook is running.")
				f.waitUntilOpen()
				f.waitUntilOpen() // the gate stays open
				require.Equal(t, removalActions, f.played.actions)
				require.Equal(t, slices.Concat(test.kept, []string{"shop"}), f.configMaps())
				require.True(t, f.exists(shop) && shop.DeletionTimestamp == nil,
					"Works that belong to no add-on must not be deleted")
				require.Equal(t, workv1alpha1.DeleteObject, shop.Spec.Delete.Action)
			})
		})
	}
}

// A MemberAddon that a user creates while the member leaves is deleted.
func TestGate_DeletesConcurrentlyCreated(t *testing.T) {
	testkit.Virtual(t, testGateDeletesConcurrentlyCreated)
}

func testGateDeletesConcurrentlyCreated(t *testing.T) {
	f := newFixture(t, "meanwhile").withMemberNamespace()
	f.waitUntilOpen()
	late := f.addon("late")
	f.waitUntilOpen()
	require.False(t, f.exists(late))
}

// An error of one add-on does not block the others, and a concurrent change is not an error.
func TestGate_ContinuesAfterErrors(t *testing.T) {
	t.Parallel()
	gr := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "memberaddons"}
	for name, test := range map[string]struct {
		reason string
		err    error
		want   string
	}{
		"refused":  {"an admission webhook rejects the request", errors.New("no"), "delete MemberAddon member-refused/a: no"},
		"conflict": {"the MemberAddon was created again", apierrors.NewConflict(gr, "a", errors.New("the UID differs")), ""},
		"gone":     {"the MemberAddon was deleted", apierrors.NewNotFound(gr, "a"), ""},
	} {
		t.Run(test.reason, func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) {
				f := newFixture(t, name).withMemberNamespace()
				f.addon("a")
				b := f.addon("b")
				remaining, err := leave.Gate(refusing{Client: f.restricted, deletion: test.err}).Remaining(t.Context(), f.member)
				if test.want == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, test.want)
				}
				require.Equal(t, []string{"memberaddon/a", "memberaddon/b"}, remaining)
				require.True(t, f.exists(b) && b.DeletionTimestamp != nil)
			})
		})
	}
}

// An add-on whose Works cannot be set to orphan is not deleted: the member would remove objects that must stay.
func TestGate_OrphansWorksFirst(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		err    error
		want   string
	}{
		"failing": {"an admission webhook rejects the request", errors.New("no"),
			"set Work member-failing/addon-a-0 to orphan " +
				"its objects: no"},
		"written": {"the Work was changed concurrently",
			apierrors.NewConflict(schema.GroupResource{}, "a", errors.New("changed")), ""},
	} {
		t.Run(test.reason, func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) {
				f := newFixture(t, name).withMemberNamespace()
				f.member.Leave.Resources = membershipv1alpha1.OrphanResources
				a, b := f.addon("a"), f.addon("b")
				f.work("addon-a-0", "a", "")
				remaining, err := leave.Gate(refusing{Client: f.restricted, patch: test.err}).Remaining(t.Context(), f.member)
				if test.want == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, test.want)
				}
				require.Equal(t, []string{"memberaddon/a", "memberaddon/b"}, remaining)
				require.True(t, f.exists(a) && a.DeletionTimestamp == nil)
				require.True(t, f.exists(b) && b.DeletionTimestamp != nil)
			})
		})
	}
}

// TestGate_StaleCache checks that objects stay which the cache shows as those of an earlier membership, or before their
// last change.
func TestGate_StaleCache(t *testing.T) {
	t.Parallel()
	for name, uid := range map[string]types.UID{"stale": "of-an-earlier-membership", "changed": ""} {
		t.Run(name, func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) {
				testStale(t, name, uid)
			})
		})
	}
}

func testStale(t *testing.T, name string, uid types.UID) {
	f := newFixture(t, name).withMemberNamespace()
	gate := leave.Gate(stale{f.restricted, uid})
	mesh, work := f.addon("mesh"), f.work("addon-mesh-0", "mesh", "")
	for _, f.member.Leave.Resources = range []membershipv1alpha1.ResourcePolicy{membershipv1alpha1.DeleteResources,
		membershipv1alpha1.OrphanResources} {
		remaining, err := gate.Remaining(t.Context(), f.member)
		require.NoError(t, err)
		require.Equal(t, []string{"memberaddon/mesh"}, remaining)
	}
	err := gate.Force(t.Context(), f.member)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	for _, o := range []client.Object{mesh, work} {
		before := o.GetResourceVersion()
		require.True(t, f.exists(o))
		require.Equal(t, before, o.GetResourceVersion(), "want an unchanged object")
	}
}

// stale is a client whose cache is outdated. It returns another UID, unless that is empty, and an old
// resourceVersion.
type stale struct {
	client.Client
	uid types.UID
}

func (s stale) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := s.Client.List(ctx, list, options...)
	return errors.Join(err, meta.EachListItem(list, func(item runtime.Object) error {
		o := item.(client.Object)
		if s.uid != "" {
			o.SetUID(s.uid)
		}
		o.SetResourceVersion("1")
		return nil
	}))
}

// A hub without the definitions has no add-ons.
func TestGate_WithoutDefinitions(t *testing.T) { testkit.Virtual(t, testGateWithoutDefinitions) }

func testGateWithoutDefinitions(t *testing.T) {
	f := newFixture(t, "undefined").withMemberNamespace()
	gate := leave.Gate(refusing{Client: f.restricted,
		list: &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: v1alpha1.GroupName, Kind: "MemberAddon"}}})
	remaining, err := gate.Remaining(t.Context(), f.member)
	require.NoError(t, err)
	require.Empty(t, remaining)
	require.NoError(t, gate.Force(t.Context(), f.member))
	_, err = leave.Gate(refusing{Client: f.restricted, list: errors.New("no")}).Remaining(t.Context(), f.member)
	require.ErrorContains(t, err, "list the MemberAddons of undefined: no")
}

// refusing is a hub that rejects some requests. It does not delete MemberAddon a.
type refusing struct {
	client.Client

	list, deletion, patch error
}

func (r refusing) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if r.list != nil {
		return r.list
	}
	return r.Client.List(ctx, list, options...)
}

func (r refusing) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	if r.deletion != nil && o.GetName() == "a" {
		return r.deletion
	}
	return r.Client.Delete(ctx, o, options...)
}

func (r refusing) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	if r.patch != nil {
		return r.patch
	}
	return r.Client.Patch(ctx, o, patch, options...)
}

// Force sets the deadline for a running controller, removes a finalizer without one, and does neither twice.
func TestForce(t *testing.T) { testkit.Virtual(t, testForce) }

func testForce(t *testing.T) {
	f := newFixture(t, "forced").withMemberNamespace()
	observed, unobserved := f.addon("noticed"), f.addon("unnoticed")
	work := f.work("addon-noticed-0", "noticed", "")
	unobserved.Finalizers = append(unobserved.Finalizers, "example.com/other")
	require.NoError(t, f.Client.Update(t.Context(), unobserved))
	_, err := leave.Gate(f.restricted).Remaining(t.Context(), f.member)
	require.NoError(t, err)
	require.True(t, f.exists(observed) && f.exists(unobserved))
	require.NotEqual(t, observed.Generation, observed.Status.ObservedGeneration, "want a new generation for the deletion")
	observed.Status.ObservedGeneration = observed.Generation
	require.NoError(t, f.Client.Status().Update(t.Context(), observed))

	f.member.Leave.Resources = membershipv1alpha1.OrphanResources
	clock := testclock.NewFakePassiveClock(observed.DeletionTimestamp.Add(10 * time.Minute))
	force := func() {
		t.Helper()
		require.NoError(t, leave.GateAt(f.restricted, clock).Force(t.Context(), f.member))
	}
	force()
	require.True(t, f.exists(observed) && f.exists(unobserved))
	versions := func() []string { return []string{observed.ResourceVersion, unobserved.ResourceVersion} }
	before := versions()
	force()
	require.True(t, f.exists(observed) && f.exists(unobserved))
	require.Equal(t, before, versions(), "want no second write")
	require.Equal(t, new(int32(600)), observed.Spec.RemovalDeadlineSeconds)
	require.Equal(t, []string{v1alpha1.MemberAddonFinalizer}, observed.Finalizers)
	require.Equal(t, []string{"example.com/other"}, unobserved.Finalizers, "want the finalizers of other clients to stay")
	require.Nil(t, unobserved.Spec.RemovalDeadlineSeconds)
	require.True(t, f.exists(work))
	require.Equal(t, workv1alpha1.OrphanObject, work.Spec.Delete.Action,
		"want the Work to orphan its objects: an agent can observe the deletion")
	require.Equal(t, []string{workv1alpha1.Finalizer}, work.Finalizers, "want the finalizer of the Work to stay")

	clock.SetTime(clock.Now().Add(time.Minute))
	force()
	require.False(t, f.exists(observed))
	require.True(t, f.exists(unobserved))
}

func errorIf(failed bool, text string) error {
	if failed {
		return errors.New(text)
	}
	return nil
}
