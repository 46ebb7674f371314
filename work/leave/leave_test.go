package leave_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/work/agent"
	"github.com/muster-sdk/muster/work/crds"
	"github.com/muster-sdk/muster/work/leave"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

var plane = localplane.Shared{Options: localplane.Options{Name: "leave"}}

func TestMain(m *testing.M) { mustertest.Main(m, &plane) }

// fixture is a hub with one member in the same plane. The objects of its Works are in its namespace.
type fixture struct {
	*testkit.Hub
	restricted client.Client // with the permissions of the folder rbac only
	member     membership.Member
}

func newFixture(t *testing.T, name string) *fixture {
	t.Helper()
	p := plane.ForTest(t)
	scheme := mustertest.Scheme(v1alpha1.AddToScheme)
	f := &fixture{Hub: testkit.NewHub(t, p.Config(), scheme, crds.InstallOnHub, crds.InstallOnMember),
		member: membership.Member{Name: name, Namespace: "member-" + name}}
	user, role := "hub-"+name, mustertest.ClusterRole(t, "rbac/role.yaml")
	role.Name = user
	require.NoError(t, mustertest.Grant(t.Context(), f.Client, user, role))
	f.restricted = mustertest.Client(t, p.User(user), scheme)
	f.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.member.Namespace}})
	return f
}

// run runs an agent until the test ends.
func (f *fixture) run() {
	f.T.Helper()
	config := plane.ForTest(f.T).Config()
	a, err := agent.New(agent.Options{Hub: config, Namespace: f.member.Namespace, Member: config, HubName: f.member.Name})
	require.NoError(f.T, err)
	mustertest.Run(f.T, "the agent", a.Start)
}

func (f *fixture) work(name, spec string) *v1alpha1.Work {
	f.T.Helper()
	work := &v1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: f.member.Namespace, Name: name}}
	require.NoError(f.T, yaml.UnmarshalStrict([]byte(spec), &work.Spec))
	f.Create(work)
	return work
}

func (f *fixture) spec(options string) string {
	return fmt.Sprintf("{manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s}}]%s}",
		f.Namespace, options)
}

func (f *fixture) available(work *v1alpha1.Work) {
	f.T.Helper()
	f.Eventually("Work "+work.Name+" is available", func() error {
		if err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		if work.Status.Ready != "1/1" {
			return errors.New("not ready")
		}
		return nil
	})
}

func (f *fixture) object() *corev1.ConfigMap {
	f.T.Helper()
	object := &corev1.ConfigMap{}
	err := f.Client.Get(f.T.Context(), client.ObjectKey{Namespace: f.Namespace, Name: "a"}, object)
	require.NoError(f.T, client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return object
}

// awaitOpen calls the gate until it is open, as a hub does.
func (f *fixture) awaitOpen() {
	f.T.Helper()
	gate := leave.Gate(f.restricted)
	f.Eventually("the gate is open", func() error {
		remaining, err := gate.Remaining(context.Background(), f.member)
		if err == nil && len(remaining) > 0 {
			err = fmt.Errorf("remaining: %q", remaining)
		}
		return err
	})
}

func TestGate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason, options string
		resources       membershipv1alpha1.ResourcePolicy
		kept            bool
	}{
		"deletes": {"resource policy Delete deletes the objects", "", membershipv1alpha1.DeleteResources, false},
		"spares": {"delete action Orphan of a Work keeps the objects", ", delete: {action: Orphan}",
			membershipv1alpha1.DeleteResources, true},
		"orphans": {"resource policy Orphan keeps the objects", "", membershipv1alpha1.OrphanResources, true},
		"overrule": {"resource policy Orphan overrides the options of a Work",
			", manifestOptions: [{select: {name: a}, delete: Delete}]",
			membershipv1alpha1.OrphanResources, true},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, name)
			f.member.Leave.Resources = test.resources
			f.run()
			f.available(f.work("shop", f.spec(test.options)))
			// The agent writes the status of the Work meanwhile, so the first call may end with a conflict.
			f.Eventually("the gate waits for the Work", func() error {
				remaining, err := leave.Gate(f.restricted).Remaining(t.Context(), f.member)
				if err == nil {
					require.Equal(t, []string{"work/shop"}, remaining)
				}
				return err
			})
			f.awaitOpen()
			f.awaitOpen() // the gate stays open
			require.Equal(t, test.kept, f.object() != nil)
			if test.kept {
				require.Empty(t, f.object().OwnerReferences)
			}
		})
	}
}

