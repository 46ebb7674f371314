package tenancy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/muster-sdk/muster/internal/definition"
	"github.com/muster-sdk/muster/tenancy/v1alpha1"
)

// Grants contains the rules of all namespaces, computed from the ClusterSets and ClusterSetBindings of a hub. Its
// methods may be called concurrently.
type Grants struct {
	cache  cache.Cache // nil: the rules never change
	log    logr.Logger
	served func(context.Context) (bool, error) // whether the definition of ClusterSetBindings is served and stays

	mu       sync.Mutex
	sets     map[string]Set
	bindings map[types.NamespacedName]observed
	rules    map[string]*Rules // by namespace; missing: computed on demand
	// selection contains the SelectionGrants by name.
	selection map[string]v1alpha1.SelectionGrantSpec
	watchers  map[*func(namespace string)]bool
}

// observed is the last observed state of a ClusterSetBinding.
type observed struct {
	uid types.UID
	// set is the name of the ClusterSet.
	set string
	// limits points to the same object until the limits change.
	limits *Limits
	// granted means that the binding has its finalizer and no deletionTimestamp.
	granted bool
	// deleted means that the request to delete the binding was confirmed. Such an entry stays after the object was
	// removed.
	deleted bool
	// confirming means that a deletionTimestamp was observed.
	confirming bool
}

func newGrants(served func(context.Context) (bool, error)) *Grants {
	return &Grants{
		served: served, sets: map[string]Set{}, bindings: map[types.NamespacedName]observed{}, rules: map[string]*Rules{},
		watchers: map[*func(string)]bool{}, selection: map[string]v1alpha1.SelectionGrantSpec{},
	}
}

// Load returns the current grants, for explanations and dry runs. They never change. Load needs the verb list on
// clustersets and clustersetbindings.
func Load(ctx context.Context, reader client.Reader) (*Grants, error) {
	g := newGrants(nil)
	var sets v1alpha1.ClusterSetList
	if err := reader.List(ctx, &sets); err != nil {
		return nil, fmt.Errorf("list ClusterSets: %w", err)
	}
	for i := range sets.Items {
		g.setChanged(&sets.Items[i])
	}
	var bindings v1alpha1.ClusterSetBindingList
	if err := reader.List(ctx, &bindings); err != nil {
		return nil, fmt.Errorf("list ClusterSetBindings: %w", err)
	}
	for i := range bindings.Items {
		g.bindingChanged(ctx, &bindings.Items[i])
	}
	return g, nil
}

// Watch observes sets and bindings until the caller calls end. It returns when all existing objects were observed.
// Several callers may watch at the same time.
func (g *Grants) Watch(ctx context.Context, changed func(namespace string)) (end func(), _ error) {
	if g.cache == nil {
		return func() {}, nil
	}
	g.mu.Lock()
	g.watchers[&changed] = true
	g.mu.Unlock()
	unwatch := func() {
		g.mu.Lock()
		delete(g.watchers, &changed)
		g.mu.Unlock()
	}
	ctx, cancel := context.WithCancel(ctx)
	endSets, err := follow(ctx, g.cache, &v1alpha1.ClusterSet{}, g.setChanged, g.setGone)
	if err != nil {
		cancel()
		unwatch()
		return nil, fmt.Errorf("watch ClusterSets: %w", err)
	}
	endBindings, err := follow(ctx, g.cache, &v1alpha1.ClusterSetBinding{},
		func(b *v1alpha1.ClusterSetBinding) { g.bindingChanged(ctx, b) },
		func(b *v1alpha1.ClusterSetBinding) { g.bindingGone(ctx, b) })
	if err != nil {
		cancel()
		unwatch()
		endSets()
		return nil, fmt.Errorf("watch ClusterSetBindings: %w", err)
	}
	endSelection, err := follow(ctx, g.cache, &v1alpha1.SelectionGrant{},
		func(s *v1alpha1.SelectionGrant) { g.selectionChanged(s.Name, &s.Spec) },
		func(s *v1alpha1.SelectionGrant) { g.selectionChanged(s.Name, nil) })
	if err != nil {
		cancel()
		unwatch()
		endBindings()
		endSets()
		return nil, fmt.Errorf("watch SelectionGrants: %w", err)
	}
	return func() { cancel(); unwatch(); endSelection(); endBindings(); endSets() }, nil
}

