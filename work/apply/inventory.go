package apply

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// inventory contains the objects that an owner has applied or was about to apply.
type inventory struct{ resources []v1alpha1.AppliedResource }

func (v inventory) byKey() map[sameObject]v1alpha1.AppliedResource {
	byKey := make(map[sameObject]v1alpha1.AppliedResource, len(v.resources))
	for _, resource := range v.resources {
		byKey[keyOf(resource.ResourceIdentifier)] = resource
	}
	return byKey
}

// Ahead returns the inventory that must be recorded before the objects are applied: the previous inventory and the new
// objects. Objects that can never be applied are not included, as far as that is known without the API server.
// [Engine.Apply] records it; a caller that creates the owner can create it with this inventory to save a write.
func Ahead(recorded []v1alpha1.AppliedResource, objects []Object) []v1alpha1.AppliedResource {
	byKey := inventory{recorded}.byKey()
	for _, object := range objects {
		if object.observesOnly() || checkManifest(object.Manifest) != nil {
			continue
		}
		id := identifier(object.Manifest)
		entry := byKey[keyOf(id)]
		id.Resource = entry.Resource
		entry.ResourceIdentifier, entry.Delete, entry.Wave = id, object.Delete, object.wave()
		entry.OrphanedTime, entry.Released = nil, false
		byKey[keyOf(id)] = entry
	}
	return sorted(byKey).resources
}

// observesOnly reports whether the object is only observed, so that it does not belong to the owner.
func (o Object) observesOnly() bool {
	return o.Mode == v1alpha1.Observe || o.Mode == v1alpha1.ReportDiff
}

// after returns the inventory after changes: with the UIDs that they revealed, and without the objects that are gone or
// belong to another owner.
func (v inventory) after(changes []Change) inventory {
	byKey := v.byKey()
	for _, change := range changes {
		key := keyOf(change.Object)
		entry, has := byKey[key]
		if !has {
			continue
		}
		switch change.Action {
		case Created, Configured, Unchanged:
			entry.UID, entry.Resource = change.Live.UID, change.Object.Resource
			byKey[key] = entry
		case Deleted, Released:
			delete(byKey, key)
		}
	}
	return sorted(byKey)
}

// ran records the hashes of the manifests of Jobs with a TTL that were created.
func (v inventory) ran(plan tasks, changes []Change) inventory {
	hashes := map[sameObject]string{}
	for i := range plan {
		if t := &plan[i]; t.err == nil && removesItself(t.Manifest) && !t.observesOnly() {
			hashes[keyOf(t.id)] = changes[i].Live.applied
		}
	}
	for i := range v.resources {
		if hash := hashes[keyOf(v.resources[i].ResourceIdentifier)]; hash != "" {
			v.resources[i].RanHash = hash
		}
	}
	return v
}

// Ran reports whether an entry of the inventory belongs to the object and records that its current manifest has run.
// This is recorded for Jobs that Kubernetes deletes after they have finished.
func (o Object) Ran(entry v1alpha1.AppliedResource) bool {
	if entry.RanHash == "" {
		return false
	}
	o.Manifest = prepared(o.Manifest)
	if keyOf(entry.ResourceIdentifier) != keyOf(identifier(o.Manifest)) {
		return false
	}
	hash, err := o.hash()
	return err == nil && hash == entry.RanHash
}

// removesItself reports whether an object is a Job that Kubernetes deletes after it has finished. Such a Job must not
// be created again only because it does not exist: running it twice could do harm.
func removesItself(manifest *unstructured.Unstructured) bool {
	_, found, _ := unstructured.NestedFieldNoCopy(manifest.Object, "spec", "ttlSecondsAfterFinished")
	return found && isKind(manifest, "batch", "Job")
}

func sorted(byKey map[sameObject]v1alpha1.AppliedResource) inventory {
	resources := make([]v1alpha1.AppliedResource, 0, len(byKey))
	for _, resource := range byKey {
		resources = append(resources, resource)
	}
	slices.SortFunc(resources, func(a, b v1alpha1.AppliedResource) int {
		return cmp.Or(cmp.Compare(a.Wave, b.Wave), strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return inventory{resources}
}
