package bundle

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// few limits a Work to 8 objects, 7 of which leave the free share, and to 800 bytes, so that tests need few objects.
var few = limits{objects: 8, bytes: 800, free: 8}

// sized returns an object whose text has a length.
func sized(t require.TestingT, kind, name string, size int) Object {
	text := func(filling string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"name":%q},"x":%q}`, kind, name, filling)
	}
	o, err := Parse([]byte(text(strings.Repeat("x", max(0, size-len(text("")))))))
	require.NoError(t, err)
	return o
}

// objectsByWork returns the objects of each Work.
func objectsByWork(works []Work) map[string][]string {
	out := map[string][]string{}
	for _, w := range works {
		for i := range w.Objects {
			out[w.Name] = append(out[w.Name], w.Objects[i].Name)
		}
	}
	return out
}

func TestPack(t *testing.T) {
	type sizes map[string]int
	objects := func(of sizes) (out []Object) {
		for name, size := range of {
			kind := "ConfigMap"
			if strings.HasPrefix(name, "ns") {
				kind = "Namespace"
			}
			out = append(out, sized(t, kind, name, size))
		}
		return out
	}
	for _, test := range []struct {
		reason      string
		steps       []sizes // one after the other
		want        map[string][]string
		wantWritten int // Works that the last step created, changed or deleted
	}{
		{"no objects need no Work", []sizes{{}}, map[string][]string{}, 0},
		{"objects that fit share one Work", []sizes{{"a": 100, "b": 100}}, map[string][]string{"w-0": {"a", "b"}}, 1},
		{"an eighth of each Work stays free", []sizes{{"a": 350, "b": 350, "c": 100}},
			map[string][]string{"w-0": {"a", "b"}, "w-1": {"c"}}, 2},
		{"an object that fills a Work has a Work of its own", []sizes{{"a": 800, "b": 100}},
			map[string][]string{"w-0": {"a"}, "w-1": {"b"}}, 2},
		{"a new object goes into the first Work with room", []sizes{{"a": 600, "b": 200, "c": 600},
			{"a": 600, "b": 200, "c": 600, "d": 100}}, map[string][]string{"w-0": {"a", "d"}, "w-1": {"b"}, "w-2": {"c"}}, 1},
		{"an object that grows stays while its Work has room", []sizes{{"a": 350, "b": 350}, {"a": 350, "b": 450}},
			map[string][]string{"w-0": {"a", "b"}}, 1},
		{"only the object that has outgrown its Work moves", []sizes{{"a": 350, "b": 300}, {"a": 350, "b": 500}},
			map[string][]string{"w-0": {"a"}, "w-1": {"b"}}, 2},
		{"the largest of several grown objects moves", []sizes{{"a": 200, "b": 200, "c": 200},
			{"a": 200, "b": 210, "c": 500}}, map[string][]string{"w-0": {"a", "b"}, "w-1": {"c"}}, 2},
		{"a Namespace is in the first Work", []sizes{{"a": 700, "ns": 100, "b": 300}},
			map[string][]string{"w-0": {"ns", "b"}, "w-1": {"a"}}, 2},
		{"a Namespace may use the free share of the first Work", []sizes{{"a": 690}, {"a": 690, "ns": 100}},
			map[string][]string{"w-0": {"ns", "a"}}, 1},
		{"a Namespace may not use the free share of another Work",
			[]sizes{{"a": 790, "b": 690}, {"a": 790, "b": 690, "ns": 90}},
			map[string][]string{"w-0": {"a"}, "w-1": {"b"}, "w-2": {"ns"}}, 1},
		{"an empty Work is deleted, and no object moves",
			[]sizes{{"a": 600, "b": 600, "c": 600}, {"a": 600, "c": 600}}, map[string][]string{"w-0": {"a"}, "w-2": {"c"}}, 1},
		{"the number of a deleted Work is used again", []sizes{{"a": 600, "b": 600, "c": 600}, {"a": 600, "c": 600},
			{"a": 600, "c": 600, "d": 600}}, map[string][]string{"w-0": {"a"}, "w-1": {"d"}, "w-2": {"c"}}, 1},
		{"removing and adding an object can be one write", []sizes{{"a": 700, "b": 700}, {"a": 700, "c": 700}},
			map[string][]string{"w-0": {"a"}, "w-1": {"c"}}, 1},
		{"replacing an object that fills a Work is one write",
			[]sizes{{"a": 800}, {"b": 800}}, map[string][]string{"w-0": {"b"}}, 1},
		{"the number of objects in a Work is limited", []sizes{{"a": 80, "b": 80, "c": 80, "d": 80, "e": 80, "f": 80, "g": 80,
			"h": 80}}, map[string][]string{"w-0": {"a", "b", "c", "d", "e", "f", "g"}, "w-1": {"h"}}, 2},
	} {
		var works, before []Work
		for _, step := range test.steps {
			before = works
			var err error
			works, err = pack(few, "w", before, objects(step))
			require.NoError(t, err, test.reason)
		}
		if diff := cmp.Diff(test.want, objectsByWork(works)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
		if got := written(before, works); got != test.wantWritten {
			t.Errorf("%s: want %d writes, got %d", test.reason, test.wantWritten, got)
		}
	}
}

// written returns the number of Works that must be created, changed or deleted.
func written(before, after []Work) int {
	hashes := map[string]Hash{}
	for _, w := range before {
		hashes[w.Name] = w.Hash
	}
	n := 0
	for _, w := range after {
		if hash, existed := hashes[w.Name]; !existed || hash != w.Hash {
			n++
		}
		delete(hashes, w.Name)
	}
	return n + len(hashes)
}

func TestPackRefuses(t *testing.T) {
	a := sized(t, "ConfigMap", "a", 100)
	for _, test := range []struct {
		reason   string
		previous []Work
		objects  []Object
		want     []string
	}{
		{"the error names each object that is too large",
			nil, []Object{a, sized(t, "Secret", "b", workv1alpha1.MaxManifestBytes+1),
				sized(t, "ConfigMap", "c", workv1alpha1.MaxManifestBytes+1)},
			[]string{"ConfigMap c: the object exceeds", "Secret b: the object exceeds"}},
		{"an object occurs twice", nil, []Object{a, a}, []string{"ConfigMap a: the object occurs more than once"}},
		{"a Work with another prefix", []Work{{Name: "x-0"}}, []Object{a}, []string{`"x-0"`}},
		{"a Work without a number", []Work{{Name: "w-"}}, []Object{a}, []string{`"w-"`}},
		{"a Work number with a leading zero", []Work{{Name: "w-01"}}, []Object{a}, []string{`"w-01"`}},
		{"a Work name occurs twice",
			[]Work{{Name: "w-0"}, {Name: "w-0"}}, []Object{a}, []string{"more than one Work has the name " +
				"w-0"}},
	} {
		works, err := Pack("w", test.previous, test.objects)
		if works != nil || err == nil {
			t.Errorf("%s: want only an error, got %v, %v", test.reason, works, err)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: want %q, got %v", test.reason, want, err)
			}
		}
	}
}

// TestPack_LargestObjectIsValid checks that the API server accepts a Work with an object of the maximum size.
func TestPack_LargestObjectIsValid(t *testing.T) {
	works, err := Pack("w", nil, []Object{sized(t, "ConfigMap", "a", workv1alpha1.MaxManifestBytes)})
	require.NoError(t, err)
	spec := workv1alpha1.WorkSpec{Manifests: works[0].Manifests()}
	require.Empty(t, spec.Validate())
}

// TestRead_RestoresPackedWork checks that nothing is written after a restart, independently of the encoding of the API
// server.
func TestRead_RestoresPackedWork(t *testing.T) {
	objects := []Object{sized(t, "ConfigMap", "<a>", 100), sized(t, "ConfigMap", "b", 100),
		sized(t, "Namespace", "c", 100)}
	works, err := Pack("w", nil, objects)
	require.NoError(t, err)
	stored := works[0].Manifests()
	slices.Reverse(stored)
	stored[0].Raw = []byte(strings.ReplaceAll(strings.ReplaceAll(string(stored[0].Raw), ":", " : "), "<", `\u003c`))
	require.Equal(t, works[0], Read("w-0", stored))

	stored[0].Raw = []byte(`{`)
	edited := Read("w-0", stored)
	require.Len(t, edited.Objects, 2)
	require.NotEqual(t, works[0].Hash, edited.Hash)
}

// TestPack_RestoresInterruptedMove checks that the distribution is restored from the Works. An object that is in two of
// them, because the hub stopped during a move, stays in the first one.
func TestPack_RestoresInterruptedMove(t *testing.T) {
	a, b := sized(t, "ConfigMap", "a", 300), sized(t, "ConfigMap", "b", 300)
	works, err := pack(few, "w", []Work{{Name: "w-1", Objects: []Object{a, b}}, {Name: "w-0", Objects: []Object{a}}},
		[]Object{b, a})
	require.NoError(t, err)
	require.Equal(t, map[string][]string{"w-0": {"a"}, "w-1": {"b"}}, objectsByWork(works))
}

// TestPack_ReducedLimit checks that Works that exceed a reduced limit are reduced to it.
func TestPack_ReducedLimit(t *testing.T) {
	objects := []Object{sized(t, "ConfigMap", "a", 500), sized(t, "ConfigMap", "b", 500), sized(t, "Namespace", "ns", 100)}
	works, err := pack(few, "w", []Work{{Name: "w-0", Objects: objects}}, objects)
	require.NoError(t, err)
	require.Equal(t, map[string][]string{"w-0": {"ns", "a"}, "w-1": {"b"}}, objectsByWork(works))
}

// TestPackProperties changes a set of objects at random, and checks the guarantees of Pack after each step.
func TestPackProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) Object {
			kind := rapid.SampledFrom([]string{"ConfigMap", "ConfigMap", "Namespace"}).Draw(t, "kind")
			return sized(t, kind, name, rapid.IntRange(60, few.bytes).Draw(t, "size"))
		}
		objects := map[Key]Object{}
		for i := range rapid.IntRange(0, 30).Draw(t, "objects") {
			o := draw(fmt.Sprintf("o%d", i))
			objects[o.Key()] = o
		}
		list := func() []Object {
			out := make([]Object, 0, len(objects))
			for _, o := range objects { // in any order
				out = append(out, o)
			}
			return out
		}
		works, err := pack(few, "w", nil, list())
		require.NoError(t, err)
		for step := range rapid.IntRange(1, 10).Draw(t, "steps") {
			before := works
			keys := make([]Key, 0, len(objects))
			for key := range objects {
				keys = append(keys, key)
			}
			slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(a.Kind+a.Name, b.Kind+b.Name) })
			changes := rapid.IntRange(0, 3).Draw(t, "changes")
			touched := map[Key]bool{}
			for i := range changes {
				action := rapid.SampledFrom([]string{"add", "remove", "change"}).Draw(t, "action")
				switch {
				case action == "add" || len(keys) == 0:
					o := draw(fmt.Sprintf("new%d-%d", step, i))
					objects[o.Key()] = o
					touched[o.Key()] = true
				default:
					key := rapid.SampledFrom(keys).Draw(t, "object")
					delete(objects, key)
					touched[key] = true
					if action == "change" {
						objects[key] = sized(t, key.Kind, key.Name, rapid.IntRange(60, few.bytes).Draw(t, "size"))
					}
				}
			}
			works, err = pack(few, "w", before, list())
			require.NoError(t, err)
			check(t, before, works, objects, touched)
			if n := written(before, works); n > 2*changes {
				t.Fatalf("%d changes made %d writes", changes, n)
			}
			shuffled := slices.Clone(before)
			slices.Reverse(shuffled)
			again, err := pack(few, "w", shuffled, list())
			require.NoError(t, err)
			require.True(t, reflect.DeepEqual(works, again), "the order of the Works must not matter")
			packed, err := pack(few, "w", works, list())
			require.NoError(t, err)
			require.True(t, reflect.DeepEqual(works, packed), "packing the result again must not change it")
		}
	})
}

func check(t *rapid.T, before, works []Work, objects map[Key]Object, touched map[Key]bool) {
	previous := map[Key]string{}
	for _, w := range before {
		for i := range w.Objects {
			previous[w.Objects[i].Key()] = w.Name
		}
	}
	seen := map[Key]string{}
	for _, w := range works {
		bytes := 0
		for i := range w.Objects {
			o := &w.Objects[i]
			if in, twice := seen[o.Key()]; twice {
				t.Fatalf("%s is in %s and in %s", o.ResourceIdentifier, in, w.Name)
			}
			seen[o.Key()] = w.Name
			bytes += len(o.JSON)
			require.True(t, reflect.DeepEqual(objects[o.Key()], *o))
			if from := previous[o.Key()]; !touched[o.Key()] && from != w.Name {
				t.Fatalf("%s did not change, and moved from %s to %s", o.ResourceIdentifier, from, w.Name)
			}
		}
		require.NotEmpty(t, w.Objects, w.Name)
		require.LessOrEqual(t, bytes, few.bytes, w.Name)
		require.LessOrEqual(t, len(w.Objects), few.objects, w.Name)
	}
	require.Len(t, seen, len(objects))
}

// TestPack_CountsStoredBytes checks that the limit applies to the stored size, in which < has six bytes.
func TestPack_CountsStoredBytes(t *testing.T) {
	page := func(name string) Object {
		o, err := Parse(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"html":%q}}`,
			name, strings.Repeat("<", workv1alpha1.MaxManifestBytes/10)))
		require.NoError(t, err)
		return o
	}
	works, err := Pack("web", nil, []Object{page("a"), page("b")})
	require.NoError(t, err)
	require.Len(t, works, 2)
}
