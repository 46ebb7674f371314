// Package precondition restricts irreversible requests to the version of an object for which the decision was made. A
// controller that was paused after the decision then changes no object that was created or written meanwhile.
package precondition

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Unchanged restricts a deletion to the UID and the resourceVersion of the observed object. If they differ, the API
// server responds with a conflict.
func Unchanged(object client.Object) client.Preconditions {
	return client.Preconditions{UID: new(object.GetUID()), ResourceVersion: new(object.GetResourceVersion())}
}

// Patch returns a JSON merge patch of an observed object, such as one that removes a finalizer. Like a deletion with
// [Unchanged], the patch fails with a conflict if the object has another resourceVersion. It fails as invalid if only
// the UID differs, which is possible after the store was restored.
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
