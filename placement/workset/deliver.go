package workset

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-sdk/muster/internal/tracing"
	"github.com/muster-sdk/muster/internal/workwriter"
	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// delivery identifies the Works of a WorkSet for one cluster in the queue of the writers.
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

// deliver writes the Works of a cluster. The queue repeats it until they are written or other Works are desired.
func (c *controller) deliver(ctx context.Context, d delivery) (_ reconcile.Result, err error) {
	ctx, end := tracing.Start(ctx, "muster-workset-delivery", d.set)
	defer func() { end(err) }()
	s := c.stateIfKnown(d.set)
	if s == nil {
		c.queues.conflictDelays.Forget(d)
		return reconcile.Result{}, nil
	}
	s.writing.RLock()
	defer s.writing.RUnlock()
	s.shared.mu.Lock()
	w := s.shared.wants[d.cluster]
	s.shared.mu.Unlock()
	if w == nil || w.namespace == "" {
		c.queues.conflictDelays.Forget(d)
		return reconcile.Result{}, nil
	}
	if w.reading == nil && c.Clock.Now().After(w.until) {
		c.enqueue(d.set) // to confirm the deletion again
		return reconcile.Result{}, nil
	}
	wanted, err := w.render()
	if err != nil {
		return reconcile.Result{}, nil // the reconcile of the WorkSet reports it
	}
	has, err := c.existingWorks(ctx, d, w.namespace)
	if err != nil {
		c.recordWriteError(s, d, writeError{err.Error(), persistent(err)})
		return reconcile.Result{}, err
	}
	steps, err := arrange(baseName(d.set), has.records, wanted)
	if err != nil {
		return reconcile.Result{}, nil // the reconcile reports this as well
	}
	for i := range steps {
		if steps[i].Waits != "" {
			continue // the event that ends the wait causes another reconcile
		}
		switch err := c.execute(ctx, d, w, wanted, &step{steps[i], has.named(steps[i].Work.Name)}); {
		case errors.Is(err, errConflict):
			return reconcile.Result{RequeueAfter: c.queues.conflictDelays.When(d)}, nil
		case err != nil:
			c.recordWriteError(s, d, writeError{err.Error(), persistent(err)})
			return reconcile.Result{}, err
		}
	}
	c.queues.conflictDelays.Forget(d)
	c.recordWriteError(s, d, writeError{})
	return reconcile.Result{}, nil
}

// existingWorks returns the existing Works of a cluster. If the last write of a Work had no response, the function
// reads that Work from the API server. Otherwise another Work could lose an object that this Work has already lost.
func (c *controller) existingWorks(ctx context.Context, d delivery, namespace string) (existing, error) {
	has := c.works.at(d.set, namespace)
	asked := false
	for _, r := range has.records {
		if !c.works.isUncertain(r) {
			continue
		}
		if err := c.refresh(ctx, d, r.key(), r); !errors.Is(err, errConflict) {
			return existing{}, err
		}
		c.works.markCertain(r.key())
		asked = true
	}
	if asked {
		has = c.works.at(d.set, namespace)
	}
	return has, nil
}

// The delays after conflicts grow from minConflictDelay to maxConflictDelay for each object. While a cache contains the
// state of a store before its restore, every write is a conflict.
const (
	minConflictDelay = 50 * time.Millisecond
	maxConflictDelay = time.Minute
	// maxConflicts is the number of consecutive conflicts after which the cached WorkSet replaces the last written
	// version.
	maxConflicts = 5
)

var (
	errConflict  = errors.New("the object was changed concurrently")
	errNameTaken = errors.New(
		"a Work with this name does not belong to the WorkSet: delete the Work, or rename the WorkSet")
)

// writeError is the error of the last write of a cluster's Works.
type writeError struct {
	message    string
	persistent bool // whether only a user can resolve it
}