// TestForce checks that without an agent the gate blocks the leave until it is forced.
func TestForce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "forced")
	work := f.work("shop", f.spec(""))
	work.Finalizers = []string{v1alpha1.Finalizer, "example.com/other"}
	require.NoError(t, f.Client.Update(t.Context(), work))
	gate := leave.Gate(f.restricted)
	for range 2 {
		remaining, err := gate.Remaining(t.Context(), f.member)
		require.NoError(t, err)
		require.Equal(t, []string{"work/shop"}, remaining)
	}
	require.NoError(t, gate.Force(t.Context(), f.member))
	require.NoError(t, gate.Force(t.Context(), f.member))
	require.NoError(t, f.Client.Get(t.Context(), client.ObjectKeyFromObject(work), work))
	require.Equal(t, []string{"example.com/other"}, work.Finalizers, "finalizers of other controllers stay")
	work.Finalizers = nil
	require.NoError(t, f.Client.Update(t.Context(), work))
	f.awaitOpen()
}

// TestForce_GateNotCalled checks that a leave can be forced while an earlier gate blocks it, so that this one was never
// called: Force changes the Works before they are deleted, and a running agent observes the change.
func TestForce_GateNotCalled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason    string
		resources membershipv1alpha1.ResourcePolicy
		kept      bool
	}{
		"unasked-delete": {"resource policy Delete deletes the objects", membershipv1alpha1.DeleteResources, false},
		"unasked-orphan": {"resource policy Orphan keeps the objects", membershipv1alpha1.OrphanResources, true},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, name)
			f.member.Leave.Resources = test.resources
			f.run()
			work := f.work("shop", f.spec(", manifestOptions: [{select: {name: a}, delete: Delete}]"))
			f.available(work)
			gate := leave.Gate(f.restricted)
			require.NoError(t, gate.Force(t.Context(), f.member))
			require.NoError(t, f.Client.Get(t.Context(), client.ObjectKeyFromObject(work), work))
			require.Contains(t, work.Finalizers, v1alpha1.Finalizer, "the agent needs the finalizer to execute the deletion")
			require.NoError(t, f.Client.Delete(t.Context(), work))
			f.Eventually("the Work is deleted", func() error {
				err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(work), work)
				if err == nil {
					return errors.New("the Work exists")
				}
				return client.IgnoreNotFound(err)
			})
			require.Equal(t, test.kept, f.object() != nil)
			if test.kept {
				require.Empty(t, f.object().OwnerReferences)
			}
		})
	}
}

// TestForce_ReportsFirst checks that a Work which was just set to orphan its objects is not released before its agent
// could observe that.
func TestForce_ReportsFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "tells")
	f.member.Leave.Resources = membershipv1alpha1.OrphanResources
	work := f.work("shop", f.spec(""))
	work.Finalizers = []string{v1alpha1.Finalizer}
	require.NoError(t, f.Client.Update(t.Context(), work))
	require.NoError(t, f.Client.Delete(t.Context(), work))
	gate := leave.Gate(f.restricted)
	require.NoError(t, gate.Force(t.Context(), f.member))
	require.NoError(t, f.Client.Get(t.Context(), client.ObjectKeyFromObject(work), work))
	require.Equal(t, v1alpha1.OrphanObject, work.Spec.Delete.Action)
	require.NoError(t, gate.Force(t.Context(), f.member))
	require.True(t, apierrors.IsNotFound(f.Client.Get(t.Context(), client.ObjectKeyFromObject(work), work)))
}

