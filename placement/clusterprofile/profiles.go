package clusterprofile

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

var memberKind = schema.GroupKind{Group: membershipv1alpha1.GroupName, Kind: "MemberCluster"}

func (e *exporter) profileKind() kind {
	k := kind{
		resource:  schema.GroupVersionResource{Group: group, Version: version, Resource: "clusterprofiles"},
		namespace: e.ProfileNamespace,
		source:    &membershipv1alpha1.MemberCluster{},
		keysOf:    e.profilesOf,
		isOurs:    e.isOurProfile,
		seen:      e.observeProfile,
		sync:      e.syncProfile,
	}
	if e.Tenancy != nil {
		k.namespace, k.prepare = metav1.NamespaceAll, e.watchSets
	}
	return k
}

// isOurProfile reports whether this export created a profile. Outside the namespace of the fleet, a profile also needs
// the annotation of a ClusterSetBinding, because another export with the same cluster manager may have its profiles
// there.
func (e *exporter) isOurProfile(profile *unstructured.Unstructured) bool {
	return managerOf(profile) == e.ClusterManager && ownerOf(profile, memberKind) != nil &&
		(profile.GetNamespace() == e.ProfileNamespace || profile.GetAnnotations()[bindingAnnotation] != "")
}

// managerOf returns the cluster manager in the spec of a profile.
func managerOf(profile *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(profile.Object, "spec", "clusterManager", "name")
	return name
}

// syncProfile creates, updates or deletes the profile of a member so that it matches the desired one.
func (e *exporter) syncProfile(ctx context.Context, x *export, k key) (time.Duration, error) {
	member := &membershipv1alpha1.MemberCluster{}
	if err := e.cache.Get(ctx, client.ObjectKey{Name: k.Name}, member); apierrors.IsNotFound(err) {
		member = nil
	} else if err != nil {
		return 0, err
	}
	have := x.get(k)
	switch {
	case have == nil && member == nil:
		x.forget(k)
		return 0, nil
	case have == nil:
		want, err := e.wantedProfile(ctx, k, nil, member)
		if want == nil || err != nil {
			return 0, err
		}
		return e.createProfile(ctx, x, member, want)
	case !x.isOurs(have):
		if member != nil && (k.Namespace == e.ProfileNamespace || e.sets.Load().set(k.Namespace) != "") {
			x.notify(member, have, fmt.Sprintf("managed by cluster manager %q, or belongs to another member", managerOf(have)))
		}
		return 0, nil
	case have.GetDeletionTimestamp() != nil:
		return 0, nil
	case member == nil || member.UID != ownerOf(have, memberKind).UID:
		return 0, e.deleteProfile(ctx, x, have)
	default:
		want, err := e.wantedProfile(ctx, k, have, member)
		if err != nil {
			return 0, err
		}
		if want == nil {
			return 0, x.deleteUnchanged(ctx, have)
		}
		return x.amendProfile(ctx, have, want)
	}
}

// wantedProfile returns the desired profile of a member in a namespace. If it is nil, the caller creates no profile,
// and deletes the existing one.
func (e *exporter) wantedProfile(ctx context.Context, k key, have *unstructured.Unstructured,
	member *membershipv1alpha1.MemberCluster) (*unstructured.Unstructured, error) {
	if k.Namespace == e.ProfileNamespace {
		return ProfileOf(member, e.Options), nil
	}
	return e.wantedInSet(ctx, k, have, member)
}

// createProfile creates the profile of a member if the member is accepted. Every agent with a join credential can cause
// a MemberCluster, and consumers must not mistake such a MemberCluster for a cluster of the fleet. An existing profile
// stays as long as the member, and shows its later state.
func (e *exporter) createProfile(ctx context.Context, x *export, member *membershipv1alpha1.MemberCluster,
	want *unstructured.Unstructured) (time.Duration, error) {
	if member.DeletionTimestamp != nil || member.Spec.Accepted == nil || !*member.Spec.Accepted {
		return 0, nil
	}
	if wait := x.reserveWrite(key{Namespace: want.GetNamespace(), Name: want.GetName()}, true); wait > 0 {
		return wait, nil
	}
	created, err := x.create(ctx, want)
	if namespaceMissing(err) {
		if err = e.createNamespace(ctx); err == nil {
			created, err = x.create(ctx, want)
		}
	}
	if err != nil {
		return 0, err
	}
	return x.amendProfile(ctx, created, want)
}

