package apiserver

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
	"github.com/muster-sdk/muster/mustertest/internal/store"
)

const optimisticLock = "the object has been modified; please apply your changes to the latest version and try again"

func (s *Server) update(w http.ResponseWriter, r *request) error {
	if r.name == "" {
		return methodNotAllowed(r.groupResource(), r.verb)
	}
	body, err := r.body()
	if err != nil {
		return err
	}
	if err := r.writeOptions(); err != nil {
		return err
	}
	obj, err := r.decode(r.kind, body)
	if err != nil {
		return err
	}
	if err := r.matchNamespace(metaOf(obj)); err != nil {
		return err
	}
	if err := r.matchName(obj); err != nil {
		return err
	}
	var out result
	err = s.store.Do(func(tx *store.Tx) error {
		item := tx.Get(r.key())
		if item == nil {
			if !r.kind.CreateOnUpdate() || r.subresource != "" {
				return apierrors.NewNotFound(r.groupResource(), r.name)
			}
			if uid, _ := metaOf(obj)["uid"].(string); uid != "" {
				return uidConflict(r.groupResource(), r.name, r.storagePath(), uid, "")
			}
			if _, err := versionOf(metaOf(obj)); err != nil {
				return err
			}
			out, err = s.createObject(tx, r, obj)
			return err
		}
		live := s.live(r.kind, item)
		if err := s.track(r, r.subresource, live, obj, r.manager()); err != nil {
			return err
		}
		out, err = s.finishUpdate(tx, r, item, live, obj)
		return err
	})
	if err != nil {
		return err
	}
	s.respond(w, r, out)
	return nil
}

// versionOf returns the resourceVersion of an object from a client. It returns an empty string if there is none.
func versionOf(metadata map[string]any) (string, error) {
	version, _ := metadata["resourceVersion"].(string)
	if version == "" || version == "0" {
		return "", nil
	}
	_, err := strconv.ParseUint(version, 10, 64)
	return version, err
}

// live returns a copy of a stored object in the version of the kind.
func (s *Server) live(kind *kinds.Kind, item *store.Item) kinds.Object {
	if kind.Converts() {
		return kind.ToServed(item.Object)
	}
	return runtime.DeepCopyJSON(item.Object)
}

func (r *request) matchName(obj kinds.Object) error {
	switch name := nameOf(obj); name {
	case r.name:
		return nil
	case "":
		return apierrors.NewBadRequest("the name of the object (based on URL " + r.http.URL.Path +
			") was undeterminable: name must be provided")
	default:
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the name of the object (%s) does not match the name on the URL (%s)", name, r.name))
	}
}

func uidConflict(gr schema.GroupResource, name, path, wanted, actual string) error {
	return apierrors.NewConflict(gr, name,
		fmt.Errorf("StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, "+
			"AdditionalErrorMsg: Precondition failed: UID in precondition: %v, UID in object meta: %v", path, wanted, actual))
}

// storagePath returns the key under which kube-apiserver stores the object. Some of its errors contain the key.
func (r *request) storagePath() string {
	path := "/registry/"
	if !r.kind.Builtin() {
		path += r.gvr.Group + "/"
	}
	path += r.gvr.Resource + "/"
	if r.kind.Namespaced {
		path += r.namespace + "/"
	}
	return path + r.name
}

