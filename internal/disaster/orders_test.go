package disaster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/hub"
)

// backupKinds are the kinds of a hub that a backup tool saves, with their plural names.
func backupKinds() map[string]schema.GroupVersionKind {
	of := func(group, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: kind}
	}
	core := func(kind string) schema.GroupVersionKind { return schema.GroupVersionKind{Version: "v1", Kind: kind} }
	rbac := func(kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: kind}
	}
	return map[string]schema.GroupVersionKind{
		"namespaces": core("Namespace"), "secrets": core("Secret"), "configmaps": core("ConfigMap"),
		"serviceaccounts": core("ServiceAccount"), "rolebindings": rbac("RoleBinding"), "roles": rbac("Role"),
		"memberclusters":     of("membership.muster.dev", "MemberCluster"),
		"memberships":        of("membership.muster.dev", "Membership"),
		"joinrequests":       of("membership.muster.dev", "JoinRequest"),
		"jointokens":         of("membership.muster.dev", "JoinToken"),
		"placements":         of("placement.muster.dev", "Placement"),
		"placementdecisions": of("placement.muster.dev", "PlacementDecision"),
		"worksets":           of("placement.muster.dev", "WorkSet"),
		"worksetrevisions":   of("placement.muster.dev", "WorkSetRevision"),
		"works":              of("work.muster.dev", "Work"),
		"addons":             of("addon.muster.dev", "Addon"),
		"memberaddons":       of("addon.muster.dev", "MemberAddon"),
	}
}

// stepDelay is the time in which controllers and agents act on the restored objects before the next kind is restored.
const stepDelay = time.Second

// TestRestore_FromYAML restores a hub that lost everything from the YAML of its objects. Namespaces and ConfigMaps, one
// of which has the hub's identity, are restored before the hub starts, all others while hub and agent run. The API
// server gives each object another UID. In each order, nothing changes on the member.
func TestRestore_FromYAML(t *testing.T) {
	t.Parallel()
	for name, backups := range map[string][]restoredBackup{
		"owned": {
			{"MemberClusters first", "memberclusters", true, ""},
			{"Works first", "works", true, ""},
		},
		// Velero restores namespaces, then some kinds of Kubernetes, then all others by name. It removes status and
		// ownerReferences, and keeps finalizers, labels and annotations.
		"Velero": {
			{"order of Velero", "", false, ""},
			// The Placement selects no cluster until its member has joined.
			{"without PlacementDecisions", "", false, "placementdecisions"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inParallel(t, planeCount{hubs: 1, members: 1}, 125)
			w := newSystem(t, hub.Options{}, "east")
			w.deploy()
			for _, backup := range backups {
				w.step(backup.name, func(t *testing.T) { w.restoreFromYAML(t, backup) })
			}
		})
	}
}

// restoredBackup is a case of TestRestore_FromYAML: how the YAML of a hub is restored.
type restoredBackup struct {
	name  string
	first string // the kind of muster that is restored first; the others follow by name
	owned bool   // whether ownerReferences are restored, with UIDs that do not exist anymore
	lost  string // the kind that is not in the backup
}

func (w *system) restoreFromYAML(t *testing.T, test restoredBackup) {
	m := w.members[0]
	before := m.uids(t)

	w.stopHub()
	backup := w.backup()
	delete(backup, test.lost)
	w.wipe()
	m.requireUnchanged(t, before)
	former := map[types.UID]bool{}
	for _, kind := range restoreOrder(test.first) {
		for i := range backup[kind] {
			o := &backup[kind][i]
			former[o.GetUID()] = true
			w.restore(o, test.owned)
			require.False(t, former[o.GetUID()], "%s %s has its former UID", o.GetKind(), o.GetName())
		}
		switch {
		case kind == "configmaps":
			w.startHub()
		case len(backup[kind]) > 0:
			m.requireUnchangedFor(t, before, stepDelay)
		}
	}
	// Tokens are bound to ServiceAccounts, whose UIDs have changed.
	m.install(t, w.token("again-"+strings.ToLower(strings.ReplaceAll(test.name, " ", "-"))))
	w.waitUntilJoined(m.name)
	w.apply()
	w.update()
	m.requireUnchangedFor(t, before, quiet)
}

// restoreOrder returns the kinds of backupKinds: namespaces and ConfigMaps, then one of muster's kinds, then all others
// by name.
func restoreOrder(first string) []string {
	begin := []string{"namespaces", "secrets", "serviceaccounts", "configmaps"}
	if first != "" {
		begin = append(begin, first)
	}
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(backupKinds())), func(kind string) bool {
		return slices.Contains(begin, kind)
	})
	return append(begin, others...)
}

// backup returns the objects that a backup tool saves of the hub, by plural name.
func (w *system) backup() map[string][]unstructured.Unstructured {
	w.t.Helper()
	out := map[string][]unstructured.Unstructured{}
	for kind, gvk := range backupKinds() {
		out[kind] = w.restorable(w.t.Context(), gvk)
	}
	return out
}

// restorable returns the objects of a kind that belong to muster or to users, and not to Kubernetes.
func (w *system) restorable(ctx context.Context, gvk schema.GroupVersionKind) []unstructured.Unstructured {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	require.NoError(w.t, w.client.List(ctx, list))
	return slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool {
		namespace, name := o.GetNamespace(), o.GetName()
		if gvk.Kind == "Namespace" {
			namespace = name
		}
		return namespace == "default" || strings.HasPrefix(namespace, "kube-") || name == "kube-root-ca.crt" ||
			gvk.Kind == "ServiceAccount" && name == "default"
	})
}

// restore creates an object from a backup, unless a controller has created it meanwhile, and reads its UID.
func (w *system) restore(o *unstructured.Unstructured, owned bool) {
	w.t.Helper()
	metadata := o.Object["metadata"].(map[string]any)
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		delete(metadata, field)
	}
	if !owned {
		delete(metadata, "ownerReferences")
	}
	delete(o.Object, "status")
	w.eventually(fmt.Sprintf("%s %s is restored", o.GetKind(), o.GetName()), func() error {
		err := w.client.Create(w.t.Context(), o)
		if apierrors.IsAlreadyExists(err) {
			return w.client.Get(w.t.Context(), client.ObjectKeyFromObject(o), o)
		}
		return err
	})
}

// wipe removes all objects from the hub that backup saves, also those with finalizers. The hub must not run.
func (w *system) wipe() {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	w.eventually("the hub is empty", func() error {
		var left []string
		for _, gvk := range backupKinds() {
			for _, o := range w.restorable(ctx, gvk) {
				left = append(left, fmt.Sprintf("%s %s/%s, deleted %v, status %v", o.GetKind(), o.GetNamespace(), o.GetName(),
					o.GetDeletionTimestamp(), o.Object["status"]))
				if len(o.GetFinalizers()) > 0 {
					before := o.DeepCopy()
					o.SetFinalizers(nil)
					if err := w.client.Patch(ctx, &o, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
						return err
					}
				}
				if o.GetDeletionTimestamp() != nil {
					continue
				}
				if err := w.client.Delete(ctx, &o); client.IgnoreNotFound(err) != nil {
					return err
				}
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("%d objects exist: %s", len(left), strings.Join(left, "; "))
		}
		return nil
	})
}
