package bundle

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Existing is an existing Work of a member on the hub, as [Arrange] needs it. If its deletion has begun, the name is
// sufficient.
type Existing struct {
	// Work is what [Read] returns. The texts of its objects are not needed, and may be dropped.
	Work
	// Options is the hash of the spec without its manifests, as [HashOptions] returns it.
	Options Hash
	// Written is the fingerprint of what the caller has written, if no other client has changed the spec since then, which
	// its generation shows. The defaults that the API server added then do not count as a difference. Nil: only what was
	// read is compared, as after a restart.
	Written *Fingerprint
	// Marked is true if the Work has the labels and annotations that all Works of the caller have. Otherwise it is written
	// again.
	Marked bool
	// Noted is true if the Work has the note that only the first Work has, such as the revision that was assigned to the
	// member. It is always true for callers without notes.
	Noted bool
	// Processed is true if the member has processed the Work, as [Processed] reports.
	Processed bool
	// Deleting is true if the deletion of the Work has begun.
	Deleting bool
}

// Fingerprint identifies the content of the spec of a Work.
type Fingerprint struct {
	Objects Hash // of the Work: [Work].Hash
	// Options is the hash of the options of the Work, see [HashOptions].
	Options Hash
}

// is reports whether the Work is as desired, except for the note.
func (h *Existing) is(want Fingerprint) bool {
	return h.Marked && (Fingerprint{h.Hash, h.Options} == want || h.Written != nil && *h.Written == want)
}

func (h *Existing) has(key Key) bool {
	return slices.ContainsFunc(h.Objects, func(o Object) bool { return o.Key() == key })
}

// HashOptions returns the hash of the spec of a Work without its manifests. A field that is not set has the same hash
// as the default that the API server sets.
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
	if err != nil { // every WorkSpec can be encoded
		return Hash{}
	}
	return sha256.Sum256(text)
}

// Processed reports whether the member has processed the present generation of a Work: the Work is applied, or is
// degraded, which only a change can resolve.
func Processed(work *workv1alpha1.Work) bool {
	return work.Status.ObservedGeneration == work.Generation &&
		slices.ContainsFunc(work.Status.Conditions, func(c metav1.Condition) bool {
			return (c.Type == workv1alpha1.ConditionApplied || c.Type == workv1alpha1.ConditionDegraded) &&
				c.Status == metav1.ConditionTrue &&
				(c.ObservedGeneration == 0 || c.ObservedGeneration >= work.Generation)
		})
}
