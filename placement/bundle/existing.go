package bundle

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Held is a Work that a member has on the hub, as far as [Arrange] wants to know. Of one whose deletion has begun the
// name is enough.
type Held struct {
	// Work is what [Read] returns. The texts of its objects are not needed, and may be dropped.
	Work
	// Options is the hash of what its spec says besides, by [HashOptions].
	Options Hash
	// Written is what the caller has written, if no other client changed the spec since, by its generation: what the
	// API server made of that is as good. Nil: only what was read counts, as after a restart.
	Written *Fingerprint
	// Marked says that it has the labels and annotations that all Works of the caller have. One that has not is written
	// again.
	Marked bool
	// Noted says that it has the note: what the first Work alone is to say besides, such as which revision the member was
	// told. A caller without notes says so of all Works.
	Noted bool
	// Settled says that the member has done what it can with it as it is, by [Settled].
	Settled bool
	// Deleting says that its deletion has begun.
	Deleting bool
}

// Fingerprint tells what the spec of one Work says from what others say.
type Fingerprint struct {
	Objects Hash // of the Work: [Work].Hash
	Options Hash // by [HashOptions]
}

// is reports whether the Work is as it is wanted, but for the note.
func (h *Held) is(want Fingerprint) bool {
	return h.Marked && (Fingerprint{h.Hash, h.Options} == want || h.Written != nil && *h.Written == want)
}

func (h *Held) has(key Key) bool {
	return slices.ContainsFunc(h.Objects, func(o Object) bool { return o.Key() == key })
}

// HashOptions returns the hash of all that a Work says besides its manifests. What is not said is taken for the default
// that the API server puts there, so that the spec as it is written and the one that is read have the same.
func HashOptions(spec *workv1alpha1.WorkSpec) Hash {
	rest := *spec
	rest.Manifests = nil
	rest.Apply.Mode = cmp.Or(rest.Apply.Mode, workv1alpha1.ServerSideApply)
	rest.Apply.Takeover = cmp.Or(rest.Apply.Takeover, workv1alpha1.TakeoverNever)
	rest.Apply.Drift = cmp.Or(rest.Apply.Drift, workv1alpha1.DriftCorrect)
	rest.Waves.TimeoutSeconds = int32(rest.Waves.Timeout().Seconds())
	rest.Delete.Action = cmp.Or(rest.Delete.Action, workv1alpha1.DeleteObject)
	rest.Delete.Propagation = cmp.Or(rest.Delete.Propagation, metav1.DeletePropagationForeground)
	text, err := json.Marshal(rest)
	if err != nil { // it holds nothing that cannot be written
		return Hash{}
	}
	return sha256.Sum256(text)
}

// Settled reports whether the member has done what it can with a Work as it is: it says of this generation that all is
// applied, or that it is in trouble, of which only a change may be the end.
func Settled(work *workv1alpha1.Work) bool {
	return work.Status.ObservedGeneration == work.Generation &&
		slices.ContainsFunc(work.Status.Conditions, func(c metav1.Condition) bool {
			return (c.Type == workv1alpha1.ConditionApplied || c.Type == workv1alpha1.ConditionDegraded) &&
				c.Status == metav1.ConditionTrue &&
				(c.ObservedGeneration == 0 || c.ObservedGeneration >= work.Generation)
		})
}
