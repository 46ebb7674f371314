package clusterapi

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

var (
	scheme = mustertest.Scheme(v1alpha1.AddToScheme)
	plane  = localplane.Shared{Options: localplane.Options{Name: "clusterapi"}}
)

func TestMain(m *testing.M) { mustertest.Main(m, &plane) }

// hub is a hub with a namespace of Clusters. All tests share the definition of Clusters of the plane, so they run one
// after the other.
type hub struct {
	*testkit.Hub
	options Options
}

func newHub(t *testing.T) *hub {
	h := &hub{Hub: testkit.NewHub(t, plane.ForTest(t).Config(), scheme, crds.Install)}
	h.options.Namespaces = []string{h.Namespace}
	h.define()
	return h
}

func definition(t testing.TB) *unstructured.Unstructured {
	file, err := os.ReadFile("testdata/clusters.yaml")
	require.NoError(t, err)
	d := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(file, &d.Object))
	return d
}

func (h *hub) define() {
	h.T.Helper()
	require.NoError(h.T, client.IgnoreAlreadyExists(h.Client.Create(h.T.Context(), definition(h.T))))
	h.Holds("Clusters are served", func() bool {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("cluster.x-k8s.io/v1beta2")
		list.SetKind("ClusterList")
		return h.Client.List(h.T.Context(), list) == nil
	})
}

// undefine removes the definition of Clusters, and all Clusters with it.
func (h *hub) undefine() {
	h.T.Helper()
	d := definition(h.T)
	require.NoError(h.T, client.IgnoreNotFound(h.Client.Delete(h.T.Context(), d)))
	h.Holds("the definition is deleted", func() bool {
		return apierrors.IsNotFound(h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(d), d))
	})
}

// start runs an importer as a user. The zero user is the administrator.
func (h *hub) start(as ...*rest.Config) (stop func()) {
	h.T.Helper()
	config := h.Config
	if len(as) > 0 {
		config = as[0]
	}
	return mustertest.StartManager(h.T, config, manager.Options{Scheme: scheme}, func(mgr manager.Manager) error {
		i, err := newImporter(mgr, h.options.withDefaults())
		if err != nil {
			return err
		}
		i.rediscover = 100 * time.Millisecond
		return mgr.Add(i)
	})
}

// cluster creates a Cluster that Cluster API would keep until its infrastructure is removed.
func (h *hub) cluster(name string, labels map[string]string) *unstructured.Unstructured {
	h.T.Helper()
	c := &unstructured.Unstructured{}
	c.SetAPIVersion("cluster.x-k8s.io/v1beta2")
	c.SetKind("Cluster")
	c.SetNamespace(h.Namespace)
	c.SetName(name)
	c.SetLabels(labels)
	c.SetFinalizers([]string{"cluster.cluster.x-k8s.io/infrastructure"})
	require.NoError(h.T, h.Client.Create(h.T.Context(), c))
	h.T.Cleanup(func() {
		_ = h.Client.Patch(context.Background(), c, withoutFinalizers)
		_ = h.Client.Delete(context.Background(), c)
		_ = h.Client.Delete(context.Background(), h.member(name))
	})
	return c
}

var imported = map[string]string{ImportLabel: "true"}

func (h *hub) member(cluster string) *v1alpha1.MemberCluster {
	return &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: memberName(h.Namespace, cluster)}}
}

// find returns the MemberCluster of a Cluster. Nil: it does not exist.
func (h *hub) find(cluster string) *v1alpha1.MemberCluster {
	h.T.Helper()
	m := h.member(cluster)
	err := h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(m), m)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(h.T, err)
	return m
}

func (h *hub) waitForMember(cluster string) (m *v1alpha1.MemberCluster) {
	h.T.Helper()
	h.Holds("Cluster "+cluster+" has a MemberCluster", func() bool { m = h.find(cluster); return m != nil })
	return m
}

// waitForImporter waits until the importer has processed a new Cluster, and therefore all earlier ones.
func (h *hub) waitForImporter(marker string) {
	h.T.Helper()
	h.cluster(marker, imported)
	h.waitForMember(marker)
}