// TestForce_WriteFails checks that a Work which cannot be written does not block the release of others, and that a Work
// which cannot be set to orphan its objects does not block the deletion of its namespace.
func TestForce_WriteFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		resources membershipv1alpha1.ResourcePolicy
		want      string
		left      []string
	}{
		"force-delete": {membershipv1alpha1.DeleteResources, "remove the finalizer of Work member-force-delete/a: no",
			[]string{"a"}},
		"force-orphan": {membershipv1alpha1.OrphanResources, "set Work member-force-orphan/a to orphan its objects: no", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, name)
			for _, name := range []string{"a", "b"} {
				work := f.work(name, f.spec(""))
				work.Finalizers = []string{v1alpha1.Finalizer}
				require.NoError(t, f.Client.Update(t.Context(), work))
				require.NoError(t, f.Client.Delete(t.Context(), work))
			}
			f.member.Leave.Resources = test.resources
			gate := leave.Gate(refusing{f.restricted, new(1)})
			require.ErrorContains(t, gate.Force(t.Context(), f.member), test.want)
			if test.resources == membershipv1alpha1.OrphanResources {
				require.NoError(t, gate.Force(t.Context(), f.member))
			}
			var works v1alpha1.WorkList
			require.NoError(t, f.Client.List(t.Context(), &works, client.InNamespace(f.member.Namespace)))
			var left []string
			for i := range works.Items {
				left = append(left, works.Items[i].Name)
			}
			require.Equal(t, test.left, left)
		})
	}
}

// TestGate_DeletionFails checks that a Work which cannot be deleted does not block the deletion of others.
func TestGate_DeletionFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "goeson")
	f.work("a", f.spec(""))
	f.work("b", f.spec(""))
	failing := refusing{Client: f.restricted}
	remaining, err := leave.Gate(failing).Remaining(t.Context(), f.member)
	require.ErrorContains(t, err, "delete Work member-goeson/a: no")
	require.Equal(t, []string{"work/a", "work/b"}, remaining)
	require.Error(t, f.Client.Get(t.Context(), client.ObjectKey{Namespace: f.member.Namespace, Name: "b"},
		&v1alpha1.Work{}))
}

// TestGate_ChangedConcurrently checks that a Work is not deleted if a user changes it after the gate has observed it.
func TestGate_ChangedConcurrently(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "changed")
	work := f.work("a", f.spec(""))
	_, err := leave.Gate(changing{f.restricted, f.Client}).Remaining(t.Context(), f.member)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.NoError(t, f.Client.Get(t.Context(), client.ObjectKeyFromObject(work), work))
	require.Nil(t, work.DeletionTimestamp)
}

// changing is a hub on which a user changes each Work immediately before its deletion.
type changing struct {
	client.Client
	user client.Client
}

func (c changing) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"user":"was-here"}}}`))
	if err := c.user.Patch(ctx, o.DeepCopyObject().(client.Object), patch); err != nil {
		return err
	}
	return c.Client.Delete(ctx, o, options...)
}

// refusing is a hub whose admission rejects the deletion of Work a, and a number of its changes.
type refusing struct {
	client.Client
	patches *int
}

func (r refusing) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	if o.GetName() == "a" && *r.patches > 0 {
		*r.patches--
		return errors.New("no")
	}
	return r.Client.Patch(ctx, o, patch, options...)
}

func (r refusing) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	if o.GetName() == "a" {
		return errors.New("no")
	}
	return r.Client.Delete(ctx, o, options...)
}

// TestCleaner checks that the cleaner applies the last leave policy that the member observed.
func TestCleaner(t *testing.T) {
	t.Parallel()
	var called v1alpha1.DeleteAction
	cleaner := leave.Cleaner(func(_ context.Context, action v1alpha1.DeleteAction) ([]string, error) {
		called = action
		return []string{"ConfigMap shop/a"}, nil
	})
	require.Equal(t, leave.Name, cleaner.Name())
	for resources, want := range map[membershipv1alpha1.ResourcePolicy]v1alpha1.DeleteAction{
		membershipv1alpha1.DeleteResources: v1alpha1.DeleteObject, membershipv1alpha1.OrphanResources: v1alpha1.OrphanObject,
		"": v1alpha1.DeleteObject,
	} {
		remaining, err := cleaner.Remaining(t.Context(),
			membership.Member{Leave: membershipv1alpha1.LeavePolicy{Resources: resources}})
		require.NoError(t, err)
		require.Equal(t, []string{"ConfigMap shop/a"}, remaining)
		require.Equal(t, want, called)
	}
}
