package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// allocated are the fields that a cluster allocates. An exported manifest has those of the cluster that it was read from.
var allocated = []v1alpha1.FieldPath{
	pathTo("spec", "clusterIP"), pathTo("spec", "clusterIPs"), pathTo("spec", "healthCheckNodePort"), pathTo("spec", "volumeName"),
	pathTo("spec", "claimRef"), pathTo("spec", "nodeName"),
}

func pathTo(names ...string) v1alpha1.FieldPath {
	var path v1alpha1.FieldPath
	for _, name := range names {
		path = path.Field(name)
	}
	return path
}

// withoutCluster removes from an exported manifest what belongs to the cluster that it was read from, and returns a
// warning that names it; empty: there was nothing. An object that an earlier release applied with an allocated field
// keeps the field, because most of them cannot be removed.
//
// A manifest that means nothing in another cluster is left as it is; the engine or the API server says what is wrong
// with it.
func withoutCluster(object apply.Object) (cleaned apply.Object, warning string) {
	manifest, _ := apply.Exported(object.Manifest)
	if manifest == nil {
		return object, ""
	}
	dropped := missingFields(v1alpha1.FieldPath{}, object.Manifest.Object, manifest.Object)
	if len(dropped) == 0 {
		return object, ""
	}
	object.IgnoredFields = slices.Clone(object.IgnoredFields)
	for _, path := range allocated {
		_, had := path.Get(object.Manifest.Object)
		if _, has := path.Get(manifest.Object); had && !has {
			object.IgnoredFields = append(object.IgnoredFields, path)
		}
	}
	object.Manifest = manifest
	const most = 3
	names := strings.Join(dropped[:min(most, len(dropped))], ", ")
	if more := len(dropped) - most; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return object, fmt.Sprintf("The manifest was exported from a cluster, so fields that belong to that cluster are ignored: %s. "+
		"Remove metadata.uid, metadata.resourceVersion and metadata.creationTimestamp from the manifest to apply them.", names)
}

// missingFields are the outermost fields of maps that one object has and the other has not, in their order.
func missingFields(path v1alpha1.FieldPath, had, has map[string]any) (missing []string) {
	for _, name := range slices.Sorted(maps.Keys(had)) {
		field := path.Field(name)
		value, still := has[name]
		inner, isMap := had[name].(map[string]any)
		switch kept, _ := value.(map[string]any); {
		case !still:
			missing = append(missing, field.String())
		case isMap:
			missing = append(missing, missingFields(field, inner, kept)...)
		}
	}
	return missing
}
