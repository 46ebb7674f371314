package apiserver

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
	"github.com/muster-sdk/muster/mustertest/internal/store"
)

// result is the result of a write: the object that was stored, or that a dry run would store.
type result struct {
	code int
	item *store.Item
	obj  kinds.Object // instead of item, in the served version, if nothing was stored
}

func (s *Server) respond(w http.ResponseWriter, r *request, out result) {
	if out.item != nil {
		s.item(w, r, out.code, out.item)
		return
	}
	r.object(w, out.code, r.kind, out.obj)
}

func (s *Server) create(w http.ResponseWriter, r *request) error {
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
	var out result
	err = s.store.Do(func(tx *store.Tx) error {
		out, err = s.createObject(tx, r, obj)
		return err
	})
	if err != nil {
		return err
	}
	s.respond(w, r, out)
	return nil
}

// createObject stores a decoded object. The caller must not use obj after the call.
func (s *Server) createObject(tx *store.Tx, r *request, obj kinds.Object) (result, error) {
	var out result
	metadata := metaOf(obj)
	for _, key := range []string{"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "uid",
		"selfLink"} {
		delete(metadata, key)
	}
	if err := r.matchNamespace(metadata); err != nil {
		return out, err
	}
	if err := s.track(r, "", nil, obj, r.manager()); err != nil {
		return out, err
	}
	return s.finishCreate(tx, r, obj)
}

// finishCreate completes a creation. Creates, server-side apply and updates that create an object share it.
func (s *Server) finishCreate(tx *store.Tx, r *request, obj kinds.Object) (result, error) {
	var out result
	if err := s.admitCreate(tx, r, obj); err != nil {
		return out, err
	}
	metadata := metaOf(obj)
	metadata["creationTimestamp"], metadata["uid"] = s.now(), s.ids.uid()
	prefix, _ := metadata["generateName"].(string)
	name, _ := metadata["name"].(string)
	generated := name == "" && prefix != ""
	if generated {
		const longest = 63 - 5
		if len(prefix) > longest {
			prefix = prefix[:longest]
		}
		for range 8 {
			name = prefix + s.ids.suffix()
			if tx.Get(s.keyOf(r, name)) == nil {
				break
			}
		}
		metadata["name"] = name
	}
	r.kind.PrepareCreate(obj)
	if errs := r.kind.ValidateCreate(r.ctx, obj); len(errs) > 0 {
		return out, apierrors.NewInvalid(r.kind.GVK.GroupKind(), name, errs)
	}
	r.warnFinalizers(obj, nil)
	metadata = metaOf(obj)
	if version, err := versionOf(metadata); err == nil && version != "" && r.verb == "create" && !r.dryRun {
		return out, errors.New("resourceVersion should not be set on objects to be created")
	}
	if err := s.validateCreate(tx, r, obj); err != nil {
		return out, err
	}
	key := s.keyOf(r, name)
	if existing := tx.Get(key); existing != nil {
		err := apierrors.NewAlreadyExists(r.groupResource(), name)
		if generated {
			return out, apierrors.NewGenerateNameConflict(r.groupResource(), name, 1)
		}
		if metaOf(existing.Object)["deletionTimestamp"] != nil {
			err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
		}
		return out, err
	}
	out.code = http.StatusCreated
	if r.dryRun {
		out.obj = obj
		return out, nil
	}
	r.kind.ToStored(obj)
	out.item = tx.Put(key, obj)
	return out, nil
}

func (s *Server) keyOf(r *request, name string) store.Key {
	key := store.Key{Resource: r.kind.Storage, Namespace: r.namespace, Name: name}
	if !r.kind.Namespaced {
		key.Namespace = ""
	}
	return key
}

// matchNamespace sets the namespace of the request in the metadata. It returns an error if the object specifies another
// namespace.
func (r *request) matchNamespace(metadata map[string]any) error {
	wanted := r.namespace
	if !r.kind.Namespaced {
		wanted = ""
	}
	named, _ := metadata["namespace"].(string)
	switch {
	case named == wanted:
	case named == "":
		metadata["namespace"] = wanted
	case wanted == "":
		delete(metadata, "namespace")
	default:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the " +
			"request")
	}
	return nil
}

