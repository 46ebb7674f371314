package selection

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

const (
	// maxKinds is the maximum number of kinds that a selector of every kind watches.
	maxKinds = 128
	// kindsInterval is how often the hub's kinds are listed while a selector of every kind exists. Up to a fifth of it is
	// added.
	kindsInterval = time.Minute
)

// everyKind contains the namespaced kinds of the hub, for selectors of every kind.
type everyKind struct {
	users   users
	began   time.Time
	done    chan struct{} // closed after the first attempt
	kinds   []schema.GroupKind
	problem problem
}

// neverSelected reports whether objects of a kind are selected only by name. Selectors of every kind do not watch such
// kinds.
func neverSelected(kind schema.GroupKind) bool {
	switch kind.Group {
	case "":
		return kind.Kind == "Event"
	case "events.k8s.io", "coordination.k8s.io", "metrics.k8s.io":
		return true
	default:
		return kind.Group == "muster.dev" || strings.HasSuffix(kind.Group, ".muster.dev")
	}
}

// expand reads selectors. A selector of every kind becomes one parsedSelector for each kind, and one for the Namespace.
func (w *Watcher) expand(owner types.NamespacedName, selectors []v1alpha1.ResourceSelector,
	await func(<-chan struct{}, time.Time)) []parsedSelector {
	var parsed []parsedSelector
	every := slices.ContainsFunc(selectors, func(s v1alpha1.ResourceSelector) bool { return s.Kind == v1alpha1.EveryKind })
	if e := w.wantEveryKind(owner, every); e != nil {
		await(e.done, e.began)
	}
	for i := range selectors {
		s := &selectors[i]
		if s.Kind != v1alpha1.EveryKind {
			a := read(owner, s)
			a.selector = i
			parsed = append(parsed, a)
			continue
		}
		if s.Group != "" || s.Version != "" || s.Name != "" {
			parsed = append(parsed, parsedSelector{selector: i, problem: problem{ReasonInvalid,
				"group, version and name must not be set in a selector for all kinds"}})
			continue
		}
		if cmp.Or(s.Namespace, owner.Namespace) == "" {
			parsed = append(parsed, parsedSelector{selector: i, problem: problem{ReasonInvalid,
				"the namespace is required for a selector of every kind"}})
			continue
		}
		kinds, unknown := w.knownKinds()
		if !unknown.none() {
			parsed = append(parsed, parsedSelector{selector: i, problem: unknown})
			continue
		}
		for _, kind := range kinds {
			one := *s
			one.Group, one.Kind = kind.Group, kind.Kind
			a := read(owner, &one)
			a.selector, a.every = i, true
			parsed = append(parsed, a)
		}
		if name := cmp.Or(s.Namespace, owner.Namespace); s.LabelSelector == nil && !ofEachCluster(name) {
			a := read(owner, &v1alpha1.ResourceSelector{Kind: "Namespace", Name: name})
			a.selector, a.every = i, true
			parsed = append(parsed, a)
		}
	}
	return parsed
}

// ofEachCluster reports whether every cluster has its own namespace of this name.
func ofEachCluster(namespace string) bool {
	return namespace == "default" || strings.HasPrefix(namespace, "kube-")
}

// wantEveryKind registers or removes an owner of selectors of every kind. It returns nil if the owner has none.
func (w *Watcher) wantEveryKind(owner types.NamespacedName, wants bool) *everyKind {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !wants {
		if w.every != nil {
			delete(w.every.users, owner)
		}
		return nil
	}
	if w.closed {
		return nil
	}
	if w.every == nil {
		e := &everyKind{users: users{}, began: w.options.Clock.Now(), done: make(chan struct{}), problem: notDiscovered}
		w.every = e
		w.ended.Go(func() { w.listKinds(e) })
	}
	if _, uses := w.every.users[owner]; !uses {
		w.every.users[owner] = false
	}
	return w.every
}

func (w *Watcher) knownKinds() ([]schema.GroupKind, problem) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.every == nil {
		return nil, stopping
	}
	return w.every.kinds, w.every.problem
}

// listKinds lists the kinds of the hub periodically until no owner wants them.
func (w *Watcher) listKinds(e *everyKind) {
	for first := true; ; first = false {
		kinds, err := w.discover()
		w.change(e.users, func() bool {
			if first {
				defer close(e.done)
			}
			before, was := e.kinds, e.problem
			switch {
			case err == nil && len(kinds) > maxKinds:
				e.problem = problem{ReasonOutOfBounds, fmt.Sprintf("the hub has %d namespaced kinds, and a selector of every "+
					"kind selects at most %d: name the kinds", len(kinds), maxKinds)}
			case err == nil:
				e.kinds, e.problem = kinds, problem{}
			case e.kinds == nil:
				e.problem = problem{ReasonNotSynced, "discovering the kinds of the hub fails and is retried: " + errorText(err)}
			}
			return was.reason != e.problem.reason || !slices.Equal(before, e.kinds)
		})
		timer := w.options.Clock.NewTimer(wait.Jitter(kindsInterval, 0.2))
		select {
		case <-timer.C():
		case <-w.life.Done():
			timer.Stop()
			return
		}
		w.mu.Lock()
		unused := len(e.users) == 0
		if unused {
			w.every = nil
		}
		w.mu.Unlock()
		if unused {
			return
		}
	}
}

// discover returns the namespaced kinds that can be listed and watched, sorted. It fails if one API group cannot be
// discovered, because the objects of that group would seem to be deleted.
func (w *Watcher) discover() ([]schema.GroupKind, error) {
	lists, err := w.discovery.ServerPreferredNamespacedResources()
	if err != nil {
		return nil, err
	}
	found := map[schema.GroupKind]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			kind := schema.GroupKind{Group: cmp.Or(r.Group, version.Group), Kind: r.Kind}
			if !strings.Contains(r.Name, "/") && slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch") &&
				!neverSelected(kind) {
				found[kind] = true
			}
		}
	}
	kinds := make([]schema.GroupKind, 0, len(found))
	for kind := range found {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return kinds, nil
}
