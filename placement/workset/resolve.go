package workset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/division"
	"github.com/muster-sdk/muster/placement/internal/revision"
	"github.com/muster-sdk/muster/placement/override"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// resolve determines the desired revision. If it cannot be determined, the current revision stays the desired one.
func (l *reconciliation) resolve(ctx context.Context) error {
	l.revision = l.set.Status.Revision
	if !l.state.revisions.read {
		history, err := l.store.List(ctx, l.set)
		if err != nil {
			return err
		}
		l.state.revisions.history, l.state.revisions.read = history, true
	}
	if err := l.state.spec.read(l.set); err != nil {
		l.problem(v1alpha1.ReasonInvalid, "%s", err)
		return nil
	}
	l.valid = true
	if l.set.Spec.Revision != "" {
		return l.pinRevision(ctx, l.set.Spec.Revision)
	}
	content, ok := l.content(ctx)
	if !ok {
		return nil
	}
	return l.advance(ctx, content)
}

// pinRevision makes the revision in spec.revision the desired one. It does not read the selected objects.
func (l *reconciliation) pinRevision(ctx context.Context, asked string) error {
	l.watcher.Forget(l.state.key)
	if !slices.ContainsFunc(l.state.revisions.history, func(r revision.Info) bool { return r.Name == asked }) {
		l.problem(v1alpha1.ReasonRevisionNotFound, "spec.revision: revision %s does not exist: use one of "+
			"status.revisions, or leave the field empty for the current content", asked)
		return nil
	}
	r, err := l.reading(ctx, asked)
	if err != nil {
		return err
	}
	if r == nil {
		l.problem(v1alpha1.ReasonRevisionNotFound,
			"spec.revision: revision %s cannot be used, because %s: use another one of status.revisions", asked,
			l.state.revisions.unreadable[asked])
		return nil
	}
	l.revision = asked
	return nil
}

// content returns the content of the revision for the current spec, and false if the objects cannot be determined. In
// that case it has recorded the problems.
func (l *reconciliation) content(ctx context.Context) (*revision.Content, bool) {
	spec := &l.set.Spec
	selected := l.watcher.Select(ctx, l.state.key, spec.Resources)
	for _, p := range selected.Problems {
		l.problem(v1alpha1.ReasonSelectionFailed, "spec.resources[%d]: %s", p.Selector, p.Message)
	}
	if len(selected.Problems) > 0 {
		return nil, false
	}
	before, err := l.reading(ctx, l.set.Status.Revision)
	if err != nil {
		l.problem(v1alpha1.ReasonSelectionFailed,
			"spec.resources: the current revision %s could not be read: %s", l.set.Status.Revision, err)
		l.requeueSoon()
		return nil, false
	}
	if before != nil {
		messages := emptied(l.set, before.content.Objects, selected.Objects, l.state.spec.manifests)
		for _, message := range messages {
			l.problem(v1alpha1.ReasonSelectionEmpty, "%s", message)
		}
		if len(messages) > 0 {
			return nil, false
		}
	}
	byKey := make(map[bundle.Key]bundle.Object, len(selected.Objects)+len(spec.Manifests))
	for _, objects := range [][]bundle.Object{selected.Objects, l.state.spec.manifests} {
		for i := range objects {
			byKey[objects[i].Key()] = objects[i]
		}
	}
	objects := slices.SortedFunc(maps.Values(byKey), func(a, b bundle.Object) int { return compareKeys(a.Key(), b.Key()) })
	return &revision.Content{Objects: objects, Overrides: spec.Overrides, Replicas: spec.Replicas, Work: spec.Work}, true
}

func compareKeys(a, b bundle.Key) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name))
}

// advance makes content the desired revision of all clusters. It stores the revision before any cluster is updated to
// it.
func (l *reconciliation) advance(ctx context.Context, content *revision.Content) error {
	name := revision.Name(l.set, content.Hash())
	if l.state.revisions.readings[name] == nil {
		r, err := read(content)
		if err != nil {
			l.problem(v1alpha1.ReasonInvalid, "spec.%s", err)
			return nil
		}
		l.state.revisions.readings[name] = r
		delete(l.state.revisions.unreadable, name)
	}
	if history := l.state.revisions.history; len(history) > 0 && history[0].Name == name && history[0].Complete {
		l.revision = name
		return nil
	}
	number := int64(1)
	if len(l.state.revisions.history) > 0 {
		number = l.state.revisions.history[0].Number + 1
	}
	info, err := l.store.Save(ctx, l.set, content, number)
	if persistent(err) || errors.Is(err, revision.ErrForeign) {
		l.problem(v1alpha1.ReasonWriteFailed, "%s", err)
		l.requeueSoon()
		return nil
	}
	if err != nil {
		return err
	}
	l.state.revisions.remove(info.Name)
	l.state.revisions.history = slices.Insert(l.state.revisions.history, 0, info)
	l.revision = name
	l.event(l.set, normal, "RevisionCreated", "Revision %s has %d objects.", name, len(content.Objects))
	return nil
}

// read parses a revision.
func read(content *revision.Content) (*reading, error) {
	overrides := content.Overrides
	if overrides == nil {
		overrides = &v1alpha1.Overrides{}
	}
	plan, err := override.New(content.Objects, overrides)
	if err != nil {
		return nil, fmt.Errorf("overrides: %w", err)
	}
	r := &reading{content: content, plan: plan, options: bundle.HashOptions(workSpec(&content.Work, nil))}
	if content.Replicas != nil {
		if r.division, err = division.New(content.Replicas); err != nil {
			return nil, fmt.Errorf("replicas: %w", err)
		}
	}
	return r, nil
}

// workSpec returns the spec of a Work.
func workSpec(template *v1alpha1.WorkTemplate, manifests []workv1alpha1.Manifest) *workv1alpha1.WorkSpec {
	return &workv1alpha1.WorkSpec{
		Manifests: manifests, Apply: template.Apply, ManifestOptions: template.ManifestOptions, Waves: template.Waves,
		Delete: template.Delete, Executor: template.Executor,
	}
}

// reading returns a parsed revision. Nil means that the revision is permanently unreadable; the state's unreadable
// revisions contain the reason.
func (l *reconciliation) reading(ctx context.Context, name string) (*reading, error) {
	s := l.state
	if r := s.revisions.readings[name]; r != nil || name == "" || s.revisions.unreadable[name] != "" {
		return r, nil
	}
	content, err := l.store.Load(ctx, l.set, name)
	for _, final := range []error{revision.ErrNotFound, revision.ErrIncomplete, revision.ErrCorrupt, revision.ErrLater} {
		if errors.Is(err, final) {
			l.setUnreadable(name, final)
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	r, err := read(content)
	if err != nil {
		l.setUnreadable(name, err)
		return nil, nil
	}
	s.revisions.readings[name] = r
	return r, nil
}

// setUnreadable records that a revision is permanently unreadable, so that it is not read again.
func (l *reconciliation) setUnreadable(name string, why error) {
	l.state.revisions.unreadable[name] = why.Error()
	if errors.Is(why, revision.ErrNotFound) {
		l.state.revisions.remove(name)
	}
}