// manager returns the field manager of the request: the parameter fieldManager, or the prefix of the user agent.
func (r *request) manager() string {
	if manager := r.query.Get("fieldManager"); manager != "" {
		return manager
	}
	agent, _, _ := strings.Cut(r.http.UserAgent(), "/")
	var out strings.Builder
	for _, c := range agent {
		if out.Len()+utf8.RuneLen(c) > 128 {
			break
		}
		if unicode.IsPrint(c) {
			out.WriteRune(c)
		}
	}
	return out.String()
}

// track updates the managed fields of obj. Live is nil for a new object.
func (s *Server) track(r *request, subresource string, live, obj kinds.Object, manager string) error {
	fields, err := r.kind.FieldManager(subresource)
	if err != nil {
		return err
	}
	before := &unstructured.Unstructured{Object: live}
	if live == nil {
		before.Object = r.kind.Empty()
	}
	updated := fields.UpdateNoErrors(before, &unstructured.Unstructured{Object: obj}, manager)
	content, ok := updated.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("update managed fields: got %T", updated)
	}
	replaceContent(obj, content.Object)
	s.stampManagedFields(live, obj)
	return nil
}

// stampManagedFields sets the times of new managed fields entries to the time of the Server. Structured merges set them
// by the real clock.
func (s *Server) stampManagedFields(live, obj kinds.Object) {
	known := map[string]bool{}
	if live != nil {
		entries, _ := metaOf(live)["managedFields"].([]any)
		for _, entry := range entries {
			known[timeKey(entry)] = true
		}
	}
	entries, _ := metaOf(obj)["managedFields"].([]any)
	now := s.now()
	for _, entry := range entries {
		if fields, ok := entry.(map[string]any); ok && fields["time"] != nil && !known[timeKey(entry)] {
			fields["time"] = now
		}
	}
}

func timeKey(entry any) string {
	fields, _ := entry.(map[string]any)
	return fmt.Sprint(fields["manager"], "|", fields["operation"], "|", fields["subresource"], "|", fields["apiVersion"],
		"|", fields["time"])
}

func metaOf(obj kinds.Object) map[string]any {
	metadata, ok := obj["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		obj["metadata"] = metadata
	}
	return metadata
}

func replaceContent(obj, with kinds.Object) {
	if len(with) > 0 {
		kept := make(kinds.Object, len(with))
		maps.Copy(kept, with)
		clear(obj)
		maps.Copy(obj, kept)
	}
}

func nameOf(obj kinds.Object) string {
	name, _ := metaOf(obj)["name"].(string)
	return name
}

// warnFinalizers adds a warning for each new finalizer of a custom resource whose name is not recommended.
func (r *request) warnFinalizers(obj, old kinds.Object) {
	if r.kind.Builtin() {
		return
	}
	var known []string
	if old != nil {
		known = finalizersOf(metaOf(old))
	}
	const path = "metadata.finalizers"
	added := finalizersOf(metaOf(obj))
	slices.Sort(added)
	for _, finalizer := range added {
		if slices.Contains(known, finalizer) {
			continue
		}
		for _, problem := range validation.IsQualifiedName(finalizer) {
			r.response.warn(fmt.Sprintf("%s: %q: %s", path, finalizer, problem))
		}
		standard := []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, "kubernetes"}
		switch prefer := fmt.Sprintf("%s: %q: prefer a domain-qualified finalizer name", path, finalizer); {
		case strings.Contains(finalizer, "/") || slices.Contains(standard, finalizer):
		case strings.Contains(finalizer, "."):
			r.response.warn(prefer + " including a path (/) to avoid accidental conflicts with other finalizer writers")
		default:
			r.response.warn(prefer + " to avoid accidental conflicts with other finalizer writers")
		}
	}
}
