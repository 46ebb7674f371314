package workset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// delivery is what a WorkSet has on one cluster, as an item of the queue of those who write Works.
type delivery struct {
	set     types.NamespacedName
	cluster string
}

// Priorities of deliveries, the higher first.
const (
	priorityRepair = iota
	priorityUpdate
	priorityNew
)

// deliver writes what a cluster is to have. It is repeated until all is written, or something else is wanted.
func (c *controller) deliver(ctx context.Context, d delivery) (reconcile.Result, error) {
	s := c.known(d.set)
	if s == nil {
		c.overtaken.Forget(d)
		return reconcile.Result{}, nil
	}
	s.writing.RLock()
	defer s.writing.RUnlock()
	s.mu.Lock()
	w := s.wants[d.cluster]
	s.mu.Unlock()
	if w == nil || w.namespace == "" {
		c.overtaken.Forget(d)
		return reconcile.Result{}, nil
	}
	if w.reading == nil && c.Clock.Now().After(w.until) {
		c.lookAt(d.set) // which confirms it again
		return reconcile.Result{}, nil
	}
	wanted, err := w.render()
	if err != nil {
		return reconcile.Result{}, nil // who looks at the WorkSet says so
	}
	has, err := c.certain(ctx, d, w.namespace)
	if err != nil {
		c.trouble(s, d, trouble{err.Error(), lasts(err)})
		return reconcile.Result{}, err
	}
	steps, err := arrange(baseName(d.set), has.records, wanted)
	if err != nil {
		return reconcile.Result{}, nil // likewise
	}
	for i := range steps {
		if steps[i].Waits != "" {
			continue // whatever ends that brings another look
		}
		switch err := c.take(ctx, d, w, wanted, &step{steps[i], has.named(steps[i].Work.Name)}); {
		case errors.Is(err, errAgain):
			return reconcile.Result{RequeueAfter: c.overtaken.When(d)}, nil
		case err != nil:
			c.trouble(s, d, trouble{err.Error(), lasts(err)})
			return reconcile.Result{}, err
		}
	}
	c.overtaken.Forget(d)
	c.trouble(s, d, trouble{})
	return reconcile.Result{}, nil
}

// certain are the Works that there are. One that was written without an answer is looked at first: another might give up, for its sake, what it
// has itself given up already.
func (c *controller) certain(ctx context.Context, d delivery, namespace string) (held, error) {
	has := c.works.at(d.set, namespace)
	asked := false
	for _, r := range has.records {
		if !c.works.doubts(r) {
			continue
		}
		if err := c.catchUp(ctx, d, r.key(), r); !errors.Is(err, errAgain) {
			return held{}, err
		}
		c.works.sure(r.key())
		asked = true
	}
	if asked {
		has = c.works.at(d.set, namespace)
	}
	return has, nil
}

// The pauses after conflicts grow from soon to maxPause per object: while a cache shows a store before its restore, every
// write is a conflict.
const (
	soon     = 50 * time.Millisecond
	maxPause = time.Minute
	// maxConflicts is after how many conflicts in a row the cached WorkSet replaces the version that was written last.
	maxConflicts = 5
)

var (
	errAgain = errors.New("something has changed meanwhile")
	errTaken = errors.New("there is one that is not of this WorkSet: delete it, or rename the WorkSet")
)

// trouble is why a cluster's Works could not be written.
type trouble struct {
	why   string
	lasts bool // until a user acts
}

// lasts reports whether an error of a write does not end by itself.
func lasts(err error) bool {
	return errors.Is(err, errTaken) || apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// trouble takes down what has become of a delivery.
func (c *controller) trouble(s *state, d delivery, now trouble) {
	s.mu.Lock()
	changed := s.troubles[d.cluster] != now
	if s.troubles[d.cluster] = now; now == (trouble{}) {
		delete(s.troubles, d.cluster)
	}
	s.mu.Unlock()
	if changed {
		c.lookAt(d.set)
	}
}

// take takes a step.
func (c *controller) take(ctx context.Context, d delivery, w *want, wanted *wanted, s *step) error {
	name := types.NamespacedName{Namespace: w.namespace, Name: s.Work.Name}
	if s.Act == bundle.Delete {
		return c.remove(ctx, d, w, s.has)
	}
	end := c.works.begin(name)
	work := c.object(d, name, w, wanted, s)
	verb, write := "create", c.create
	if s.Act != bundle.Create {
		verb, write = "update", c.patch
	}
	work, err := write(ctx, work, s)
	if err != nil {
		end(nil)
		if late(err, s.has) {
			return c.catchUp(ctx, d, name, s.has)
		}
		if s.has != nil && !answered(err) {
			c.works.doubt(s.has)
		}
		return wrap(err, verb, name)
	}
	c.metrics.written.WithLabelValues(verb).Inc()
	r := c.works.read(work)
	if s.Act != bundle.Note { // that leaves the spec as it is
		r.written = &bundle.Fingerprint{Objects: s.Work.Hash, Options: wanted.Options}
	}
	end(r)
	return nil
}

func (c *controller) create(ctx context.Context, work *workv1alpha1.Work, _ *step) (*workv1alpha1.Work, error) {
	return work, c.client.Create(ctx, work)
}

func (c *controller) patch(ctx context.Context, work *workv1alpha1.Work, s *step) (*workv1alpha1.Work, error) {
	patch, err := json.Marshal(patchOf(work, s))
	if err != nil {
		return nil, err
	}
	got := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}
	return got, c.client.Patch(ctx, got, client.RawPatch(types.JSONPatchType, patch))
}

