package agent

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// watch is one that runs. One of a kind that is gone, or that the agent may not watch, tries again for as long as a
// Work wants it, after up to half a minute.
type watch struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
	began    time.Time
	failed   <-chan struct{} // closed when it has failed once
	users    int             // Works that want it
}

// start has a watch run, which ends by its stop.
func (w *watches) start(t target, kind schema.GroupVersionKind) *watch {
	informer := w.newInformer(t, kind.GroupKind())
	changed := func(object any) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		if observed, ok := object.(metav1.Object); ok {
			w.emit(objectKey{kind.GroupKind(), observed.GetNamespace(), observed.GetName()})
		}
	}
	failed, logged := make(chan struct{}), logFailures(w.log, "member")
	once := sync.OnceFunc(func() { close(failed) })
	// Both fail only on an informer that has begun.
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *cache.Reflector, err error) {
		logged(ctx, reflector, err)
		once()
	})
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed,
		DeleteFunc: func(object any) {
			if job, ok := object.(*unstructured.Unstructured); ok { // Otherwise the last state is not known.
				w.deletedJob(objectKey{kind.GroupKind(), job.GetNamespace(), job.GetName()}, job)
			}
			changed(object)
		},
		UpdateFunc: func(before, after any) {
			if before.(metav1.Object).GetResourceVersion() != after.(metav1.Object).GetResourceVersion() {
				changed(after)
			}
		},
	})
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), w.log))
	w.ended.Go(func() { informer.RunWithContext(ctx) })
	return &watch{informer: informer, stop: stop, began: time.Now(), failed: failed}
}

var jobKind = schema.GroupKind{Group: "batch", Kind: "Job"}

// newInformer returns the informer of a target. It reads the metadata of objects, and whole Jobs: the result of a Job
// with ttlSecondsAfterFinished can be read only from the event of its deletion, if the Job is deleted at once.
func (w *watches) newInformer(t target, kind schema.GroupKind) cache.SharedIndexInformer {
	narrow := func(options *metav1.ListOptions) {
		switch t.which {
		case labeled:
			options.LabelSelector = v1alpha1.AppliedLabel + "=true"
		case single:
			options.FieldSelector = fields.OneTermEqualSelector("metadata.name", t.name).String()
		case everything:
		}
	}
	if kind == jobKind {
		return dynamicinformer.NewFilteredDynamicInformer(w.jobs.client, t.resource, t.namespace, 0, cache.Indexers{},
			narrow).Informer()
	}
	return metadatainformer.NewFilteredMetadataInformer(w.client, t.resource, t.namespace, 0, cache.Indexers{},
		narrow).Informer()
}

// logFailures logs what goes wrong with watches, but for what belongs to them.
func logFailures(log logr.Logger, at string) cache.WatchErrorHandlerWithContext {
	return func(_ context.Context, reflector *cache.Reflector, err error) {
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, io.EOF) {
			return
		}
		log.Info("A watch failed; trying again.", "at", at, "of", reflector.TypeDescription(), "error", err.Error())
	}
}
