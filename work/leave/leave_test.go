package leave_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/membership"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/work/agent"
	"github.com/muster-sdk/muster/work/crds"
	"github.com/muster-sdk/muster/work/leave"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

const deadline = 3 * time.Minute

var plane = localplane.Shared{Options: localplane.Options{Name: "leave"}}

func TestMain(m *testing.M) { mustertest.Main(m, &plane) }

// world is a hub with one member in the same plane.
type world struct {
	t      *testing.T
	admin  client.Client
	hub    client.Client // with the permissions of the folder rbac only
	member membership.Member
}

func newWorld(t *testing.T, name string) *world {
	t.Helper()
	p := plane.ForTest(t)
	scheme := mustertest.Scheme(v1alpha1.AddToScheme)
	admin := mustertest.Client(t, p.Config(), scheme, crds.InstallOnHub, crds.InstallOnMember)
	user, role := "hub-"+name, mustertest.ClusterRole(t, "rbac/role.yaml")
	role.Name = user
	require.NoError(t, mustertest.Grant(t.Context(), admin, user, role))
	w := &world{t: t, admin: admin, hub: mustertest.Client(t, p.User(user), scheme), member: membership.Member{Name: name,
		Namespace: "member-" + name}}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.member.Namespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
	} {
		require.NoError(t, admin.Create(t.Context(), o))
	}
	return w
}

// run runs an agent until the test ends.
func (w *world) run() {
	w.t.Helper()
	config := plane.ForTest(w.t).Config()
	a, err := agent.New(agent.Options{Hub: config, Namespace: w.member.Namespace, Member: config, HubName: w.member.Name})
	require.NoError(w.t, err)
	mustertest.Run(w.t, "the agent", a.Start)
}

func (w *world) work(name, spec string) *v1alpha1.Work {
	w.t.Helper()
	work := &v1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: w.member.Namespace, Name: name}}
	require.NoError(w.t, yaml.UnmarshalStrict([]byte(spec), &work.Spec))
	require.NoError(w.t, w.admin.Create(w.t.Context(), work))
	return work
}

func (w *world) spec(options string) string {
	return fmt.Sprintf("{manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s}}]%s}",
		w.member.Name, options)
}

func (w *world) eventually(try func() error) {
	w.t.Helper()
	mustertest.Eventually(w.t, deadline, "member "+w.member.Name, try)
}

func (w *world) available(work *v1alpha1.Work) {
	w.t.Helper()
	w.eventually(func() error {
		if err := w.admin.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		if work.Status.Ready != "1/1" {
			return errors.New("not ready")
		}
		return nil
	})
}

func (w *world) object() *corev1.ConfigMap {
	w.t.Helper()
	object := &corev1.ConfigMap{}
	err := w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.member.Name, Name: "a"}, object)
	require.NoError(w.t, client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return object
}

// awaitOpen calls the gate until it is open, as a hub does.
func (w *world) awaitOpen() {
	w.t.Helper()
	gate := leave.Gate(w.hub)
	w.eventually(func() error {
		remaining, err := gate.Remaining(context.Background(), w.member)
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
			w := newWorld(t, name)
			w.member.Leave.Resources = test.resources
			w.run()
			w.available(w.work("shop", w.spec(test.options)))
			// The agent writes the status of the Work meanwhile, so the first call may end with a conflict.
			w.eventually(func() error {
				remaining, err := leave.Gate(w.hub).Remaining(t.Context(), w.member)
				if err == nil {
					require.Equal(t, []string{"work/shop"}, remaining)
				}
				return err
			})
			w.awaitOpen()
			w.awaitOpen() // the gate stays open
			require.Equal(t, test.kept, w.object() != nil)
			if test.kept {
				require.Empty(t, w.object().OwnerReferences)
			}
		})
	}
}

