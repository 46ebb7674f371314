package agent

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/feedback"
	"github.com/muster-sdk/muster/work/readiness"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// plan is the decoded form of a Work. It is computed once for each generation, because decoding is most of the cost
// of reconciling a Work without changes.
type plan struct {
	uid        types.UID
	generation int64
	policy     string // the version of the ObjectPolicy

	manifests []planned
	objects   []apply.Object // of those manifests that are not refused
	refused   field.ErrorList
	unscoped  bool // the ObjectPolicy cannot decide before the scope of a kind is known
}

// planned is the decoded form of one manifest.
type planned struct {
	id      v1alpha1.ResourceIdentifier
	refused string // why it cannot be applied
	reason  string // of that; empty: it is invalid
	object  int    // its index among the objects; -1: it is refused

	evaluationKey     string          // the readiness rule and the feedback of the object, as in the Work
	rule              *readiness.Rule // nil: by the kind
	scoped            bool            // it is known whether the kind is cluster-scoped
	warning           string          // about a manifest that is applied nevertheless
	doesNotBlockWaves bool            // later waves do not wait for the object
	feedback          []wantedValue
	wellKnown         bool
}

type wantedValue struct {
	name string
	path *feedback.Path
}

// makePlan decodes a Work. An error in a manifest, or in one of its options, rejects only that manifest.
func makePlan(work *v1alpha1.Work) *plan {
	p := &plan{uid: work.UID, generation: work.Generation}
	decoded, refused := work.Spec.Decode()
	if len(decoded) == 0 {
		p.refused = refused
	}
	for i := range decoded {
		m, object, err := planOne(&work.Spec, &decoded[i])
		if len(decoded[i].Errors) > 0 {
			err = decoded[i].Errors.ToAggregate()
		}
		if m.object = -1; err != nil {
			m.refused = err.Error()
		} else {
			m.object = len(p.objects)
			p.objects = append(p.objects, object)
		}
		p.manifests = append(p.manifests, m)
	}
	return p
}

func planOne(spec *v1alpha1.WorkSpec, decoded *v1alpha1.DecodedManifest) (planned, apply.Object, error) {
	options := spec.OptionsFor(decoded.ResourceIdentifier)
	m := planned{id: decoded.ResourceIdentifier, wellKnown: options.FeedbackWellKnown}
	m.doesNotBlockWaves = options.Wave == nil && isCustom(decoded.GroupVersionKind().GroupKind())
	object := apply.Object{
		Manifest: decoded.Object, Mode: options.Mode, Takeover: options.Takeover, Drift: options.Drift,
		KeepConflicts: options.KeepConflicts, Recreate: options.Recreate, Additions: options.Additions, Wave: options.Wave,
	}
	if options.Delete != spec.Delete.Action {
		object.Delete = options.Delete
	}
	if options.Readiness != nil {
		m.evaluationKey = options.Readiness.CEL
	}
	m.evaluationKey = fmt.Sprintf("%q %q %t", m.evaluationKey, options.Feedback, options.FeedbackWellKnown)
	for _, text := range options.IgnoredFields {
		path, err := v1alpha1.ParseFieldPath(text)
		if err != nil {
			return m, object, fmt.Errorf("ignoredFields: %w", err)
		}
		object.IgnoredFields = append(object.IgnoredFields, path)
	}
	if decoded.Exported {
		object, m.warning = withoutCluster(object)
	}
	if options.Readiness != nil {
		rule, err := readiness.CompileCEL(options.Readiness.CEL)
		if err != nil {
			return m, object, fmt.Errorf("readiness.cel: %w", err)
		}
		m.rule = rule
	}
	for _, rule := range options.Feedback {
		path, err := feedback.Compile(rule.JSONPath)
		if err != nil {
			return m, object, fmt.Errorf("feedback %s: jsonPath: %w", rule.Name, err)
		}
		m.feedback = append(m.feedback, wantedValue{rule.Name, path})
	}
	return m, object, nil
}

// isFor reports whether the plan is current: it was made from this generation of the Work and with these rules.
func (p *plan) isFor(work *v1alpha1.Work, rules rules) bool {
	return p != nil && p.uid == work.UID && p.generation == work.Generation && p.policy == rules.version && !p.unscoped
}

// isComplete reports whether the plan has an object for every manifest. Only then are other objects known to be
// undesired.
func (p *plan) isComplete() bool { return len(p.refused) == 0 && len(p.objects) == len(p.manifests) }

// suspended returns the objects of the plan for a suspended Work: nothing is written, and differences are reported.
func (p *plan) suspended() []apply.Object {
	objects := slices.Clone(p.objects)
	for i := range objects {
		switch objects[i].Mode {
		case v1alpha1.CreateOnly, v1alpha1.Observe:
			objects[i].Mode = v1alpha1.Observe
		default:
			objects[i].Mode = v1alpha1.ReportDiff
		}
	}
	return objects
}

// stillValid returns the earlier evaluations that are still valid for the readiness rule and feedback of the plan.
func (p *plan) stillValid(before map[objectKey]evaluation) map[objectKey]evaluation {
	evaluated := map[objectKey]evaluation{}
	for i := range p.manifests {
		key := keyOf(p.manifests[i].id)
		if known, ok := before[key]; ok && known.key == p.manifests[i].evaluationKey {
			evaluated[key] = known
		}
	}
	return evaluated
}

func identifierOf(object apply.Object) v1alpha1.ResourceIdentifier {
	kind := object.Manifest.GroupVersionKind()
	return v1alpha1.ResourceIdentifier{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: object.Manifest.GetNamespace(),
		Name: object.Manifest.GetName(),
	}
}
