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
	client.Client

	t         *testing.T
	config    *rest.Config
	namespace string
	options   Options
}

func newHub(t *testing.T) *hub {
	config := plane.ForTest(t).Config()
	c := mustertest.Client(t, config, scheme, crds.Install)
	h := &hub{Client: c, t: t, config: config, namespace: mustertest.Namespace(t, c)}
	h.options.Namespaces = []string{h.namespace}
	h.define()
	return h
}

func definition(t *testing.T) *unstructured.Unstructured {
	file, err := os.ReadFile("testdata/clusters.yaml")
	require.NoError(t, err)
	d := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(file, &d.Object))
	return d
}

func (h *hub) define() {
	h.t.Helper()
	require.NoError(h.t, client.IgnoreAlreadyExists(h.Create(h.t.Context(), definition(h.t))))
	h.eventually("Clusters are served", func() bool {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("cluster.x-k8s.io/v1beta2")
		list.SetKind("ClusterList")
		return h.List(h.t.Context(), list) == nil
	})
}

// undefine removes the definition of Clusters, and all Clusters with it.
func (h *hub) undefine() {
	h.t.Helper()
	d := definition(h.t)
	require.NoError(h.t, client.IgnoreNotFound(h.Delete(h.t.Context(), d)))
	h.eventually("the definition is deleted", func() bool {
		return apierrors.IsNotFound(h.Get(h.t.Context(), client.ObjectKeyFromObject(d), d))
	})
}

// start runs an importer as a user. The zero user is the administrator.
func (h *hub) start(as ...*rest.Config) (stop func()) {
	h.t.Helper()
	config := h.config
	if len(as) > 0 {
		config = as[0]
	}
	return mustertest.StartManager(h.t, config, manager.Options{Scheme: scheme}, func(mgr manager.Manager) error {
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
	h.t.Helper()
	c := &unstructured.Unstructured{}
	c.SetAPIVersion("cluster.x-k8s.io/v1beta2")
	c.SetKind("Cluster")
	c.SetNamespace(h.namespace)
	c.SetName(name)
	c.SetLabels(labels)
	c.SetFinalizers([]string{"cluster.cluster.x-k8s.io/infrastructure"})
	require.NoError(h.t, h.Create(h.t.Context(), c))
	h.t.Cleanup(func() {
		_ = h.Patch(context.Background(), c, withoutFinalizers)
		_ = h.Delete(context.Background(), c)
		_ = h.Delete(context.Background(), h.member(name))
	})
	return c
}

var imported = map[string]string{ImportLabel: "true"}

func (h *hub) member(cluster string) *v1alpha1.MemberCluster {
	return &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: memberName(h.namespace, cluster)}}
}

// find returns the MemberCluster of a Cluster. Nil: it does not exist.
func (h *hub) find(cluster string) *v1alpha1.MemberCluster {
	h.t.Helper()
	m := h.member(cluster)
	err := h.Get(h.t.Context(), client.ObjectKeyFromObject(m), m)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(h.t, err)
	return m
}

func (h *hub) waitForMember(cluster string) (m *v1alpha1.MemberCluster) {
	h.t.Helper()
	h.eventually("Cluster "+cluster+" has a MemberCluster", func() bool { m = h.find(cluster); return m != nil })
	return m
}

func (h *hub) eventually(expected string, condition func() bool) {
	h.t.Helper()
	mustertest.Holds(h.t, time.Minute, expected, condition)
}

// waitForImporter waits until the importer has processed a new Cluster, and therefore all earlier ones.
func (h *hub) waitForImporter(marker string) {
	h.t.Helper()
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
	require.Equal(t, &v1alpha1.KubeConfigSecretRef{Namespace: h.namespace, Name: "east-kubeconfig", Key: "value"},
		m.Spec.KubeConfigSecretRef)
	require.Equal(t, h.namespace+"/east/"+string(c.GetUID()), m.Annotations[ClusterAnnotation])
	require.Empty(t, m.Labels)
	h.waitForImporter("marker")
	require.Nil(t, h.find("west"))
	require.Nil(t, h.find("north"))

	require.NoError(t, h.Patch(t.Context(), h.get("west"), merge(`{"metadata":{"labels":{"`+ImportLabel+`":"true"}}}`)))
	h.waitForMember("west")
}

