package apply

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/ssa"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

func objectKey(id v1alpha1.ResourceIdentifier) client.ObjectKey {
	return client.ObjectKey{Namespace: id.Namespace, Name: id.Name}
}

// watchedMetadata returns the metadata of an object from the watch. Nil: unknown.
func (e *Engine) watchedMetadata(t *task) *metav1.PartialObjectMetadata {
	if e.options.Metadata == nil {
		return nil
	}
	return e.options.Metadata.Lookup(t.id.GroupVersionKind(), objectKey(t.id))
}

// observeObject observes an object, unless it was observed already in this pass.
func (e *Engine) observeObject(ctx context.Context, owner Owner, t *task) error {
	if t.fetched {
		return nil
	}
	if watched := e.watchedMetadata(t); watched != nil {
		t.observed = e.recall(owner, t).latest(observe(watched, owner))
		return nil
	}
	m := e.recall(owner, t)
	if now := e.options.Clock.Now(); m.rejected.blocksReads(t.hash, now) {
		return &withheldError{err: m.rejected.err, wait: m.rejected.wait(t.hash, "", now)}
	}
	if t.assumed = t.isNew(m); t.assumed {
		t.observed = nil
		return nil
	}
	return e.fetchOrWithhold(ctx, owner, t)
}

// isNew reports whether an object probably does not exist: it was never applied, and was never observed to exist. Then
// the engine tries to create it without a read. The creation fails if the object exists.
func (t *task) isNew(m memory) bool {
	if t.Manifest == nil {
		return false
	}
	never := t.Takeover == "" || t.Takeover == v1alpha1.TakeoverNever
	return t.recorded == (recorded{}) && m.written == nil && m.rejected.count == 0 && !m.existed && never &&
		t.Mode != v1alpha1.CreateOnly && !t.observesOnly() && !t.published()
}

// fetchOrWithhold reads the metadata of an object from the API server. If the read is forbidden, it is not repeated on
// each reconcile.
func (e *Engine) fetchOrWithhold(ctx context.Context, owner Owner, t *task) error {
	err := e.fetchMetadata(ctx, owner, t)
	if forbidden(err) {
		m := e.recall(owner, t)
		m.rejected = m.rejected.again(t.hash, "", e.options.Clock.Now(), err)
		m.rejected.read = true
		e.remember(owner, t, m)
	}
	return err
}

// fetchMetadata observes an object by reading its metadata from the API server.
func (e *Engine) fetchMetadata(ctx context.Context, owner Owner, t *task) error {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	object, err := ssa.Metadata(ctx, e.client, t.id.GroupVersionKind(), objectKey(t.id))
	if err != nil {
		return fmt.Errorf("read the metadata of the object: %w", err)
	}
	t.observed, t.fetched = nil, true
	if object != nil {
		t.observed = observe(object, owner)
	}
	return nil
}

// read reads an object from the API server.
func (e *Engine) read(ctx context.Context, id v1alpha1.ResourceIdentifier) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	live, err := ssa.Read(ctx, e.client, id.GroupVersionKind(), objectKey(id))
	if err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	return live, nil
}

const (
	// prefetchFrom is the number of objects of a kind in a namespace from which on a list is cheaper than reads.
	prefetchFrom = 4
	// prefetchPage is the maximum number of objects in a page of a list.
	prefetchPage = 500
	// readsPerPage is the approximate number of reads that cost as much as a page.
	readsPerPage = 10
)

// prefetch observes objects by lists where there are many of one kind in one namespace. The others are read one by one.
func (e *Engine) prefetch(ctx context.Context, owner Owner, unknown []*task) {
	type place struct {
		kind      schema.GroupVersionKind
		namespace string
	}
	groups := map[place]map[string]*task{}
	for _, t := range unknown {
		in := place{t.id.GroupVersionKind(), t.id.Namespace}
		if groups[in] == nil {
			groups[in] = map[string]*task{}
		}
		groups[in][t.id.Name] = t
	}
	for in, group := range groups {
		if len(group) >= prefetchFrom {
			e.list(ctx, owner, in.kind, group)
		}
	}
}

