package apiserver

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
	"github.com/muster-sdk/muster/mustertest/internal/store"
)

func (r *request) deleteOptions() (*metav1.DeleteOptions, error) {
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	options := &metav1.DeleteOptions{}
	if len(body) > 0 {
		media, err := r.contentType()
		if err != nil {
			return nil, err
		}
		if media == kinds.Protobuf {
			if err := kinds.DecodeProtobuf(body, options); err != nil {
				return nil, apierrors.NewBadRequest(err.Error())
			}
		} else if err := readOptions(body, options); err != nil {
			return nil, err
		}
	} else if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&r.query, options, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if errs := metav1validation.ValidateDeleteOptions(options); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	r.dryRun = r.dryRun || len(options.DryRun) > 0
	return options, nil
}

func (s *Server) delete(w http.ResponseWriter, r *request) error {
	options, err := r.deleteOptions()
	if err != nil {
		return err
	}
	var out deletion
	err = s.store.Do(func(tx *store.Tx) error {
		item := tx.Get(r.key())
		if item == nil {
			return apierrors.NewNotFound(r.groupResource(), r.name)
		}
		out, err = s.deleteObject(tx, r, item, options)
		return err
	})
	if err != nil {
		return err
	}
	if out.obj != nil {
		r.object(w, http.StatusOK, r.kind, out.obj)
		return nil
	}
	r.status(w, &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: r.name, Group: r.gvr.Group, Kind: r.gvr.Resource, UID: out.uid},
	})
	return nil
}

// deletion is the result of a deletion. Obj is the object if it still exists, or if the API returns deleted objects of
// the kind.
type deletion struct {
	obj kinds.Object
	uid types.UID
}

// deleteObject deletes an object. If the object has finalizers, it sets the deletionTimestamp instead.
func (s *Server) deleteObject(tx *store.Tx, r *request, item *store.Item,
	options *metav1.DeleteOptions) (deletion, error) {
	live := s.live(r.kind, item)
	metadata := metaOf(live)
	if err := checkPreconditions(r, metadata, options.Preconditions); err != nil {
		return deletion{}, err
	}
	if err := s.admitDelete(r, live); err != nil {
		return deletion{}, err
	}
	uid, _ := metadata["uid"].(string)
	if r.kind.Storage == namespaces {
		return s.deleteNamespace(tx, r, item, live)
	}
	graceful := s.grace(r, live, options)
	if graceful == pending {
		return deletion{obj: live}, nil
	}
	finalizers := gcFinalizers(r.kind, metadata, options)
	if len(finalizers) > 0 {
		setFinalizers(metadata, finalizers)
	}
	if len(finalizers) == 0 && graceful == immediate {
		setFinalizers(metadata, nil)
		out := deletion{uid: types.UID(uid)}
		if returnsDeleted(r.kind.Storage) {
			out.obj = live
		}
		if !r.dryRun {
			last := tx.Delete(item.Key)
			if out.obj != nil {
				out.obj = r.kind.ToServed(last.Object)
			}
		}
		return out, nil
	}
	if graceful == immediate {
		s.markDeleted(metadata)
		if r.kind.Storage == customResourceDefinitions {
			markTerminating(live, s.now())
		}
	}
	if r.dryRun || equalObjects(live, s.live(r.kind, item)) {
		return deletion{obj: live}, nil
	}
	r.kind.ToStored(live)
	return deletion{obj: r.kind.ToServed(tx.Put(item.Key, live).Object)}, nil
}

func checkPreconditions(r *request, metadata map[string]any, wanted *metav1.Preconditions) error {
	if wanted == nil {
		return nil
	}
	gr := schema.GroupResource{Group: r.gvr.Group, Resource: r.kind.GVK.Kind}
	if wanted.UID != nil && string(*wanted.UID) != metadata["uid"] {
		return apierrors.NewConflict(gr, r.name,
			fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). "+
				"The object might have been deleted and then recreated", *wanted.UID, metadata["uid"]))
	}
	if wanted.ResourceVersion != nil && *wanted.ResourceVersion != metadata["resourceVersion"] {
		return apierrors.NewConflict(gr, r.name,
			fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the "+
				"ResourceVersion in record (%s). The object might have been modified", *wanted.ResourceVersion,
				metadata["resourceVersion"]))
	}
	return nil
}

func (s *Server) markDeleted(metadata map[string]any) {
	if metadata["deletionTimestamp"] == nil {
		if generation, ok := metadata["generation"].(int64); ok && generation > 0 {
			metadata["generation"] = generation + 1
		}
		metadata["deletionTimestamp"] = s.now()
	} else if marked, ok := metadata["deletionTimestamp"].(string); ok {
		if at, err := time.Parse(time.RFC3339, marked); err == nil && at.After(s.options.Clock.Now()) {
			metadata["deletionTimestamp"] = s.now()
		}
	}
	metadata["deletionGracePeriodSeconds"] = int64(0)
}

type gracefulness int

const (
	immediate gracefulness = iota
	waiting                // the deletion waits for a kubelet; the object was changed
	pending                // the deletion waits for a kubelet; the object does not change
)