// finishUpdate replaces the live object with obj, for updates and patches. The managed fields of obj must be up to
// date.
func (s *Server) finishUpdate(tx *store.Tx, r *request, item *store.Item, live, obj kinds.Object) (result, error) {
	out := result{code: http.StatusOK}
	metadata, liveMeta := metaOf(obj), metaOf(live)
	gr := r.groupResource()
	if uid, _ := metadata["uid"].(string); uid != "" && r.verb == "update" && uid != liveMeta["uid"] {
		return out, uidConflict(gr, r.name, r.storagePath(), uid, fmt.Sprint(liveMeta["uid"]))
	}
	version, err := versionOf(metadata)
	if err != nil {
		return out, err
	}
	switch {
	case version != "":
		if version != liveMeta["resourceVersion"] {
			return out, apierrors.NewConflict(gr, r.name, fmt.Errorf(optimisticLock)) //nolint:staticcheck // the message of Kubernetes
		}
	case r.kind.UnconditionalUpdate():
		metadata["resourceVersion"] = liveMeta["resourceVersion"]
	default:
		return out, apierrors.NewInvalid(schema.GroupKind{Group: gr.Group, Kind: gr.Resource}, r.name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
	}
	copyKey(metadata, liveMeta, "generation")
	s.prepareUpdate(r, live, obj)
	metadata = metaOf(obj)
	copyKey(metadata, liveMeta, "creationTimestamp")
	if uid, _ := metadata["uid"].(string); uid == "" {
		copyKey(metadata, liveMeta, "uid")
	}
	if liveMeta["deletionTimestamp"] != nil {
		copyKey(metadata, liveMeta, "deletionTimestamp")
	}
	if liveMeta["deletionGracePeriodSeconds"] != nil && metadata["deletionGracePeriodSeconds"] == nil {
		copyKey(metadata, liveMeta, "deletionGracePeriodSeconds")
	}
	if errs := r.kind.ValidateUpdate(r.ctx, obj, live, r.subresource); len(errs) > 0 {
		return out, apierrors.NewInvalid(r.kind.GVK.GroupKind(), r.name, errs)
	}
	r.warnFinalizers(obj, live)
	if err := s.validateUpdate(tx, r, obj, live); err != nil {
		return out, err
	}
	keepTimestamps(obj, live)
	if apiequality.Semantic.DeepEqual(obj, live) {
		out.item = item
		return out, nil
	}
	if r.dryRun {
		out.obj = obj
		return out, nil
	}
	if goneByUpdate(obj, live) {
		tx.Delete(item.Key)
		out.obj = obj
		return out, nil
	}
	r.kind.ToStored(obj)
	out.item = tx.Put(item.Key, obj)
	return out, nil
}

// prepareUpdate restores the fields that a client cannot change with a request to the object or the subresource.
func (s *Server) prepareUpdate(r *request, live, obj kinds.Object) {
	switch r.subresource {
	case "status":
		r.kind.PrepareStatus(obj, live)
	case "finalize":
		spec := obj["spec"]
		replaceContent(obj, runtime.DeepCopyJSON(live))
		obj["spec"] = spec
	case "approval":
		conditions, _ := obj["status"].(map[string]any)
		managed := metaOf(obj)["managedFields"]
		replaceContent(obj, runtime.DeepCopyJSON(live))
		status, _ := obj["status"].(map[string]any)
		if status == nil {
			status = map[string]any{}
			obj["status"] = status
		}
		copyKey(status, conditions, "conditions")
		metaOf(obj)["managedFields"] = managed
	default:
		r.kind.PrepareUpdate(obj, live)
	}
}

func copyKey(to, from map[string]any, key string) {
	if value, ok := from[key]; ok && value != nil {
		to[key] = value
	} else {
		delete(to, key)
	}
}

// keepTimestamps keeps the managed fields of the live object if the objects differ only in the times of managed fields.
func keepTimestamps(obj, live kinds.Object) {
	entries, ok := metaOf(obj)["managedFields"].([]any)
	before, ok2 := metaOf(live)["managedFields"].([]any)
	if !ok || !ok2 || len(entries) != len(before) {
		return
	}
	without := func(obj kinds.Object) kinds.Object {
		out := make(kinds.Object, len(obj))
		maps.Copy(out, obj)
		metadata := make(map[string]any)
		maps.Copy(metadata, metaOf(obj))
		entries, _ := metadata["managedFields"].([]any)
		stripped := make([]any, 0, len(entries))
		for _, entry := range entries {
			fields, _ := entry.(map[string]any)
			kept := make(map[string]any, len(fields))
			for key, value := range fields {
				if key != "time" {
					kept[key] = value
				}
			}
			stripped = append(stripped, kept)
		}
		metadata["managedFields"] = stripped
		out["metadata"] = metadata
		return out
	}
	if apiequality.Semantic.DeepEqual(without(obj), without(live)) {
		metaOf(obj)["managedFields"] = before
	}
}

// goneByUpdate reports whether an update removed the last finalizer of an object that is being deleted.
func goneByUpdate(obj, live kinds.Object) bool {
	finalizers, _ := metaOf(obj)["finalizers"].([]any)
	if len(finalizers) > 0 || metaOf(live)["deletionTimestamp"] == nil {
		return false
	}
	if kindOf(live) == "v1/Namespace" {
		spec, _ := obj["spec"].(map[string]any)
		left, _ := spec["finalizers"].([]any)
		return len(left) == 0
	}
	grace, _ := metaOf(live)["deletionGracePeriodSeconds"].(int64)
	return grace == 0
}

func kindOf(obj kinds.Object) string { return fmt.Sprint(obj["apiVersion"], "/", obj["kind"]) }