// list observes the objects of one kind in one namespace. It stops if reads are cheaper because the namespace has many
// other objects, or if a request fails: the client may have permission to get but not to list.
func (e *Engine) list(ctx context.Context, owner Owner, kind schema.GroupVersionKind, group map[string]*task) {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	var namespace string
	for _, t := range group {
		namespace = t.id.Namespace
	}
	kind.Kind += "List"
	options := &client.ListOptions{Namespace: namespace, Limit: prefetchPage}
	for range 1 + len(group)/readsPerPage {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := e.client.List(ctx, list, options); err != nil {
			return
		}
		for i := range list.Items {
			if t := group[list.Items[i].Name]; t != nil {
				t.observed, t.fetched = observe(&list.Items[i], owner), true
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			for _, t := range group {
				t.fetched = true // an object in no page does not exist
			}
			return
		}
	}
}

// memory is the cached state of one object of an owner. It only saves requests.
type memory struct {
	// written is the object after our last write, and hash is that of the manifest. A watch may be behind.
	written *observation
	hash    string
	// compared is the result of the last comparison.
	compared comparison
	// contest is the history of heals for the manifest that hash is of.
	contest contest
	// rejected is the last response of the API server, if it rejected the manifest.
	rejected rejection
	// existed is true if the object was found to exist although this engine has never applied it.
	existed bool
}

// comparison contains the differences between a manifest and a version of the object.
type comparison struct {
	hash     string
	version  string
	diffs    []v1alpha1.FieldDiff
	rejected error // of the API server, if it rejects the manifest
}

type memories map[ssa.Key]memory

func (e *Engine) recall(owner Owner, t *task) memory {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := e.memory[owner.ID()][keyOf(t.id)]
	if m.hash != t.hash {
		m.contest = nil
	}
	return m
}

func (e *Engine) remember(owner Owner, t *task, m memory) {
	e.mu.Lock()
	defer e.mu.Unlock()
	of := e.memory[owner.ID()]
	if of == nil {
		of = memories{}
		e.memory[owner.ID()] = of
	}
	of[keyOf(t.id)] = m
}

// retain drops the cached state of objects that are neither in the inventory nor in the set.
func (e *Engine) retain(owner Owner, recorded []v1alpha1.AppliedResource, plan tasks) {
	keep := make(map[ssa.Key]bool, len(recorded)+len(plan))
	for _, resource := range recorded {
		keep[entryKey(resource)] = true
	}
	for i := range plan {
		keep[keyOf(plan[i].id)] = true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for key := range e.memory[owner.ID()] {
		if !keep[key] {
			delete(e.memory[owner.ID()], key)
		}
	}
}

func (e *Engine) forget(owner Owner, id v1alpha1.ResourceIdentifier) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.memory[owner.ID()], keyOf(id))
}

// Forget drops the cached state of an owner that does not exist any more, given its [Owner.ID].
func (e *Engine) Forget(owner types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.memory, owner)
}

// rememberWrite caches the response to an apply. If the apply wrote the object to heal it, rememberWrite adds the heal
// to the history of the contest.
func (e *Engine) rememberWrite(owner Owner, t *task, answer *unstructured.Unstructured, d decision,
	wrote bool) *observation {
	written := observe(answer, owner)
	written.entries = nil
	history := e.recall(owner, t).contest
	if d.heals() && wrote {
		history = history.healed(d.lost, e.options.Clock.Now())
	}
	e.remember(owner, t, memory{written: written, hash: t.hash, contest: history})
	return written
}

// latest returns the later one of the watched object and the object after our last write. Versions of one kind can be
// compared, also if the object was created again.
func (m memory) latest(watched *observation) *observation {
	if m.written == nil {
		return watched
	}
	if order, err := resourceversion.CompareResourceVersion(watched.version, m.written.version); err == nil && order < 0 {
		return m.written
	}
	return watched
}

// accepted returns our managed fields after the last write of the current manifest. They may lack fields of the
// manifest: the API server drops unknown fields, and admission may change applied fields. Nil: unknown.
func (m memory) accepted(t *task) []byte {
	if m.written == nil || t.observed == nil || m.hash != t.hash || m.written.uid != t.observed.uid {
		return nil
	}
	return m.written.fields
}