// grace sets the deletionTimestamp of a Pod on a node, whose kubelet would complete the deletion.
func (s *Server) grace(r *request, live kinds.Object, options *metav1.DeleteOptions) gracefulness {
	if !r.kind.Graceful(live) {
		return immediate
	}
	seconds := int64(30)
	spec, _ := live["spec"].(map[string]any)
	if period, ok := spec["terminationGracePeriodSeconds"].(int64); ok {
		seconds = period
	}
	if options.GracePeriodSeconds != nil {
		seconds = *options.GracePeriodSeconds
	}
	if seconds < 0 {
		seconds = 1
	}
	metadata := metaOf(live)
	if metadata["deletionTimestamp"] != nil {
		left, _ := metadata["deletionGracePeriodSeconds"].(int64)
		switch {
		case left == 0:
			return immediate
		case options.GracePeriodSeconds == nil || seconds >= left:
			return pending
		}
	} else if generation, ok := metadata["generation"].(int64); ok && generation > 0 && seconds > 0 {
		metadata["generation"] = generation + 1
	}
	if seconds == 0 {
		return immediate
	}
	at := s.options.Clock.Now().Add(time.Duration(seconds) * time.Second)
	metadata["deletionTimestamp"] = at.UTC().Format(time.RFC3339)
	metadata["deletionGracePeriodSeconds"] = seconds
	return waiting
}

func finalizersOf(metadata map[string]any) []string {
	found, _ := metadata["finalizers"].([]any)
	var out []string
	for _, finalizer := range found {
		if text, ok := finalizer.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

func setFinalizers(metadata map[string]any, finalizers []string) {
	if len(finalizers) == 0 {
		delete(metadata, "finalizers")
		return
	}
	list := make([]any, 0, len(finalizers))
	for _, finalizer := range finalizers {
		list = append(list, finalizer)
	}
	metadata["finalizers"] = list
}

// gcFinalizers returns the finalizers of an object that is being deleted, including the finalizer of the propagation
// policy.
func gcFinalizers(kind *kinds.Kind, metadata map[string]any, options *metav1.DeleteOptions) []string {
	existing := finalizersOf(metadata)
	orphan := slices.Contains(existing, metav1.FinalizerOrphanDependents)
	foreground := slices.Contains(existing, metav1.FinalizerDeleteDependents)
	switch {
	case options.OrphanDependents != nil: //nolint:staticcheck // clients may still set it
		orphan, foreground = *options.OrphanDependents, false //nolint:staticcheck // see above
	case options.PropagationPolicy != nil:
		orphan = *options.PropagationPolicy == metav1.DeletePropagationOrphan
		foreground = *options.PropagationPolicy == metav1.DeletePropagationForeground
	case !orphan && !foreground:
		orphan = kind.OrphansByDefault()
	}
	out := slices.DeleteFunc(slices.Clone(existing), func(finalizer string) bool {
		return finalizer == metav1.FinalizerOrphanDependents || finalizer == metav1.FinalizerDeleteDependents
	})
	if orphan {
		out = append(out, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		out = append(out, metav1.FinalizerDeleteDependents)
	}
	return out
}

// deleteNamespace marks a namespace as terminating. A controller deletes its contents.
func (s *Server) deleteNamespace(tx *store.Tx, r *request, item *store.Item, live kinds.Object) (deletion, error) {
	metadata := metaOf(live)
	spec, _ := live["spec"].(map[string]any)
	left, _ := spec["finalizers"].([]any)
	if metadata["deletionTimestamp"] != nil && (len(left) > 0 || len(finalizersOf(metadata)) > 0) {
		return deletion{obj: live}, nil
	}
	if metadata["deletionTimestamp"] == nil {
		metadata["deletionTimestamp"] = s.now()
		status, _ := live["status"].(map[string]any)
		if status == nil {
			status = map[string]any{}
		}
		status["phase"] = "Terminating"
		live["status"] = status
		if !r.dryRun {
			live = runtime.DeepCopyJSON(tx.Put(item.Key, live).Object)
		}
		return deletion{obj: live}, nil
	}
	if !r.dryRun {
		tx.Delete(item.Key)
	}
	return deletion{obj: live}, nil
}

func (s *Server) deleteCollection(w http.ResponseWriter, r *request) error {
	list, err := r.listOptions()
	if err != nil {
		return err
	}
	options, err := r.deleteOptions()
	if err != nil {
		return err
	}
	var p page
	err = s.store.Do(func(tx *store.Tx) error {
		chosen := r.selection(list)
		for _, item := range tx.List(r.kind.Storage, chosen.namespace) {
			if !chosen.matches(item) {
				continue
			}
			one := *r
			one.namespace, one.name = item.Key.Namespace, item.Key.Name
			if _, err := s.deleteObject(tx, &one, item, options.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			p.items = append(p.items, item)
		}
		p.revision = tx.Revision()
		return nil
	})
	if err != nil {
		return err
	}
	body, err := r.encodeList(p)
	if err != nil {
		return err
	}
	r.header(w)
	reply(w, http.StatusOK, r.response.accept.media, body)
	return nil
}

// returnsDeleted reports whether the response to a deletion is the deleted object instead of a Status.
func returnsDeleted(resource schema.GroupResource) bool {
	switch resource.String() {
	case "pods", "services", "serviceaccounts", "persistentvolumes", "persistentvolumeclaims", "podtemplates",
		"resourcequotas":
		return true
	}
	return false
}