func (h *hub) get(cluster string) *unstructured.Unstructured {
	h.t.Helper()
	c := &unstructured.Unstructured{}
	c.SetAPIVersion("cluster.x-k8s.io/v1beta2")
	c.SetKind("Cluster")
	require.NoError(h.t, h.Get(h.t.Context(), client.ObjectKey{Namespace: h.namespace, Name: cluster}, c))
	return c
}

// remove removes a Cluster with its finalizers, like the end of its deletion.
func (h *hub) remove(c *unstructured.Unstructured) {
	h.t.Helper()
	h.release(c)
	require.NoError(h.t, client.IgnoreNotFound(h.Delete(h.t.Context(), c)))
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

	require.NoError(t, h.Patch(t.Context(), west, merge(`{"metadata":{"labels":null}}`)))
	stop()
	h.remove(east) // while the importer does not run
	stop = h.start()
	h.waitForImporter("marker")
	require.Equal(t, before.UID, h.find("east").UID)
	require.Nil(t, h.find("east").DeletionTimestamp)

	other := h.cluster("east", imported)
	h.eventually("the new Cluster has an Event", func() bool { return h.hasEvent(other) })
	require.NoError(t, h.Delete(t.Context(), other))
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
	h.t.Helper()
	require.NoError(h.t, h.Patch(h.t.Context(), c, withoutFinalizers))
}

func (h *hub) hasEvent(c *unstructured.Unstructured) bool {
	h.t.Helper()
	var list eventsv1.EventList
	require.NoError(h.t, h.List(h.t.Context(), &list, client.InNamespace(h.namespace)))
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
	require.NoError(t, h.Delete(t.Context(), c))
	h.waitForImporter("marker")
	require.Nil(t, h.find("east").DeletionTimestamp, "LeaveDeleted is false")
	stop()

	h.options.LeaveDeleted = true
	h.start()
	h.eventually("the member leaves", func() bool {
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
	require.NoError(t, h.Create(t.Context(), existing))
	h.start()
	c := h.cluster("east", imported)
	h.eventually("the Cluster has an Event", func() bool { return h.hasEvent(c) })
	require.Equal(t, existing.ResourceVersion, h.find("east").ResourceVersion)
	require.NoError(t, h.Delete(t.Context(), existing))
	h.eventually("the Cluster is imported", func() bool {
		m := h.find("east")
		return m != nil && m.UID != existing.UID && m.Annotations[ClusterAnnotation] != ""
	})
}

// TestRoles checks that the generated roles are sufficient, and contain no other permissions.
func TestRoles(t *testing.T) {
	h := newHub(t)
	h.options.LeaveDeleted = true
	const user = "importer"
	require.NoError(t, mustertest.GrantFiles(t.Context(), h, user, "rbac/role.yaml"))
	sources := mustertest.ClusterRole(t, "internal/source/rbac/role.yaml")
	require.NoError(t, client.IgnoreAlreadyExists(h.Create(t.Context(), sources)))
	h.bind(sources.Name, user)
	config := plane.ForTest(t).User(user)
	h.start(config)
	c := h.cluster("east", imported)
	h.waitForMember("east")
	existing := h.member("west")
	require.NoError(t, h.Create(t.Context(), existing))
	foreign := h.cluster("west", imported)
	h.eventually("an Event is created", func() bool { return h.hasEvent(foreign) })
	require.NoError(t, h.Delete(t.Context(), c))
	h.eventually("the member leaves", func() bool {
		m := h.find("east")
		return m == nil || m.DeletionTimestamp != nil
	})

	as := mustertest.Client(t, config, scheme)
	kubeconfig := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "east-kubeconfig"}}
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
	h.t.Helper()
	require.NoError(h.t, h.Create(h.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}))
}
