package bundle

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Errors of [Pack].
var (
	ErrTooLarge = fmt.Errorf("the object exceeds the maximum of %d bytes of manifests in a Work",
		workv1alpha1.MaxManifestBytes)
	ErrDuplicate = errors.New("the object occurs more than once")
)

// Work is one of the Works of a member.
type Work struct {
	// Name is the base name of all Works of the member, a hyphen, and a number that starts at 0: web-0.
	Name string
	// Objects are sorted by kind and name. Namespaces and CustomResourceDefinitions come first.
	Objects []Object
	// Hash is the hash of all objects. It does not depend on the name.
	Hash Hash
}

// Manifests returns the objects as manifests of the Work.
func (w *Work) Manifests() []workv1alpha1.Manifest {
	out := make([]workv1alpha1.Manifest, len(w.Objects))
	for i := range w.Objects {
		out[i] = w.Objects[i].Manifest()
	}
	return out
}

// Read returns the Work for manifests that were read from the hub, for a [Pack] after a restart. If Pack made the
// manifests, the hash is the same. Manifests that cannot be parsed are left out; the hash then differs, and the Work is
// written again.
func Read(name string, manifests []workv1alpha1.Manifest) Work {
	b := &bin{}
	for i := range manifests {
		text, err := manifests[i].MarshalJSON()
		if err != nil {
			continue
		}
		if o, err := Parse(text); err == nil {
			b.add(&o)
		}
	}
	return b.work(name)
}

// Pack divides objects among Works. Each object is in exactly one Work, and no Work exceeds its maximum size. The
// package documentation describes how the Work of an object is chosen. The result is sorted by number.
//
// previous contains the Works of an earlier Pack, or the existing Works as returned by [Read]. Pack uses only their
// names and the identifiers and hashes of their objects. A previous Work that is not in the result should be deleted;
// its number may be used again. Pack does not change its arguments, and their order is not significant.
//
// The error names every object that is too large or contained more than once, and each previous Work whose name does
// not start with base. The result is then nil.
func Pack(base string, previous []Work, objects []Object) ([]Work, error) {
	return pack(standard, base, previous, objects)
}

// limits contains the limits of a Work. New objects leave 1/free of them to the existing objects.
type limits struct{ objects, bytes, free int }

var standard = limits{workv1alpha1.MaxManifests, workv1alpha1.MaxManifestBytes, 8}

func pack(limits limits, base string, previous []Work, objects []Object) ([]Work, error) {
	wanted, err := index(limits, objects)
	if err != nil {
		return nil, err
	}
	bins, err := restore(base, previous, wanted)
	if err != nil {
		return nil, err
	}
	var homeless []Object
	for _, b := range bins {
		homeless = append(homeless, b.removeExcess(limits)...)
	}
	for _, o := range wanted {
		homeless = append(homeless, *o)
	}
	slices.SortFunc(homeless, compare)
	for i := range homeless {
		bins = place(limits, bins, &homeless[i])
	}

	works := make([]Work, 0, len(bins))
	for _, b := range bins {
		if len(b.objects) > 0 {
			works = append(works, b.work(base+"-"+strconv.Itoa(b.number)))
		}
	}
	return works, nil
}

