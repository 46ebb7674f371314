package selection

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/internal/sharedwatch"
	"github.com/muster-sdk/muster/placement/bundle"
)

var owner = types.NamespacedName{Namespace: "shop", Name: "web"}

// idleWatch returns a watch that sends no request. calls counts the calls of Changed.
func idleWatch(target Target, selector labels.Selector) (t *watch, calls *int, clock *testclock.FakeClock) {
	calls, clock = new(int), testclock.NewFakeClock(time.Unix(0, 0))
	w := &Watcher{options: Options{Log: logr.Discard(), Clock: clock, Changed: func(types.NamespacedName) { *calls++ }},
		closed: true}
	target.LabelSelector = selector.String()
	t = &watch{Watcher: w, users: users{}, target: target, labels: selector, done: make(chan struct{}),
		stop: func() {}, failure: failure{problem: notListed(target)}}
	w.watches.Want(owner, []Target{target}, func(Target) *watch { return t })
	return t, calls, clock
}

func secrets(name string) Target {
	return Target{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Kind: "Secret",
		Namespace: "shop", Name: name}
}

// drawObject returns an object that an API server may send in a response for secrets of the namespace shop, requested
// or not.
func drawObject(r *rapid.T) *unstructured.Unstructured {
	metadata := map[string]any{
		"name": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "name"), "namespace": "shop", "uid": "u",
		"resourceVersion": fmt.Sprint(rapid.IntRange(1, 1000).Draw(r, "version")),
		"labels":          map[string]any{"app": rapid.SampledFrom([]string{"web", "web", "other"}).Draw(r, "app")},
	}
	object := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": metadata,
		"stringData": fmt.Sprint(rapid.IntRange(0, 2).Draw(r, "data"))}
	switch rapid.IntRange(0, 9).Draw(r, "special case") {
	case 0:
		object["type"] = "bootstrap.kubernetes.io/token" // is never distributed
	case 1:
		object["stringData"] = deep(200) // is nested too deeply
	case 2:
		metadata["namespace"] = "bank"
	case 3:
		object["kind"] = "ConfigMap"
	}
	return &unstructured.Unstructured{Object: object}
}

func deep(levels int) any {
	var value any = "x"
	for range levels {
		value = []any{value}
	}
	return value
}

// TestChanged_OnlyIfSelectionDiffers checks for random events that the selection of an owner follows from the
// existing objects, and that Changed is called if and only if the selection differs from the one before.
func TestChanged_OnlyIfSelectionDiffers(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := parsedSelector{labels: labels.Everything()}
		switch rapid.IntRange(0, 2).Draw(r, "selector") {
		case 0:
			a.name = "a"
		case 1:
			a.labels = labels.SelectorFromSet(labels.Set{"app": "web"})
		}
		watch, calls, clock := idleWatch(secrets(a.name), a.labels)
		a.target = watch.target
		existing := map[string]*unstructured.Unstructured{} // of the namespace, by name
		listed, watched := false, false
		put := func(o *unstructured.Unstructured) {
			if o.GetNamespace() == "shop" {
				existing[o.GetName()] = o
			}
		}
		before := watch.snapshot(owner, []parsedSelector{a})
		check := func(r *rapid.T) {
			now := watch.snapshot(owner, []parsedSelector{a})
			if changed := !cmp.Equal(before, now); changed != (*calls > 0) {
				r.Fatalf("the selection differs: %v, but Changed was called %d times", changed, *calls)
			}
			before, *calls = now, 0
			if diff := cmp.Diff(naive(a, existing, listed), names(now.Objects)); diff != "" {
				r.Fatalf("objects (-want +got):\n%s", diff)
			}
			if !listed && len(now.Problems) == 0 {
				r.Fatal("without a list there must be a Problem")
			}
			for _, p := range now.Problems {
				if watched && p.Reason != ReasonNotFound && p.Reason != ReasonRefused {
					r.Fatalf("unexpected problem while the watch works: %s", p.Message)
				}
			}
		}
		r.Repeat(map[string]func(*rapid.T){
			"": check,
			"list": func(r *rapid.T) {
				var objects []any
				clear(existing)
				for _, o := range rapid.SliceOfN(rapid.Custom(drawObject), 0, 4).Draw(r, "objects") {
					if existing[o.GetName()] == nil { // a list has each name once, except in other namespaces
						objects = append(objects, o)
						put(o)
					}
				}
				if rapid.Bool().Draw(r, "streamed") {
					watched = true
					watch.Lists(sharedwatch.Watch)
					for i := range objects {
						objects[i], _ = watch.Transformer()(objects[i])
					}
				} else {
					watch.Lists(sharedwatch.List)
				}
				require.NoError(r, watch.Replace(objects, "1"))
				listed = true
			},
			"change": func(r *rapid.T) {
				if !listed {
					return
				}
				o := drawObject(r)
				put(o)
				if rapid.Bool().Draw(r, "new") {
					require.NoError(r, watch.Add(o))
				} else {
					require.NoError(r, watch.Update(o))
				}
			},
			"delete": func(r *rapid.T) {
				if !listed {
					return
				}
				o := drawObject(r)
				if o.GetNamespace() == "shop" {
					delete(existing, o.GetName())
				}
				require.NoError(r, watch.Delete(o))
			},
			"fail": func(r *rapid.T) {
				clock.Step(time.Duration(rapid.IntRange(0, 100).Draw(r, "seconds")) * time.Second)
				err := rapid.SampledFrom([]error{
					errors.New("reset"), apierrors.NewInternalError(errors.New("webhook")),
					apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")),
					apierrors.NewGenericServerResponse(404, "list", schema.GroupResource{}, "", "", 0, true),
				}).Draw(r, "error")
				watched = false
				watch.Failed(rapid.SampledFrom([]sharedwatch.Request{sharedwatch.List, sharedwatch.Watch}).
					Draw(r, "request"), err)
			},
			"watched": func(*rapid.T) {
				if listed {
					watched = true
					watch.Watches()
				}
			},
		})
	})
}