// follow calls functions for the objects of a kind. It returns when they were called for all existing objects.
func follow[T client.Object](ctx context.Context, c cache.Cache, kind T, changed, gone func(T)) (end func(), _ error) {
	informer, err := c.GetInformer(ctx, kind)
	if err != nil {
		return nil, err
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { changed(object.(T)) },
		UpdateFunc: func(_, object any) { changed(object.(T)) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if last, ok := object.(T); ok {
				gone(last)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	end = func() { _ = informer.RemoveEventHandler(registration) } // It fails only if the informer has ended.
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		end()
		return nil, context.Cause(ctx)
	}
	return end, nil
}

// Rules returns the rules of a namespace. It returns the same pointer until the rules change.
func (g *Grants) Rules(namespace string) *Rules {
	g.mu.Lock()
	defer g.mu.Unlock()
	rules := g.rules[namespace]
	if rules == nil {
		var bindings []Binding
		var sets []Set
		for name, b := range g.bindings {
			if name.Namespace != namespace || !b.granted && !b.deleted {
				continue
			}
			bindings = append(bindings, Binding{Namespace: namespace, Name: name.Name, Set: b.set, Deleted: b.deleted,
				Limits: b.limits})
			if set, exists := g.sets[b.set]; exists {
				sets = append(sets, set)
			}
		}
		selection := make([]v1alpha1.SelectionGrantSpec, 0, len(g.selection))
		for _, name := range slices.Sorted(maps.Keys(g.selection)) {
			selection = append(selection, g.selection[name])
		}
		rules = NewRules(namespace, sets, bindings).WithSelection(selection)
		g.rules[namespace] = rules
	}
	return rules
}

// MayPlace reports whether a namespace may newly place on a cluster with these labels.
func (g *Grants) MayPlace(namespace string, clusterLabels map[string]string) bool {
	return g.Rules(namespace).MayPlace(Cluster{Labels: clusterLabels}) == nil
}

// setOf returns the observed state of a ClusterSet.
func setOf(set *v1alpha1.ClusterSet) Set {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil || set.Spec.Selector == nil {
		return Set{Name: set.Name}
	}
	return Set{Name: set.Name, Selector: selector}
}

func (g *Grants) setChanged(set *v1alpha1.ClusterSet) {
	next := setOf(set)
	g.mu.Lock()
	before, existed := g.sets[set.Name]
	same := existed && (before.Selector == nil) == (next.Selector == nil) &&
		(before.Selector == nil || before.Selector.String() == next.Selector.String())
	if same {
		g.mu.Unlock()
		return
	}
	g.sets[set.Name] = next
	g.unlockAndReport(g.users(set.Name))
}

func (g *Grants) setGone(set *v1alpha1.ClusterSet) {
	g.mu.Lock()
	delete(g.sets, set.Name)
	g.unlockAndReport(g.users(set.Name))
}

// selectionChanged records a SelectionGrant, or its removal if spec is nil. It reports all namespaces that have rules,
// because a grant can apply to many namespaces.
func (g *Grants) selectionChanged(name string, spec *v1alpha1.SelectionGrantSpec) {
	g.mu.Lock()
	before, existed := g.selection[name]
	if spec == nil && !existed || spec != nil && existed && equality.Semantic.DeepEqual(before, *spec) {
		g.mu.Unlock()
		return
	}
	if delete(g.selection, name); spec != nil {
		g.selection[name] = *spec
	}
	namespaces := map[string]bool{}
	for namespace := range g.rules {
		namespaces[namespace] = true
	}
	g.unlockAndReport(namespaces)
}

// users returns the namespaces with a binding of a set. The caller holds the lock.
func (g *Grants) users(set string) map[string]bool {
	namespaces := map[string]bool{}
	for name, b := range g.bindings {
		if b.set == set {
			namespaces[name.Namespace] = true
		}
	}
	return namespaces
}

// unlockAndReport drops the rules of namespaces, releases the lock and reports the change.
func (g *Grants) unlockAndReport(namespaces map[string]bool) {
	for namespace := range namespaces {
		delete(g.rules, namespace)
	}
	watchers := slices.Collect(maps.Keys(g.watchers))
	g.mu.Unlock()
	for namespace := range namespaces {
		for _, changed := range watchers {
			(*changed)(namespace)
		}
	}
}

func (g *Grants) bindingChanged(ctx context.Context, b *v1alpha1.ClusterSetBinding) {
	name := client.ObjectKeyFromObject(b)
	next := observed{
		uid: b.UID, set: b.Spec.ClusterSetName, confirming: b.DeletionTimestamp != nil,
		granted: b.DeletionTimestamp == nil && controllerutil.ContainsFinalizer(b, v1alpha1.Finalizer),
	}
	limits := &Limits{Kinds: b.Spec.Kinds, ServiceAccount: b.Spec.ServiceAccount}
	g.mu.Lock()
	before := g.bindings[name]
	if next.limits = before.limits; next.limits == nil || !equality.Semantic.DeepEqual(*next.limits, *limits) {
		next.limits = limits
	}
	if before.uid == next.uid && before.deleted {
		next.deleted = true
	}
	if before == next {
		g.mu.Unlock()
		return
	}
	g.bindings[name] = next
	if next.confirming && (before.uid != next.uid || !before.confirming) {
		g.confirm(ctx, name, next.uid)
	}
	g.unlockAndReport(map[string]bool{name.Namespace: true})
}

// bindingGone keeps the entry of a binding whose deletion was requested, because a decision in progress may still
// choose a cluster by this binding. If a binding is missing without such a request, no cluster is withdrawn.
func (g *Grants) bindingGone(ctx context.Context, b *v1alpha1.ClusterSetBinding) {
	if b.DeletionTimestamp != nil {
		g.bindingChanged(ctx, b)
		return
	}
	name := client.ObjectKeyFromObject(b)
	g.mu.Lock()
	if g.bindings[name].uid != b.UID || g.bindings[name].deleted || g.bindings[name].confirming {
		g.mu.Unlock()
		return
	}
	delete(g.bindings, name)
	g.unlockAndReport(map[string]bool{name.Namespace: true})
}

// confirm determines whether the deletion of a binding is a request. It is not a request if the definition is being
// removed, and all bindings with it.
func (g *Grants) confirm(ctx context.Context, name types.NamespacedName, uid types.UID) {
	if g.served == nil {
		return
	}
	var try func()
	try = func() {
		if ctx.Err() != nil {
			return
		}
		served, err := g.served(ctx)
		if err != nil || !served {
			if err != nil && ctx.Err() == nil {
				g.log.Error(err, "Cannot confirm the deletion of a ClusterSetBinding", "binding", name.String())
			}
			time.AfterFunc(retryConfirm, try)
			return
		}
		g.mu.Lock()
		b := g.bindings[name]
		if b.uid != uid || b.deleted {
			g.mu.Unlock()
			return
		}
		b.deleted = true
		g.bindings[name] = b
		g.unlockAndReport(map[string]bool{name.Namespace: true})
	}
	time.AfterFunc(definition.ConfirmAfter, try)
}

// retryConfirm is the time between two attempts to confirm a deletion.
const retryConfirm = 10 * time.Second