// index returns the objects by their keys.
func index(limits limits, objects []Object) (map[Key]*Object, error) {
	wanted := make(map[Key]*Object, len(objects))
	var errs []error
	for i := range objects {
		o := &objects[i]
		switch key := o.Key(); {
		case o.storedSize() > limits.bytes:
			errs = append(errs, fmt.Errorf("%s: %w", o.ResourceIdentifier, ErrTooLarge))
		case wanted[key] != nil:
			errs = append(errs, fmt.Errorf("%s: %w", o.ResourceIdentifier, ErrDuplicate))
		default:
			wanted[key] = o
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return wanted, errors.Join(errs...)
}

// bin is a Work that is being filled.
type bin struct {
	number  int
	objects []Object
	bytes   int
	changed []Object // the objects whose content has changed
}

// restore puts the objects into their previous Works, even if they exceed the limits, and removes them from wanted.
func restore(base string, previous []Work, wanted map[Key]*Object) ([]*bin, error) {
	bins := make([]*bin, len(previous))
	for i := range previous {
		number := numberOf(base, previous[i].Name)
		if number < 0 {
			return nil, fmt.Errorf("pack the objects of %s: the name of Work %q must be that name with a number as its "+
				"suffix", base,
				previous[i].Name)
		}
		bins[i] = &bin{number: number}
	}
	order := make([]int, len(previous))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(bins[a].number, bins[b].number) })
	out := make([]*bin, 0, len(bins)+1)
	for n, i := range order {
		b := bins[i]
		if n > 0 && b.number == out[n-1].number {
			return nil, fmt.Errorf("pack the objects of %s: more than one Work has the name %s", base, previous[i].Name)
		}
		for j := range previous[i].Objects {
			was := &previous[i].Objects[j]
			o := wanted[was.Key()]
			if o == nil {
				continue // no longer desired, or in two Works and the earlier one has it
			}
			delete(wanted, was.Key())
			b.add(o)
			if o.Hash != was.Hash {
				b.changed = append(b.changed, *o)
			}
		}
		out = append(out, b)
	}
	return out, nil
}

// removeExcess removes objects so that the rest fits: first the largest changed objects, to move few. If unchanged
// objects alone exceed the limits, for example because a limit was reduced, it removes the last of them.
func (b *bin) removeExcess(limits limits) []Object {
	fits := func() bool { return b.bytes <= limits.bytes && len(b.objects) <= limits.objects }
	if fits() {
		return nil
	}
	candidates := slices.SortedFunc(slices.Values(b.changed), func(a, b Object) int {
		return cmp.Or(cmp.Compare(b.storedSize(), a.storedSize()), compare(a, b))
	})
	candidates = append(candidates, slices.SortedFunc(slices.Values(b.objects), func(a, b Object) int {
		return compare(b, a)
	})...)
	gone := map[Key]bool{}
	var out []Object
	for i := range candidates {
		if o := &candidates[i]; !gone[o.Key()] && !fits() {
			gone[o.Key()] = true
			out = append(out, *o)
			b.bytes -= o.storedSize()
			b.objects = slices.DeleteFunc(b.objects, func(other Object) bool { return other.Key() == o.Key() })
		}
	}
	return out
}

// place puts an object into the first bin that has room for it, or into a new one. Bins stay sorted by number.
func place(limits limits, bins []*bin, o *Object) []*bin {
	for i, b := range bins {
		if b.accepts(limits, o, i == 0) {
			b.add(o)
			return bins
		}
	}
	number := 0
	for number < len(bins) && bins[number].number == number {
		number++
	}
	b := &bin{number: number}
	b.add(o)
	return slices.Insert(bins, number, b)
}

// accepts reports whether a new object may be put into the bin. An empty bin takes any object. Objects that others
// depend on may fill the first bin completely.
func (b *bin) accepts(limits limits, o *Object, first bool) bool {
	if fills := first && isPrerequisite(o); len(b.objects) > 0 && !fills {
		limits.objects -= limits.objects / limits.free
		limits.bytes -= limits.bytes / limits.free
	}
	return len(b.objects) < limits.objects && b.bytes+o.storedSize() <= limits.bytes
}

func (b *bin) add(o *Object) {
	b.objects = append(b.objects, *o)
	b.bytes += o.storedSize()
}

func (b *bin) work(name string) Work {
	slices.SortFunc(b.objects, compare)
	sum := sha256.New()
	for i := range b.objects {
		sum.Write(b.objects[i].Hash[:])
	}
	return Work{name, b.objects, Hash(sum.Sum(nil))}
}

// isPrerequisite reports whether other objects depend on this one: a Namespace or a CustomResourceDefinition.
func isPrerequisite(o *Object) bool {
	return o.Group == "" && o.Kind == "Namespace" || o.Group == "apiextensions.k8s.io" &&
		o.Kind == "CustomResourceDefinition"
}

func compare(a, b Object) int {
	switch first := isPrerequisite(&a); {
	case first == isPrerequisite(&b):
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name))
	case first:
		return -1
	default:
		return 1
	}
}