func TestImport_CreatesMembers(t *testing.T) {
	h := newHub(t)
	h.undefine()
	h.start()
	h.define()
	c := h.cluster("east", imported)
	h.cluster("west", nil)
	h.cluster("north", map[string]string{ImportLabel: "false"})
	m := h.waitForMember("east")
	require.Nil(t, m.Spec.Accepted, "an administrator must accept the member")
	require.Equal(t, v1alpha1.JoinPush, m.Spec.JoinMode)
	require.Equal(t, &v1alpha1.KubeConfigSecretRef{Namespace: h.Namespace, Name: "east-kubeconfig", Key: "value"},
		m.Spec.KubeConfigSecretRef)
	require.Equal(t, h.Namespace+"/east/"+string(c.GetUID()), m.Annotations[ClusterAnnotation])
	require.Empty(t, m.Labels)
	h.waitForImporter("marker")
	require.Nil(t, h.find("west"))
	require.Nil(t, h.find("north"))

	labeled := merge(`{"metadata":{"labels":{"` + ImportLabel + `":"true"}}}`)
	require.NoError(t, h.Client.Patch(t.Context(), h.get("west"), labeled))
	h.waitForMember("west")
}

func (h *hub) get(cluster string) *unstructured.Unstructured {
	h.T.Helper()
	c := &unstructured.Unstructured{}
	c.SetAPIVersion("cluster.x-k8s.io/v1beta2")
	c.SetKind("Cluster")
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Namespace: h.Namespace, Name: cluster}, c))
	return c
}

// remove removes a Cluster with its finalizers, like the end of its deletion.
func (h *hub) remove(c *unstructured.Unstructured) {
	h.T.Helper()
	h.release(c)
	require.NoError(h.T, client.IgnoreNotFound(h.Client.Delete(h.T.Context(), c)))
}

// TestImport_AbsenceChangesNothing checks with LeaveDeleted that a member stays when its label, its Cluster or the
// definition of Clusters is missing, and that a Cluster with the same name does not adopt it.
func TestImport_AbsenceChangesNothing(t *testing.T) {
	h := newHub(t)
	h.options.LeaveDeleted = true
	stop := h.start()
	east, west := h.cluster("east", imported), h.cluster("west", imported)
	before := h.waitForMember("east")
	h.waitForMember("west")

	require.NoError(t, h.Client.Patch(t.Context(), west, merge(`{"metadata":{"labels":null}}`)))
	stop()
	h.remove(east) // while the importer does not run
	stop = h.start()
	h.waitForImporter("marker")
	require.Equal(t, before.UID, h.find("east").UID)
	require.Nil(t, h.find("east").DeletionTimestamp)

	other := h.cluster("east", imported)
	h.Holds("the new Cluster has an Event", func() bool { return h.hasEvent(other) })
	require.NoError(t, h.Client.Delete(t.Context(), other))
	h.waitForImporter("second-marker")
	require.Equal(t, before.ResourceVersion, h.find("east").ResourceVersion, "another Cluster changes nothing")

	for _, c := range []*unstructured.Unstructured{other, west, h.get("marker"), h.get("second-marker")} {
		h.release(c)
	}
	h.undefine()
	h.define()
	h.waitForImporter("third-marker")
	for _, name := range []string{"east", "west", "marker"} {
		require.NotNil(t, h.find(name), name)
		require.Nil(t, h.find(name).DeletionTimestamp, name)
	}
	stop()
}

var withoutFinalizers = merge(`{"metadata":{"finalizers":null}}`)

func merge(patch string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(patch)) }

// release removes the finalizers of a Cluster.
func (h *hub) release(c *unstructured.Unstructured) {
	h.T.Helper()
	require.NoError(h.T, h.Client.Patch(h.T.Context(), c, withoutFinalizers))
}