// TestForce checks that without an agent the gate blocks the leave until it is forced.
func TestForce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "forced")
	work := w.work("shop", w.spec(""))
	work.Finalizers = []string{v1alpha1.Finalizer, "example.com/other"}
	require.NoError(t, w.admin.Update(t.Context(), work))
	gate := leave.Gate(w.hub)
	for range 2 {
		remaining, err := gate.Remaining(t.Context(), w.member)
		require.NoError(t, err)
		require.Equal(t, []string{"work/shop"}, remaining)
	}
	require.NoError(t, gate.Force(t.Context(), w.member))
	require.NoError(t, gate.Force(t.Context(), w.member))
	require.NoError(t, w.admin.Get(t.Context(), client.ObjectKeyFromObject(work), work))
	require.Equal(t, []string{"example.com/other"}, work.Finalizers, "finalizers of other controllers stay")
	work.Finalizers = nil
	require.NoError(t, w.admin.Update(t.Context(), work))
	w.awaitOpen()
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
			w := newWorld(t, name)
			w.member.Leave.Resources = test.resources
			w.run()
			work := w.work("shop", w.spec(", manifestOptions: [{select: {name: a}, delete: Delete}]"))
			w.available(work)
			gate := leave.Gate(w.hub)
			require.NoError(t, gate.Force(t.Context(), w.member))
			require.NoError(t, w.admin.Get(t.Context(), client.ObjectKeyFromObject(work), work))
			require.Contains(t, work.Finalizers, v1alpha1.Finalizer, "the agent needs the finalizer to execute the deletion")
			require.NoError(t, w.admin.Delete(t.Context(), work))
			w.eventually(func() error {
				err := w.admin.Get(context.Background(), client.ObjectKeyFromObject(work), work)
				if err == nil {
					return errors.New("the Work exists")
				}
				return client.IgnoreNotFound(err)
			})
			require.Equal(t, test.kept, w.object() != nil)
			if test.kept {
				require.Empty(t, w.object().OwnerReferences)
			}
		})
	}
}

// TestForce_ReportsFirst checks that a Work which was just set to orphan its objects is not released before its agent
// could observe that.
func TestForce_ReportsFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "tells")
	w.member.Leave.Resources = membershipv1alpha1.OrphanResources
	work := w.work("shop", w.spec(""))
	work.Finalizers = []string{v1alpha1.Finalizer}
	require.NoError(t, w.admin.Update(t.Context(), work))
	require.NoError(t, w.admin.Delete(t.Context(), work))
	gate := leave.Gate(w.hub)
	require.NoError(t, gate.Force(t.Context(), w.member))
	require.NoError(t, w.admin.Get(t.Context(), client.ObjectKeyFromObject(work), work))
	require.Equal(t, v1alpha1.OrphanObject, work.Spec.Delete.Action)
	require.NoError(t, gate.Force(t.Context(), w.member))
	require.True(t, apierrors.IsNotFound(w.admin.Get(t.Context(), client.ObjectKeyFromObject(work), work)))
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
			w := newWorld(t, name)
			for _, name := range []string{"a", "b"} {
				work := w.work(name, w.spec(""))
				work.Finalizers = []string{v1alpha1.Finalizer}
				require.NoError(t, w.admin.Update(t.Context(), work))
				require.NoError(t, w.admin.Delete(t.Context(), work))
			}
			w.member.Leave.Resources = test.resources
			gate := leave.Gate(refusing{w.hub, new(1)})
			require.ErrorContains(t, gate.Force(t.Context(), w.member), test.want)
			if test.resources == membershipv1alpha1.OrphanResources {
				require.NoError(t, gate.Force(t.Context(), w.member))
			}
			var works v1alpha1.WorkList
			require.NoError(t, w.admin.List(t.Context(), &works, client.InNamespace(w.member.Namespace)))
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
	w := newWorld(t, "goeson")
	w.work("a", w.spec(""))
	w.work("b", w.spec(""))
	failing := refusing{Client: w.hub}
	remaining, err := leave.Gate(failing).Remaining(t.Context(), w.member)
	require.ErrorContains(t, err, "delete Work member-goeson/a: no")
	require.Equal(t, []string{"work/a", "work/b"}, remaining)
	require.Error(t, w.admin.Get(t.Context(), client.ObjectKey{Namespace: w.member.Namespace, Name: "b"},
		&v1alpha1.Work{}))
}

// TestGate_ChangedConcurrently checks that a Work is not deleted if a user changes it after the gate has observed it.
func TestGate_ChangedConcurrently(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "changed")
	work := w.work("a", w.spec(""))
	_, err := leave.Gate(changing{w.hub, w.admin}).Remaining(t.Context(), w.member)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.NoError(t, w.admin.Get(t.Context(), client.ObjectKeyFromObject(work), work))
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