// naive returns the objects of the namespace that a selector selects, computed directly.
func naive(a parsedSelector, existing map[string]*unstructured.Unstructured, listed bool) []string {
	out := []string{}
	for _, name := range slices.Sorted(maps.Keys(existing)) {
		o := existing[name]
		if _, err := bundle.Clean(o); listed && err == nil && o.GetKind() == "Secret" && (a.name == "" || a.name == name) &&
			a.labels.Matches(labels.Set(o.GetLabels())) {
			out = append(out, name+" "+o.Object["stringData"].(string))
		}
	}
	return out
}

func names(objects []bundle.Object) []string {
	out := []string{}
	for i := range objects {
		_, data, _ := strings.Cut(string(objects[i].JSON), `"stringData":"`)
		out = append(out, objects[i].Name+" "+data[:1])
	}
	return out
}

// TestSelect_ChangedIsNotCalledBefore checks that Changed is not called for an owner whose Select still waits for the
// first list.
func TestSelect_ChangedIsNotCalledBefore(t *testing.T) {
	watch, calls, _ := idleWatch(secrets(""), labels.Everything())
	require.NoError(t, watch.Replace(nil, "1"))
	require.Zero(t, *calls)
	watch.snapshot(owner, []parsedSelector{{target: watch.target}})
	watch.Failed(sharedwatch.Watch, apierrors.NewForbidden(schema.GroupResource{}, "", nil))
	require.Equal(t, 1, *calls)
}

// TestChanged_KindIsFoundAgain checks that Changed is called if the mapping of a kind changes, and is not called if the
// kind is found again with the same mapping.
func TestChanged_KindIsFoundAgain(t *testing.T) {
	watch, calls, _ := idleWatch(secrets(""), labels.Everything())
	k := &kind{users: users{owner: true}, done: make(chan struct{}), problem: notDiscovered}
	found := func(scope meta.RESTScope) int {
		*calls = 0
		watch.found(k, &meta.RESTMapping{Resource: watch.target.GroupVersionResource, Scope: scope}, nil)
		return *calls
	}
	require.Equal(t, 1, found(meta.RESTScopeNamespace))
	require.Equal(t, 0, found(meta.RESTScopeNamespace))
	watch.found(k, nil, &meta.NoKindMatchError{})
	require.Equal(t, 0, *calls, "the watches report that the kind is gone")
	require.Equal(t, 1, found(meta.RESTScopeRoot))
}

// TestSelect_NestedTooDeeply checks that objects that are nested too deeply are reported in one Problem, however many
// there are.
func TestSelect_NestedTooDeeply(t *testing.T) {
	watch, _, _ := idleWatch(secrets(""), labels.Everything())
	var objects []any
	for _, name := range []string{"b", "a", "c"} {
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": "shop"},
			"spec": deep(200),
		}})
	}
	require.NoError(t, watch.Replace(objects, "1"))
	watch.recovered(sharedwatch.Watch)
	got := watch.snapshot(owner, []parsedSelector{{target: watch.target}})
	require.Equal(t, []Problem{{
		Reason: ReasonRefused,
		Message: "Secret shop/a: maps and lists must not be nested more than 100 levels deep: change the object, or the " +
			"selector so that it does not match; 2 more objects have a problem",
	}}, got.Problems)
}
