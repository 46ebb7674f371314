package template

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/muster-sdk/muster/addon/config"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Why a template cannot be rendered. Errors wrap them.
var (
	ErrManifest   = errors.New("a manifest must be a JSON object with apiVersion, kind and metadata.name")
	ErrAnnotation = errors.New("invalid annotation")
)

// Input is the member that a template is rendered for.
type Input struct {
	// Cluster is the name of the member, Addon that of the add-on, and InstallNamespace where it is on the member. None may be empty.
	Cluster, Addon, InstallNamespace string
	// HostingNamespace is where the agent of this member is on the hosting member that it runs on; see [HostingNamespace]. Empty: it runs on the
	// member itself, and all of the add-on goes there.
	HostingNamespace string
	// Settings are those of all AddonConfigs that count. The zero value is that of none.
	Settings config.Settings
}

// Output is what an add-on consists of for a member. It shares nothing with the template.
type Output struct {
	// Part is what goes to the member itself.
	Part
	// Hosting is what goes to the hosting member. It is empty if the agent runs on the member itself.
	Hosting Part
	// Registration is as the template has it: nil if the add-on's agent does not need the hub.
	Registration *v1alpha1.TemplateRegistration
}

// Part is what goes to one cluster.
type Part struct {
	// Objects to apply: the namespace where the add-on is, if it had to be added, and the manifests in their order.
	Objects []*unstructured.Unstructured
	// Hooks are the Jobs and Pods that run before the add-on is removed, in their order.
	Hooks []*unstructured.Unstructured
	// Options of the objects. They are those of the template, with their variables as they are for this cluster.
	Options []workv1alpha1.ManifestOption
}

// Error is what is wrong with a template for a member.
type Error struct {
	// Object is as the template has it, variables and all. It is empty if the error is about none, or has no name.
	Object workv1alpha1.ResourceIdentifier
	// Field of the template's spec, such as manifests[3].data.url.
	Field string
	Err   error
}

