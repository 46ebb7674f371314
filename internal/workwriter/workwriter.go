// Package workwriter writes the Works that controllers generate for members, such as those of WorkSets and Addons. Each
// write requires the version of the Work that the caller has observed. The annotations that it adds distinguish a
// requested deletion from a mistake.
package workwriter

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// Writer writes Works. Its methods may be called concurrently. They return the errors of the API server unwrapped.
type Writer struct{ Client client.Writer }

// Create creates a Work with the finalizer of the agent. Otherwise the agent's first write would have to add it, and
// objects would remain on the member if the Work were deleted before.
func (w Writer) Create(ctx context.Context, work *v1alpha1.Work) error {
	controllerutil.AddFinalizer(work, v1alpha1.Finalizer)
	return w.Client.Create(ctx, work)
}

// Change is a change of a Work.
type Change struct {
	// Known is the metadata of the version to change. If the Work has another version, the API server responds with a
	// conflict.
	Known *metav1.ObjectMeta

	// Labels and Annotations are set. Other labels and annotations stay, because other clients have added them.
	Labels, Annotations map[string]string

	Spec *v1alpha1.WorkSpec // nil: it stays
}

// Update changes a Work, and returns it. It removes the record of a deletion request that was not followed by a
// deletion.
func (w Writer) Update(ctx context.Context, c Change) (*v1alpha1.Work, error) {
	return w.patch(ctx, c.Known, c.operations())
}

func (c *Change) operations() []operation {
	ops := append([]operation{sameVersion(c.Known)}, set("/metadata/labels", c.Known.Labels, c.Labels)...)
	ops = append(ops, set("/metadata/annotations", c.Known.Annotations, c.Annotations)...)
	if _, stale := c.Known.Annotations[v1alpha1.DeletionRequestedByAnnotation]; stale {
		ops = append(ops, operation{"remove", requestedBy, nil})
	}
	if c.Spec != nil {
		ops = append(ops, operation{"replace", "/spec", c.Spec})
	}
	return ops
}

// set sets entries of a map that differ or do not exist. The value of an entry may be empty.
func set(path string, has, want map[string]string) (ops []operation) {
	if len(has) == 0 && len(want) > 0 {
		return []operation{{"add", path, want}}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if value, exists := has[key]; !exists || value != want[key] {
			ops = append(ops, operation{"add", path + "/" + pointer.Replace(key), want[key]})
		}
	}
	return ops
}

// ReplaceManifest replaces a manifest of the known version of a Work.
func (w Writer) ReplaceManifest(ctx context.Context, known *metav1.ObjectMeta, index int,
	manifest v1alpha1.Manifest) error {
	_, err := w.patch(ctx, known, []operation{sameVersion(known),
		{"replace", fmt.Sprintf("/spec/manifests/%d", index), manifest}})
	return err
}

// Request is a request to delete a Work.
type Request struct {
	By     types.UID              // UID of the object whose user requests the deletion
	Delete *v1alpha1.DeletePolicy // replaces the policy of the Work; nil: the policy stays

	// AnyVersion writes the request to any version of the Work with the known UID, and not only to the known one.
	AnyVersion bool
}

// RequestDeletion records the object whose user requests the deletion in a Work, and returns the Work. Without this
// record, the agent assumes that the Work was deleted by mistake, and keeps the objects.
func (w Writer) RequestDeletion(ctx context.Context, known *metav1.ObjectMeta, r Request) (*v1alpha1.Work, error) {
	return w.patch(ctx, known, r.operations(known))
}

func (r *Request) operations(known *metav1.ObjectMeta) []operation {
	ops := []operation{sameVersion(known)}
	if r.AnyVersion {
		ops = []operation{{"replace", "/metadata/uid", known.UID}}
	}
	if len(known.Annotations) == 0 {
		ops = append(ops, operation{"add", "/metadata/annotations", map[string]string{}})
	}
	ops = append(ops, operation{"add", requestedBy, r.By})
	if r.Delete != nil {
		ops = append(ops, operation{"add", "/spec/delete", r.Delete})
	}
	return ops
}

// Delete deletes a Work with the known UID and the given resourceVersion: the known one, or that after RequestDeletion.
func (w Writer) Delete(ctx context.Context, known *metav1.ObjectMeta, version string) error {
	work := &v1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: known.Namespace, Name: known.Name}}
	return w.Client.Delete(ctx, work, client.Preconditions{UID: &known.UID, ResourceVersion: &version})
}

// patch sends a JSON patch (RFC 6902), and returns the Work.
func (w Writer) patch(ctx context.Context, known *metav1.ObjectMeta, ops []operation) (*v1alpha1.Work, error) {
	data, err := json.Marshal(ops)
	if err != nil {
		return nil, err
	}
	work := &v1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: known.Namespace, Name: known.Name}}
	if err := w.Client.Patch(ctx, work, client.RawPatch(types.JSONPatchType, data)); err != nil {
		return nil, err
	}
	return work, nil
}

// operation is an operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// sameVersion returns an operation that makes the API server respond with a conflict if a Work has another version.
func sameVersion(known *metav1.ObjectMeta) operation {
	return operation{"replace", "/metadata/resourceVersion", known.ResourceVersion}
}

// pointer escapes a name for a JSON pointer (RFC 6901).
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

var requestedBy = "/metadata/annotations/" + pointer.Replace(v1alpha1.DeletionRequestedByAnnotation)