// remove deletes a Work. What becomes of its objects is for what is wanted now to say, and may be another thing than the Work was told.
func (c *controller) remove(ctx context.Context, d delivery, w *want, has *record) error {
	name := has.key()
	latest := has.ResourceVersion
	if has.parting != w.parting || has.Annotations[workv1alpha1.DeletionRequestedByAnnotation] != string(w.by) {
		asked, err := c.request(ctx, &has.ObjectMeta, atVersion(&has.ObjectMeta), w.parting, w.by)
		switch {
		case late(err, has):
			return c.catchUp(ctx, d, name, has)
		case err != nil:
			return wrap(err, "update", name)
		}
		c.works.saw(c.works.read(asked))
		latest = asked.ResourceVersion
	}
	gone := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	err := c.client.Delete(ctx, gone, client.Preconditions{UID: &has.UID, ResourceVersion: &latest})
	switch {
	case apierrors.IsNotFound(err):
		c.works.lost(has)
		return nil
	case late(err, has):
		return c.catchUp(ctx, d, name, has)
	case err != nil:
		if !answered(err) {
			c.works.doubt(has)
		}
		return wrap(err, "delete", name)
	}
	c.metrics.written.WithLabelValues("delete").Inc()
	c.works.deleted(has)
	return nil
}

func wrap(err error, what string, name types.NamespacedName) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s Work %s: %w", what, name, err)
}

// object is a Work as it is to be.
func (c *controller) object(d delivery, name types.NamespacedName, w *want, wanted *wanted, s *step) *workv1alpha1.Work {
	work := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name.Namespace, Name: name.Name,
			Labels:      map[string]string{v1alpha1.WorkSetLabel: v1alpha1.LabelValue(d.set.Name), v1alpha1.WorkSetNamespaceLabel: d.set.Namespace},
			Annotations: map[string]string{v1alpha1.WorkSetAnnotation: d.set.String(), workv1alpha1.GeneratedByAnnotation: generatedBy(d.set)},
			// It would be the agent's first write, and its objects would stay behind if it were deleted before.
			Finalizers: []string{workv1alpha1.Finalizer},
		},
		Spec: *workSpec(&w.reading.content.Work, s.Work.Manifests()),
	}
	if s.First {
		work.Annotations[v1alpha1.RevisionAnnotation] = wanted.told.revision
		work.Annotations[v1alpha1.RevisionSinceAnnotation] = wanted.told.since.Format(time.RFC3339Nano)
		work.Annotations[v1alpha1.WorkSetUIDAnnotation] = string(w.by)
	}
	return work
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patchOf updates an existing Work to the desired state, and keeps what other clients added. It fails if another client
// changed the Work meanwhile.
func patchOf(work *workv1alpha1.Work, s *step) []operation {
	ops := []operation{{"replace", "/metadata/resourceVersion", s.has.ResourceVersion}}
	for _, field := range []struct {
		path      string
		has, want map[string]string
	}{
		{"/metadata/labels", s.has.Labels, work.Labels},
		{"/metadata/annotations", s.has.Annotations, work.Annotations},
	} {
		if len(field.has) == 0 {
			ops = append(ops, operation{"add", field.path, field.want})
			continue
		}
		for key, value := range field.want {
			if field.has[key] != value {
				ops = append(ops, operation{"add", field.path + "/" + pointer.Replace(key), value})
			}
		}
	}
	if _, stale := s.has.Annotations[workv1alpha1.DeletionRequestedByAnnotation]; stale { // by a deletion that did not come to pass
		ops = append(ops, operation{"remove", "/metadata/annotations/" + pointer.Replace(workv1alpha1.DeletionRequestedByAnnotation), nil})
	}
	if s.Act == bundle.Update {
		ops = append(ops, operation{"replace", "/spec", work.Spec})
	}
	return ops
}

// pointer writes a name as RFC 6901 has it.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// late reports whether a Work could not be written because it is not what it was taken for.
func late(err error, has *record) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || has != nil && apierrors.IsNotFound(err)
}

// answered reports whether an API server has refused a request, so that nothing has come of it. Of others that is not known.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code/100 == 4 && !apierrors.IsTimeout(err)
}

// catchUp takes in what a Work is now, since the watch may be late for long. One of this WorkSet that has lost its labels, and so is watched no
// more, gets them back.
func (c *controller) catchUp(ctx context.Context, d delivery, name types.NamespacedName, has *record) error {
	there := &workv1alpha1.Work{}
	err := c.live.Get(ctx, name, there)
	switch {
	case apierrors.IsNotFound(err) && has != nil:
		c.works.lost(has)
		return errAgain
	case apierrors.IsNotFound(err):
		return errAgain
	case err != nil:
		return wrap(err, "read", name)
	case setOf(there.Labels, there.Annotations) != d.set:
		return wrap(errTaken, "write", name)
	case there.Labels[v1alpha1.WorkSetLabel] == "":
		return c.label(ctx, d, there)
	}
	c.works.confirmed(c.works.read(there), has)
	return errAgain
}

func (c *controller) label(ctx context.Context, d delivery, work *workv1alpha1.Work) error {
	before := work.DeepCopy()
	metav1.SetMetaDataLabel(&work.ObjectMeta, v1alpha1.WorkSetLabel, v1alpha1.LabelValue(d.set.Name))
	metav1.SetMetaDataLabel(&work.ObjectMeta, v1alpha1.WorkSetNamespaceLabel, d.set.Namespace)
	err := c.client.Patch(ctx, work, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return wrap(err, "label", client.ObjectKeyFromObject(work))
	}
	if err == nil {
		c.works.saw(c.works.read(work))
	}
	return errAgain
}
