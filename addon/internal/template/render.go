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

// Errors of templates. The errors of [Render] wrap them.
var (
	ErrManifest   = errors.New("a manifest must be a JSON object with apiVersion, kind and metadata.name")
	ErrAnnotation = errors.New("invalid annotation")
)

// Input describes the member for which a template is rendered.
type Input struct {
	// Cluster is the name of the member, Addon the name of the add-on, and InstallNamespace its namespace on the member.
	// All are required.
	Cluster, Addon, InstallNamespace string
	// HostingNamespace is the namespace of the agent on the hosting member; see [HostingNamespace]. Empty: the agent runs
	// on the member itself, and all objects are applied there.
	HostingNamespace string
	// Settings are the merged AddonConfigs. The zero value means no AddonConfig.
	Settings config.Settings
}

// Output contains the objects of an add-on for a member. It shares no memory with the template.
type Output struct {
	// Part contains the objects for the member itself.
	Part
	// Hosting contains the objects for the hosting member. It is empty without a hosting member.
	Hosting Part
	// Registration is the registration of the template. Nil: the add-on's agent needs no access to the hub.
	Registration *v1alpha1.TemplateRegistration
}

// Part contains the objects for one cluster.
type Part struct {
	// Objects are the objects to apply: the install namespace if it was added, and the manifests in order.
	Objects []*unstructured.Unstructured
	// Hooks are the Jobs and Pods that run before the add-on is removed, in order.
	Hooks []*unstructured.Unstructured
	// Options are the options of the objects: those of the template with the variables of this cluster.
	Options []workv1alpha1.ManifestOption
}

// Error is an error of a template for a member.
type Error struct {
	// Object identifies the object as in the template, with variables. Empty if the error concerns no object, or an
	// object without a name.
	Object workv1alpha1.ResourceIdentifier
	// Field is the path of the field in the template's spec, for example manifests[3].data.url.
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

// Render returns the objects of an add-on for a member. It is deterministic and does not modify its arguments.
//
// The error is one [*Error], or several joined ones, one for each manifest or option. They wrap [ErrSyntax],
// [ErrUnknown], [ErrTooLarge], [ErrManifest] or [ErrAnnotation]. Alternatively, the error wraps [ErrBuiltIn] if the
// settings contain a built-in variable, or it is an error of [config.Settings.Apply]. With an error there is no output.
//
// The Work and the member validate the manifests further.
func Render(spec *v1alpha1.AddonTemplateSpec, in Input) (Output, error) {
	e, err := newExpander(in)
	if err != nil {
		return Output{}, err
	}
	member, hosting := &site{expander: e, namespace: in.InstallNamespace},
		&site{expander: e.installedIn(in.HostingNamespace), namespace: in.HostingNamespace}
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

// site is one of the clusters of an add-on.
type site struct {
	*expander
	namespace string // the install namespace
	objects   []*unstructured.Unstructured
	options   []workv1alpha1.ManifestOption
	part      Part
}

// finish completes the part of the site, given the scopes of kinds that the template defines.
func (s *site) finish(defined map[schema.GroupKind]string, settings config.Settings) error {
	setNamespaces(s.objects, defined, s.namespace)
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

// read parses a manifest.
func read(manifest *v1alpha1.TemplateManifest, at string) (*unstructured.Unstructured, error) {
	text, err := manifest.MarshalJSON()
	var content map[string]any
	if err != nil || utiljson.Unmarshal(text, &content) != nil {
		return nil, &Error{Field: at, Err: ErrManifest} // the cause may contain a secret
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// hosted reports whether a manifest is applied on the hosting member, which determines its variables.
func (e *expander) hosted(object *unstructured.Unstructured) bool {
	written, _, _ := unstructured.NestedString(object.Object, "metadata", "annotations", v1alpha1.LocationAnnotation)
	location, err := e.expand(written)
	return err == nil && location == v1alpha1.LocationHosting
}

// manifest replaces the variables of a manifest.
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

// identify returns the identifier of an object, and whether it is complete.
func identify(object *unstructured.Unstructured) (id workv1alpha1.ResourceIdentifier, complete bool) {
	kind := object.GroupVersionKind()
	id = workv1alpha1.ResourceIdentifier{Group: kind.Group, Version: kind.Version, Kind: kind.Kind,
		Namespace: object.GetNamespace(), Name: object.GetName()}
	return id, id.Version != "" && id.Kind != "" && id.Name != ""
}

var hookKinds = []schema.GroupKind{{Group: "batch", Kind: "Job"}, {Kind: "Pod"}}

func checkAnnotations(kind schema.GroupKind, annotations map[string]string) error {
	switch annotations[v1alpha1.PreDeleteAnnotation] {
	case "", "false":
	case "true":
		if !slices.Contains(hookKinds, kind) {
			return fmt.Errorf("%w: %s is supported for Jobs and Pods only", ErrAnnotation, v1alpha1.PreDeleteAnnotation)
		}
	default:
		return fmt.Errorf(`%w: %s must be "true" or "false"`, ErrAnnotation, v1alpha1.PreDeleteAnnotation)
	}
	if err := oneOf(annotations, v1alpha1.ScopeAnnotation, v1alpha1.ScopeCluster, v1alpha1.ScopeNamespaced); err != nil {
		return err
	}
	return oneOf(annotations, v1alpha1.LocationAnnotation, v1alpha1.LocationMember, v1alpha1.LocationHosting)
}

// oneOf checks an annotation that has one of two values, or is not set.
func oneOf(annotations map[string]string, name, one, other string) error {
	switch annotations[name] {
	case "", one, other:
		return nil
	}
	return fmt.Errorf("%w: %s must be %s or %s", ErrAnnotation, name, one, other)
}