func (h *hub) hasEvent(c *unstructured.Unstructured) bool {
	h.T.Helper()
	var list eventsv1.EventList
	require.NoError(h.T, h.Client.List(h.T.Context(), &list, client.InNamespace(h.Namespace)))
	return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
		return e.Reason == reasonNameTaken && e.Type == corev1.EventTypeWarning && e.Regarding.UID == c.GetUID() &&
			e.Regarding.Kind == "Cluster"
	})
}

// TestLeave_OnRequest checks that the requested deletion of a Cluster deletes its MemberCluster only with LeaveDeleted.
func TestLeave_OnRequest(t *testing.T) {
	h := newHub(t)
	stop := h.start()
	c := h.cluster("east", imported)
	h.waitForMember("east")
	require.NoError(t, h.Client.Delete(t.Context(), c))
	h.waitForImporter("marker")
	require.Nil(t, h.find("east").DeletionTimestamp, "LeaveDeleted is false")
	stop()

	h.options.LeaveDeleted = true
	h.start()
	h.Holds("the member leaves", func() bool {
		m := h.find("east")
		return m == nil || m.DeletionTimestamp != nil
	})
	require.Nil(t, h.find("marker").DeletionTimestamp)
}

// TestImport_ExistingMemberClusterStays checks that a MemberCluster of a user stays as it is, and that the Cluster is
// imported when the name is free.
func TestImport_ExistingMemberClusterStays(t *testing.T) {
	h := newHub(t)
	h.options.LeaveDeleted = true
	existing := h.member("east")
	require.NoError(t, h.Client.Create(t.Context(), existing))
	h.start()
	c := h.cluster("east", imported)
	h.Holds("the Cluster has an Event", func() bool { return h.hasEvent(c) })
	require.Equal(t, existing.ResourceVersion, h.find("east").ResourceVersion)
	require.NoError(t, h.Client.Delete(t.Context(), existing))
	h.Holds("the Cluster is imported", func() bool {
		m := h.find("east")
		return m != nil && m.UID != existing.UID && m.Annotations[ClusterAnnotation] != ""
	})
}

// TestRoles checks that the generated roles are sufficient, and contain no other permissions.
func TestRoles(t *testing.T) {
	h := newHub(t)
	h.options.LeaveDeleted = true
	const user = "importer"
	require.NoError(t, mustertest.GrantFiles(t.Context(), h.Client, user, "rbac/role.yaml"))
	sources := mustertest.ClusterRole(t, "internal/source/rbac/role.yaml")
	require.NoError(t, client.IgnoreAlreadyExists(h.Client.Create(t.Context(), sources)))
	h.bind(sources.Name, user)
	config := plane.ForTest(t).User(user)
	h.start(config)
	c := h.cluster("east", imported)
	h.waitForMember("east")
	existing := h.member("west")
	require.NoError(t, h.Client.Create(t.Context(), existing))
	foreign := h.cluster("west", imported)
	h.Holds("an Event is created", func() bool { return h.hasEvent(foreign) })
	require.NoError(t, h.Client.Delete(t.Context(), c))
	h.Holds("the member leaves", func() bool {
		m := h.find("east")
		return m == nil || m.DeletionTimestamp != nil
	})

	as := mustertest.Client(t, config, scheme)
	kubeconfig := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "east-kubeconfig"}}
	for operation, err := range map[string]error{
		"accept a member":  as.Patch(t.Context(), existing, merge(`{"spec":{"accepted":true}}`)),
		"read a Secret":    as.Get(t.Context(), client.ObjectKeyFromObject(kubeconfig), kubeconfig),
		"delete a Cluster": as.Delete(t.Context(), foreign),
		"list Clusters of other namespaces": func() error {
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion("cluster.x-k8s.io/v1beta2")
			list.SetKind("ClusterList")
			return as.List(t.Context(), list)
		}(),
	} {
		require.True(t, apierrors.IsForbidden(err), "%s: want Forbidden, got %v", operation, err)
	}
}

// bind grants a ClusterRole in the namespace of Clusters.
func (h *hub) bind(role, user string) {
	h.T.Helper()
	require.NoError(h.T, h.Client.Create(h.T.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}))
}