// persistent reports whether only a user can resolve the error of a write.
func persistent(err error) bool {
	return errors.Is(err, errNameTaken) || apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// recordWriteError records the result of a delivery.
func (c *controller) recordWriteError(s *state, d delivery, now writeError) {
	s.shared.mu.Lock()
	changed := s.shared.writeErrors[d.cluster] != now
	if s.shared.writeErrors[d.cluster] = now; now == (writeError{}) {
		delete(s.shared.writeErrors, d.cluster)
	}
	s.shared.mu.Unlock()
	if changed {
		c.enqueue(d.set)
	}
}

// execute carries out a step: it creates, updates, annotates or deletes one Work.
func (c *controller) execute(ctx context.Context, d delivery, w *want, wanted *wanted, s *step) error {
	name := types.NamespacedName{Namespace: w.namespace, Name: s.Work.Name}
	if s.Act == bundle.Delete {
		return c.remove(ctx, d, w, s.has)
	}
	end := c.works.beginWrite(name)
	work := c.object(d, name, w, wanted, s)
	verb, write := "create", c.create
	if s.Act != bundle.Create {
		verb, write = "update", c.patch
	}
	work, err := write(ctx, work, s)
	if err != nil {
		end(nil)
		if conflicts(err, s.has) {
			return c.refresh(ctx, d, name, s.has)
		}
		if s.has != nil && !refused(err) {
			c.works.markUncertain(s.has)
		}
		return wrap(err, verb, name)
	}
	c.metrics.written.WithLabelValues(verb).Inc()
	r := c.works.read(work)
	if s.Act != bundle.Note { // a note does not change the spec
		r.written = &bundle.Fingerprint{Objects: s.Work.Hash, Options: wanted.Options}
	}
	end(r)
	return nil
}

func (c *controller) create(ctx context.Context, work *workv1alpha1.Work, _ *step) (*workv1alpha1.Work, error) {
	return work, c.writer().Create(ctx, work)
}

func (c *controller) patch(ctx context.Context, work *workv1alpha1.Work, s *step) (*workv1alpha1.Work, error) {
	return c.writer().Update(ctx, changeOf(work, s))
}

// changeOf returns the change from an existing Work to the desired one.
func changeOf(work *workv1alpha1.Work, s *step) workwriter.Change {
	change := workwriter.Change{Known: &s.has.ObjectMeta, Labels: work.Labels, Annotations: work.Annotations}
	if s.Act == bundle.Update {
		change.Spec = &work.Spec
	}
	return change
}

func (c *controller) writer() workwriter.Writer { return workwriter.Writer{Client: c.api.client} }

// remove deletes a Work. The current delete policy decides what happens to its objects, not the one in the Work.
func (c *controller) remove(ctx context.Context, d delivery, w *want, has *record) error {
	name := has.key()
	latest := has.ResourceVersion
	if has.deletePolicy != w.deletePolicy || has.Annotations[workv1alpha1.DeletionRequestedByAnnotation] != string(w.by) {
		asked, err := c.request(ctx, &has.ObjectMeta, workwriter.Request{By: w.by, Delete: w.deletePolicy.api()})
		switch {
		case conflicts(err, has):
			return c.refresh(ctx, d, name, has)
		case err != nil:
			return wrap(err, "update", name)
		}
		c.works.observe(c.works.read(asked))
		latest = asked.ResourceVersion
	}
	err := c.writer().Delete(ctx, &has.ObjectMeta, latest)
	switch {
	case apierrors.IsNotFound(err):
		c.works.observeDeletion(has)
		return nil
	case conflicts(err, has):
		return c.refresh(ctx, d, name, has)
	case err != nil:
		if !refused(err) {
			c.works.markUncertain(has)
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

// object returns a Work in the desired state.
func (c *controller) object(d delivery, name types.NamespacedName, w *want, wanted *wanted,
	s *step) *workv1alpha1.Work {
	work := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name.Namespace, Name: name.Name,
			Labels: map[string]string{v1alpha1.WorkSetLabel: v1alpha1.LabelValue(d.set.Name),
				v1alpha1.WorkSetNamespaceLabel: d.set.Namespace},
			Annotations: map[string]string{v1alpha1.WorkSetAnnotation: d.set.String(),
				workv1alpha1.GeneratedByAnnotation: generatedBy(d.set)},
		},
		Spec: *w.spec(s.Work.Manifests()),
	}
	if s.First {
		work.Annotations[v1alpha1.RevisionAnnotation] = wanted.assigned.revision
		work.Annotations[v1alpha1.RevisionSinceAnnotation] = wanted.assigned.since.Format(time.RFC3339Nano)
		work.Annotations[v1alpha1.WorkSetUIDAnnotation] = string(w.by)
		if wanted.placements != "" {
			work.Annotations[v1alpha1.PlacementsAnnotation] = wanted.placements
		}
	}
	return work
}

// conflicts reports whether a write failed because the stored Work differs from its record.
func conflicts(err error, has *record) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || has != nil && apierrors.IsNotFound(err)
}

// refused reports whether the API server rejected a request, so that the request had no effect. The effect of a request
// without a response is unknown.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code/100 == 4 && !apierrors.IsTimeout(err)
}

// refresh reads a Work from the API server into the cache, because the watch can lag for a long time. If a Work of this
// WorkSet lost its labels, so that the watch no longer reports it, refresh restores them.
func (c *controller) refresh(ctx context.Context, d delivery, name types.NamespacedName, has *record) error {
	there := &workv1alpha1.Work{}
	err := c.api.live.Get(ctx, name, there)
	switch {
	case apierrors.IsNotFound(err) && has != nil:
		c.works.observeDeletion(has)
		return errConflict
	case apierrors.IsNotFound(err):
		return errConflict
	case err != nil:
		return wrap(err, "read", name)
	case setOf(there.Labels, there.Annotations) != d.set:
		return wrap(errNameTaken, "write", name)
	case there.Labels[v1alpha1.WorkSetLabel] == "":
		return c.label(ctx, d, there)
	}
	c.works.confirmed(c.works.read(there), has)
	return errConflict
}

func (c *controller) label(ctx context.Context, d delivery, work *workv1alpha1.Work) error {
	before := work.DeepCopy()
	metav1.SetMetaDataLabel(&work.ObjectMeta, v1alpha1.WorkSetLabel, v1alpha1.LabelValue(d.set.Name))
	metav1.SetMetaDataLabel(&work.ObjectMeta, v1alpha1.WorkSetNamespaceLabel, d.set.Namespace)
	err := c.api.client.Patch(ctx, work, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return wrap(err, "label", client.ObjectKeyFromObject(work))
	}
	if err == nil {
		c.works.observe(c.works.read(work))
	}
	return errConflict
}
