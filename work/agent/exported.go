package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// allocated are the fields that a cluster allocates. An exported manifest has the values of the cluster from which it
// was read.
var allocated = []v1alpha1.FieldPath{
	pathTo("spec", "clusterIP"), pathTo("spec", "clusterIPs"), pathTo("spec", "healthCheckNodePort"),
	pathTo("spec", "volumeName"), pathTo("spec", "claimRef"), pathTo("spec", "nodeName"),
}

func pathTo(names ...string) v1alpha1.FieldPath {
	var path v1alpha1.FieldPath
	for _, name := range names {
		path = path.Field(name)
	}
	return path
}

// withoutCluster removes the fields from an exported manifest that belong to the cluster from which it was read. It
// returns a warning that names the allocated fields among them; empty: there are none. An object that an earlier
// release applied with such a field keeps the field, because most of these fields cannot be removed.
//
// A manifest that means nothing in another cluster is not changed; the engine or the API server rejects it with a
// message.
func withoutCluster(object apply.Object) (cleaned apply.Object, warning string) {
	manifest, _ := apply.Exported(object.Manifest)
	if manifest == nil {
		return object, ""
	}
	var dropped []string
	ignored := slices.Clone(object.IgnoredFields)
	for _, path := range allocated {
		_, had := path.Get(object.Manifest.Object)
		if _, has := path.Get(manifest.Object); had && !has {
			dropped, ignored = append(dropped, path.String()), append(ignored, path)
		}
	}
	object.Manifest, object.IgnoredFields = manifest, ignored
	if len(dropped) == 0 {
		return object, ""
	}
	return object, fmt.Sprintf("The manifest was exported from a cluster, so the fields that this cluster has allocated "+
		"are ignored: %s. Remove the metadata that an API server writes, such as uid and creationTimestamp, to apply them.",
		strings.Join(dropped, ", "))
}
