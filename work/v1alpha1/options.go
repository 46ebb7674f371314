package v1alpha1

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EffectiveOptions are the options of one manifest, with all defaults.
//
// +kubebuilder:object:generate=false
type EffectiveOptions struct {
	Mode          ApplyMode
	Takeover      Takeover
	Drift         DriftPolicy
	Recreate      RecreatePolicy
	Additions     AdditionPolicy
	KeepConflicts bool
	Delete        DeleteAction
	Propagation   metav1.DeletionPropagation

	// IgnoredFields are paths for ParseFieldPath.
	IgnoredFields []string
	// Readiness is the custom readiness rule. Nil: the rule of the kind.
	Readiness         *ReadinessRule
	Feedback          []FeedbackRule
	FeedbackWellKnown bool
	// Wave is the wave of the object. Nil: the wave of the kind.
	Wave *int32
}

// Orphan changes the spec so that the deletion of the Work keeps all objects: it sets delete.action, and removes the
// overrides of manifestOptions. It reports whether the spec has changed.
func (s *WorkSpec) Orphan() (changed bool) {
	changed = s.Delete.Action != OrphanObject
	s.Delete.Action = OrphanObject
	for i := range s.ManifestOptions {
		changed = changed || s.ManifestOptions[i].Delete != ""
		s.ManifestOptions[i].Delete = ""
	}
	return changed
}

// OptionsFor returns the effective options of an object: apply and delete of the spec, overridden field by field by the
// manifestOptions that select the object. The last option has precedence. A list in an option replaces the previous
// list. Empty fields get the documented defaults, so the spec need not come from the API server. The result shares
// lists and pointers with the spec.
func (s *WorkSpec) OptionsFor(object ResourceIdentifier) EffectiveOptions {
	effective := EffectiveOptions{
		Mode:          cmp.Or(s.Apply.Mode, ServerSideApply),
		Takeover:      cmp.Or(s.Apply.Takeover, TakeoverNever),
		Drift:         cmp.Or(s.Apply.Drift, DriftCorrect),
		Recreate:      cmp.Or(s.Apply.Recreate, RecreateNever),
		Additions:     cmp.Or(s.Apply.Additions, AdditionsKeep),
		KeepConflicts: s.Apply.KeepConflicts,
		Delete:        cmp.Or(s.Delete.Action, DeleteObject),
		Propagation:   cmp.Or(s.Delete.Propagation, metav1.DeletePropagationForeground),
	}
	for i := range s.ManifestOptions {
		if option := &s.ManifestOptions[i]; option.Select.Selects(object) {
			effective.overlay(option)
		}
	}
	return effective
}

func (e *EffectiveOptions) overlay(option *ManifestOption) {
	e.Mode = cmp.Or(option.Mode, e.Mode)
	e.Takeover = cmp.Or(option.Takeover, e.Takeover)
	e.Drift = cmp.Or(option.Drift, e.Drift)
	e.Recreate = cmp.Or(option.Recreate, e.Recreate)
	e.Additions = cmp.Or(option.Additions, e.Additions)
	e.Delete = cmp.Or(option.Delete, e.Delete)
	if len(option.IgnoredFields) > 0 {
		e.IgnoredFields = option.IgnoredFields
	}
	e.Readiness = cmp.Or(option.Readiness, e.Readiness)
	if len(option.Feedback) > 0 {
		e.Feedback = option.Feedback
	}
	e.FeedbackWellKnown = e.FeedbackWellKnown || option.FeedbackWellKnown
	e.Wave = cmp.Or(option.Wave, e.Wave)
}

// Selects reports whether an object matches all fields of the selector. An empty selector matches every object; the API
// server rejects empty selectors in a Work.
func (s *ManifestSelector) Selects(object ResourceIdentifier) bool {
	return (s.Group == nil || *s.Group == object.Group) &&
		(s.Kind == "" || s.Kind == object.Kind) &&
		(s.Namespace == "" || s.Namespace == object.Namespace) &&
		(s.Name == "" || s.Name == object.Name)
}

// Timeout returns TimeoutSeconds as a duration, or its default of ten minutes.
func (w WavePolicy) Timeout() time.Duration {
	return time.Duration(cmp.Or(w.TimeoutSeconds, 600)) * time.Second
}