func (e *exporter) createNamespace(ctx context.Context) error {
	namespace := &unstructured.Unstructured{Object: map[string]any{}}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	namespace.SetName(e.ProfileNamespace)
	namespaces := e.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	if _, err := namespaces.Create(ctx, namespace, metav1.CreateOptions{FieldManager: fieldOwner}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", e.ProfileNamespace, err)
	}
	return nil
}

// amendProfile writes the differences between the existing profile and the desired one.
func (x *export) amendProfile(ctx context.Context, have, want *unstructured.Unstructured) (time.Duration, error) {
	k := key{Namespace: want.GetNamespace(), Name: want.GetName()}
	metadata, status, turned := amendProfile(have, want, x.AccessProviders)
	if status != nil {
		patched, wait, err := x.writeLimited(k, turned, func() (*unstructured.Unstructured, error) {
			return x.patch(ctx, have, status, "status")
		})
		if wait > 0 || err != nil {
			return wait, err
		}
		have = patched
	}
	if metadata == nil {
		return 0, nil
	}
	_, wait, err := x.writeLimited(k, false, func() (*unstructured.Unstructured, error) {
		return x.patch(ctx, have, metadata)
	})
	return wait, err
}

// writeLimited runs a write if the rate limit permits it. Otherwise it returns the time to wait. A write that fails
// with a conflict is not counted, because it wrote nothing. Otherwise a lagging watch would use up the burst that is
// reserved for changes of a condition.
func (x *export) writeLimited(k key, turned bool,
	write func() (*unstructured.Unstructured, error)) (*unstructured.Unstructured, time.Duration, error) {
	if wait := x.reserveWrite(k, turned); wait > 0 {
		return nil, wait, nil
	}
	wrote, err := write()
	if apierrors.IsConflict(err) {
		x.releaseWrite(k)
	}
	return wrote, 0, err
}

// deleteProfile deletes a profile whose member does not exist any more. A member that was created with the same name is
// another cluster, and gets another profile.
func (e *exporter) deleteProfile(ctx context.Context, x *export, have *unstructured.Unstructured) error {
	// A lagging cache may not contain the member yet. If the profile were deleted, consumers would assume that the cluster
	// left the fleet.
	member := &membershipv1alpha1.MemberCluster{}
	err := e.live.Get(ctx, client.ObjectKey{Name: have.GetName()}, member)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && member.UID == ownerOf(have, memberKind).UID {
		return errOutdated
	}
	return x.deleteUnchanged(ctx, have)
}

// deleteUnchanged deletes a profile if its UID and resourceVersion are still the observed ones.
func (x *export) deleteUnchanged(ctx context.Context, have *unstructured.Unstructured) error {
	k := key{Namespace: have.GetNamespace(), Name: have.GetName()}
	unchanged := &metav1.Preconditions{UID: new(have.GetUID()), ResourceVersion: new(have.GetResourceVersion())}
	err := x.objects(k).Delete(ctx, k.Name, metav1.DeleteOptions{Preconditions: unchanged})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete ClusterProfile %s: %w", k, err)
	}
	return nil
}

// hasForeignProfile reports whether the profile that a decision would refer to belongs to another cluster manager, and
// thereby to another cluster.
func (e *exporter) hasForeignProfile(cluster string) bool {
	x := e.profiles.Load()
	if x == nil {
		return false
	}
	profile := x.get(key{Namespace: e.ProfileNamespace, Name: cluster})
	return profile != nil && managerOf(profile) != e.ClusterManager
}