func (e *Error) Error() string {
	if e.Object.Kind == "" {
		return fmt.Sprintf("%s: %v", e.Field, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", e.Object, e.Field, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Render returns what the add-on consists of for a member. The same always gives the same, and nothing that is given is changed.
//
// The error is one [*Error], or several joined, one a manifest or option, that wrap [ErrSyntax], [ErrUnknown], [ErrTooLarge], [ErrManifest] or [ErrAnnotation];
// or it wraps [ErrBuiltIn], if settings have a variable that they cannot; or it is as of [config.Settings.Apply]. With an error there is
// no output: half of an add-on is none.
//
// What more a manifest must be is for the Work that it gets into, and for the member to say.
func Render(spec *v1alpha1.AddonTemplateSpec, in Input) (Output, error) {
	e, err := newExpander(in)
	if err != nil {
		return Output{}, err
	}
	member, hosting := &site{expander: e, namespace: in.InstallNamespace}, &site{expander: e.installedIn(in.HostingNamespace), namespace: in.HostingNamespace}
	sites := []*site{member, hosting}
	if in.HostingNamespace == "" {
		sites = sites[:1]
	}
	var errs []error
	for i := range spec.Manifests {
		at := fmt.Sprintf("manifests[%d]", i)
		object, err := read(&spec.Manifests[i], at)
		if err == nil {
			to := member
			if len(sites) > 1 && e.hosted(object) {
				to = hosting
			}
			to.objects = append(to.objects, object)
			err = to.manifest(object, at)
		}
		errs = append(errs, err)
	}
	for i := range spec.ManifestOptions {
		var err error
		for _, s := range sites {
			option := *spec.ManifestOptions[i].DeepCopy()
			err = cmp.Or(err, s.selector(&option.Select, fmt.Sprintf("manifestOptions[%d].select", i)))
			s.options = append(s.options, option)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return Output{}, err
	}
	out := Output{Registration: spec.Registration.DeepCopy()}
	defined := definedIn(member.objects, hosting.objects)
	for _, s := range sites {
		if err := s.finish(defined, in.Settings); err != nil {
			return Output{}, err
		}
	}
	out.Part, out.Hosting = member.part, hosting.part
	return out, nil
}

// site is a cluster that something of the add-on goes to.
type site struct {
	*expander
	namespace string // where the add-on is there
	objects   []*unstructured.Unstructured
	options   []workv1alpha1.ManifestOption
	part      Part
}

// finish makes the part of the site, given the scopes of kinds that the template defines.
func (s *site) finish(defined map[schema.GroupKind]string, settings config.Settings) error {
	settle(s.objects, defined, s.namespace)
	objects, err := settings.Apply(WithNamespace(s.objects, s.namespace))
	if err != nil {
		return err
	}
	s.part.Options = s.options
	for _, object := range objects {
		if object.GetAnnotations()[v1alpha1.PreDeleteAnnotation] == "true" {
			s.part.Hooks = append(s.part.Hooks, object)
		} else {
			s.part.Objects = append(s.part.Objects, object)
		}
	}
	return nil
}

// read reads a manifest.
func read(manifest *v1alpha1.TemplateManifest, at string) (*unstructured.Unstructured, error) {
	text, err := manifest.MarshalJSON()
	var content map[string]any
	if err != nil || utiljson.Unmarshal(text, &content) != nil {
		return nil, &Error{Field: at, Err: ErrManifest} // the cause may have a secret in it
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// hosted says whether a manifest goes to the hosting member, which decides what its variables stand for.
func (e *expander) hosted(object *unstructured.Unstructured) bool {
	written, _, _ := unstructured.NestedString(object.Object, "metadata", "annotations", v1alpha1.LocationAnnotation)
	location, err := e.expand(written)
	return err == nil && location == v1alpha1.LocationHosting
}

// manifest expands the strings of a manifest.
func (e *expander) manifest(object *unstructured.Unstructured, at string) error {
	written, _ := identify(object)
	if _, err := e.all(object.Object); err != nil {
		return &Error{written, at + err.at, err.err}
	}
	if _, complete := identify(object); !complete {
		return &Error{written, at, ErrManifest}
	}
	annotations, _, err := unstructured.NestedStringMap(object.Object, "metadata", "annotations")
	if err != nil {
		return &Error{written, at + ".metadata.annotations", ErrManifest}
	}
	if err := checkAnnotations(object.GroupVersionKind().GroupKind(), annotations); err != nil {
		return &Error{written, at + ".metadata.annotations", err}
	}
	return nil
}

// identify reads what an object is told by, and whether that is all there.
func identify(object *unstructured.Unstructured) (id workv1alpha1.ResourceIdentifier, complete bool) {
	kind := object.GroupVersionKind()
	id = workv1alpha1.ResourceIdentifier{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
	return id, id.Version != "" && id.Kind != "" && id.Name != ""
}

var hookKinds = []schema.GroupKind{{Group: "batch", Kind: "Job"}, {Kind: "Pod"}}

func checkAnnotations(kind schema.GroupKind, annotations map[string]string) error {
	switch annotations[v1alpha1.PreDeleteAnnotation] {
	case "", "false":
	case "true":
		if !slices.Contains(hookKinds, kind) {
			return fmt.Errorf("%w: %s is for Jobs and Pods: nothing else runs to an end", ErrAnnotation, v1alpha1.PreDeleteAnnotation)
		}
	default:
		return fmt.Errorf(`%w: %s must be "true" or "false"`, ErrAnnotation, v1alpha1.PreDeleteAnnotation)
	}
	if err := oneOf(annotations, v1alpha1.ScopeAnnotation, v1alpha1.ScopeCluster, v1alpha1.ScopeNamespaced); err != nil {
		return err
	}
	return oneOf(annotations, v1alpha1.LocationAnnotation, v1alpha1.LocationMember, v1alpha1.LocationHosting)
}

// oneOf checks an annotation that has one of two values, or none.
func oneOf(annotations map[string]string, name, one, other string) error {
	switch annotations[name] {
	case "", one, other:
		return nil
	}
	return fmt.Errorf("%w: %s must be %s or %s", ErrAnnotation, name, one, other)
}
