package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

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

type memories map[sameObject]memory

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
	keep := make(map[sameObject]bool, len(recorded)+len(plan))
	for _, resource := range recorded {
		keep[keyOf(resource.ResourceIdentifier)] = true
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
