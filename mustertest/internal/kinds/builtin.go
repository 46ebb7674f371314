package kinds

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// AllVerbs are the verbs of a stored resource.
var AllVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// builtin has the rules that Kubernetes applies to one of its own kinds.
type builtin struct {
	new            func() runtime.Object
	virtual        bool
	generation     bool // updates increment metadata.generation
	conditional    bool // an update requires a resourceVersion
	createOnUpdate bool
	constant       bool // metadata.generation stays 1
	metaOnCreate   bool // metadata is validated completely only on creation
	keepStatus     bool // a create request may set status
	orphans        bool
	graceful       func(Object) bool
	name           validation.ValidateNameFunc
	fields         map[string]fieldPath
	defaults       func(runtime.Object)
	prepareCreate  func(Object)
	prepareUpdate  func(obj, old Object)
	validate       func(runtime.Object) field.ErrorList
	validateUpdate func(obj, old runtime.Object) field.ErrorList
}

// fieldPath is a path into an object, and the value that a field selector uses if the path does not exist.
type fieldPath struct{ path, zero string }

func pathSegmentName(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// row is one line of the table of built-in kinds. Flags: n namespaced, s status, c scale, g generation, u conditional
// update, o create on update, v virtual.
type row struct {
	gv, kind, resource, flags string
	shortNames, categories    string
	rules                     builtin
}

// Builtins returns the built-in kinds that the server serves.
func Builtins() []*Kind {
	var out []*Kind
	for _, r := range table() {
		gv, err := schema.ParseGroupVersion(r.gv)
		if err != nil {
			panic(err)
		}
		has := func(flag string) bool { return strings.Contains(r.flags, flag) }
		rules := r.rules
		rules.virtual, rules.generation = has("v"), has("g")
		rules.conditional, rules.createOnUpdate = has("u"), has("o")
		k := &Kind{
			GVK: gv.WithKind(r.kind), Resource: gv.WithResource(r.resource), Preferred: true,
			Storage: schema.GroupResource{Group: gv.Group, Resource: r.resource},
			Names: Names{
				Singular: strings.ToLower(r.kind), ListKind: r.kind + "List",
				ShortNames: words(r.shortNames), Categories: words(r.categories),
			},
			Namespaced: has("n"), Subresources: Subresources{Status: has("s"), Scale: has("c")}, Verbs: AllVerbs,
			builtin: &rules,
		}
		if rules.new == nil {
			rules.new = newOf(k.GVK)
		}
		if rules.name == nil {
			rules.name = validation.NameIsDNSSubdomain
		}
		if rules.virtual {
			k.Verbs = []string{"create"}
		}
		if r.gv == "v1" && r.resource == "namespaces" {
			k.Verbs = slices.DeleteFunc(slices.Clone(AllVerbs), func(v string) bool { return v == "deletecollection" })
		}
		if r.gv == "events.k8s.io/v1" {
			k.Storage = schema.GroupResource{Resource: "events"}
			k.conversion = conversion{toStored: eventToCore, toServed: eventFromCore}
		}
		out = append(out, k)
	}
	return out
}

func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Fields(text)
}

// TokenRequest returns the kind of the subresource token of ServiceAccounts.
func TokenRequest() *Kind {
	gv := schema.GroupVersion{Group: "authentication.k8s.io", Version: "v1"}
	k := &Kind{
		GVK: gv.WithKind("TokenRequest"), Resource: gv.WithResource("serviceaccounts/token"), Namespaced: true,
		Verbs: []string{"create"},
	}
	k.builtin = &builtin{virtual: true, new: newOf(k.GVK), name: validation.NameIsDNSSubdomain}
	return k
}
