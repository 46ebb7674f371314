// Package precondition restricts irreversible requests to the version of an object that the decision is about: a
// controller that was paused after the decision changes nothing that was created or written meanwhile.
package precondition

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Unchanged restricts a deletion to an object as it was read, by its UID and its resourceVersion. Otherwise the API
// server responds with a conflict.
func Unchanged(object client.Object) client.Preconditions {
	return client.Preconditions{UID: new(object.GetUID()), ResourceVersion: new(object.GetResourceVersion())}
}

// Patch is a JSON merge patch of an object as it was read, such as one that removes a finalizer. Like the deletion by
// [Unchanged] it fails with a conflict if the object has another resourceVersion, and it fails as invalid if only the
// UID differs, which is possible after the store was restored.
func Patch(before client.Object) client.Patch {
	return patch{
		Patch: client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), before: before,
	}
}

type patch struct {
	client.Patch
	before client.Object
}

// Data implements [client.Patch].
func (p patch) Data(object client.Object) ([]byte, error) {
	data, err := p.Patch.Data(object)
	if err != nil {
		return nil, err
	}
	var changes map[string]any
	if err := json.Unmarshal(data, &changes); err != nil {
		return nil, fmt.Errorf("read the patch of %T %s: %w", object, object.GetName(), err)
	}
	metadata, ok := changes["metadata"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("patch of %T %s has no metadata", object, object.GetName())
	}
	metadata["uid"] = p.before.GetUID()
	return json.Marshal(changes)
}
